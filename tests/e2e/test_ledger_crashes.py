"""Races, kill -9, a full disk, a lost connection: nothing is overspent, nothing is unrecorded."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from privatest.accounting import Pure
from privatest.core.errors import BudgetError, LedgerError, ParameterError
from privatest.core.privacy import Budget
from privatest.ledger import Ledger, store
from tests.e2e import ledger_processes
from tests.e2e.postgres import Server, server_or_skip
from tests.e2e.postgres_proxy import proxy

pytestmark = pytest.mark.slow
EACH = ledger_processes.EACH


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    yield from server_or_skip()


@pytest.fixture
def postgres(server) -> str:
    return str(server.database(f"test_{uuid.uuid4().hex}"))


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request, tmp_path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return str(request.getfixturevalue("postgres"))


@pytest.fixture
def ledger(location) -> Iterator[Ledger]:
    with Ledger.open(location, create=True, timeout=1) as made:
        made.create_dataset("d", Budget(1))
        yield made


def run(*arguments: str) -> dict:
    command = [sys.executable, ledger_processes.__file__, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    answer: dict = json.loads(done.stdout)
    return answer


def spent(ledger: Ledger) -> str:
    ledger.verify()
    return str(ledger.totals("d").account.spent.epsilon)


# --- races and kills --------------------------------------------------------------------------


def test_nobody_overspends_in_a_race(location):
    assert run("race", location, "32", "50") == {
        "failed": 0,
        "granted": 100,
        "refused": 1500,
        "spent": "3.00",
        "events": 100,
        "sequence": 202,  # created, the analyst, 100 times reserved and committed
        "unfinished": 0,
    }


@pytest.mark.nightly
def test_kill_at_200_moments(tmp_path):
    found = run("kill", str(tmp_path / "ledger.db"), "200", str(tmp_path))
    assert found["without record"] == []
    assert 0 < found["released"] <= found["committed"] <= found["reserved"]
    assert found["spent events"] == found["reserved"]
    assert float(found["spent"]) == pytest.approx(0.03 * found["reserved"])
    # the moments fell before, into and after a request
    assert min(found["stages"].values()) > 0


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_kill_at_40_moments(database, request, tmp_path):
    sqlite = database == "sqlite"
    place = str(tmp_path / "ledger.db") if sqlite else request.getfixturevalue("postgres")
    found = run("kill", place, "40", str(tmp_path))
    assert found["without record"] == []
    assert 0 < found["released"] <= found["committed"] <= found["reserved"]
    assert found["spent events"] == found["reserved"]


# --- forks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("opened_again", ["yes", "no"])
def test_what_a_forked_process_is_granted_stays_when_its_parent_closes(location, opened_again):
    """SQLite's parent deleted the log under the child: its second grant was lost."""
    assert run("forks", location, opened_again) == {"code": 0, "events": 3}


def test_a_process_forked_inside_a_transaction_is_refused(tmp_path):
    found = run("fork_inside", str(tmp_path / "ledger.db"))
    assert found["events"] == 1
    assert "forked while a ledger was open" in found["message"]
    assert "Nothing was granted" in found["message"]


def test_a_fork_waits_for_transactions_of_other_threads(tmp_path):
    assert run("fork_beside", str(tmp_path / "ledger.db")) == {"code": 0, "events": 1}


# --- disks and locks --------------------------------------------------------------------------


def test_a_full_disk(tmp_path):
    found = run("full", str(tmp_path / "ledger.db"))
    assert 0 < found["granted"] == found["recorded"]
    assert "disk" in found["message"]
    assert "Nothing was granted" in found["message"]


def test_a_file_that_may_not_be_written():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        found = run("read_only", f"{folder}/ledger.db")
    assert found["events"] == 1
    assert "read-only" in found["message"] or "cannot be opened" in found["message"]
    assert "must be allowed to write: to the file and its folder" in found["message"]


def test_a_read_only_database(postgres):
    with Ledger.open(postgres, create=True) as ledger:
        ledger.create_dataset("d", Budget(1))
        with psycopg.connect(postgres, autocommit=True) as other:
            name = other.info.dbname
            other.execute(
                f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode()
            )
    with Ledger.open(postgres) as ledger:
        with pytest.raises(LedgerError, match="read-only"):
            ledger.reserve("d", EACH)
        assert spent(ledger) == "0"


def test_a_locked_ledger(ledger, location):
    other: sqlite3.Connection | psycopg.Connection
    if location.startswith("postgresql"):
        other = psycopg.connect(location)
        other.execute("SELECT * FROM privatest_datasets FOR UPDATE")
    else:
        other = sqlite3.connect(location, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(LedgerError, match="another process holds it"):
            ledger.reserve("d", EACH)
        assert ledger.totals("d").account.spent.events == 0  # reading goes on
    finally:
        other.close()
    ledger.reserve("d", EACH)
    assert spent(ledger) == "0.03"


# --- PostgreSQL goes away ---------------------------------------------------------------------


def test_a_connection_lost_in_the_middle(postgres, monkeypatch):
    with Ledger.open(postgres, create=True) as ledger:
        ledger.create_dataset("d", Budget(1))
        reservation = ledger.reserve("d", EACH)
        real = store.now

        def lose() -> str:  # called with the lock held, before anything is written
            with psycopg.connect(postgres, autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            return real()

        with monkeypatch.context() as patch:
            patch.setattr(store, "now", lose)
            for call in (lambda: ledger.reserve("d", EACH), lambda: ledger.commit(reservation)):
                with pytest.raises(LedgerError, match="connection was lost"):
                    call()
        assert spent(ledger) == "0.03"
        ledger.commit(reservation)
        assert ledger.unfinished("d") == []


def test_a_server_that_crashes_keeps_what_it_granted(server, postgres):
    with Ledger.open(postgres, create=True, timeout=20) as ledger:
        ledger.create_dataset("d", Budget(1))
        ids = [ledger.reserve("d", EACH).id for _ in range(5)]
        server.stop("immediate")
        try:
            with pytest.raises(LedgerError, match="connection was lost"):
                ledger.reserve("d", EACH)
            with pytest.raises(LedgerError, match="no server listens at"):
                Ledger.open(postgres)
        finally:
            server.start()
        assert spent(ledger) == "0.15"
        assert [entry.body["opens"] for entry in ledger.unfinished("d")] == ids


def test_a_line_cut_during_a_commit_leaves_it_open_what_happened(server, postgres):
    """The server did what it could not confirm: saying that nothing was granted would be wrong."""
    with (
        tempfile.TemporaryDirectory(prefix="px") as folder,
        proxy(Path(folder), server.folder) as p,
    ):
        through = postgres.replace(str(server.folder), folder)
        with Ledger.open(through, create=True, timeout=20) as ledger:
            ledger.create_dataset("d", Budget(1))
            p.cut_after_commit = True
            with pytest.raises(LedgerError, match=r"not known .* ledger history NAME") as caught:
                ledger.reserve("d", EACH)
            assert "Nothing was granted" not in str(caught.value)
        p.cut_after_commit = False
        with Ledger.open(postgres) as ledger:
            deadline = time.monotonic() + 20
            while spent(ledger) != "0.03":  # the server may still be at it
                assert time.monotonic() < deadline
                time.sleep(0.05)


def test_a_server_that_dies_at_the_commit_is_not_said_to_have_granted_nothing(postgres):
    with Ledger.open(postgres, create=True) as ledger:
        ledger.create_dataset("d", Budget(1))
        with psycopg.connect(postgres, autocommit=True) as other:
            other.execute(
                "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
            )
            other.execute(
                "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON privatest_entries "
                "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION die()"
            )
        with pytest.raises(LedgerError, match="not known"):
            ledger.reserve("d", EACH)
        assert spent(ledger) == "0"


def test_why_there_is_no_connection(server, postgres):
    host = f"?host={server.folder}"
    for address, words in (
        (f"postgresql://postgres@/nowhere{host}", "no database 'nowhere'"),
        (f"postgresql://nobody@/postgres{host}", "no such user"),
        (f"postgresql://postgres@/postgres{host}&port=1", "no server listens at"),
        ("postgresql://postgres@127.0.0.1:1/postgres", "no server listens at 127.0.0.1, port 1"),
        ("postgresql://postgres@nowhere.invalid/postgres", "no host nowhere.invalid"),
        (f"postgresql://postgres@/password{host}", "no database 'password'"),
    ):
        with pytest.raises(LedgerError, match=words) as caught:
            Ledger.open(address, timeout=2)
        assert "lost" not in str(caught.value)


def test_a_wrong_password(server, postgres):
    rules = server.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("CREATE ROLE ann LOGIN PASSWORD 'right'")
        rules.write_text("local all ann scram-sha-256\nlocal all all trust\n")
        other.execute("SELECT pg_reload_conf()")
        try:
            address = f"postgresql://ann:wrong@/postgres?host={server.folder}"
            deadline = time.monotonic() + 20
            while True:
                with pytest.raises(LedgerError) as caught:
                    Ledger.open(address, timeout=20)
                if "password" in str(caught.value) or time.monotonic() > deadline:
                    break
            assert "does not accept the user's password" in str(caught.value)
            assert "wrong" not in str(caught.value)
        finally:
            rules.write_text(before)
            other.execute("SELECT pg_reload_conf()")


# --- both databases behave alike --------------------------------------------------------------


def test_a_whole_life(ledger, location, monkeypatch):
    ledger.create_dataset("parts", Budget(1, "1e-6"), composition="tight", partition=["a", "b"])
    ledger.set_analyst("d", "ann", Budget("0.05"))
    first = ledger.reserve("d", EACH, analyst="ann", request="r")
    ledger.commit(first, released={"pvalue": 0.1 + 0.2})
    with pytest.raises(BudgetError, match="ann"):
        ledger.reserve("d", EACH, analyst="ann")
    with pytest.raises(ParameterError, match="new name"):
        ledger.create_dataset("d", Budget(1))
    with pytest.raises(LedgerError, match="already closed"):
        ledger.commit(first)
    monkeypatch.setattr(store, "now", lambda: "1999-12-31T23:59:59.000000Z")
    ledger.fail(ledger.reserve("parts", Pure("0.1", part="a")), reason="clock set back")
    times = [entry.time for entry in ledger.history("parts")]
    assert times == sorted(times, reverse=True)
    assert min(times) > "2000"
    heads = ledger.verify()
    answered = ledger.answer(first.id[:10])
    assert (answered.released, answered.analyst) == ({"pvalue": 0.1 + 0.2}, "ann")
    with pytest.raises(LedgerError, match="does not lead to the known head"):
        ledger.verify({"d": "0" * 64})
    with Ledger.open(location) as other:
        assert other.verify(heads) == heads
        assert other.verify({"d": heads["d"].hash[:16]}) == heads
        assert other.recall("d", "r") == {"pvalue": 0.1 + 0.2}


def test_postgresql_entries_cannot_be_changed_by_mistake(postgres):
    with Ledger.open(postgres, create=True) as ledger:
        ledger.create_dataset("d", Budget(1))
    with psycopg.connect(postgres, autocommit=True) as other:
        for statement in (
            b"UPDATE privatest_entries SET kind = 'x'",
            b"DELETE FROM privatest_entries",
            b"TRUNCATE privatest_entries",
        ):
            with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
                other.execute(statement)


def test_no_ledger_in_a_database(postgres):
    with pytest.raises(LedgerError, match="no ledger here"):
        Ledger.open(postgres)
