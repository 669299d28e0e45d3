"""Response times are measured on made-up rows, of the same kind and number."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from privatest.core.errors import ParameterError
from privatest.curator import Curator, calibration
from privatest.curator.calibration import example_requests
from privatest.curator.config import ALL_TESTS, CuratorConfig, DatasetConfig, Policy
from privatest.curator.registration import load_registrations, made_up_rows
from privatest.curator.timing import ResponseTimes, Sizes, resource_limits, response_time
from privatest.requests.catalogue import METHODS
from tests.curators import CONFIG, opened, request

ONE = CONFIG.replace("largest_epsilon = 1", 'tests = ["paired/sign"]')


@pytest.fixture
def config(tmp_path) -> CuratorConfig:
    with opened(tmp_path, ONE) as curator:
        return curator.config


def test_it_measures_and_keeps(config):
    shares: list[float] = []
    found = calibration.calibrate(config, ["people"], runs=2, progress=shares.append)
    measured = found.datasets["people"]["paired/sign"]
    assert shares == [1.0]
    assert measured.seconds > 0
    assert measured.sizes == Sizes(rows=40, columns=2)
    assert ResponseTimes.load(config.times) == found
    assert found.machine.keys() == {"processors", "python"}
    with Curator.open(config.path) as curator:
        sign = request("paired", "sign", before="visits", after="age")
        prepared = curator.prepared(sign, analyst="bob")
    known = load_registrations(config.state)["people"]
    allowed = resource_limits(prepared, config.datasets["people"], known, found)
    usual, unsteady = METHODS["paired"]["sign"], METHODS["mean"]["moments"]
    assert allowed.period == response_time(usual, measured.seconds) > 2 * measured.seconds
    assert response_time(unsteady, measured.seconds) > 8 * measured.seconds


def test_what_is_not_registered_is_refused(config):
    with pytest.raises(ParameterError, match="dataset must be one that is registered"):
        calibration.calibrate(config, ["others"])


@pytest.mark.parametrize(
    "source",
    ["a.csv", "a.tsv", "a.csv.gz", "a.parquet", "a.feather", "a/*.parquet", "sqlite:///a.db"],
)
def test_made_up_rows_are_of_the_same_kind(config, tmp_path, source):
    dataset: DatasetConfig = replace(
        config.datasets["people"],
        source=source if "://" in source else Path(source),
        table="t" if "://" in source else None,
    )
    known = load_registrations(config.state)["people"]
    folder = tmp_path / "stand-in"
    folder.mkdir()
    path = calibration._write_curator(folder, dataset, made_up_rows(known, dataset.schema))
    with Curator.open(path, create=True) as curator:
        made_up = curator.register("people")
        written = str(curator.config.datasets["people"].source)
    assert (made_up.rows, made_up.cells) == (known.rows, known.cells)
    assert written.endswith(source[source.index(".") :] if "*" not in source else ".parquet") or (
        written.endswith("rows.db")
    )


def test_every_method_has_an_example(config):
    dataset = replace(config.datasets["people"], policy=Policy(ALL_TESTS))
    found = example_requests(dataset, 40)
    assert found.keys() == {f"{question}/{method}" for question, method in ALL_TESTS}
    assert [which for which, series in found.items() if not any(series)] == []
