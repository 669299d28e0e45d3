"""Revoked analysts, periods, one budget for one source, rows of a person, the log."""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from privatest.accounting import event_of
from privatest.core.errors import BudgetError, DataError, ParameterError
from privatest.core.privacy import Budget
from privatest.curator import Curator, answers
from privatest.curator import curator as module
from privatest.curator.config import checked_renewal, period_start, read_config
from privatest.data import reading
from privatest.data.schema import NumericColumn, Schema
from privatest.ledger import Ledger
from tests.curators import CONFIG, SCHEMA, opened, request, table, write


def ledger(folder) -> Ledger:
    return Ledger.open(folder / "ledger.db")


def spent(folder, name="people") -> Decimal:
    with ledger(folder) as book:
        book.verify()
        return book.totals(name).account.spent.epsilon


# --- who may ask ------------------------------------------------------------------------------


def test_a_revoked_analyst_neither_asks_nor_recalls(tmp_path):
    with opened(tmp_path) as curator:
        curator.run(request(), analyst="ada")
        assert curator.revoke("ada", reason="left") == ["people"]
        assert curator.revoke("ada") == []
        for call in (curator.run, curator.price):
            with pytest.raises(ParameterError, match="may not ask any more"):
                call(request(), analyst="ada")  # its answer is on record
        curator.run(request(), analyst="bob")
        curator.register("people")  # this lets nobody in again
        with pytest.raises(ParameterError, match="may not ask any more"):
            curator.run(request(), analyst="ada")
        assert spent(tmp_path) == Decimal("0.2")  # past entries stay
        with ledger(tmp_path) as book, pytest.raises(BudgetError):
            book.reserve("people", event_of(Budget("0.1")), analyst="ada")
        assert curator.revoke("ada", undo=True) == ["people"]
        assert curator.run(request(), analyst="ada").recorded
        with pytest.raises(ParameterError, match="no analyst 'eve'"):
            curator.revoke("eve")


def test_who_is_revoked_in_the_file_is_out_at_once(tmp_path):
    opened(tmp_path).close()
    file = tmp_path / "curator.toml"
    file.write_text(CONFIG.replace("epsilon = 2", "revoked = true\nepsilon = 2"))
    with Curator.open(file) as curator:
        assert curator.not_ready("people") is None
        with pytest.raises(ParameterError, match="may not ask any more"):
            curator.run(request(), analyst="ada")
        curator.register("people")
    with ledger(tmp_path) as book:
        assert book.totals("people").analysts["ada"].closed
        assert book.history("people", last=1)[0].body["revoked"] is True


# --- periods ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "start"),
    [
        ("yearly", date(2026, 1, 1)),
        ("quarterly", date(2026, 10, 1)),
        ("monthly", date(2026, 11, 1)),
        ("weekly", date(2026, 11, 16)),
        (1, date(2026, 11, 17)),
    ],
)
def test_periods_of_the_calendar(rule, start):
    assert period_start(checked_renewal(rule), date(2026, 11, 17)) == start
    assert period_start(rule, start) == start


@pytest.mark.parametrize("rule", ["daily", 0, 1.5, True, None])
def test_no_period(rule):
    with pytest.raises(ParameterError, match="renew"):
        checked_renewal(rule)


def test_a_budget_is_renewed_once_in_a_period(tmp_path, monkeypatch):
    config = CONFIG.replace("epsilon = 3", 'renew = "yearly"\nepsilon = 3')
    with opened(tmp_path, config) as curator:
        curator.run(request(), analyst="ada")
        assert not curator.renew("people")  # it was entered in this period
        assert spent(tmp_path) == Decimal("0.1")
        later = datetime(2999, 3, 1, tzinfo=UTC)

        class Later(datetime):
            @classmethod
            def now(cls, tz=None):
                return later

        monkeypatch.setattr(module, "datetime", Later)
        monkeypatch.setattr("privatest.ledger.store.now", lambda: "2999-03-01T00:00:00Z")
        assert curator.renew("people")
        assert not curator.renew("people")
        assert spent(tmp_path) == 0
        assert curator.run(request(), analyst="ada").recorded  # answers stay
        curator.run(request(alpha=0.01), analyst="ada")
        assert spent(tmp_path) == Decimal("0.1")
    with ledger(tmp_path) as book:
        (entry,) = [e for e in book.history("people") if e.kind == "renewed"]
        assert entry.body["ended"]["whole"]["epsilon"] == "0.1"
        with pytest.raises(ParameterError, match="up to today"):
            book.renew("people", "2999-03-02")


def test_no_period_is_declared(tmp_path):
    with opened(tmp_path) as curator, pytest.raises(ParameterError, match="declares no period"):
        curator.renew("people")


# --- one budget for one source ----------------------------------------------------------------


def renamed(folder, **changes):
    """The same data under another name."""
    text = CONFIG.replace("datasets.people", "datasets.persons").replace(
        '["people"]', '["persons"]'
    )
    return write(folder, text, **changes)


@pytest.mark.parametrize("changes", [{}, {"age": [30] * 40}])  # the rows, or the file, are the same
def test_what_was_spent_under_another_name_counts(tmp_path, changes):
    with opened(tmp_path) as curator:
        for _ in range(2):
            curator.run(request(alpha=0.01), analyst="ada")
        curator.run(request(), analyst="bob")
    with Curator.open(renamed(tmp_path, **changes)) as curator:
        curator.register("persons")
        curator.register("persons")  # and counts once
        assert spent(tmp_path, "persons") == Decimal("0.2")
        curator.run(request(dataset="persons"), analyst="ada")
    with ledger(tmp_path) as book:
        book.verify()
        assert book.totals("persons").analysts["ada"].spent.epsilon == Decimal("0.2")
        assert book.totals("people").account.closed
        with pytest.raises(BudgetError):
            book.reserve("people", event_of(Budget("0.1")))
        with pytest.raises(ParameterError, match="closed"):
            book.set_budget("people", Budget(9))
    with Curator.open(write(tmp_path)) as curator:
        assert "another name" in (curator.not_ready("people") or "")
        with pytest.raises(ParameterError, match="another name"):
            curator.register("people")


def test_a_link_that_does_not_count_is_found(tmp_path):
    with opened(tmp_path) as curator:
        curator.run(request(), analyst="ada")
    with ledger(tmp_path) as book:
        book.create_dataset("other", Budget(3))
        book.link("people", "other")
        book.verify()
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute("DROP TRIGGER privatest_no_delete")
    connection.execute("DELETE FROM privatest_entries WHERE kind = 'closed'")
    connection.execute(
        "UPDATE privatest_datasets SET (sequence, hash, time, limits) = (SELECT e.sequence, "
        "e.hash, "
        'json_extract(e.body, \'$.time\'), \'{"delta":"0.000001","epsilon":"3"}\' FROM '
        "privatest_entries e WHERE e.dataset = 1 ORDER BY e.sequence DESC LIMIT 1) WHERE id = 1"
    )
    connection.commit()
    connection.close()
    with ledger(tmp_path) as book, pytest.raises(Exception, match="does not end there"):
        book.verify()


PAIR = """\
[datasets.a]
source = {a!r}
schema = "people.toml"
epsilon = 1
{more_a}
[datasets.b]
source = {b!r}
schema = "people.toml"
epsilon = 1
{more_b}
"""


def problems(folder, a, b, more_a="", more_b=""):
    text = PAIR.format(a=a, b=b, more_a=more_a, more_b=more_b)
    write(folder, text)
    return [p.message for p in read_config(folder / "curator.toml")[1]]


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        ("data", "data/one.csv", True),
        ("data/one.csv", "data", True),
        ("data/*.csv", "data/one.csv", True),
        ("data/o*.csv", "data/*e.csv", True),
        ("data/one.csv", "hard.csv", True),
        ("data/one.csv", "soft.csv", True),
        ("data", "folder", True),
        ("data/one.csv", "data/../data/one.csv", True),
        ("data/one.csv", "data/two.csv", False),
        ("data/o*.csv", "data/t*.csv", False),
        ("s3://bucket/a", "s3://bucket/a", True),
    ],
)
def test_overlapping_files_are_refused(tmp_path, a, b, shared):
    (tmp_path / "data").mkdir()
    for name in ("one", "two"):
        pyarrow.csv.write_csv(table(), tmp_path / "data" / f"{name}.csv")
    os.link(tmp_path / "data" / "one.csv", tmp_path / "hard.csv")
    (tmp_path / "soft.csv").symlink_to(tmp_path / "data" / "one.csv")
    (tmp_path / "folder").symlink_to(tmp_path / "data")
    found = problems(tmp_path, a, b)
    assert any("'a' too" in each for each in found) == shared, found


@pytest.mark.parametrize(
    ("a", "b", "tables", "shared"),
    [
        ("sqlite:///x.db", "sqlite:///./x.db", ("t", "T"), True),
        ("sqlite:///x.db", "sqlite:///x.db", ("t", "main.t"), True),
        ("sqlite:///x.db", "sqlite:///x.db", ("t", "u"), False),
        ("postgresql://ann@h/d", "postgresql://bob:pw@h:5432/d", ("t", "public.t"), True),
        ("postgresql://h/d", "postgresql://h/e", ("t", "t"), False),
        ("postgresql://localhost/d", "postgresql://127.0.0.1/d", ("t", "t"), True),
    ],
)
def test_one_table_is_one_data_set(tmp_path, a, b, tables, shared):
    sqlite3.connect(tmp_path / "x.db").close()
    (tmp_path / "x.db").touch()
    more = [f'table = "{name}"' for name in tables]
    found = problems(tmp_path, a, b, *more)
    assert any("'a' too" in each for each in found) == shared, found


# --- rows of a person -------------------------------------------------------------------------


def with_ids(folder, ids, rows=1, way="people.csv"):
    schema = SCHEMA.replace("rows_per_person = 1", f'rows_per_person = {rows}\nid_column = "who"')
    config = CONFIG.replace("people.csv", way)
    file = write(folder, config, schema, who=ids)
    if way == "parts":
        (folder / "parts").mkdir(exist_ok=True)
        rows_of = table(who=ids)
        for i in range(2):
            pyarrow.parquet.write_table(
                rows_of.slice(20 * i, 20), folder / "parts" / f"{i}.parquet"
            )
    if way.startswith("sqlite"):
        connection = sqlite3.connect(folder / "people.db")
        connection.execute("CREATE TABLE people (visits REAL, age INTEGER, plan, region, who)")
        values = zip(*table(who=ids).to_pydict().values(), strict=True)
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?)", values)
        connection.commit()
        connection.close()
        text = file.read_text().replace("epsilon = 3", 'table = "people"\nepsilon = 3')
        file.write_text(text)
    return file


@pytest.mark.parametrize("way", ["people.csv", "parts", "sqlite:///people.db"])
def test_rows_of_a_person_are_counted(tmp_path, way, monkeypatch):
    monkeypatch.setattr(reading, "MOST_IDS", 7)  # several passes
    ids = [f"id-{i // 2}" for i in range(40)]
    ids[39] = "id-0"
    with (
        Curator.open(with_ids(tmp_path, ids, 2, way), create=True) as curator,
        pytest.raises(
            DataError, match=r"a person has 3 rows.*rows_per_person of the schema is 2"
        ) as e,
    ):
        curator.register("people")
    assert "id-" not in str(e.value)
    text = (tmp_path / "people.toml").read_text()
    (tmp_path / "people.toml").write_text(text.replace("person = 2", "person = 3"))
    with Curator.open(tmp_path / "curator.toml", create=True) as curator:
        curator.register("people")
        curator.run(request(), analyst="ada")
        for document in ({"columns": ["who"]}, {"group": "who"}, {"where": {"who": "id-0"}}):
            with pytest.raises((ParameterError, DataError)) as refused:
                curator.run(request(**document), analyst="ada")
            assert "id-1" not in str(refused.value)


def test_ids_are_compared_as_they_are_written(tmp_path):
    ids = [f"{i:02}" for i in range(39)] + ["1"]  # "01" is somebody else
    with Curator.open(with_ids(tmp_path, ids), create=True) as curator:
        curator.register("people")


def test_missing_ids_are_refused(tmp_path):
    ids = pa.array([*range(39), None])
    with (
        Curator.open(with_ids(tmp_path, ids), create=True) as curator,
        pytest.raises(DataError, match="missing"),
    ):
        curator.register("people")


def test_an_id_column_may_be_declared_later(tmp_path):
    write(tmp_path, who=list(range(40)))
    with Curator.open(tmp_path / "curator.toml", create=True) as curator:
        curator.register("people")
        curator.run(request(), analyst="ada")
    (tmp_path / "people.toml").write_text('id_column = "who"\n' + SCHEMA)
    with Curator.open(tmp_path / "curator.toml") as curator:
        assert "changed" in (curator.not_ready("people") or "")
        curator.register("people")
        assert curator.run(request(), analyst="ada").recorded


def test_an_id_column_of_a_schema():
    column = {"visits": NumericColumn(0, 1)}
    schema = Schema(column, 3, "who")
    assert Schema.from_text(schema.to_toml()) == schema
    assert schema.select(["visits"]).id_column is None
    assert "id_column" not in Schema(column).to_toml()
    for wrong in ("visits", "", 3):
        with pytest.raises(ParameterError, match="id_column"):
            Schema(column, 1, wrong)  # type: ignore[arg-type]


def test_hashes_of_ids_are_counted_exactly(monkeypatch):
    monkeypatch.setattr(reading, "MOST_IDS", 100)
    ids = np.repeat(np.arange(500), np.arange(500) % 7 + 1)
    rows = pa.table({"who": np.random.default_rng(1).permutation(ids)})

    schema = Schema({"x": NumericColumn(0, 1)}, 7, "who")
    assert reading.check_person_rows(schema, [rows]) == schema.select(schema.columns)
    with pytest.raises(DataError, match="has 7 rows"):
        reading.check_person_rows(Schema(schema.columns, 6, "who"), [rows], tell=True)


# --- the log, and rights ----------------------------------------------------------------------


def test_the_log_is_rotated(tmp_path, monkeypatch):
    monkeypatch.setattr(answers, "LONGEST_LOG", 300)
    log = tmp_path / "curator.log"
    for number in range(60):
        answers.log_failure(log, f"n{number}", ValueError("secret"))
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["curator.log", *(f"curator.log.{i}" for i in range(1, 6))]
    for path in tmp_path.iterdir():
        assert path.stat().st_size <= 300
        assert path.stat().st_mode & 0o777 == 0o600
        assert "secret" not in path.read_text()
    assert "id=n59 " in log.read_text()
    busy = tmp_path / "curator.log.rotating"
    busy.touch()
    for _ in range(9):  # another process is at it: nothing is lost, nothing waits
        answers.log_failure(log, "later", ValueError())
    assert log.read_text().count("id=later ") == 9
    os.utime(busy, (0, 0))  # it was killed
    answers.log_failure(log, "last", ValueError())
    assert "id=last " in log.read_text()
    assert log.stat().st_size <= 300


def test_data_that_this_user_may_not_read(tmp_path, monkeypatch):
    with opened(tmp_path) as curator:
        monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(ParameterError, match="rights of the custodian"):
            curator.run(request(), analyst="ada")
    assert spent(tmp_path) == 0


def test_a_file_that_had_another_name_does_not_get_a_second_budget(tmp_path):
    """People whose file a data set left for another one are still charged there."""
    with opened(tmp_path) as curator:
        curator.run(request(), analyst="ada")
    (tmp_path / "people.csv").replace(tmp_path / "left.csv")
    others = table(visits=[float(i) for i in range(40)])
    pyarrow.csv.write_csv(others, tmp_path / "people.csv")
    path = tmp_path / "curator.toml"
    with Curator.open(path) as curator:
        curator.register("people")
    again = '[datasets.again]\nsource = "left.csv"\nschema = "people.toml"\nepsilon = 3\n\n'
    path.write_text(CONFIG.replace("[analysts.ada]", f"{again}[analysts.ada]"))
    with Curator.open(path) as curator:
        with pytest.raises(ParameterError, match="'people' has, or had before"):
            curator.register("again")
        assert "again" not in curator.ledger.datasets()
        curator.register("people")  # as before
