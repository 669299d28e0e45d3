"""Any byte and any stored field may be wrong: the ledger says so, and nothing else happens."""

from __future__ import annotations

import io
import json
import random
import shutil
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from privatest.accounting import Pure
from privatest.core.errors import BudgetError, LedgerError, ParameterError
from privatest.core.privacy import Budget
from privatest.ledger import Ledger
from tests.unit.test_ledger_chain import TRIGGERS

pytestmark = pytest.mark.privacy

NAMES = ("visits", "tests")
DEEP = "[" * 100_000
# What a damaged cell may hold. SQLite keeps any type in any column.
VALUES = [
    "''",
    "'x'",
    "'{}'",
    "'[]'",
    "'null'",
    "'1e999999999999'",
    "'NaN'",
    "-1",
    "1.5",
    "9223372036854775807",
    "x'ff'",
    "x'7b7d'",
    "CAST(x'ff' AS TEXT)",
    "'a' || char(0) || 'b'",
    f"'{DEEP}'",
]
# What a damaged value inside of a JSON text may be.
LEAVES: list[Any] = [
    None,
    True,
    -1,
    1.5,
    10**400,
    "",
    "x",
    "NaN",
    "-1",
    "1e999999999",
    "\ud800",
    [],
    {},
    [{}],
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A ledger with every kind of entry, and an open reservation of each data set."""
    path = tmp_path_factory.mktemp("damage") / "ledger.db"
    with Ledger.open(path, create=True) as ledger:
        ledger.create_dataset("visits", Budget(1), partition=["north", "south"])
        ledger.create_dataset("tests", Budget(3, "1e-6"), composition="equal", each=Pure("0.1"))
        for name in NAMES:
            ledger.set_analyst(name, "ann", Budget("0.5", "1e-7"))
            for i in range(3):
                asked = {"question": "two-sample", "columns": ["age"], "epsilon": "0.1"}
                reservation = ledger.reserve(
                    name, Pure("0.1"), analyst="ann", request=f"r{i}", asked=asked
                )
                (ledger.commit if i else ledger.fail)(reservation)
            ledger.commit(ledger.reserve(name, Pure("0.1"), request="r"), released={"a": [1]})
            ledger.reserve(name, Pure("0.1"))
        ledger.set_budget("visits", Budget(2))
    return path


def told(ledger):
    """Everything that the ledger tells, which must not change without a word."""
    lines = io.StringIO()
    ledger.export(lines)
    found = [lines.getvalue()]
    for name in ledger.datasets():
        found += [ledger.totals(name).to_dict(), ledger.recall(name, "r")]
        found += [ledger.unfinished(name), ledger.history(name)]
    return found


def use(path):
    """Do everything that can be done; whatever is wrong must be a LedgerError."""
    said = 0
    try:
        with Ledger.open(path, timeout=0.1) as ledger:
            opened = [e.body["opens"] for name in NAMES for e in quiet(ledger.unfinished, name)]
            for ask in (
                lambda: told(ledger),
                lambda: ledger.affords("visits", Pure("0.1", part="north"), analyst="ann"),
                lambda: ledger.reserve("tests", Pure("0.1"), analyst="ann"),
                lambda: ledger.reserve("visits", Pure("0.1", part="north")),
                lambda: [ledger.answer(each) for each in opened],
                lambda: list(map(ledger.commit, opened)),
                lambda: ledger.set_budget("visits", Budget(3)),
                lambda: ledger.set_analyst("tests", "ann", Budget(1)),
                lambda: ledger.create_dataset("new", Budget(1), exist_ok=True),
                lambda: ledger.create_dataset("visits", Budget(2), exist_ok=True),
            ):
                try:
                    ask()
                except (LedgerError, BudgetError):  # a sum may have become too large
                    said += 1
                except ParameterError as error:  # a damaged name is the name of nothing
                    assert_unknown_name(error)
    except LedgerError:
        said += 1
    return said


def quiet(call, *arguments):
    try:
        return [e for e in call(*arguments) if isinstance(e.body.get("opens"), str)]
    except (LedgerError, ParameterError):
        return []


def assert_unknown_name(error):
    expected = ["one that", "declared public partition", "event must be", "no request", "differs"]
    expected += ["cannot be changed", "Change it with", "digits", "must be a new name"]
    assert any(words in str(error) for words in expected), str(error)


def found_by_verify(path):
    try:
        with Ledger.open(path, timeout=0.1) as ledger:
            ledger.verify()
    except LedgerError:
        return True
    return False


def columns():
    tables = {
        "privatest_datasets": "name settings epsilon delta limits sums sequence hash time",
        "privatest_analysts": "name epsilon delta limits sums dataset",
        "privatest_entries": "dataset sequence kind opens closes request body hash",
    }
    return [(table, column) for table, names in tables.items() for column in names.split()]


def fresh(made, path):
    shutil.copy(made, path)
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


def damage(path, statement, *arguments):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        for trigger in TRIGGERS:
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        connection.execute(statement, arguments)


@pytest.mark.parametrize(("table", "column"), columns())
def test_a_damaged_cell_is_a_ledger_error(made, tmp_path, table, column):
    path = tmp_path / "ledger.db"
    for value in VALUES:
        fresh(made, path)
        rows = f"SELECT max(rowid) FROM {table}"
        damage(path, f"UPDATE {table} SET {column} = {value} WHERE rowid = ({rows})")
        assert found_by_verify(path), value[:50]
        use(path)


@pytest.mark.parametrize("version", [-1, 0, 99])
def test_a_damaged_version_is_a_ledger_error(made, tmp_path, version):
    path = tmp_path / "ledger.db"
    fresh(made, path)
    damage(path, f"UPDATE privatest_version SET version = {version}")
    with pytest.raises(LedgerError):
        Ledger.open(path)


def leaves(value, at=()):
    """Paths to all values inside of a JSON document."""
    yield at
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, item in value.items() if isinstance(value, dict) else ():
        yield from leaves(item, (*at, key))


def replaced(value, at, new):
    if not at:
        return new
    copy = value.copy()
    copy[at[0]] = replaced(value[at[0]], at[1:], new)
    return copy


@pytest.mark.parametrize(
    ("table", "column", "name"),
    [
        *(("privatest_datasets", c, n) for c in ("settings", "limits", "sums") for n in NAMES),
        *(("privatest_analysts", c, "ann") for c in ("limits", "sums")),
    ],
)
def test_a_damaged_value_inside_of_sums_is_a_ledger_error(made, tmp_path, table, column, name):
    with closing(sqlite3.connect(made)) as connection:
        query = f"SELECT {column} FROM {table} WHERE name = ?"
        document = json.loads(connection.execute(query, (name,)).fetchone()[0])
    path, pick = tmp_path / "ledger.db", random.Random(1)
    for at in leaves(document):
        for leaf in pick.sample(LEAVES, 5):
            fresh(made, path)
            text = json.dumps(replaced(document, at, leaf))
            damage(path, f"UPDATE {table} SET {column} = ? WHERE name = ?", text, name)
            assert found_by_verify(path), (at, leaf)
            use(path)


def test_a_data_set_that_was_taken_away_is_missed(made, tmp_path):
    path = tmp_path / "ledger.db"
    fresh(made, path)
    damage(path, "DELETE FROM privatest_datasets WHERE name = 'tests'")
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match="a data set is gone"):
        ledger.verify()


def flipped(made, path, offset, pattern):
    fresh(made, path)
    data = bytearray(made.read_bytes())
    data[offset] ^= pattern
    path.write_bytes(data)


@pytest.mark.slow
def test_damaged_bytes_are_found_or_change_nothing(made, tmp_path):
    """All of the header, and bytes all over the file."""
    path, pick = tmp_path / "ledger.db", random.Random(2)
    size = made.stat().st_size
    with Ledger.open(made) as ledger:
        before = told(ledger)
    found = 0
    for offset in (*range(100), *pick.sample(range(100, size), 200)):
        flipped(made, path, offset, pick.choice((0x01, 0x20, 0x80, 0xFF)))
        if found_by_verify(path):
            found += 1
        else:
            with Ledger.open(path, timeout=0.1) as ledger:
                assert told(ledger) == before, offset
        use(path)
    assert found > 50
