"""Tampering, damage, versions: a ledger that is not what was written says so."""

from __future__ import annotations

import json
import sqlite3

import pytest

from privatest.accounting import Pure
from privatest.core.errors import LedgerError, ParameterError
from privatest.core.privacy import Budget
from privatest.ledger import Head, Ledger
from privatest.ledger import tables as ledger_tables
from privatest.ledger.state import GENESIS, digest

TRIGGERS = ("privatest_no_update", "privatest_no_delete")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.db"
    with Ledger.open(path, create=True) as ledger:
        for name in ("visits", "tests"):
            ledger.create_dataset(name, Budget(1))
            ledger.set_analyst(name, "ann", Budget("0.5"))
            for i in range(4):
                reservation = ledger.reserve(name, Pure("0.1"), analyst="ann", request=f"r{i}")
                ledger.commit(reservation, released={"answer": i})
    return path


def change(path, *statements):
    """Do what somebody with the file and a database tool could do."""
    connection = sqlite3.connect(path)
    for trigger in TRIGGERS:
        connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    for statement in statements:
        assert connection.execute(statement).rowcount
    connection.commit()
    connection.close()


def verified(path, heads=None):
    with Ledger.open(path) as ledger:
        return ledger.verify(heads)


def test_an_untouched_ledger_verifies(path):
    heads = verified(path)
    assert {name: head.sequence for name, head in heads.items()} == {"visits": 10, "tests": 10}
    assert verified(path, heads) == heads


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE privatest_entries SET body = replace(body, '0.1', '0.01') WHERE sequence = 3",
        "UPDATE privatest_entries SET body = 'no JSON' WHERE sequence = 3",
        "UPDATE privatest_entries SET body = '[]' WHERE sequence = 1",
        "UPDATE privatest_entries SET body = replace(body, 'answer', 'Answer') WHERE sequence = 4",
        "UPDATE privatest_entries SET hash = 'x' WHERE sequence = 10",
        "UPDATE privatest_entries SET kind = 'failed' WHERE sequence = 4",
        "UPDATE privatest_entries SET request = 'other' WHERE sequence = 4",
        "UPDATE privatest_entries SET opens = 'other' WHERE sequence = 3 AND dataset = 1",
        "UPDATE privatest_entries SET closes = NULL WHERE sequence = 4",
        "DELETE FROM privatest_entries WHERE sequence = 1",
        "DELETE FROM privatest_entries WHERE sequence = 5",
        "DELETE FROM privatest_entries WHERE sequence = 10",
        "DELETE FROM privatest_entries WHERE dataset = 2",
        "UPDATE privatest_entries SET sequence = 20 WHERE sequence = 10",
        "UPDATE privatest_datasets SET epsilon = '100'",
        "UPDATE privatest_datasets SET delta = '0.1'",
        'UPDATE privatest_datasets SET limits = \'{"epsilon":"100","delta":"0"}\'',
        "UPDATE privatest_datasets SET sums = replace(sums, '0.4', '0.1')",
        "UPDATE privatest_datasets SET settings = replace(settings, 'basic', 'tight')",
        "UPDATE privatest_datasets SET sequence = 9",
        "UPDATE privatest_datasets SET hash = 'x' WHERE name = 'tests'",
        "UPDATE privatest_datasets SET time = '2000'",
        "UPDATE privatest_datasets SET name = 'renamed' WHERE name = 'tests'",
        "UPDATE privatest_analysts SET epsilon = '0.9'",
        "UPDATE privatest_analysts SET limits = '{}'",
        "UPDATE privatest_analysts SET sums = replace(sums, '0.4', '0.1')",
        "UPDATE privatest_analysts SET name = 'eve' WHERE dataset = 2",
        "DELETE FROM privatest_analysts WHERE dataset = 1",
    ],
)
def test_every_change_is_seen(path, statement):
    change(path, statement)
    with pytest.raises(LedgerError, match="changed or damaged"):
        verified(path)


def test_entries_cannot_be_changed_by_mistake(path):
    connection = sqlite3.connect(path)
    for statement in ("UPDATE privatest_entries SET kind = 'x'", "DELETE FROM privatest_entries"):
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            connection.execute(statement)
    connection.close()


def rewrite(path, edit):
    """Change a chain and compute all its digests anew, as only a careful forger would."""
    connection = sqlite3.connect(path)
    for trigger in TRIGGERS:
        connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    query = "SELECT sequence, body FROM privatest_entries WHERE dataset = 1 ORDER BY sequence"
    last = GENESIS
    for sequence, body in connection.execute(query).fetchall():
        new = edit(json.loads(body))
        text = json.dumps(new, sort_keys=True, separators=(",", ":"))
        last = digest(last, text)
        connection.execute(
            "UPDATE privatest_entries SET body = ?, hash = ? WHERE dataset = 1 AND sequence = ?",
            (text, last, sequence),
        )
    connection.execute("UPDATE privatest_datasets SET hash = ? WHERE id = 1", (last,))
    connection.commit()
    connection.close()


def test_a_known_head_shows_a_rewritten_chain(path):
    heads = verified(path)

    def edit(body):
        # an early entry: the head has to depend on all that came before
        return body | ({"released": {"answer": 99}} if body["sequence"] == 4 else {})

    rewrite(path, edit)
    verified(path)  # a chain proves nothing against who can write all of it
    with pytest.raises(LedgerError, match="left the known chain"):
        verified(path, heads)


@pytest.mark.parametrize(
    "edit",
    [
        lambda b: b | ({"event": {"kind": "pure", "epsilon": "0.9"}} if "event" in b else {}),
        lambda b: b | ({"epsilon": "0.9"} if b["kind"] == "reserved" else {}),
        lambda b: b | ({"event": {"kind": "free"}} if "event" in b else {}),
        lambda b: b | {"kind": "created"},
        lambda b: b | ({"time": "1999"} if b["sequence"] == 5 else {}),
    ],
)
def test_a_rewritten_chain_must_still_make_sense(path, edit):
    rewrite(path, edit)
    with pytest.raises(LedgerError, match="changed or damaged"):
        verified(path)


def test_an_entry_closes_a_reservation_that_is_open(path):
    change(path, "UPDATE privatest_entries SET closes = 'x' WHERE dataset = 1 AND sequence = 6")
    rewrite(path, lambda b: b | ({"closes": "x"} if b["sequence"] == 6 else {}))
    with pytest.raises(LedgerError, match="closes a reservation that is not open"):
        verified(path)


def test_a_known_head_shows_a_cut_and_a_lost_data_set(path):
    heads = verified(path)
    with pytest.raises(LedgerError, match="cut"):
        verified(path, {"visits": Head(11, "x")})
    with pytest.raises(LedgerError, match="is gone"):
        verified(path, heads | {"lost": Head(1, "x")})


# --- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"not a database at all" * 100, b"SQLite format 3\0" + b"x" * 5000]
)
def test_a_file_that_is_no_ledger(tmp_path, content):
    (tmp_path / "x.db").write_bytes(content)
    for create in (False, True):
        with pytest.raises(LedgerError, match="damaged"):
            Ledger.open(tmp_path / "x.db", create=create)
    assert (tmp_path / "x.db").read_bytes() == content


def test_damaged_pages_are_found(path):
    data = bytearray(path.read_bytes())
    for offset in range(4096 + 500, len(data), 4096):
        data[offset : offset + 3000] = b"\xff" * 3000
    path.write_bytes(data)
    with pytest.raises(LedgerError, match=r"damaged|cannot be (used|read)"):
        verified(path)


def test_a_truncated_file_is_found(path):
    path.write_bytes(path.read_bytes()[: 3 * 4096])
    with pytest.raises(LedgerError):
        verified(path)


@pytest.mark.parametrize("column", ["sums", "limits", "settings"])
def test_damaged_sums_grant_nothing(path, column):
    change(path, f"UPDATE privatest_datasets SET {column} = '{{}}'")
    with Ledger.open(path) as ledger:
        for ask in (
            lambda: ledger.reserve("visits", Pure("0.1")),
            lambda: ledger.affords("visits", Pure("0.1")),
            lambda: ledger.totals("visits"),
        ):
            with pytest.raises(LedgerError, match="damaged"):
                ask()


# --- places and versions ------------------------------------------------------------------------


def test_a_missing_ledger(tmp_path):
    with pytest.raises(LedgerError, match="ledger init"):
        Ledger.open(tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()
    with pytest.raises(LedgerError, match="cannot be created"):
        Ledger.open(tmp_path / "no" / "folder.db", create=True)
    with pytest.raises(LedgerError, match="directory"):
        Ledger.open(tmp_path, create=True)
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(LedgerError, match="no ledger here"):
        Ledger.open(tmp_path / "other.db")


@pytest.mark.parametrize("location", ["", "sqlite://", "sqlite:///:memory:", "mysql://x/y", "://"])
def test_an_address_that_cannot_be_used(location):
    with pytest.raises(ParameterError, match="ledger"):
        Ledger.open(location, create=True)


def test_a_sqlite_address(tmp_path):
    with Ledger.open(f"sqlite:///{tmp_path}/a.db", create=True) as ledger:
        assert ledger.datasets() == []


def test_a_newer_ledger_is_refused(path):
    change(path, "UPDATE privatest_version SET version = 99")
    with pytest.raises(LedgerError, match="version 99"):
        Ledger.open(path)
    change(path, "DELETE FROM privatest_version")
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(path)


def test_an_older_ledger_is_brought_up(path, monkeypatch):
    more = {"sqlite": ["ALTER TABLE privatest_analysts ADD COLUMN note TEXT"]}
    monkeypatch.setattr(ledger_tables, "MIGRATIONS", (*ledger_tables.MIGRATIONS, more))
    for _ in range(2):  # once, and never again
        verified(path)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT version FROM privatest_version").fetchall() == [
        (len(ledger_tables.MIGRATIONS),)
    ]
    connection.execute("SELECT note FROM privatest_analysts")
    connection.close()


def test_a_migration_that_fails_changes_nothing(path, monkeypatch):
    more = {"sqlite": ["ALTER TABLE privatest_analysts ADD COLUMN note TEXT", "SELECT * FROM no"]}
    with monkeypatch.context() as patch:
        patch.setattr(ledger_tables, "MIGRATIONS", (*ledger_tables.MIGRATIONS, more))
        with pytest.raises(LedgerError):
            Ledger.open(path)
    verified(path)
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.OperationalError):
        connection.execute("SELECT note FROM privatest_analysts")
    connection.close()
