"""``--method proportion`` of two samples, and of means."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.e2e.command_line import refused, released, write

ROWS = {
    "arm": ["a"] * 60 + ["b"] * 60,
    "bought": [1] * 6 + [0] * 54 + [1] * 40 + [0] * 20,
    "plan": ["plus"] * 6 + ["basic"] * 54 + ["plus"] * 40 + ["basic"] * 20,
}
COMPARE = ["--group", "arm", "--method", "proportion", "--epsilon", "1000", "--json"]
SCHEMA = """
[columns.arm]
type = "categorical"
categories = ["a", "b"]
[columns.plan]
type = "categorical"
categories = ["basic", "plus"]
[columns.bought]
type = "numeric"
bounds = [0, 1]
integer = true
"""


@pytest.fixture
def files(tmp_path):
    schema = tmp_path / "schema.toml"
    schema.write_text(SCHEMA)
    return write("a.csv", pa.table(ROWS)), str(schema)


@pytest.mark.parametrize("integers", [True, False])
def test_numbers_and_private_groups(cli, files, integers):
    bounds = ["--groups", "a", "b", "--bounds", "bought=0:1", "--success", "1"]
    described = ["--schema", files[1]] if integers else bounds
    document = released(cli("two-sample", files[0], *COMPARE, "--columns", "bought", *described))
    assert document["reject"] is True
    assert document["adjacency"] == "row"
    assert document["sizes"] == {"N": 120}
    assert document["estimates"]["proportions"] == pytest.approx([0.1, 2 / 3], abs=0.01)


def test_categories_and_public_groups(cli, files):
    described = ["--schema", files[1], "--columns", "plan", "--membership", "public"]
    arguments = [*COMPARE, *described, "--success", "plus", "--alternative", "less"]
    document = released(cli("two-sample", files[0], *arguments))
    assert document["sizes"] == {"n": 60, "m": 60}
    assert document["reject"] is True
    assert document["estimates"]["difference"] == pytest.approx(0.1 - 2 / 3, abs=0.02)
    assert document["estimates"]["lower"] == -1


def test_equivalence(cli, files):
    arguments = ["--groups", "a", "b", "--columns", "bought", "--bounds", "bought=0:1"]
    arguments += ["--group", "arm", "--method", "tost-proportion", "--epsilon", "1000", "--json"]
    arguments += ["--success", "1"]
    wide = released(cli("two-sample", files[0], *arguments, "--low", "-0.9", "--high", "0.9"))
    near = released(cli("two-sample", files[0], *arguments, "--low", "-0.1", "--high", "0.1"))
    assert (wide["reject"], near["reject"]) == (True, False)
    assert wide["adjacency"] == "row"
    assert wide["parameters"]["low"] == -0.9


def test_a_share(cli, files):
    described = ["--schema", files[1], "--columns", "plan", "--epsilon", "1000"]
    run = cli("mean", files[0], *described, "--method", "proportion", "--success", "plus")
    assert run.code == 0
    share = float(run.out.split("plan")[1].split()[0])
    assert share == pytest.approx(46 / 120, abs=0.005)  # noise of up to half a row at any epsilon


def test_refusals(cli, files, no_noise):
    described = ["--schema", files[1], "--columns", "plan"]
    refused(cli("two-sample", files[0], *COMPARE, *described), "success must be given")
    unknown = [*COMPARE, *described, "--success", "gold"]
    refused(cli("two-sample", files[0], *unknown), "one of the declared categories")
    for bounds in ("0:5", "0:1"):  # which may hold .5, and to fail then would tell of it
        numbers = [*COMPARE, "--groups", "a", "b", "--bounds", f"bought={bounds}"]
        refused(cli("two-sample", files[0], *numbers), "success must be given", "--success")
    refused(cli("mean", files[0], *described, "--epsilon", "1"), "method proportion")


def test_groups_have_their_public_names(cli):
    path = write("c.csv", pa.table(ROWS | {"arm": ["a", "b", "c"] * 40}))
    asked = ["two-sample", path, "--group", "arm", "--groups", "a", "b", "--more-groups", "c"]
    asked += ["--bounds", "bought=0:1", "--epsilon", "9"]
    public = [*asked, "--membership", "public"]
    for how in (["--method", "anova"], ["--method", "proportion", "--success", "1"]):
        run = cli(*public, *how)
        assert run.code == 0, run.err
        assert "\n    c: " in run.out
    more = ("error: --groups must be", "kruskal, proportion or anova")
    refused(cli(*public, "--method", "ttest"), "ttest compares two groups", *more)
    private = [*asked, "--method", "proportion", "--success", "1"]
    refused(cli(*private), "two groups", "--membership public")


def test_true_and_false_are_1_and_0(cli):
    path = write("d.csv", pa.table({"ok": [True] * 30 + [False] * 10}))
    asked = ["mean", path, "--columns", "ok", "--epsilon", "1000"]
    for word, share in (("true", "0.7"), ("False", "0.2")):
        run = cli(*asked, "--bounds", "ok=0:1", "--success", word)
        assert f"ok  {share}" in run.out
    refused(
        cli(*asked, "--method", "proportion"),
        "success: the value that is one. Pass --bounds ok=LOW:HIGH, or --schema FILE.",
    )


def test_what_else_is_refused(cli, files):
    means = ["mean", files[0], "--bounds", "bought=0:1", "--epsilon", "1", "--q", "0.5"]
    refused(cli(*means, "--plot", "a.exe"), "--plot must end in .png")
    path = write("e.csv", pa.table({"u": [1, 2, 3], "v": [2, 3, 4]}))
    paired = ["paired", path, "--before", "u", "--after", "v", "--epsilon", "1"]
    refused(cli(*paired, "--method", "ttest"), "--bounds v=LOW:HIGH")
    assert cli(*paired).code == 0
