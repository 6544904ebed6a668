from django.contrib.admin.apps import AdminConfig


class RecordsConfig(AdminConfig):
    """Django's admin with our site in place of its own."""

    default_site = "portal.console.site.RecordsSite"

    def ready(self) -> None:
        super().ready()
        from django.contrib import admin
        from django.contrib.auth.models import Group

        # Who may do what is `is_staff` and `is_superuser`; a group would promise rights that nothing asks for.
        admin.site.unregister(Group)
