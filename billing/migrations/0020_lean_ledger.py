"""A posting writes less: no index that nothing reads, and its entries' transaction is looked up once, not per entry."""

import django.db.models.deletion
from django.db import migrations, models

# The sum as before, and now also that the transaction is there: the foreign key locked and wrote its row for each entry.
CHECK = """
CREATE OR REPLACE FUNCTION billing_check_sums() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v record;
BEGIN
    SELECT n.transaction_id, SUM(n.amount_micros) AS total INTO v
    FROM new_rows n LEFT JOIN billing_ledgertransaction t ON t.id = n.transaction_id
    GROUP BY n.transaction_id HAVING SUM(n.amount_micros) <> 0 OR COUNT(t.id) = 0 LIMIT 1;
    IF FOUND AND v.total <> 0 THEN
        RAISE EXCEPTION 'ledger transaction % does not sum to zero', v.transaction_id USING ERRCODE = 'check_violation';
    ELSIF FOUND THEN
        RAISE EXCEPTION 'there is no ledger transaction %', v.transaction_id USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NULL;
END $$;
"""
CHECK_UNDO = """
CREATE OR REPLACE FUNCTION billing_check_sums() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_transaction uuid;
BEGIN
    SELECT transaction_id INTO v_transaction FROM new_rows
    GROUP BY transaction_id HAVING SUM(amount_micros) <> 0 LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'ledger transaction % does not sum to zero', v_transaction USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0019_notes_of_months")]
    operations = [
        migrations.AlterField(
            "ledgertransaction", "idempotency_key", models.CharField(max_length=200)
        ),
        migrations.AddConstraint(
            "ledgertransaction",
            models.UniqueConstraint(fields=["idempotency_key"], name="ledger_key_once"),
        ),
        migrations.AlterField("hold", "workspace_id", models.UUIDField()),
        migrations.AlterField(
            "grantuse",
            "transaction",
            models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="grant_uses",
                to="billing.ledgertransaction",
            ),
        ),
        migrations.AlterField(
            "ledgerentry",
            "transaction",
            models.ForeignKey(
                db_constraint=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="entries",
                to="billing.ledgertransaction",
            ),
        ),
        migrations.RunSQL(CHECK, CHECK_UNDO),
    ]
