"""``privatest independence`` and the methods of ``two-sample`` as people use them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.e2e.command_line import CLEAR, GROUP, refused, released, table, write

SIDES = ["--x", "age", "--y", "visits", "--bounds", "age=0:80", "--bounds", "visits=0:80"]


def test_dependence_is_found(cli):
    run = cli("independence", write("a.csv", table()), *SIDES, *CLEAR)
    assert run.code == 0
    assert run.out.startswith("We reject the hypothesis that the two sides are independent")
    assert "age and visits" in run.out
    assert "the number of rows is public" in run.out
    document = released(cli("independence", "a.csv", *SIDES, *CLEAR, "--json"))
    assert document["sizes"] == {"n": 80}


def test_categories_through_a_schema(cli, tmp_path):
    schema = tmp_path / "s.toml"
    schema.write_text(
        '[columns.visits]\ntype = "numeric"\nbounds = [0, 80]\n'
        '[columns.plan]\ntype = "categorical"\ncategories = ["basic", "plus"]\n'
    )
    path = write("a.parquet", table())
    sides = ["--x", "visits", "--y", "plan", "--schema", str(schema)]
    assert released(cli("independence", path, *sides, *CLEAR, "--json"))["reject"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["--y", "age"], "share a column"),
        (["--y", "region"], "Pass --bounds region"),
        (["--y", "a,,b"], "y must be"),
        (["--epsilon", "nan"], "epsilon"),
        (["--method", "tot", "--release", "decision"], "release does not go"),
        (["--statistics", "mean", "--bandwidths", "0.3"], "with 'kernel': others have none"),
    ],
)
def test_bad_input(cli, changes, words):
    refused(cli("independence", write("a.csv", table()), *SIDES, *CLEAR, *changes), words)


@pytest.mark.parametrize("method", ["mean", "wasserstein", "kolmogorov"])
def test_other_distances(cli, method):
    path = write("a.csv", table())
    document = released(cli("two-sample", path, *GROUP, *CLEAR, "--method", method, "--json"))
    assert document["reject"]
    assert document["parameters"]["distance"] == method


def test_options_that_do_not_go_together(cli):
    path = write("a.csv", table())
    refused(
        cli("two-sample", path, *GROUP, *CLEAR, "--method", "mean", "--kernel", "imq"), "kernel"
    )
    refused(cli("two-sample", path, *GROUP, *CLEAR, "--norm", "l1"), "norm does not go")
    refused(
        cli("two-sample", path, *GROUP, "--epsilon", "1", "--method", "tot"), "public membership"
    )


CATEGORIES = (
    '[columns.plan]\ntype = "categorical"\ncategories = ["basic", "plus"]\n'
    '[columns.again]\ntype = "categorical"\ncategories = ["basic", "plus"]\n'
)


def test_two_categorical_columns_and_shares(cli, tmp_path):
    schema = tmp_path / "s.toml"
    schema.write_text(CATEGORIES)
    rows = [("basic", "basic")] * 150 + [("plus", "plus")] * 50
    path = tmp_path / "plans.csv"
    path.write_text("plan,again\n" + "".join(f"{a},{b}\n" for a, b in rows))
    common = ["--schema", str(schema), *CLEAR[:2]]
    sides = ["--x", "plan", "--y", "again", "--method", "chi2"]
    run = cli("independence", str(path), *sides, *common)
    assert "We reject the hypothesis that the two columns are independent" in run.out
    assert "association, Cramér's V (95% interval)" in run.out
    document = released(cli("independence", str(path), *sides, *common, "--json"))
    assert len(document["estimates"]["counts"]) == 2
    shares = released(
        cli("fit", str(path), "--column", "plan", "--shares", "equal", *common, "--json")
    )
    assert shares["reject"]
    given = ["--shares", "basic=0.75,plus=0.25"]
    run = cli("fit", str(path), "--column", "plan", *given, *common)
    assert "private shares (simultaneous 95% intervals)" in run.out
    refused(
        cli("fit", str(path), "--column", "plan", "--shares", "basic=1", *common), "shares must"
    )


def test_given_columns(cli):
    rng = np.random.default_rng(0)
    z = rng.uniform(-1, 1, size=3000)
    x, y = (0.2 * (z + rng.normal(size=3000)) for _ in range(2))
    data = write("given.csv", pa.table({"a": x, "b": y, "c": z}))
    bounds = [word for name in "abc" for word in ("--bounds", f"{name}=-1:1")]
    asked = ["independence", data, "--x", "a", "--y", "b", *bounds, "--epsilon", "50"]
    run = cli(*asked, "--given", "c", "--delta", "1e-6")
    assert run.code == 0
    assert "a and b, given c" in run.out
    assert "independent given z" in run.out
    refused(cli(*asked, "--given", "c", "--method", "hsic"), "given does not go with method hsic")
