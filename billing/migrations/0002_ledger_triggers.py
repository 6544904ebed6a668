"""The ledger's two laws, kept by the database: entries are never changed, and a transaction sums to zero."""

from django.db import migrations

APPEND_ONLY = """
CREATE FUNCTION billing_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only: % of % refused', TG_OP, TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER ledger_entry_append_only BEFORE UPDATE OR DELETE ON billing_ledgerentry
    FOR EACH ROW EXECUTE FUNCTION billing_refuse_change();
CREATE TRIGGER ledger_transaction_append_only BEFORE UPDATE OR DELETE ON billing_ledgertransaction
    FOR EACH ROW EXECUTE FUNCTION billing_refuse_change();
"""
APPEND_ONLY_UNDO = """
DROP TRIGGER ledger_entry_append_only ON billing_ledgerentry;
DROP TRIGGER ledger_transaction_append_only ON billing_ledgertransaction;
DROP FUNCTION billing_refuse_change();
"""

# Deferred to the commit: the entries of one transaction come one after the other.
SUM_TO_ZERO = """
CREATE FUNCTION billing_check_sum() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT COALESCE(SUM(amount_micros), 0) FROM billing_ledgerentry WHERE transaction_id = NEW.transaction_id) <> 0 THEN
        RAISE EXCEPTION 'ledger transaction % does not sum to zero', NEW.transaction_id USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER ledger_entry_sums_to_zero AFTER INSERT ON billing_ledgerentry
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION billing_check_sum();
"""
SUM_TO_ZERO_UNDO = """
DROP TRIGGER ledger_entry_sums_to_zero ON billing_ledgerentry;
DROP FUNCTION billing_check_sum();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial")]
    operations = [
        migrations.RunSQL(APPEND_ONLY, APPEND_ONLY_UNDO),
        migrations.RunSQL(SUM_TO_ZERO, SUM_TO_ZERO_UNDO),
    ]
