"""A ledger that an earlier version wrote, with every kind of entry, is read and continued."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from privatest.accounting import Pure
from privatest.ledger import Ledger

STORED = Path(__file__).parent / "stored"


@pytest.fixture
def path(tmp_path):
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.executescript((STORED / "ledger.sql").read_text(encoding="utf-8"))
    connection.close()
    return tmp_path / "ledger.db"


def test_it_has_every_kind_of_entry(path):
    connection = sqlite3.connect(path)
    kinds = {kind for (kind,) in connection.execute("SELECT kind FROM privatest_entries")}
    connection.close()
    assert kinds == {
        *("created", "budget", "analyst", "reserved", "committed", "failed"),
        *("renewed", "linked", "closed", "restored"),
    }


def test_it_verifies_to_the_same_sums(path):
    expected = json.loads((STORED / "ledger.json").read_text(encoding="utf-8"))
    with Ledger.open(path) as ledger:
        heads = {name: [head.sequence, head.hash] for name, head in ledger.verify().items()}
        assert heads == expected["heads"]
        assert {n: ledger.totals(n).to_dict() for n in ledger.datasets()} == expected["totals"]
        recalled = {name: ledger.recall(name, "r1") for name in ledger.datasets()}
        assert recalled == expected["recalled"]


def test_it_is_continued(path):
    with Ledger.open(path) as ledger:
        heads = ledger.verify()
        for entry in ledger.unfinished("visits"):
            ledger.commit(entry.body["opens"], released={"late": True})
        ledger.commit(ledger.reserve("new", Pure("0.1")), released=[1])
        assert ledger.verify(heads)["new"].sequence == heads["new"].sequence + 2


def test_a_new_ledger_has_the_same_tables(path, tmp_path):
    """Migrations give the same tables for ever: what they once made is never made otherwise."""

    def tables(file):
        connection = sqlite3.connect(file)
        rows = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        connection.close()
        return rows

    Ledger.open(tmp_path / "new.db", create=True).close()
    assert tables(tmp_path / "new.db") == tables(path)
