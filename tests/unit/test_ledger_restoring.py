"""Backups and restores: nothing that was spent is forgotten, and going back is on record."""

from __future__ import annotations

import sqlite3
import stat
from decimal import Decimal
from pathlib import Path

import pytest

from privatest.accounting import Pure
from privatest.core.errors import BudgetError, LedgerError
from privatest.core.privacy import Budget
from privatest.ledger import Ledger, restore


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "ledger.db"
    with Ledger.open(path, create=True) as ledger:
        ledger.create_dataset("visits", Budget(1), partition=["north", "south"])
        ledger.set_analyst("visits", "ada", Budget("0.5"))
    spend(path, "0.1")
    return path


def spend(path, epsilon, dataset="visits", **options):
    with Ledger.open(path) as ledger:
        reservation = ledger.reserve(dataset, Pure(epsilon, **options), analyst="ada")
        ledger.commit(reservation, released={"answer": 1})


def backup(path):
    file = path.with_name("backup.db")
    with Ledger.open(path) as ledger:
        ledger.backup(file)
    return file


def spent(path, dataset="visits"):
    with Ledger.open(path) as ledger:
        ledger.verify()
        totals = ledger.totals(dataset)
        return totals.account.spent.epsilon, totals.analysts["ada"].spent.epsilon


def entries(path, kind, dataset="visits"):
    with Ledger.open(path) as ledger:
        return [e.body for e in ledger.history(dataset) if e.kind == kind]


def test_what_lacks_nothing_is_restored_without_a_word(path):
    file = backup(path)
    before = file.read_bytes()
    done = restore(file, path)
    assert not done.lost
    assert not done.unknown
    assert file.read_bytes() == before  # a backup stays as it is
    assert entries(path, "restored") == []
    assert spent(path) == (Decimal("0.1"), Decimal("0.1"))
    assert done.kept is not None
    assert spent(done.kept) == (Decimal("0.1"), Decimal("0.1"))
    assert stat.S_IMODE(done.kept.stat().st_mode) == 0o600


def test_going_back_is_refused(path):
    file = backup(path)
    spend(path, "0.2")
    with Ledger.open(path) as ledger:
        before = ledger.verify()
    with pytest.raises(LedgerError, match=r"'visits': 2 entries, epsilon 0\.2.*--back-in-time"):
        restore(file, path)
    with Ledger.open(path) as ledger:
        assert ledger.verify() == before
    assert not list(path.parent.glob("*.before-*"))


def test_going_back_on_purpose_is_recorded_and_refunds_nothing(path):
    file = backup(path)
    with Ledger.open(path) as ledger:
        then = ledger.verify()["visits"]
    spend(path, "0.2")
    with Ledger.open(path) as ledger:
        lost = ledger.verify()["visits"]
    done = restore(file, path, back_in_time=True, reason="a test", by="eve")
    assert done.lost["visits"].spent.epsilon == Decimal("0.2")
    (body,) = entries(path, "restored")
    assert body["from"] == {"sequence": lost.sequence, "hash": lost.hash}
    assert body["to"] == {"sequence": then.sequence, "hash": then.hash}
    assert (body["entries"], body["reason"], body["by"]) == (2, "a test", "eve")
    assert spent(path) == (Decimal("0.3"), Decimal("0.3"))
    with Ledger.open(path) as ledger:
        with pytest.raises(LedgerError, match="known"):
            ledger.verify({"visits": lost})  # a head that was kept shows it
        with pytest.raises(BudgetError):
            ledger.reserve("visits", Pure("0.21"), analyst="ada")
    assert done.kept is not None
    with Ledger.open(done.kept) as ledger:
        assert ledger.verify()["visits"] == lost


def test_parts_keep_what_was_spent_on_them(path):
    file = backup(path)
    spend(path, "0.2", part="north")
    spend(path, "0.3", part="south")
    restore(file, path, back_in_time=True)
    with Ledger.open(path) as ledger:
        sums = ledger.totals("visits").account.sums
    assert sums.whole.epsilon == Decimal("0.4")  # .1 on all, and at most .3 on anybody since


def test_a_data_set_that_the_backup_lacks_is_not_new(path):
    file = backup(path)
    with Ledger.open(path) as ledger:
        ledger.create_dataset("later", Budget(2))
        ledger.set_analyst("later", "ada", Budget(1))
    spend(path, "0.7", "later")
    restore(file, path, back_in_time=True)
    assert spent(path, "later") == (Decimal("0.7"), Decimal("0.7"))
    with Ledger.open(path) as ledger:
        assert ledger.totals("later").account.budget == Budget(2)


def test_another_chain_is_going_back_too(path, tmp_path):
    other = tmp_path / "other.db"
    with Ledger.open(other, create=True) as ledger:
        ledger.create_dataset("visits", Budget(1))
        for _ in range(9):
            ledger.commit(ledger.reserve("visits", Pure("0.01")))
    with pytest.raises(LedgerError, match="'visits': 4 entries"):
        restore(other, path)
    restore(other, path, back_in_time=True)
    assert spent(path)[0] == Decimal("0.1")


def test_a_restored_period_is_not_renewed_once_more(path, monkeypatch):
    file = backup(path)
    with Ledger.open(path) as ledger:
        monkeypatch.setattr("privatest.ledger.store.now", lambda: "2999-01-02T00:00:00Z")
        assert ledger.renew("visits", "2999-01-01")
        ledger.commit(ledger.reserve("visits", Pure("0.05"), analyst="ada"))
    restore(file, path, back_in_time=True)
    with Ledger.open(path) as ledger:
        assert not ledger.renew("visits", "2999-01-01")


@pytest.mark.parametrize("harm", ["gone", "no file of SQLite", "no table", "no sums"])
def test_where_nothing_can_be_compared_it_is_said(path, harm):
    file = backup(path)
    if harm == "gone":
        path.unlink()
    elif harm == "no file of SQLite":
        path.write_bytes(b"x" * 5000)
    else:
        connection = sqlite3.connect(path)
        what = "DROP TABLE privatest_version"
        if harm == "no sums":
            what = "UPDATE privatest_datasets SET sums = '{}'"
        connection.execute(what)
        connection.commit()
        connection.close()
    with pytest.raises(LedgerError, match="not known"):
        restore(file, path)
    done = restore(file, path, back_in_time=True)
    assert done.unknown
    assert (done.kept is None) == (harm == "gone")
    assert entries(path, "restored")[0]["unknown"] is True
    assert spent(path) == (Decimal("0.1"), Decimal("0.1"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not list(path.parent.glob("*.restoring-*"))


def test_a_damaged_backup_is_refused(path, tmp_path):
    file = backup(path)
    connection = sqlite3.connect(file)
    connection.execute("DROP TRIGGER privatest_no_update")
    connection.execute("UPDATE privatest_entries SET body = replace(body, '0.1', '0.2')")
    connection.commit()
    connection.close()
    for wrong, words in ((file, "changed"), (tmp_path / "no.db", "no backup"), (__file__, "read")):
        with pytest.raises(LedgerError, match=words):
            restore(Path(wrong), path, back_in_time=True)
    assert spent(path) == (Decimal("0.1"), Decimal("0.1"))


def test_entries_are_guarded_after_a_restore(path):
    restore(backup(path), path)
    connection = sqlite3.connect(path)
    for statement in ("UPDATE privatest_entries SET kind = 'x'", "DELETE FROM privatest_entries"):
        with pytest.raises(sqlite3.IntegrityError, match="never changed"):
            connection.execute(statement)
    connection.close()


def test_whoever_was_revoked_since_the_backup_stays_out(path):
    file = backup(path)
    with Ledger.open(path) as ledger:
        ledger.revoke("visits", "ada", reason="left")
    restore(file, path, back_in_time=True)
    with Ledger.open(path) as ledger:
        ledger.verify()
        assert ledger.totals("visits").analysts["ada"].closed
        with pytest.raises(BudgetError):
            ledger.reserve("visits", Pure("0.1"), analyst="ada")


def test_a_data_set_that_was_renamed_since_the_backup_stays_closed(path):
    """Or its people would have two budgets."""
    file = backup(path)
    with Ledger.open(path) as ledger:
        ledger.create_dataset("stays", Budget(1))
        ledger.link("visits", "stays")
    restore(file, path, back_in_time=True)
    with Ledger.open(path) as ledger:
        ledger.verify()
        assert ledger.totals("visits").account.closed
        assert ledger.totals("stays").account.spent.epsilon == Decimal("0.1")
        with pytest.raises(BudgetError):
            ledger.reserve("visits", Pure("0.1"))
    assert entries(path, "closed")[0]["to"] == "stays"


def test_budgets_that_were_lowered_since_the_backup_stay_low(path):
    file = backup(path)
    with Ledger.open(path) as ledger:
        ledger.set_budget("visits", Budget("0.3"))
        ledger.set_analyst("visits", "ada", Budget("0.2"))
    restore(file, path, back_in_time=True)
    with Ledger.open(path) as ledger:
        ledger.verify()
        totals = ledger.totals("visits")
    assert totals.account.budget == Budget("0.3")
    assert totals.analysts["ada"].budget == Budget("0.2")
