"""``privatest fit --family``: a distribution with unknown location and scale."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.e2e.command_line import CANARY, KEYS, refused, released, write

FIT = ["--column", "age", "--family", "norm", "--epsilon", "1000"]
BOUNDS = ["--bounds", "age=0:120"]


def ages(**changes):
    good = np.random.default_rng(0).normal(50, 10, size=200)
    bad = np.repeat([20.0, 70.0], 100)
    bad[0] = CANARY
    columns = {"age": good, "other": bad, "plan": ["basic", "plus"] * 100}
    return pa.table(columns | changes)


@pytest.mark.parametrize("statistic", ["ks", "kuiper"])
@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
def test_a_good_and_a_bad_fit(cli, name, statistic):
    path = write(name, ages())
    run = cli("fit", path, *FIT, *BOUNDS, "--statistic", statistic)
    assert run.code == 0, run.err
    assert run.out.startswith("We do not reject the hypothesis that the data come from the norm")
    assert "n = 200" in run.out
    bad = ["--column", "other", "--family", "norm", "--epsilon", "1000", "--bounds", "other=0:120"]
    document = released(cli("fit", path, *bad, "--statistic", statistic, "--json"))
    assert document.keys() - {"schema"} == KEYS | {"pvalue", "statistic"}
    assert document["parameters"] == {"statistic": statistic, "family": "norm"}
    assert document["reject"] is True


def test_rows_per_person(cli):
    path = write("a.csv", ages())
    document = released(cli("fit", path, *FIT, *BOUNDS, "--rows-per-person", "3", "--json"))
    assert document["unit"] == "person with at most 3 rows"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*FIT], ("family", "--bounds age=LOW:HIGH")),
        ([*FIT, *BOUNDS, "--statistic", "cvm"], ("--statistic must be ks or kuiper with family",)),
        ([*FIT, *BOUNDS, "--dist", "norm(0, 1)"], ("--dist", "--family", "Only one")),
        (["--column", "age", "--epsilon", "1"], ("--dist", "--family")),
        (
            ["--column", "age", "--family", "gamma", "--epsilon", "1", *BOUNDS],
            ("family must be one of norm, laplace", "'gamma'"),
        ),
    ],
)
def test_refuses(cli, no_noise, arguments, words):
    refused(cli("fit", write("a.csv", ages()), *arguments), *words)


def test_a_missing_value(cli, no_noise):
    path = write("a.csv", ages(age=[None, *range(199)]))
    refused(cli("fit", path, *FIT, *BOUNDS), "column 'age'", "missing value")
