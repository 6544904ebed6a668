from accounts.models.api_key import ApiKey
from accounts.models.audit import AuditEntry
from accounts.models.consent import ConsentRecord
from accounts.models.user import User, UserManager
from accounts.models.webhook import (
    DeliveryState,
    SwitchedOff,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
)
from accounts.models.workspace import Membership, Role, Workspace, WorkspaceKind

__all__ = [
    "ApiKey",
    "AuditEntry",
    "ConsentRecord",
    "DeliveryState",
    "Membership",
    "Role",
    "SwitchedOff",
    "User",
    "UserManager",
    "WebhookAttempt",
    "WebhookDelivery",
    "WebhookEndpoint",
    "Workspace",
    "WorkspaceKind",
]
