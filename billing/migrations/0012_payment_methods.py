"""Which saved method a payment is charged to; refunds that are asked about again; and credit that goes back into its
grant when a refund could not be paid out."""

import django.db.models.deletion
from django.db import migrations, models

# The mirror of billing_take_back: what is owed by now is paid by it first, as by all credit that comes in. What the
# grant has no room for any more, because a job's refund has filled it meanwhile, comes back as paid credit of its own.
PUT_BACK = """
CREATE FUNCTION billing_put_back(p_grant uuid, p_amount bigint, p_kind varchar, p_key varchar, p_reason varchar)
RETURNS varchar LANGUAGE plpgsql AS $$
DECLARE
    v_transaction uuid := gen_random_uuid();
    v_workspace uuid;
    v_outcome varchar;
    v_kept bigint;
    v_back bigint;
BEGIN
    SELECT workspace_id INTO v_workspace FROM billing_creditgrant WHERE id = p_grant;
    v_outcome := billing_post(
        v_transaction, v_workspace, p_kind, p_key, NULL, p_amount, 0,
        '{payments,available}'::varchar[], ARRAY[-p_amount, p_amount], true, p_reason
    );
    IF v_outcome <> 'posted' THEN
        RETURN v_outcome;
    END IF;
    SELECT p_amount - LEAST(owed_micros, p_amount) INTO v_kept
    FROM billing_creditaccount WHERE workspace_id = v_workspace;
    UPDATE billing_creditaccount SET owed_micros = owed_micros - (p_amount - v_kept) WHERE workspace_id = v_workspace;
    SELECT LEAST(v_kept, amount_micros - remaining_micros) INTO v_back
    FROM billing_creditgrant WHERE id = p_grant FOR NO KEY UPDATE;
    IF v_back > 0 THEN
        UPDATE billing_creditgrant SET remaining_micros = remaining_micros + v_back, is_spent = false WHERE id = p_grant;
        INSERT INTO billing_grantuse (grant_id, transaction_id, amount_micros) VALUES (p_grant, v_transaction, -v_back);
    END IF;
    IF v_kept > v_back THEN
        INSERT INTO billing_creditgrant (
            id, workspace_id, kind, transaction_id, amount_micros, remaining_micros, priority, is_spent, created_at
        ) VALUES (
            gen_random_uuid(), v_workspace, 'paid', v_transaction, v_kept - v_back, v_kept - v_back, 40, false,
            clock_timestamp()
        );
    END IF;
    RETURN 'posted';
END $$;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0011_invoice_triggers'),
    ]

    operations = [
        migrations.AddField(
            model_name='payment',
            name='method',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='payments', to='billing.paymentmethod'),
        ),
        migrations.AddField(
            model_name='payment',
            name='saves_method',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='refund',
            name='asked_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='refund',
            name='failure_code',
            field=models.CharField(blank=True, db_default='', default='', max_length=60),
        ),
        migrations.AlterField(
            model_name='billingalert',
            name='kind',
            field=models.CharField(choices=[('budget_warning', 'Budget nearly used up'), ('budget_reached', 'Budget used up'), ('low_balance', 'Balance is low'), ('automatic_top_up_off', 'Automatic top-up was turned off'), ('automatic_top_up_cap', 'Automatic top-up has reached its monthly cap')], max_length=20),
        ),
        migrations.AddIndex(
            model_name='refund',
            index=models.Index(condition=models.Q(('state__in', ['created', 'unknown'])), fields=['asked_at'], name='refund_to_ask'),
        ),
        migrations.RunSQL(PUT_BACK, "DROP FUNCTION billing_put_back(uuid, bigint, varchar, varchar, varchar);"),
    ]
