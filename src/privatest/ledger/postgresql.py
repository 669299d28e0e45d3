"""Functions of a PostgreSQL ledger: a role that may call them can ask, and change nothing else.

Whoever serves requests needs no right to insert, update or delete. These functions run with the
rights of the ledger's owner. They append one entry to the end of a chain, check its digest, and
never lower a sum. Budgets, analysts and renewals stay with the owner. Published SQL never changes.
"""

from __future__ import annotations

__all__ = ["CALLABLE", "FUNCTIONS"]

_COLUMNS = ("id", "name", "settings", "epsilon", "delta", "limits", "sums", "sequence", "hash")
_TYPES = ("INTEGER", "VARCHAR", "TEXT", "VARCHAR", "VARCHAR", "TEXT", "TEXT", "BIGINT", "VARCHAR")
_ROW = ", ".join(f"{name} {kind}" for name, kind in zip(_COLUMNS, _TYPES, strict=True))
_NAMES = ", ".join(f"d.{name}" for name in _COLUMNS)

CALLABLE = (
    "privatest_lock(text)",
    "privatest_lock_open(text)",
    "privatest_append(integer, bigint, text, text, text, text, text, text, text, text, text, text)",
)
"""What a serving role calls."""

_LOCK = f"""CREATE FUNCTION privatest_lock(of_name TEXT)
    RETURNS TABLE ({_ROW}, "time" VARCHAR) LANGUAGE sql SECURITY DEFINER AS $$
    SELECT {_NAMES}, d.time FROM privatest_datasets d WHERE d.name = of_name FOR UPDATE $$"""

_LOCK_OPEN = f"""CREATE FUNCTION privatest_lock_open(reservation TEXT)
    RETURNS TABLE ({_ROW}, "time" VARCHAR, request VARCHAR) LANGUAGE sql SECURITY DEFINER AS $$
    SELECT {_NAMES}, d.time, e.request FROM privatest_datasets d
    JOIN privatest_entries e ON e.dataset = d.id WHERE e.opens = reservation FOR UPDATE OF d $$"""

# Whether no sum of the whole, and none of a part, is smaller than before.
_GROWS = """CREATE FUNCTION privatest_grows(before JSONB, after JSONB)
    RETURNS BOOLEAN LANGUAGE sql IMMUTABLE AS $$
    SELECT NOT EXISTS (
        SELECT FROM jsonb_each_text(before -> 'whole') o
        WHERE coalesce((after #>> ARRAY['whole', o.key])::NUMERIC, -1) < o.value::NUMERIC
    ) AND NOT EXISTS (
        SELECT FROM jsonb_each(before -> 'parts') p, jsonb_each_text(p.value) o
        WHERE coalesce((after #>> ARRAY['parts', p.key, o.key])::NUMERIC, -1) < o.value::NUMERIC
    ) $$"""

_APPEND = """CREATE FUNCTION privatest_append(
        of_dataset INTEGER, of_sequence BIGINT, of_kind TEXT, of_opens TEXT, of_closes TEXT,
        of_request TEXT, of_body TEXT, of_hash TEXT, of_time TEXT, of_sums TEXT,
        of_analyst TEXT, of_own TEXT)
    RETURNS VOID LANGUAGE plpgsql SECURITY DEFINER AS $$
    DECLARE old privatest_datasets%ROWTYPE; own TEXT;
    BEGIN
        SELECT * INTO STRICT old FROM privatest_datasets WHERE id = of_dataset FOR UPDATE;
        IF of_kind NOT IN ('reserved', 'committed', 'failed') OR of_sequence <> old.sequence + 1
            OR of_time < old.time OR NOT privatest_grows(old.sums::JSONB, of_sums::JSONB)
            OR of_kind <> 'reserved' AND (of_sums <> old.sums OR of_analyst IS NOT NULL)
            OR (of_kind = 'reserved') <> (of_opens IS NOT NULL)
            OR (of_kind = 'reserved') <> (of_closes IS NULL)
            OR of_hash <> encode(sha256(convert_to(old.hash || E'\\n' || of_body, 'UTF8')), 'hex')
        THEN
            RAISE EXCEPTION 'privatest: entries are never changed';
        END IF;
        INSERT INTO privatest_entries VALUES (of_dataset, of_sequence, of_kind, of_opens,
            of_closes, of_request, of_body, of_hash);
        UPDATE privatest_datasets SET sequence = of_sequence, hash = of_hash, time = of_time,
            sums = of_sums WHERE id = of_dataset;
        IF of_analyst IS NOT NULL THEN
            SELECT sums INTO STRICT own FROM privatest_analysts
                WHERE dataset = of_dataset AND name = of_analyst FOR UPDATE;
            IF NOT privatest_grows(own::JSONB, of_own::JSONB) THEN
                RAISE EXCEPTION 'privatest: entries are never changed';
            END IF;
            UPDATE privatest_analysts SET sums = of_own
                WHERE dataset = of_dataset AND name = of_analyst;
        END IF;
    END $$"""

# Temporary tables come last: a caller's own must not be taken for the ledger's.
_PINNED = tuple(
    f"""DO $$ BEGIN EXECUTE format(
        'ALTER FUNCTION {function} SET search_path = %I, pg_temp', current_schema()); END $$"""
    for function in CALLABLE
)
_OWNERS = tuple(f"REVOKE ALL ON FUNCTION {function} FROM PUBLIC" for function in CALLABLE)

FUNCTIONS = (_GROWS, _LOCK, _LOCK_OPEN, _APPEND, *_PINNED, *_OWNERS)
"""The statements of the migration, in their order."""
