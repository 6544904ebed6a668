"""Choosing goes on behind what a device may not speak, and a model on trial leaves the classes' shares alone."""

import importlib

from django.db import migrations

_DECISION = importlib.import_module("tts.migrations.0016_models_on_trial").DECISION
BEFORE = _DECISION[_DECISION.index("CREATE OR REPLACE FUNCTION tts_bind(") :]
CHANGES = (
    # A model on trial that sees nothing of a class has not seen that the class is empty: put to rest by every such look,
    # a class would lose what it is owed.
    (
        "IF v_class.active AND v_skipped = '{}' THEN",
        "IF v_class.active AND v_skipped = '{}' AND NOT v_trial THEN",
    ),
    # Once a queue was passed over, only those with something that may go here: others take no more of the tries. The
    # first look stays as cheap as it was.
    (
        "                    AND (NOT v_trial OR EXISTS (\n",
        """                    AND (v_trial OR v_skipped = '{}' OR EXISTS (
                        SELECT 1 FROM tts_segment s
                        WHERE s.workspace_id = q.workspace_id AND s.job_class = q.job_class AND s.state = 'queued'
                            AND (v_slot.offers = '{}' OR s.needs <@ v_slot.offers)
                            AND (s.engine <> ALL (v_others) OR s.attempt_number > 0)
                    ))
                    AND (NOT v_trial OR EXISTS (
""",
    ),
    # The oldest of all may be what does not go here: a few such are looked at, then the turn is whose it is by share.
    ("        IF v_may_override THEN\n", "        IF v_may_override AND cardinality(v_skipped) < 8 THEN\n"),
    # A record that nothing was selected into cannot be asked anything.
    ("    v_charge bigint;\n", "    v_charge bigint;\n    v_is_found boolean := false;\n"),
    ("            EXIT WHEN FOUND;\n", "            v_is_found := FOUND;\n            EXIT WHEN v_is_found;\n"),
    ("    IF v_segment IS NULL OR v_segment.id IS NULL THEN\n", "    IF NOT v_is_found THEN\n"),
)


def _changed(sql: str) -> str:
    for old, new in CHANGES:
        if sql.count(old) != 1:
            raise ValueError(f"not once in the function: {old!r}")
        sql = sql.replace(old, new)
    return sql


class Migration(migrations.Migration):
    dependencies = [("tts", "0014_output")]
    operations = [migrations.RunSQL(_changed(BEFORE), BEFORE)]
