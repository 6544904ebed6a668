"""A person's own pages: API keys with the first steps for developers, settings, the choice of workspace."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import cast

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import get_language, override
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.forms import NewKeyForm, ProfileForm
from accounts.models import ApiKey, User, Workspace
from accounts.once import is_first_time
from accounts.quick_start import examples
from accounts.selectors.api_keys import api_keys_of
from accounts.selectors.people import runs_workspace
from accounts.services import api_keys
from accounts.tenancy import choose_workspace, one_of, require_workspace, workspace_of
from portal.lib import clock
from portal.lib.redirects import remember_language, safe_next


@dataclass(frozen=True)
class KeyRow:
    """A key in the list, and the id of the dialog that asks before it is revoked."""

    key: ApiKey
    dialog_id: str


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def developers(request: HttpRequest) -> HttpResponse:
    """The keys and how to use them. A POST makes a key and shows it, this once."""
    workspace = require_workspace(request)
    form = NewKeyForm(request.POST if request.method == "POST" else None)
    new_key = ""
    if request.method == "POST" and form.is_valid():
        if not is_first_time(request):
            messages.warning(
                request, _("This key was made before. It was shown once and cannot be shown again.")
            )
            return redirect("developers")
        new_key = _create_key(request, workspace, form)
        form = NewKeyForm()
    context = {
        "form": form,
        "form_id": uuid.uuid4(),
        "new_key": new_key,
        "rows": [KeyRow(key, f"revoke-{key.pk}") for key in api_keys_of(workspace)],
        "keys_maximum": api_keys.MAX_KEYS_PER_WORKSPACE,
        "now": clock.now(),
        "examples": examples(base_url=settings.BASE_URL, key=new_key),
        "runs_workspace": runs_workspace(cast(User, request.user), workspace.pk),
    }
    return render(request, "accounts/developers.html", context)


def _create_key(request: HttpRequest, workspace: Workspace, form: NewKeyForm) -> str:
    lifetime_days = form.cleaned_data["lifetime_days"]
    _key, text = api_keys.create_api_key(
        workspace=workspace,
        user=cast(User, request.user),
        name=form.cleaned_data["name"],
        expires_at=clock.now() + timedelta(days=lifetime_days) if lifetime_days else None,
    )
    return text


@login_required
@require_POST
def key_revoke(request: HttpRequest, key_id: uuid.UUID) -> HttpResponse:
    workspace = require_workspace(request)
    key = one_of(api_keys_of(workspace), key_id)
    api_keys.revoke_api_key(workspace=workspace, key_id=key.pk)
    messages.success(
        request,
        _("The key “%(name)s” is revoked. Requests with it are refused from now on.") % {"name": key.name},
    )
    return redirect("developers")


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account_settings(request: HttpRequest) -> HttpResponse:
    """Name and language; the ways to the other settings of the account."""
    user = User.objects.get(pk=cast(User, request.user).pk)
    form = ProfileForm(
        request.POST if request.method == "POST" else None,
        instance=user,
        # Who never chose a language sees the one that the browser asked for.
        initial={"locale": user.locale or get_language()},
    )
    if request.method == "POST" and form.is_valid():
        user.save(update_fields=list(form.cleaned_data))
        return _saved(request, language=user.locale)
    workspace = workspace_of(request)
    context = {
        "form": form,
        "runs_workspace": workspace is not None and runs_workspace(user, workspace.pk),
    }
    return render(request, "accounts/settings.html", context)


def _saved(request: HttpRequest, *, language: str) -> HttpResponse:
    with override(language):
        messages.success(request, _("Saved."))
    response = redirect("account_settings")
    remember_language(response, language)
    return response


@login_required
@require_POST
def workspace_choice(request: HttpRequest) -> HttpResponse:
    """From now on the pages act for this workspace."""
    try:
        workspace_id = uuid.UUID(request.POST.get("workspace", ""))
    except ValueError:
        return redirect("studio")
    choose_workspace(request, workspace_id)
    return HttpResponseRedirect(safe_next(request, reverse("studio")))
