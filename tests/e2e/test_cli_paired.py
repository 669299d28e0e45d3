"""``privatest paired``, and the rank methods of ``privatest two-sample``."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.e2e.command_line import CANARY, GROUP, KEYS, SOMETIMES, refused, released, table, write

PAIRS = ["--before", "first", "--after", "second", "--epsilon", "1000"]
METHODS = ["ks", "kuiper", "sign", "wilcoxon"]
RANKS = ["mann-whitney", "kruskal", "median"]


def measurements(**changes):
    columns = {
        "first": [float(v) for v in range(40)],
        "second": [CANARY, *(v + 5.5 + v % 3 for v in range(1, 40))],
        "plan": ["basic", "plus"] * 20,
    }
    return pa.table(columns | changes)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet"])
@pytest.mark.parametrize("method", METHODS)
def test_a_clear_change(cli, name, method):
    path = write(name, measurements())
    run = cli("paired", path, *PAIRS, "--method", method)
    assert run.code == 0
    assert run.out.startswith("We reject the hypothesis that ")
    assert "change    second - first" in run.out
    assert "n = 40" in run.out
    assert "one row replaced; the number of rows is public" in run.out
    document = released(cli("paired", path, *PAIRS, "--method", method, "--json"))
    more = {"statistic_name", "estimates", "estimated"} if method in ("sign", "wilcoxon") else set()
    assert document.keys() - SOMETIMES == KEYS | {"pvalue", "statistic"} | more
    assert document["sizes"] == {"n": 40}
    assert document["reject"] is True


def test_equivalence(cli):
    path = write("a.csv", measurements(second=[v + v % 2 for v in range(40)]))
    bounds = ["--bounds", "first=0:50", "--bounds", "second=0:50", "--method", "tost"]
    run = cli("paired", path, *PAIRS, *bounds, "--low", "-25", "--high", "25")
    assert "We reject the hypothesis that the difference of means is at most -25 or at" in run.out
    run = cli("paired", path, *PAIRS, *bounds, "--low", "-0.1", "--high", "0.1")
    assert "We do not reject" in run.out
    refused(cli("paired", path, *PAIRS, *bounds, "--high", "2"), "needs low", "--low")


def test_bounds_and_rows_per_person(cli):
    path = write("a.csv", measurements())
    bounds = ["--bounds", "first=0:50", "--bounds", "second=0:60", "--rows-per-person", "2"]
    document = released(cli("paired", path, *PAIRS, *bounds, "--json"))
    assert document["unit"] == "person with at most 2 rows"
    assert document["reject"] is True
    refused(cli("paired", path, *PAIRS, "--rows-per-person", "2"), "--rows-per-person", "--bounds")
    refused(cli("paired", path, *PAIRS, *bounds[:2]), "'second' has no bounds")


@pytest.mark.parametrize("method", ["sign", "wilcoxon"])
def test_greater_is_a_rise(cli, method):
    path = write("a.csv", measurements())
    for side, reject in (("greater", True), ("less", False)):
        arguments = [*PAIRS, "--method", method, "--alternative", side, "--json"]
        document = released(cli("paired", path, *arguments))
        assert document["reject"] is reject
        assert document["parameters"] == {"alternative": side}


def test_refusals(cli, no_noise):
    path = write("a.csv", measurements())
    refused(cli("paired", path, *PAIRS, "--method", "t"), "--method")
    refused(cli("paired", path, *PAIRS, "--method", "ks", "--alternative", "less"), "does not go")
    refused(cli("paired", path, *PAIRS[:2], "--after", "first", "--epsilon", "1"), "two columns")
    refused(cli("paired", path, *PAIRS[:2], "--after", "third", "--epsilon", "1"), "third")
    refused(cli("paired", path, *PAIRS[:2], "--after", "plan", "--epsilon", "1"))
    refused(cli("paired", path, *PAIRS[:4], "--epsilon", "0"), "epsilon")
    missing = write("b.csv", measurements(second=[None, *(1.0,) * 39]))
    refused(cli("paired", missing, *PAIRS), "missing")
    text = write("c.csv", measurements(second=["x"] * 40))
    refused(cli("paired", text, *PAIRS))


@pytest.mark.parametrize("method", RANKS)
@pytest.mark.parametrize("adjacency", ["one", "both"])
def test_two_samples_by_ranks(cli, method, adjacency):
    extra = ["--method", method, "--membership", "public", "--adjacency", adjacency, "--json"]
    arguments = ["two-sample", write("a.csv", table()), *GROUP, "--epsilon", "1000", *extra]
    document = released(cli(*arguments))
    assert document["reject"] is True
    assert document["sizes"] == {"n": 40, "m": 40}
    assert document["adjacency"] == adjacency


@pytest.mark.parametrize("method", ["mann-whitney", "median", "ttest"])
def test_two_samples_one_side(cli, method):
    extra = ["--method", method, "--membership", "public", "--epsilon", "1000", "--json"]
    arguments = ["two-sample", write("a.csv", table()), *GROUP, *extra, "--alternative"]
    assert released(cli(*arguments, "greater"))["reject"] is True
    assert released(cli(*arguments, "less"))["reject"] is False


@pytest.mark.parametrize("method", ["mann-whitney", "mean"])
@pytest.mark.parametrize("release", ["pvalue", "decision"])
def test_private_groups(cli, method, release):
    extra = ["--method", method, "--release", release, "--permutations", "99", "--json"]
    arguments = ["two-sample", write("a.csv", table()), *GROUP, "--epsilon", "1000", *extra]
    document = released(cli(*arguments))
    assert document["reject"] is True
    assert (document["adjacency"], document["sizes"]) == ("row", {"N": 80})
    assert document.get("statistic") is None


def test_one_side_of_private_groups(cli):
    extra = ["--method", "mann-whitney", "--epsilon", "1000", "--json", "--alternative"]
    arguments = ["two-sample", write("a.csv", table()), *GROUP, *extra]
    assert released(cli(*arguments, "greater"))["reject"] is True
    assert released(cli(*arguments, "less"))["reject"] is False


def test_a_decision_alone_needs_private_groups(cli, no_noise):
    extra = ["--method", "mann-whitney", "--membership", "public", "--release", "decision"]
    run = cli("two-sample", write("a.csv", table()), *GROUP, "--epsilon", "1", *extra)
    refused(run, "release must be 'pvalue' for public groups")


@pytest.mark.parametrize("method", ["kruskal", "median"])
def test_private_groups_are_refused(cli, no_noise, method):
    path = write("a.csv", table())
    run = cli("two-sample", path, *GROUP, "--epsilon", "1", "--method", method)
    refused(run, "needs public membership", "group sizes")
    public = ["--membership", "public", "--epsilon", "1", "--method", method]
    refused(cli("two-sample", path, *GROUP, *public, "--permutations", "99"), "does not go")
