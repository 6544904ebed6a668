"""What the clock does about webhooks once in a while: old deliveries go, deleted endpoints go, owners are told."""

from __future__ import annotations

import logging
import smtplib
import uuid
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.core.mail import send_mail
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation

from accounts.models import DeliveryState, SwitchedOff, User, WebhookDelivery, WebhookEndpoint
from accounts.selectors.people import people_who_run
from portal.lib.mail_refusals import is_about_this_mail

logger = logging.getLogger(__name__)
KEPT: Final = timedelta(days=30)
# Longer than any transaction that may still have seen the endpoint as it was.
DELETED_ENDPOINTS_KEPT: Final = timedelta(hours=1)
DELETED_AT_ONCE: Final = 5_000
MAILS_AT_ONCE: Final = 20


def look_after_webhooks() -> None:
    """All of it. A task of the clock, once a minute."""
    delete_old_deliveries()
    remove_deleted_endpoints()
    tell_owners()


def delete_old_deliveries() -> int:
    """Delete deliveries older than 30 days with their tries; returns how many. What is still on its way stays."""
    old = WebhookDelivery.objects.filter(
        created_at__lt=Now() - KEPT, state__in=[DeliveryState.DELIVERED, DeliveryState.FAILED]
    )
    return _delete(old.order_by("created_at").values_list("pk", flat=True)[:DELETED_AT_ONCE])


def remove_deleted_endpoints() -> int:
    """Remove endpoints that were deleted a while ago, after their deliveries; returns how many."""
    gone = WebhookEndpoint.objects.filter(deleted_at__lt=Now() - DELETED_ENDPOINTS_KEPT)
    theirs = WebhookDelivery.objects.filter(endpoint__in=gone)
    _delete(theirs.values_list("pk", flat=True)[:DELETED_AT_ONCE])
    has_some = Exists(WebhookDelivery.objects.filter(endpoint_id=OuterRef("pk")))
    return gone.filter(~has_some).delete()[0]


def _delete(ids: object) -> int:
    chosen: list[uuid.UUID] = list(ids)  # type: ignore[call-overload]
    return WebhookDelivery.objects.filter(pk__in=chosen).delete()[0] if chosen else 0


def tell_owners() -> int:
    """Mail who runs the workspace that we switched an endpoint off; returns for how many endpoints. When the mail
    server is away, a minute later again."""
    told = 0
    to_tell = WebhookEndpoint.objects.filter(
        switched_off__in=[SwitchedOff.FAILING, SwitchedOff.GONE],
        owners_told_at__isnull=True,
        deleted_at__isnull=True,
    ).order_by("switched_off_at")
    for endpoint in to_tell[:MAILS_AT_ONCE]:
        try:
            for user in people_who_run(endpoint.workspace_id):
                _mail_unless_refused(endpoint, user)
        except (OSError, smtplib.SMTPException) as error:
            logger.warning("webhook_owners_not_told", extra={"error": type(error).__name__})
            break
        told += WebhookEndpoint.objects.filter(pk=endpoint.pk, owners_told_at__isnull=True).update(
            owners_told_at=Now()
        )
    return told


def _mail_unless_refused(endpoint: WebhookEndpoint, user: User) -> None:
    """A mail that the server will never take keeps nobody else from being told, and is not tried again."""
    try:
        with translation.override(user.locale or settings.LANGUAGE_CODE):
            context = {
                "endpoint": endpoint,
                "is_gone": endpoint.switched_off == SwitchedOff.GONE,
                "page": f"{settings.BASE_URL}{reverse('webhook', args=[endpoint.pk])}",
            }
            subject = render_to_string("accounts/mail/webhook_off_subject.txt", context)
            body = render_to_string("accounts/mail/webhook_off_message.txt", context)
            send_mail(" ".join(subject.split()), body, None, [user.email])
    except smtplib.SMTPException as error:
        if not is_about_this_mail(error):
            raise
        logger.warning("webhook_mail_refused", extra={"endpoint": endpoint.pk, "user_id": user.pk})
