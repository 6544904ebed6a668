"""Static files as a web host serves them: every name hashed, also those that modules import."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import override_settings

# Of all that is large.
EXTENSIONS = ["css", "html", "js", "json", "map", "md", "png", "svg", "ttf", "txt", "woff", "woff2"]
HASHED = re.compile(r"\.[0-9a-f]{12}\.js$")
IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*["'](\.[^"']+)["']""")


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `collectstatic` fills in production, without the compressed copies, which take a minute."""
    folder = tmp_path_factory.mktemp("collected") / "static"
    with override_settings(
        STATIC_ROOT=folder,
        STORAGES={
            **settings.STORAGES,
            "staticfiles": {"BACKEND": "portal.lib.static_files.HashedFilesStorage"},
        },
        WHITENOISE_SKIP_COMPRESS_EXTENSIONS=EXTENSIONS,
    ):
        call_command("collectstatic", interactive=False, verbosity=0)
    return folder


def test_modules_import_hashed_names_that_exist(collected: Path) -> None:
    modules = [path for path in (collected / "js").glob("*.js") if HASHED.search(path.name)]
    imports = [(path, name) for path in modules for name in IMPORT.findall(path.read_text(encoding="utf-8"))]
    assert "theme" in " ".join(name for path, name in imports if path.name.startswith("app."))
    assert [name for _path, name in imports if not HASHED.search(name)] == []
    assert [name for path, name in imports if not (path.parent / name).is_file()] == []


def test_every_file_of_ours_has_a_hashed_name(collected: Path) -> None:
    manifest = json.loads((collected / "staticfiles.json").read_text(encoding="utf-8"))["paths"]
    own = {
        path.relative_to(collected).as_posix()
        for folder in ("css", "js", "img")
        for path in (collected / folder).iterdir()
    }
    sources = {name for name in own if name in manifest}
    assert {"css/tokens.css", "js/app.js", "js/early.js", "img/icon.svg"} <= sources
    assert {manifest[name] for name in sources} <= own


def test_no_class_is_begun_in_two_stylesheets_that_a_page_may_load_together() -> None:
    # What they all build on may be added to; an invoice loads none of the others.
    shared = {"base.css", "components.css", "frame.css", "tokens.css", "invoice.css"}
    begun: dict[str, set[str]] = {}
    for path in Path(settings.BASE_DIR, "static", "css").glob("*.css"):
        if path.name in shared:
            continue
        for name in re.findall(r"^\.([\w-]+) \{", path.read_text(encoding="utf-8"), re.MULTILINE):
            begun.setdefault(name, set()).add(path.name)
    assert {name: files for name, files in begun.items() if len(files) > 1} == {}
