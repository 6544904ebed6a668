"""`manage.py models`: which models this host has, and which device of the pool runs what."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tts.management.model_progress import ProgressBar, models_folder
from tts.model_store.store import stored_models, verify_model
from tts.models import Device, ModelShare


class Command(BaseCommand):
    help = "List the models on this host and what each device of the pool runs; --verify reads every file."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--to", default="", help="the folder of models (VOICEPOOL_MODELS, else DATA/models)"
        )
        parser.add_argument("--verify", action="store_true", help="compare every file with its checksum")

    def handle(self, *args: Any, **options: Any) -> None:
        root = models_folder(options["to"])
        found = stored_models(root)
        self.stdout.write(f"Models in {root}:" if found else f"No models in {root}.")
        damaged = []
        for model in found:
            problem = model.problem
            if options["verify"] and not problem:
                bar = ProgressBar(self.stderr)
                wrong = verify_model(model, progress=bar.show)
                bar.end()
                problem = f"damaged: {', '.join(wrong)}" if wrong else ""
            damaged += [model.name] if problem else []
            self.stdout.write(
                f"  {model.name}  version {model.version}  {model.size_bytes} bytes  {model.source}  "
                f"{model.fetched_at}  {problem or 'complete'}"
            )
        shares = dict(ModelShare.objects.values_list("engine", "share"))
        self.stdout.write("Devices:")
        for device in Device.objects.order_by("node_name", "name"):
            trial = f"  on trial, {shares[device.engine] / 100:g} %" if device.engine in shares else ""
            self.stdout.write(
                f"  {device.name}  {device.get_kind_display()}  {device.engine} {device.engine_version}  "
                f"{device.get_state_display()}{trial}"
            )
        if damaged:
            raise CommandError(f"Fetch again: {', '.join(damaged)}.")
