"""Django's admin for records: most of them are read, few are changed, and never more columns than were edited."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.db.models import Model, Q, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Model]
    TabularInline = admin.TabularInline[Model, Model]
else:  # Django's classes take no type parameters while they run
    ModelAdmin = admin.ModelAdmin
    TabularInline = admin.TabularInline


class RecordAdmin(ModelAdmin):
    """Records for operators to look at. Nobody adds, changes or deletes one here.

    The search box takes a whole id, looked up by index in `id_fields`, or words for `search_fields`.
    """

    id_fields: ClassVar[tuple[str, ...]] = ("pk",)
    list_per_page = 50
    # Counting a large table twice a page costs more than the page.
    show_full_result_count = False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_active and getattr(request.user, "is_staff", False))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        try:
            wanted = uuid.UUID(search_term.strip())
        except ValueError:
            return super().get_search_results(request, queryset, search_term)
        matches = Q()
        for field in self.id_fields:
            matches |= Q(**{field: wanted})
        return queryset.filter(matches), False


class EditableRecordAdmin(RecordAdmin):
    """Records of which a superuser may change some columns; only those that were changed are written."""

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_active and getattr(request.user, "is_superuser", False))

    def save_model(self, request: HttpRequest, obj: Model, form: ModelForm[Any], change: bool) -> None:
        # A whole row would carry back what others have changed since the form was opened.
        obj.save(update_fields=form.changed_data if change else None)


class RecordInline(TabularInline):
    """Rows that belong to a record, to look at."""

    extra = 0
    can_delete = False
    show_change_link = True

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_active and getattr(request.user, "is_staff", False))

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
