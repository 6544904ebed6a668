"""What accounts refuse, and why."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from portal.lib.errors import DomainError


class InvalidApiKey(DomainError):
    """Not one of ours, mistyped, unknown, or of somebody who may no longer act here."""

    code = "invalid_api_key"
    status = 401
    message = _(
        "This API key is not valid. Send the whole key as “Authorization: Bearer vp_live_…”, or create a new one "
        "on the Developers page."
    )


class ApiKeyExpired(DomainError):
    code = "api_key_expired"
    status = 401
    message = _("This API key has expired. Create a new one on the Developers page.")


class ApiKeyRevoked(DomainError):
    code = "api_key_revoked"
    status = 401
    message = _("This API key was revoked. Create a new one on the Developers page.")


class TooManyFailedKeys(DomainError):
    code = "too_many_failed_keys"
    status = 429
    message = _(
        "Too many requests with keys that are not valid came from this address. Wait, and check the key."
    )
    retry_after_s = 60


class NoWorkspace(DomainError):
    code = "no_workspace"
    status = 403
    message = _("Your account belongs to no workspace. Ask whoever runs this service.")


class WorkspaceSuspended(DomainError):
    code = "workspace_suspended"
    status = 403
    message = _(
        "This workspace is suspended. Nothing is charged meanwhile. Write to whoever runs this service."
    )


class MoneyRoleNeeded(DomainError):
    """A member, but not one who may spend or arrange the workspace's money."""

    code = "money_role_needed"
    status = 403
    message = _(
        "Only the workspace’s owners and those who look after its bills may do this. Ask one of them. "
        "Nothing was changed."
    )


class KeyNameInvalid(DomainError):
    code = "key_name_invalid"
    field = "name"
    message = _("Give the key a name of 1 to %(maximum)s characters, so that you recognise it later.")


class KeyExpiryInvalid(DomainError):
    code = "key_expiry_invalid"
    field = "expires_at"
    message = _(
        "A key must expire in the future, and not after the key that makes it. Choose another moment."
    )


class TooManyApiKeys(DomainError):
    code = "too_many_api_keys"
    status = 409
    message = _("This workspace has %(maximum)s keys already. Revoke one that you do not need.")


class CsrfFailed(DomainError):
    """A page's own request without its token: not for API keys, which carry no cookie."""

    code = "csrf_failed"
    status = 403
    message = _("This page was open for too long, or cookies are off. Reload it and try again.")


class AdminRoleNeeded(DomainError):
    """A member, but not one who runs the workspace."""

    code = "admin_role_needed"
    status = 403
    message = _(
        "Only the workspace’s owners and administrators may do this. Ask one of them. Nothing was changed."
    )


class WebhookUrlRefused(DomainError):
    code = "webhook_url_refused"
    field = "url"
    message = _("This address cannot be called: %(reason)s")


class WebhookEventsInvalid(DomainError):
    code = "webhook_events_invalid"
    field = "event_types"
    message = _("Choose at least one event, of these: %(known)s")


class WebhookDescriptionInvalid(DomainError):
    code = "webhook_description_invalid"
    field = "description"
    message = _("A description has at most %(maximum)s characters, all of them printable.")


class TooManyWebhookEndpoints(DomainError):
    code = "too_many_webhook_endpoints"
    status = 409
    message = _("This workspace has %(maximum)s endpoints already. Delete one that you do not need.")


class WebhookEndpointOff(DomainError):
    code = "webhook_endpoint_off"
    status = 409
    message = _("This endpoint is switched off. Switch it on first. Nothing was sent.")


class WebhookDeliveryOpen(DomainError):
    code = "webhook_delivery_open"
    status = 409
    message = _("This delivery is on its way already. Wait for its outcome.")


class WebhookResentTooOften(DomainError):
    code = "webhook_resent_too_often"
    status = 409
    message = _(
        "This delivery was sent %(maximum)s times and is not sent again. Read its body over the API instead."
    )


class WebhookTestTooSoon(DomainError):
    code = "webhook_test_too_soon"
    status = 429
    message = _("This endpoint was tested %(maximum)s times in the last minute. Wait a moment.")
    retry_after_s = 60
