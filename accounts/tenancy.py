"""Who may see a row: the one home of that rule, and of the workspace that a request acts for."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from functools import partial
from typing import TypeVar, cast

from django.db.models import Case, IntegerField, Model, Q, QuerySet, Value, When
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.functional import SimpleLazyObject
from rest_framework.request import Request

from accounts.errors import AdminRoleNeeded, MoneyRoleNeeded, NoWorkspace, WorkspaceSuspended
from accounts.models import Membership, User, Workspace, WorkspaceKind
from accounts.selectors.people import looks_after_money, runs_workspace
from portal.lib.errors import NotFound

Row = TypeVar("Row", bound=Model)

# The session's key for the workspace that the person chose last.
SESSION_KEY = "workspace_id"


def owned_by(queryset: QuerySet[Row], workspace: Workspace) -> QuerySet[Row]:
    """The rows that belong to `workspace`. Every selector of a tenant's rows begins here."""
    return queryset.filter(workspace_id=workspace.pk)


def owned_by_or_shared(queryset: QuerySet[Row], workspace: Workspace) -> QuerySet[Row]:
    """The workspace's own rows and those that the platform offers to everybody (of no workspace)."""
    return queryset.filter(Q(workspace_id=workspace.pk) | Q(workspace_id__isnull=True))


def one_of(queryset: QuerySet[Row], row_id: uuid.UUID | str) -> Row:
    """The row of `queryset` with this id.

    Raises:
        NotFound: it does not exist, is another workspace's, or the id is malformed: nobody can tell which.
    """
    try:
        wanted = row_id if isinstance(row_id, uuid.UUID) else uuid.UUID(row_id)
    except ValueError as error:
        raise NotFound from error
    row = queryset.filter(pk=wanted).first()
    if row is None:
        raise NotFound
    return row


def memberships_of(user: User) -> QuerySet[Membership]:
    """The user's memberships with their workspaces: the personal one first, then by name."""
    personal_first = Case(
        When(workspace__kind=WorkspaceKind.PERSONAL, then=0), default=1, output_field=IntegerField()
    )
    return (
        Membership.objects.filter(user=user)
        .select_related("workspace")
        .order_by(personal_first, "workspace__name", "workspace_id")
    )


def choose_workspace(request: HttpRequest, workspace_id: uuid.UUID) -> Workspace:
    """Make this the workspace that the person's pages act for from now on.

    Raises:
        NotFound: the user is not a member of it.
    """
    workspace = one_of(Workspace.objects.filter(memberships__user=cast(User, request.user)), workspace_id)
    request.session[SESSION_KEY] = str(workspace.pk)
    return workspace


def workspace_of_session(request: HttpRequest) -> Workspace | None:
    """The workspace that was chosen in this session while the user is a member of it, else the personal one."""
    user_id = request.user.pk
    if user_id is None:  # nobody is signed in
        return None
    ranks = [When(kind=WorkspaceKind.PERSONAL, then=Value(1))]
    # Nothing chosen yet, or nothing that could be an id.
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        ranks.insert(0, When(pk=uuid.UUID(request.session.get(SESSION_KEY, "")), then=Value(0)))
    rank = Case(*ranks, default=Value(2), output_field=IntegerField())
    return Workspace.objects.filter(memberships__user_id=user_id).order_by(rank, "created_at").first()


def workspace_of(request: HttpRequest | Request) -> Workspace | None:
    """The workspace that this request acts for: of its API key, else of the signed-in person's session."""
    return getattr(request, "workspace", None) or None


def require_workspace(request: HttpRequest | Request) -> Workspace:
    """Like `workspace_of`, but refuses where nobody can work.

    Raises:
        NoWorkspace: nobody is signed in, or the account belongs to no workspace.
        WorkspaceSuspended: the operator suspended it.
    """
    workspace = workspace_of(request)
    if workspace is None:
        raise NoWorkspace
    if workspace.suspended_at is not None:
        raise WorkspaceSuspended
    return workspace


def may_manage_money(request: HttpRequest) -> bool:
    """Whether who is signed in may spend and arrange the money of the workspace that the request acts for."""
    workspace = workspace_of(request)
    return workspace is not None and looks_after_money(cast(User, request.user), workspace.pk)


def require_money_role(request: HttpRequest) -> Workspace:
    """Like `require_workspace`, and refuses members who do not look after the workspace's money.

    Raises:
        NoWorkspace, WorkspaceSuspended
        MoneyRoleNeeded
    """
    workspace = require_workspace(request)
    if not may_manage_money(request):
        raise MoneyRoleNeeded
    return workspace


def require_admin_role(request: HttpRequest | Request) -> Workspace:
    """Like `require_workspace`, and refuses members who do not run the workspace. Of a key, its maker counts.

    Raises:
        NoWorkspace, WorkspaceSuspended
        AdminRoleNeeded
    """
    workspace = require_workspace(request)
    if not runs_workspace(cast(User, request.user), workspace.pk):
        raise AdminRoleNeeded
    return workspace


class WorkspaceMiddleware:
    """Sets `request.workspace`, found when it is first asked for: pages that do not ask cost no query.

    Ask with `workspace_of` or `require_workspace`, or test its truth: the lazy value is never `None` itself.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request.workspace = SimpleLazyObject(partial(workspace_of_session, request))  # type: ignore[attr-defined]
        return self.get_response(request)
