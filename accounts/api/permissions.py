"""Who may use the API at all. What of it they may see, the selectors decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.tenancy import require_workspace

# This module is named in the REST framework's settings, which `rest_framework.views` reads while it loads.
if TYPE_CHECKING:
    from rest_framework.views import APIView


class HasWorkspace(BasePermission):
    """Somebody who is known and acts for a workspace that is not suspended.

    Raises:
        NoWorkspace, WorkspaceSuspended. Nobody known is answered as 401 by the REST framework.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        require_workspace(request)
        return True
