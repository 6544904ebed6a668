"""Webhooks on the Developers pages. For owners and administrators."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Final, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.errors import (
    TooManyWebhookEndpoints,
    WebhookDescriptionInvalid,
    WebhookEndpointOff,
    WebhookEventsInvalid,
    WebhookResentTooOften,
    WebhookTestTooSoon,
    WebhookUrlRefused,
)
from accounts.models import DeliveryState, User, WebhookDelivery, WebhookEndpoint, Workspace
from accounts.once import is_first_time
from accounts.selectors.webhooks import deliveries_of, endpoints_of, tries_of
from accounts.services import webhook_deliveries, webhook_endpoints
from accounts.services.webhook_sending import text_of
from accounts.tenancy import one_of, require_admin_role
from accounts.webhook_forms import WebhookForm
from accounts.webhooks.catalogue import ERRORS
from accounts.webhooks.guide import receivers
from portal.lib.newest_first import page_before

REFUSALS = (WebhookUrlRefused, WebhookEventsInvalid, WebhookDescriptionInvalid, TooManyWebhookEndpoints)
DELIVERIES_SHOWN: Final = 25
TONES: Final = {
    DeliveryState.PENDING: "wait",
    DeliveryState.SENDING: "live",
    DeliveryState.DELIVERED: "ok",
    DeliveryState.FAILED: "bad",
}


@dataclass(frozen=True)
class Row:
    """A delivery with the tone of its badge and why it failed, in words."""

    delivery: WebhookDelivery
    tone: str
    reason: str | Promise


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def webhooks(request: HttpRequest) -> HttpResponse:
    """The endpoints and how to receive. A POST makes one and shows its secret, this once."""
    workspace = require_admin_role(request)
    if request.method != "POST":
        return _list(request, workspace, WebhookForm())
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return _list(request, workspace, form, status=422)
    if not is_first_time(request):
        messages.warning(request, _("This endpoint was made before. Its secret was shown once."))
        return redirect("webhooks")
    try:
        endpoint, secret = webhook_endpoints.create_endpoint(
            workspace=workspace, user=cast(User, request.user), **form.cleaned_data
        )
    except REFUSALS as refusal:
        form.add_error(refusal.field or None, refusal.text())
        return _list(request, workspace, form, status=422)
    return _page(request, workspace, endpoint, secret=secret)


def _list(request: HttpRequest, workspace: Workspace, form: WebhookForm, status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "form_id": uuid.uuid4(),
        "endpoints": list(endpoints_of(workspace)),
        "endpoints_maximum": webhook_endpoints.MAX_ENDPOINTS,
        "receivers": receivers(),
    }
    return render(request, "accounts/webhooks.html", context, status=status)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def webhook(request: HttpRequest, endpoint_id: uuid.UUID) -> HttpResponse:
    """One endpoint with its deliveries, the newest first. A POST changes it."""
    workspace = require_admin_role(request)
    endpoint = one_of(endpoints_of(workspace), endpoint_id)
    if request.method != "POST":
        return _page(request, workspace, endpoint)
    form = WebhookForm(request.POST)
    if not form.is_valid():
        return _page(request, workspace, endpoint, form=form)
    try:
        webhook_endpoints.change_endpoint(workspace=workspace, endpoint_id=endpoint_id, **form.cleaned_data)
    except REFUSALS as refusal:
        form.add_error(refusal.field or None, refusal.text())
        return _page(request, workspace, endpoint, form=form)
    messages.success(request, _("Saved."))
    return redirect("webhook", endpoint_id=endpoint_id)


def _page(
    request: HttpRequest,
    workspace: Workspace,
    endpoint: WebhookEndpoint,
    *,
    secret: str = "",
    form: WebhookForm | None = None,
) -> HttpResponse:
    page = page_before(
        deliveries_of(workspace).filter(endpoint=endpoint),
        moment_field="created_at",
        before=request.GET.get("before", ""),
        size=DELIVERIES_SHOWN,
    )
    initial = {
        "url": endpoint.url,
        "description": endpoint.description,
        "event_types": endpoint.event_types,
    }
    context: dict[str, Any] = {
        "endpoint": endpoint,
        "secret": secret,
        "form": form or WebhookForm(initial=initial),
        "form_id": uuid.uuid4(),
        "page": page,
        "rows": [_row(delivery) for delivery in page.rows],
    }
    return render(request, "accounts/webhook.html", context, status=422 if form is not None else 200)


def _row(delivery: WebhookDelivery) -> Row:
    return Row(
        delivery, TONES[DeliveryState(delivery.state)], ERRORS.get(delivery.error_code, delivery.error_code)
    )


@login_required
@require_POST
def webhook_switch(request: HttpRequest, endpoint_id: uuid.UUID) -> HttpResponse:
    """On or off, as the form's `is_on` says."""
    workspace = require_admin_role(request)
    is_on = request.POST.get("is_on") == "1"
    webhook_endpoints.change_endpoint(workspace=workspace, endpoint_id=endpoint_id, is_on=is_on)
    said = _("The endpoint is switched on.") if is_on else _("The endpoint is switched off. It gets nothing.")
    messages.success(request, said)
    return redirect("webhook", endpoint_id=endpoint_id)


@login_required
@never_cache
@require_POST
def webhook_rotate(request: HttpRequest, endpoint_id: uuid.UUID) -> HttpResponse:
    """A new secret, shown this once."""
    workspace = require_admin_role(request)
    one_of(endpoints_of(workspace), endpoint_id)
    if not is_first_time(request):
        messages.warning(request, _("The secret was changed before. It was shown once."))
        return redirect("webhook", endpoint_id=endpoint_id)
    endpoint, secret = webhook_endpoints.rotate_secret(workspace=workspace, endpoint_id=endpoint_id)
    return _page(request, workspace, endpoint, secret=secret)


@login_required
@require_POST
def webhook_test(request: HttpRequest, endpoint_id: uuid.UUID) -> HttpResponse:
    """Send a test event; its outcome stands among the deliveries a moment later."""
    workspace = require_admin_role(request)
    try:
        delivery = webhook_deliveries.send_test(workspace=workspace, endpoint_id=endpoint_id)
    except WebhookTestTooSoon as refusal:
        messages.warning(request, refusal.text())
        return redirect("webhook", endpoint_id=endpoint_id)
    messages.success(request, _("A test is on its way. Reload this page in a moment for its outcome."))
    return redirect("webhook_delivery", delivery_id=delivery.pk)


@login_required
@require_POST
def webhook_delete(request: HttpRequest, endpoint_id: uuid.UUID) -> HttpResponse:
    workspace = require_admin_role(request)
    webhook_endpoints.delete_endpoint(workspace=workspace, endpoint_id=endpoint_id)
    messages.success(request, _("The endpoint is deleted. Nothing more is sent to it."))
    return redirect("webhooks")


@login_required
@never_cache
@require_safe
def webhook_delivery(request: HttpRequest, delivery_id: uuid.UUID) -> HttpResponse:
    """What was sent, and what came of each try."""
    workspace = require_admin_role(request)
    delivery = one_of(deliveries_of(workspace), delivery_id)
    context = {
        "row": _row(delivery),
        "delivery": delivery,
        "body": text_of(delivery),
        "tries": [(one, ERRORS.get(one.error_code, one.error_code)) for one in tries_of(delivery)],
        "may_redeliver": delivery.state in (DeliveryState.DELIVERED, DeliveryState.FAILED),
    }
    return render(request, "accounts/webhook_delivery.html", context)


@login_required
@require_POST
def webhook_redeliver(request: HttpRequest, delivery_id: uuid.UUID) -> HttpResponse:
    workspace = require_admin_role(request)
    try:
        webhook_deliveries.redeliver(workspace=workspace, delivery_id=delivery_id)
    except (WebhookEndpointOff, WebhookResentTooOften) as refusal:
        messages.warning(request, refusal.text())
    else:
        messages.success(request, _("It is on its way again. Reload this page in a moment for its outcome."))
    return redirect("webhook_delivery", delivery_id=delivery_id)
