"""`manage.py fetch_model cosyvoice3`: bring a model's weights to this host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tts.management.model_progress import ProgressBar, models_folder
from tts.model_store.catalogue import HUGGING_FACE, MODEL_SCOPE, MODELS
from tts.model_store.errors import ModelStoreError
from tts.model_store.sources import list_files
from tts.model_store.store import StoredModel, copy_model, fetch_model, stored_models


class Command(BaseCommand):
    help = "Fetch a model's weights from ModelScope or Hugging Face, or take them from a folder."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("model", choices=sorted(MODELS))
        parser.add_argument("--source", choices=[MODEL_SCOPE, HUGGING_FACE], default=MODEL_SCOPE)
        parser.add_argument("--endpoint", default="", help="another address of the source: a mirror")
        parser.add_argument(
            "--revision", default="", help="a branch, tag or commit; the newest where not given"
        )
        parser.add_argument(
            "--from", dest="folder", default="", help="a folder that has the files: nothing is fetched"
        )
        parser.add_argument(
            "--to", default="", help="the folder of models (VOICEPOOL_MODELS, else DATA/models)"
        )
        parser.add_argument("--with", dest="extras", action="append", default=[], help="tensorrt, jit")
        parser.add_argument("--again", action="store_true", help="also where the model is here already")

    def handle(self, *args: Any, **options: Any) -> None:
        model, root = MODELS[options["model"]], models_folder(options["to"])
        extras = tuple(options["extras"])
        if unknown := sorted(set(extras) - set(model.extras)):
            raise CommandError(
                f"{model.name} has no extra {unknown}; it has {', '.join(sorted(model.extras))}."
            )
        here = {one.name: one for one in stored_models(root)}.get(model.name)
        if here is not None and not here.problem and not options["again"]:
            lacks = model.missing([one.path for one in here.files], extras)
            if not lacks:
                self._tell(here, "is here already")
                return
        bar = ProgressBar(self.stderr)
        try:
            if options["folder"]:
                made = copy_model(
                    root=root, model=model, folder=Path(options["folder"]), extras=extras, progress=bar.show
                )
            else:
                source = options["source"]
                files = list_files(
                    source=source,
                    model_id=model.ids[source],
                    revision=options["revision"],
                    endpoint=options["endpoint"],
                )
                made = fetch_model(
                    root=root,
                    model=model,
                    source=source,
                    revision=options["revision"],
                    files=files,
                    extras=extras,
                    progress=bar.show,
                )
        except ModelStoreError as error:
            bar.end()
            raise CommandError(str(error)) from error
        bar.end()
        self._tell(made, "is here")

    def _tell(self, model: StoredModel, how: str) -> None:
        self.stdout.write(
            f"{model.name} {how}: {model.folder}, {model.size_bytes} bytes in {len(model.files)} files, version "
            f"{model.version}."
        )
