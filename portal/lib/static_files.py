"""Static files under names that change with their content, so that browsers keep them for ever."""

from __future__ import annotations

from django.contrib.staticfiles.storage import HashedFilesMixin
from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedFilesStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    """WhiteNoise's storage, which also rewrites what our ES modules import from each other.

    Without this a module would import the unhashed name of another, and a browser that keeps it could run
    two releases at once.
    """

    support_js_module_import_aggregation = True
    # Only our own modules, which lie in static/js: Django's pattern also finds "imports" in htmx's comments.
    _js_module_import_aggregation_patterns = (
        "js/*.js",
        HashedFilesMixin._js_module_import_aggregation_patterns[1],  # type: ignore[attr-defined]
    )
