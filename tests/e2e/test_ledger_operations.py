"""Backups under load, restores on PostgreSQL, and a role that serves and cannot change history."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest

from privatest.accounting import Pure
from privatest.core.errors import LedgerError
from privatest.core.privacy import Budget
from privatest.curator import Curator
from privatest.ledger import Ledger, restore
from tests.curators import CONFIG, opened, request
from tests.e2e.postgres import Server, server_or_skip
from tests.e2e.test_ledger_crashes import run

pytestmark = pytest.mark.slow
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "operations.md"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    yield from server_or_skip()


@pytest.fixture
def postgres(server) -> str:
    return str(server.database(f"test_{uuid.uuid4().hex}"))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_backups_under_load(kind, tmp_path, request):
    location = str(tmp_path / "ledger.db")
    if kind == "postgresql":
        location = request.getfixturevalue("postgres")
    found = run("backups", location, str(tmp_path), "6")
    assert found["wrong"] == 0
    held = found["held"]
    assert held == sorted(held)
    assert held[0] < held[-1] <= found["granted"]  # they did work meanwhile


def test_postgresql_is_copied_and_restored(postgres, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Ledger.open(postgres, create=True) as ledger:
        ledger.create_dataset("d", Budget(1))
        ledger.commit(ledger.reserve("d", Pure("0.1"), request="r"), released={"pvalue": 0.1})
        assert not ledger.unfolded_log()
        heads = ledger.backup("copy.db")
        assert heads == ledger.verify()
        with Ledger.open("copy.db") as copy:
            assert copy.recall("d", "r") == {"pvalue": 0.1}
        ledger.commit(ledger.reserve("d", Pure("0.2")))
        with pytest.raises(LedgerError, match="lacks"):
            restore("copy.db", postgres)
        done = restore("copy.db", postgres, back_in_time=True)
        assert done.kept is not None
        assert done.lost["d"].spent.epsilon == Decimal("0.2")
        assert ledger.totals("d").account.spent.epsilon == Decimal("0.3")  # open all the while
        ledger.commit(ledger.reserve("d", Pure("0.2")))
        ledger.verify()
    with (
        psycopg.connect(postgres) as other,
        pytest.raises(psycopg.errors.RaiseException, match="never changed"),
    ):
        other.execute(b"DELETE FROM privatest_entries")


@pytest.fixture
def served(server, tmp_path) -> tuple[str, str]:
    """A curator's ledger, of which its own role and a role that serves have an address."""
    name = f"ledger_{uuid.uuid4().hex}"
    owner = server.database(name)
    opened(tmp_path, CONFIG.replace("ledger.db", owner)).close()
    role = f"service_{uuid.uuid4().hex}"
    (block,) = re.findall(r"^```sql\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    block = block.replace("privatest_service", role).replace("DATABASE ledger", f"DATABASE {name}")
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(block.encode())
    serving = owner.replace("postgres@", f"{role}@")
    file = tmp_path / "curator.toml"
    file.write_text(file.read_text().replace(owner, serving))
    return owner, serving


def test_a_role_that_serves_answers_requests(served, tmp_path):
    owner, _ = served
    with Curator.open(tmp_path / "curator.toml") as curator:
        curator.run(request(), analyst="ada")
        assert curator.run(request(), analyst="ada").recorded
    with Ledger.open(owner) as ledger:
        ledger.verify()
        assert ledger.totals("people").account.spent.epsilon == Decimal("0.1")


CALL = "SELECT privatest_append({}, {}, '{}', {}, {}, NULL, '{}', '{}', '9999', '{}', {}, {})"


def test_a_role_that_serves_cannot_change_history(served, tmp_path):
    owner, serving = served
    with Curator.open(tmp_path / "curator.toml") as curator:
        curator.run(request(), analyst="ada")
    with Ledger.open(owner) as ledger:
        before = ledger.verify()
    nothing = '{"whole":{"epsilon":"0","delta":"0","rho":"0","rho_delta":"0","events":0}}'
    body = "{}"
    with psycopg.connect(serving, autocommit=True) as role:
        for table in ("version", "datasets", "analysts", "entries"):
            for statement in ("DELETE FROM {}", "TRUNCATE {}", "DROP TABLE {}"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    role.execute(statement.format(f"privatest_{table}").encode())
        for statement in (
            "UPDATE privatest_datasets SET sums = '{}'",
            "UPDATE privatest_analysts SET sums = '{}'",
            "UPDATE privatest_entries SET kind = 'x'",
            "INSERT INTO privatest_version VALUES (9)",
            "INSERT INTO privatest_entries SELECT * FROM privatest_entries",
            "DROP TRIGGER privatest_append_only ON privatest_entries",
            "DROP FUNCTION privatest_append",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                role.execute(statement.encode())
        (row,) = role.execute(b"SELECT id, sequence, hash, sums FROM privatest_datasets").fetchall()
        number, sequence, last, sums = row
        fits = _digest(role, last, body)
        for values in (  # a lower sum, another place, no digest, the kind of a custodian
            (number, sequence + 1, "reserved", "'o'", "NULL", body, fits, nothing),
            (number, sequence, "reserved", "'o'", "NULL", body, fits, sums),
            (number, sequence + 1, "reserved", "'o'", "NULL", body, "0" * 64, sums),
            (number, sequence + 1, "renewed", "NULL", "NULL", body, fits, nothing),
        ):
            with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
                role.execute(CALL.format(*values, "NULL", "NULL").encode())
        own = (number, sequence + 1, "reserved", "'o'", "NULL", body, fits, sums, "'ada'")
        with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
            role.execute(CALL.format(*own, f"'{nothing}'").encode())
        role.execute(b"CREATE TEMP TABLE privatest_datasets (LIKE public.privatest_datasets)")
        with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
            role.execute(CALL.format(*own, f"'{nothing}'").encode())
    with Ledger.open(serving) as ledger, pytest.raises(LedgerError, match="permission"):
        ledger.set_budget("people", Budget(99))
    with Ledger.open(owner) as ledger:
        assert ledger.verify(before) == before


def _digest(role: psycopg.Connection, last: str, body: str) -> str:
    words = "SELECT encode(sha256(convert_to(%s || E'\\n' || %s, 'UTF8')), 'hex')"
    (found,) = role.execute(words.encode(), (last, body)).fetchone()  # type: ignore[misc]
    return str(found)
