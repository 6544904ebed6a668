"""Models on trial: which jobs are spoken by them. Who binds a job's segments to which devices stands in `tts_bind`."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from datetime import timedelta

from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services.audit import record_act
from portal.lib.errors import InvalidInput
from tts.models import Device, ModelShare
from tts.models.model_share import WHOLE
from tts.states import DEVICE_HEARTBEAT_SECONDS

OBJECT_KIND = "model"


def place_of(job_id: uuid.UUID) -> int:
    """The job's place among 10,000, by its number alone: each time the same, and evenly spread."""
    return int.from_bytes(hashlib.sha256(job_id.bytes).digest()[:8], "big") % WHOLE


def drawn_engine(*, job_id: uuid.UUID, needs: Iterable[str]) -> str:
    """The model on trial that speaks this job; "" for the pool's own models, which speak most.

    A model that no living device has, or whose devices cannot speak what the job needs, is not drawn. A query, and a
    second one for what has drawn a model.
    """
    place, end = place_of(job_id), 0
    for engine, share in (
        ModelShare.objects.filter(share__gt=0).order_by("engine").values_list("engine", "share")
    ):
        end += share
        if place < end:
            return engine if _is_spoken(engine, frozenset(needs)) else ""
    return ""


def _is_spoken(engine: str, needs: frozenset[str]) -> bool:
    alive = Device.objects.filter(
        engine=engine, heartbeat_at__gte=Now() - timedelta(seconds=DEVICE_HEARTBEAT_SECONDS)
    )
    return any(not offers or needs <= set(offers) for offers in alive.values_list("offers", flat=True))


@transaction.atomic
def set_share(*, engine: str, share: int | None, changed_by: User, reason: str) -> None:
    """Put a model on trial with `share` of 10,000 jobs, or end its trial (None): then it is one of the pool's own.

    Jobs that have drawn a model keep it. Locks the table of shares. Writes a line of the audit log.

    Raises:
        InvalidInput: no reason, no device with this engine, a share outside of 0 to 10,000, or more than all in sum.
    """
    reason = " ".join(reason.split())
    if not reason:
        raise InvalidInput(field="reason", reason=_("Say why; the reason goes into the audit log."))
    if not Device.objects.filter(engine=engine).exists():
        raise InvalidInput(field="engine", reason=_("No device has this model. Swap one to it first."))
    with connection.cursor() as cursor:
        # Two who change at once would both find room for theirs.
        cursor.execute("LOCK TABLE tts_modelshare IN SHARE ROW EXCLUSIVE MODE")
    before = dict(ModelShare.objects.values_list("engine", "share"))
    if share is None:
        ModelShare.objects.filter(engine=engine).delete()
    else:
        others = sum(other for name, other in before.items() if name != engine)
        if not 0 <= share <= WHOLE - others:
            raise InvalidInput(
                field="share", reason=_("Models on trial have at most all of the traffic together.")
            )
        ModelShare.objects.update_or_create(
            engine=engine, defaults={"share": share, "changed_by": changed_by}
        )
    record_act(
        actor=changed_by,
        act="model.share",
        object_kind=OBJECT_KIND,
        object_id=engine,
        object_name=engine,
        reason=reason,
        before={"share": before.get(engine)},
        after={"share": share},
    )
