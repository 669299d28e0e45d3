"""A curator whose data is a folder, a pattern or a table of a database."""

from __future__ import annotations

import sqlite3

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privatest.core.errors import DataError, ParameterError
from privatest.curator import Curator, admission
from privatest.curator import curator as answering
from privatest.curator.answers import RequestFailed
from privatest.curator.config import CuratorConfig
from privatest.data import reading
from tests.curators import CONFIG, PRIVATE, SCHEMA, table

ASKED = {
    "dataset": "people",
    "question": "two-sample",
    "method": "mmd",
    "epsilon": "0.5",
    "permutations": 99,
    **PRIVATE,
}
MEDIAN = {
    "dataset": "people",
    "question": "mean",
    "method": "quantiles",
    "q": 0.5,
    "epsilon": "0.5",
    "columns": ["visits"],
}


def write_folder(folder, rows: pa.Table | None = None) -> None:
    rows = table() if rows is None else rows
    (folder / "people").mkdir(exist_ok=True)
    pq.write_table(rows.slice(0, 15), folder / "people" / "a.parquet", row_group_size=6)
    pq.write_table(rows.slice(15), folder / "people" / "b.parquet")


def write_database(folder) -> None:
    with sqlite3.connect(folder / "people.db") as database:
        database.execute("create table people (visits real, age integer, plan text, region text)")
        rows = zip(*table().to_pydict().values(), strict=True)
        database.executemany("insert into people values (?, ?, ?, ?)", rows)
    database.close()


WAYS = {
    "folder": 'source = "people"',
    "pattern": 'source = "people/*.parquet"',
    "streamed": 'source = "people"\nengine = "local"\nthreads = 2',
    "database": 'source = "sqlite:///people.db"\ntable = "people"',
    "streamed database": 'source = "sqlite:///people.db"\ntable = "people"\nengine = "local"',
}


def curator(folder, way: str, schema: str = SCHEMA) -> Curator:
    write_folder(folder)
    write_database(folder)
    (folder / "people.toml").write_text(schema, encoding="utf-8")
    path = folder / "curator.toml"
    path.write_text(CONFIG.replace('source = "people.csv"', WAYS[way]), encoding="utf-8")
    return Curator.open(path, create=True)


@pytest.mark.parametrize("way", WAYS)
def test_it_registers_and_answers(way, tmp_path):
    with curator(tmp_path, way) as asked:
        found = asked.register("people")
        assert found.rows == 40
        assert found.public == ("region",)
        assert found.cells == ((0, 20), (1, 16), (2, 4))
        assert asked.not_ready("people") is None
        answer = asked.run(ASKED, analyst="ada")
        assert not answer.recorded
        assert asked.run(ASKED, analyst="ada").recorded
        north = asked.run(MEDIAN | {"where": {"region": "north"}}, analyst="bob")
        assert north.result.to_dict()["n"] == 20


@pytest.mark.parametrize("way", WAYS)
def test_data_that_changed_is_refused_before_it_is_paid_for(way, tmp_path):
    with curator(tmp_path, way) as asked:
        asked.register("people")
        other = table(visits=[1.0] * 40)
        write_folder(tmp_path, other)
        with sqlite3.connect(tmp_path / "people.db") as database:
            database.execute("update people set visits = 1")
        database.close()
        with pytest.raises(ParameterError, match="has changed since it was registered"):
            asked.run(ASKED, analyst="ada")
        assert asked.register("people").rows == 40
        assert asked.not_ready("people") is None


@pytest.mark.parametrize("way", ["folder", "streamed", "streamed database"])
def test_what_does_not_fit_is_named_at_registration(way, tmp_path):
    narrow = SCHEMA.replace('["north", "south", "west"]', '["north", "south"]')
    with (
        curator(tmp_path, way, narrow) as asked,
        pytest.raises(DataError, match="column 'region' has a value outside"),
    ):
        asked.register("people")


def test_a_private_group_may_be_empty(tmp_path):
    schema = SCHEMA.replace('["basic", "plus"]', '["basic", "plus", "none"]')
    with curator(tmp_path, "streamed", schema) as asked:
        asked.register("people")
        asked.run(ASKED | {"groups": ["none", "rest"]}, analyst="ada")


@pytest.mark.parametrize(("most", "streamed"), [(1 << 28, 0), (1, 2)])
def test_rows_of_private_groups_are_held(most, streamed, tmp_path, monkeypatch):
    """A source is read again for each group, and time would tell where a group's rows are."""
    monkeypatch.setattr(answering, "_MOST_HELD", most)
    split: list[int] = []
    whole = reading.split_source

    def counted(source, grouping):
        found = whole(source, grouping)
        split.append(len(found))
        return found

    monkeypatch.setattr(admission, "split_source", counted)
    monkeypatch.setattr(reading, "split_source", counted)
    with curator(tmp_path, "streamed") as asked:
        asked.register("people")
        split.clear()
        asked.run(ASKED, analyst="ada")
    assert sum(split) == streamed


def test_more_rows_than_a_test_can_hold_cost_nothing(tmp_path, monkeypatch):
    from privatest.data import sources

    def held(self: sources.Stream) -> None:
        raise DataError("this test holds its rows in memory")

    with curator(tmp_path, "streamed") as asked:
        asked.register("people")
        monkeypatch.setattr(sources.Stream, "load", held)
        monkeypatch.setattr(sources.Stream, "blocks", held)  # whichever way a test goes
        with pytest.raises(DataError, match="holds its rows in memory"):
            asked.run(ASKED, analyst="ada")
        assert asked._ledger.totals("people").account.spent.events == 0


def test_a_lost_database_costs_nothing(tmp_path):
    with curator(tmp_path, "streamed database") as asked:
        asked.register("people")
        (tmp_path / "people.db").unlink()
        with pytest.raises((DataError, ParameterError)):
            asked.run(ASKED, analyst="ada")


def test_rows_that_fail_after_the_check_are_spent(tmp_path, monkeypatch):
    from privatest.data.files import ParquetRows

    with curator(tmp_path, "streamed") as asked:
        asked.register("people")

        def broken(*_: object) -> None:
            raise OSError("987654")

        monkeypatch.setattr(ParquetRows, "batches", broken)
        with pytest.raises(RequestFailed) as caught:
            asked.run(ASKED, analyst="ada")
        assert "987654" not in str(caught.value)


def test_many_rows_are_rehearsed_on_fewer(tmp_path, monkeypatch):
    from privatest.curator import registration

    with curator(tmp_path, "folder") as asked:
        found = asked.register("people")
        monkeypatch.setattr(registration, "MOST_HELD", 20)
        monkeypatch.setattr(reading, "MOST_HELD", 20)
        schema = asked.config.datasets["people"].schema.select(["visits", "region"])
        rows = registration.made_up_rows(found, schema)
        assert 10 <= rows.num_rows <= 13
        assert set(rows["region"].to_pylist()) == {"north", "south", "west"}
        asked.run(ASKED, analyst="ada")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('source = "nowhere"', "there is no file 'nowhere' here"),
        ('source = "people"\ntable = "people"', "table goes with the address of a database"),
        ('source = "postgresql://h/d"', "table must be given"),
        ('source = "people"\nengine = "spark"', "engine must be one of 'local', 'dask'"),
        ('source = "people"\nscheduler = "tcp://h:1"', "scheduler must be left out"),
        ('source = "people"\nthreads = 0', "threads must be an integer of at least 1"),
    ],
)
def test_mistakes_in_the_file(lines, said, tmp_path):
    write_folder(tmp_path)
    (tmp_path / "people.toml").write_text(SCHEMA, encoding="utf-8")
    path = tmp_path / "curator.toml"
    path.write_text(CONFIG.replace('source = "people.csv"', lines), encoding="utf-8")
    with pytest.raises(ParameterError) as caught:
        CuratorConfig.load(path)
    assert said in str(caught.value)
