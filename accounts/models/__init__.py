from accounts.models.api_key import ApiKey
from accounts.models.consent import ConsentRecord
from accounts.models.user import User, UserManager
from accounts.models.workspace import Membership, Role, Workspace, WorkspaceKind

__all__ = [
    "ApiKey",
    "ConsentRecord",
    "Membership",
    "Role",
    "User",
    "UserManager",
    "Workspace",
    "WorkspaceKind",
]
