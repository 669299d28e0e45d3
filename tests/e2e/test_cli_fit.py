"""``privatest fit``, and the methods ks and kuiper of ``two-sample``."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.e2e.command_line import CANARY, GROUP, refused, released, table, write

FIT = ["--column", "age", "--dist", "uniform(0, 80)"]


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("statistic", ["ks", "kuiper", "cvm", "wasserstein"])
def test_fit(cli, name, statistic):
    path = write(name, table())
    extra = ["--statistic", statistic, "--epsilon", "1000"]
    run = cli("fit", path, *FIT, *extra)
    assert run.code == 0
    assert run.out.startswith("We do not reject the hypothesis that the data come from uniform(0")
    assert "age" in run.out
    assert "n = 80" in run.out
    other = ["--column", "visits", "--dist", "norm(0, 1)", "--bounds", "visits=0:80"]
    document = released(cli("fit", path, *other, *extra, "--json"))
    assert document["reject"]
    assert document["parameters"]["statistic"] == statistic
    assert document["sizes"] == {"n": 80}


def test_every_option_and_a_schema(cli, tmp_path):
    (tmp_path / "s.toml").write_text(
        'rows_per_person = 2\n[columns.visits]\ntype = "numeric"\nbounds = [0, 80]\nmissing = 0\n'
    )
    path = write("a.csv", table(visits=[None, *range(79)]))
    document = released(
        cli(
            *("fit", path, "--column", "visits", "--dist", "expon(scale=20)"),
            *("--schema", "s.toml", "--epsilon", "0.5", "--delta", "1e-6", "--alpha", "0.01"),
            *("--statistic", "kuiper", "--json"),
        )
    )
    assert (document["alpha"], document["delta"]) == (0.01, 1e-6)
    assert document["unit"] == "person with at most 2 rows"


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"--dist": None}, "Pass --dist"),
        ({"--dist": "normal(0, 1)"}, "'normal'"),
        ({"--dist": "norm(0, one)"}, "dist must be a distribution"),
        ({"--dist": "norm(0, -1)"}, "dist: scale must"),
        ({"--dist": "norm(0, 1, 2, 3)"}, "parameters"),
        ({"--dist": "__import__('os')"}, "dist must be a distribution"),
        ({"--column": "gone"}, "'gone'"),
        ({"--column": "plan"}, "'plan'"),
        ({"--epsilon": "0"}, "epsilon"),
        ({"--alpha": "2"}, "alpha"),
        ({"--statistic": "ad"}, "statistic"),
        ({"--rows-per-person": "3"}, "--bounds NAME=LOW:HIGH"),
        ({"--bounds": "visits=0:80"}, "'age' has no bounds"),
    ],
)
def test_fit_refuses(cli, no_noise, changes, fragment):
    options = {"--column": "age", "--dist": "norm(0, 1)", "--epsilon": "1"} | changes
    given = [text for item in options.items() if item[1] is not None for text in item]
    refused(cli("fit", write("a.csv", table()), *given), fragment)


@pytest.mark.parametrize("values", [[CANARY, None, *range(78)], [f"x{CANARY}", *["1"] * 79]])
def test_fit_refuses_bad_data(cli, no_noise, values):
    path = write("a.parquet", table(age=pa.array(values)))
    refused(cli("fit", path, *FIT, "--epsilon", "1"), "'age'")


@pytest.mark.parametrize("method", ["ks", "kuiper"])
def test_two_samples(cli, method):
    path = write("a.csv", table())
    asked = ["two-sample", path, *GROUP, "--method", method, "--epsilon", "1000", "--json"]
    hidden = released(cli(*asked, "--permutations", "199"))
    assert (hidden["adjacency"], hidden["sizes"]) == ("row", {"N": 80})
    assert hidden["statistic"] is None
    assert hidden["reject"]
    public = released(cli(*asked, "--membership", "public"))
    assert public["sizes"] == {"n": 40, "m": 40}
    assert public["statistic"] == pytest.approx(1, abs=0.1)
    assert public["pvalue"] < 1e-6
    refused(cli(*asked, "--release", "decision"), "release does not go with")


def test_two_samples_of_two_columns(cli, no_noise):
    path = write("a.csv", table(age=np.arange(80)))
    asked = ["two-sample", path, *GROUP, "--bounds", "age=0:90", "--method", "ks"]
    refused(cli(*asked, "--epsilon", "1"), "one numeric column")


# --- a public grid ---------------------------------------------------------------------------


@pytest.mark.parametrize(("grid", "cells"), [("16", 16), ("10,20.5, 40", 4), ("exact", None)])
def test_a_grid(cli, grid, cells):
    path = write("a.csv", table())
    asked = ["--epsilon", "1", "--json", "--grid", grid]
    column = ["--column", "visits", "--bounds", "visits=0:80", "--dist", "norm(0, 1)"]
    fit = released(cli("fit", path, *column, *asked))
    two = [
        released(cli("two-sample", path, *GROUP, "--method", method, *asked))
        for method in ("ks", "kuiper", "kolmogorov")
    ]
    for document in (fit, *two):
        assert document["parameters"].get("grid") == cells


@pytest.mark.parametrize(
    ("grid", "fragment"),
    [("fine", "grid must be a number of cells"), ("1", "grid must be"), ("3,2", "grid must be")],
)
def test_bad_grids(cli, grid, fragment):
    path = write("a.csv", table())
    refused(cli("fit", path, *FIT, "--epsilon", "1", "--grid", grid), fragment)


def test_a_number_of_cells_needs_bounds(cli):
    path = write("a.csv", table())
    refused(cli("fit", path, *FIT, "--epsilon", "1", "--grid", "8"), "needs bounds")
