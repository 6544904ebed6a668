"""Invoices agree with the wallet: who pays what, what is owed of them, and that a final one is never changed."""

import importlib

from django.db import migrations, models

# Final invoices and their lines refuse every change but what has been paid of them.
IMMUTABLE = """
CREATE FUNCTION billing_keep_invoice() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state = 'final' AND (
        TG_OP = 'DELETE' OR to_jsonb(OLD) - 'paid_micros' IS DISTINCT FROM to_jsonb(NEW) - 'paid_micros'
    ) THEN
        RAISE EXCEPTION 'invoice % is final: % refused', OLD.id, TG_OP USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER invoice_kept BEFORE UPDATE OR DELETE ON billing_invoice
    FOR EACH ROW EXECUTE FUNCTION billing_keep_invoice();

CREATE FUNCTION billing_keep_invoice_lines() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM billing_invoice
        WHERE id = ANY (ARRAY(SELECT DISTINCT invoice_id FROM changed)) AND state = 'final'
    ) THEN
        RAISE EXCEPTION 'the invoice is final: % of its lines refused', TG_OP USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER invoice_lines_not_added AFTER INSERT ON billing_invoiceline REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION billing_keep_invoice_lines();
CREATE TRIGGER invoice_lines_not_changed AFTER UPDATE ON billing_invoiceline REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION billing_keep_invoice_lines();
CREATE TRIGGER invoice_lines_not_moved AFTER UPDATE ON billing_invoiceline REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION billing_keep_invoice_lines();
CREATE TRIGGER invoice_lines_not_deleted AFTER DELETE ON billing_invoiceline REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION billing_keep_invoice_lines();
"""
IMMUTABLE_UNDO = """
DROP TRIGGER invoice_lines_not_deleted ON billing_invoiceline;
DROP TRIGGER invoice_lines_not_moved ON billing_invoiceline;
DROP TRIGGER invoice_lines_not_changed ON billing_invoiceline;
DROP TRIGGER invoice_lines_not_added ON billing_invoiceline;
DROP FUNCTION billing_keep_invoice_lines();
DROP TRIGGER invoice_kept ON billing_invoice;
DROP FUNCTION billing_keep_invoice();
"""

# A fee or a tax: from paid credit alone, as what was given is for speech; the rest is owed.
CHARGE = """
CREATE FUNCTION billing_charge_invoice(
    p_workspace uuid, p_amount bigint, p_kind varchar, p_key varchar, p_account varchar
) RETURNS varchar LANGUAGE plpgsql AS $$
DECLARE
    v_transaction uuid := gen_random_uuid();
    v_outcome varchar;
    v_left bigint := p_amount;
    v_taken bigint;
    g record;
BEGIN
    v_outcome := billing_post(
        v_transaction, p_workspace, p_kind, p_key, NULL, -p_amount, 0,
        ARRAY['available', p_account], ARRAY[-p_amount, p_amount], true, ''
    );
    IF v_outcome <> 'posted' THEN
        RETURN v_outcome;
    END IF;
    FOR g IN
        SELECT id, remaining_micros FROM billing_creditgrant
        WHERE workspace_id = p_workspace AND NOT is_spent AND kind = 'paid'
        ORDER BY priority, expires_at, created_at, id
    LOOP
        EXIT WHEN v_left = 0;
        v_taken := LEAST(v_left, g.remaining_micros);
        UPDATE billing_creditgrant
        SET remaining_micros = remaining_micros - v_taken, is_spent = remaining_micros = v_taken WHERE id = g.id;
        INSERT INTO billing_grantuse (grant_id, transaction_id, amount_micros) VALUES (g.id, v_transaction, v_taken);
        v_left := v_left - v_taken;
    END LOOP;
    IF v_left > 0 THEN
        UPDATE billing_creditaccount SET owed_micros = owed_micros + v_left WHERE workspace_id = p_workspace;
    END IF;
    RETURN 'posted';
END $$;
"""

# What a plan includes is for speech: it pays nothing that is owed.
INCLUDE = """
CREATE FUNCTION billing_grant_included(
    p_grant uuid, p_workspace uuid, p_amount bigint, p_priority int, p_expires_at timestamptz, p_key varchar
) RETURNS varchar LANGUAGE plpgsql AS $$
DECLARE
    v_transaction uuid := gen_random_uuid();
    v_outcome varchar;
BEGIN
    v_outcome := billing_post(
        v_transaction, p_workspace, 'grant', p_key, NULL, p_amount, 0,
        '{promotion,available}'::varchar[], ARRAY[-p_amount, p_amount], true, ''
    );
    IF v_outcome = 'posted' THEN
        INSERT INTO billing_creditgrant (
            id, workspace_id, kind, transaction_id, amount_micros, remaining_micros, priority, expires_at, is_spent,
            created_at
        ) VALUES (
            p_grant, p_workspace, 'included', v_transaction, p_amount, p_amount, p_priority, p_expires_at, false,
            clock_timestamp()
        );
    END IF;
    RETURN v_outcome;
END $$;
"""

# As before, and: what a plan includes ends with its period also where something is owed.
EXPIRE = """
CREATE OR REPLACE FUNCTION billing_expire_grant(p_grant uuid, OUT expired bigint) LANGUAGE plpgsql AS $$
DECLARE
    v_transaction uuid := gen_random_uuid();
    g record;
    a record;
    v_workspace uuid;
    v_before bigint;
BEGIN
    expired := 0;
    SELECT workspace_id INTO v_workspace FROM billing_creditgrant WHERE id = p_grant;
    SELECT available_micros, held_micros INTO a
    FROM billing_creditaccount WHERE workspace_id = v_workspace FOR NO KEY UPDATE;
    SELECT * INTO g FROM billing_creditgrant
    WHERE id = p_grant AND NOT is_spent AND expires_at <= now() FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT COALESCE(SUM(o.remaining_micros), 0) INTO v_before FROM billing_creditgrant o
    WHERE o.workspace_id = v_workspace AND NOT o.is_spent
        AND (o.priority, o.expires_at, o.created_at, o.id) < (g.priority, g.expires_at, g.created_at, g.id);
    expired := LEAST(
        g.remaining_micros - GREATEST(0, a.held_micros - v_before), g.remaining_micros,
        CASE WHEN g.kind = 'included' THEN g.remaining_micros ELSE a.available_micros END
    );
    IF expired <= 0 THEN
        expired := 0;
        RETURN;
    END IF;
    PERFORM billing_post(
        v_transaction, v_workspace, 'expiry', 'expiry:' || v_transaction, NULL, -expired, 0,
        '{available,expired}'::varchar[], ARRAY[-expired, expired], true
    );
    UPDATE billing_creditgrant
    SET remaining_micros = remaining_micros - expired, is_spent = remaining_micros = expired WHERE id = p_grant;
    INSERT INTO billing_grantuse (grant_id, transaction_id, amount_micros) VALUES (p_grant, v_transaction, expired);
END $$;
"""
EXPIRE_BEFORE = importlib.import_module("billing.migrations.0006_grant_functions").EXPIRE

# What is owed no more pays open invoices, the oldest first, but the one named by `billing.pay_first` before all.
PAY = """
CREATE FUNCTION billing_pay_invoices() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    v_left bigint := OLD.owed_micros - NEW.owed_micros;
    v_first uuid := NULLIF(current_setting('billing.pay_first', true), '')::uuid;
    v_paid bigint;
    i record;
BEGIN
    FOR i IN
        SELECT id, due_micros - paid_micros AS open FROM billing_invoice
        WHERE workspace_id = NEW.workspace_id AND state = 'final' AND due_micros > paid_micros
        ORDER BY COALESCE(id = v_first, false) DESC, period_end, id
    LOOP
        EXIT WHEN v_left = 0;
        v_paid := LEAST(v_left, i.open);
        UPDATE billing_invoice SET paid_micros = paid_micros + v_paid WHERE id = i.id;
        v_left := v_left - v_paid;
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER owed_pays_invoices AFTER UPDATE OF owed_micros ON billing_creditaccount
    FOR EACH ROW WHEN (NEW.owed_micros < OLD.owed_micros) EXECUTE FUNCTION billing_pay_invoices();
"""
PAY_UNDO = """
DROP TRIGGER owed_pays_invoices ON billing_creditaccount;
DROP FUNCTION billing_pay_invoices();
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0010_quick_postings")]
    operations = [
        migrations.AddField(
            model_name='invoice',
            name='last_entry_id',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='invoice',
            name='last_usage_id',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AlterField(
            model_name='invoiceline',
            name='kind',
            field=models.CharField(choices=[('fee', 'Monthly fee'), ('usage', 'Speech'), ('refund', 'Given back'), ('discount', 'Covered by credit given')], max_length=8),
        ),
        migrations.AddIndex(
            model_name='invoice',
            index=models.Index(condition=models.Q(('due_micros__gt', models.F('paid_micros')), ('state', 'final')), fields=['workspace_id', 'finalized_at'], name='invoice_open'),
        ),
        migrations.AddIndex(
            model_name='invoice',
            index=models.Index(condition=models.Q(('state', 'final')), fields=['-finalized_at'], name='invoice_newest'),
        ),
        migrations.AddIndex(
            model_name='ledgertransaction',
            index=models.Index(condition=models.Q(('kind', 'refund')), fields=['workspace_id', 'created_at'], name='ledger_refunds'),
        ),
        migrations.AddConstraint(
            model_name='invoice',
            constraint=models.CheckConstraint(condition=models.Q(('paid_micros__gte', 0), ('paid_micros__lte', models.F('due_micros'))), name='paid_within_due'),
        ),
            migrations.RunSQL(IMMUTABLE, IMMUTABLE_UNDO),
        migrations.RunSQL(
            CHARGE, "DROP FUNCTION billing_charge_invoice(uuid, bigint, varchar, varchar, varchar);"
        ),
        migrations.RunSQL(
            INCLUDE, "DROP FUNCTION billing_grant_included(uuid, uuid, bigint, int, timestamptz, varchar);"
        ),
        migrations.RunSQL(EXPIRE, EXPIRE_BEFORE.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION")),
        migrations.RunSQL(PAY, PAY_UNDO),
    ]
