"""Commands that release estimates: means, and differences at locations."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.e2e.command_line import refused, released, table, write

PUBLIC = ["--group", "plan", "--groups", "basic", "plus", "--membership", "public"]
TWO = [*PUBLIC, "--bounds", "visits=0:80", "--bounds", "age=0:80"]
ONE = [*PUBLIC, "--bounds", "visits=0:80"]


def asked(*arguments: str) -> list[str]:
    return ["two-sample", write("visits.csv", table()), *arguments]


def test_hotelling_prints_the_differences(cli):
    run = cli(*asked(*TWO, "--method", "hotelling", "--epsilon", "1000"))
    assert run.code == 0
    assert (
        "private differences of means, first minus second (simultaneous 95% intervals):" in run.out
    )
    assert "    visits: 4" in run.out  # means 60.5 (clipped) and 19.5
    assert "same means" in run.out
    document = released(cli(*asked(*TWO, "--method", "hotelling", "--epsilon", "1000", "--json")))
    assert document["reject"] is True
    assert len(document["estimates"]["difference"]) == 2
    assert len(document["estimates"]["covariance"]) == 2


def test_ttest_takes_a_side(cli):
    greater = released(
        cli(
            *asked(*ONE, "--method", "ttest", "--epsilon", "100", "--alternative", "less", "--json")
        )
    )
    assert greater["reject"] is False
    many = cli(*asked(*TWO, "--method", "ttest", "--epsilon", "1"))
    refused(many, "column")


def test_equivalence_of_means(cli):
    tost = ["--method", "tost", "--epsilon", "1000", "--json"]
    wide = released(cli(*asked(*ONE, *tost, "--low", "-70", "--high", "70")))
    near = released(cli(*asked(*ONE, *tost, "--low", "-1", "--high", "1")))
    assert (wide["reject"], near["reject"]) == (True, False)
    assert wide["parameters"]["interval_level"] == pytest.approx(0.9)
    refused(cli(*asked(*ONE, *tost, "--low", "-1")), "--high")
    refused(cli(*asked(*ONE, *tost, "--low", "1", "--high", "-1")), "low must be below high")


@pytest.mark.parametrize("method", ["me", "scf", "me-permutation", "scf-permutation"])
def test_embedding_methods(cli, method):
    run = cli(*asked(*ONE, "--method", method, "--draw-locations", "3", "--epsilon", "1000"))
    assert run.code == 0
    assert "We reject" in run.out


def test_released_moments_say_where(cli):
    moments = ["--method", "me", "--epsilon", "1000", "--delta", "1e-6"]
    write("places.csv", pa.table({"visits": [20, 60]}))
    run = cli(*asked(*ONE, *moments, "--locations", "places.csv"))
    assert "where the samples differ most" in run.out
    assert "at (60)" in run.out
    document = released(cli(*asked(*ONE, *moments, "--locations", "places.csv", "--json")))
    assert len(document["estimates"]["difference"]) == 2
    write("waves.csv", pa.table({"visits": [0.05, 0.1, 0.2]}))
    run = cli(*asked(*ONE, "--method", "scf", "--epsilon", "1000", "--locations", "waves.csv"))
    assert run.code == 0


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["--method", "me", "--epsilon", "1"], ("--locations",)),
        (
            ["--method", "me", "--epsilon", "1", "--draw-locations", "3", "--release", "pvalue"],
            ("moments or statistic",),
        ),
        (["--method", "mmd", "--epsilon", "1", "--draw-locations", "3"], ("locations",)),
        (["--method", "mmd", "--epsilon", "1", "--release", "moments"], ("pvalue or decision",)),
        (
            ["--method", "mmd", "--epsilon", "1", "--release", "decision", "--plot", "a.png"],
            ("nothing to draw",),
        ),
        (["--method", "hotelling", "--epsilon", "1", "--plot", "a.exe"], (".png",)),
        (["--method", "hotelling", "--epsilon", "1", "--permutations", "9"], ("hotelling",)),
        (
            ["--method", "me", "--epsilon", "1", "--draw-locations", "3", "--bandwidths", "1,2"],
            ("one bandwidth",),
        ),
    ],
)
def test_mistakes_are_found_before_noise(cli, no_noise, arguments, fragments):
    refused(cli(*asked(*ONE, *arguments)), *fragments)


@pytest.mark.parametrize("method", ["hotelling", "me", "scf", "ttest", "tost"])
def test_private_membership_is_refused_with_the_reason(cli, no_noise, method):
    private = ["--group", "plan", "--groups", "basic", "plus", "--bounds", "visits=0:80"]
    more = ["--draw-locations", "3"] if method in ("me", "scf") else []
    more += ["--low", "-1", "--high", "1"] if method == "tost" else []
    refused(cli(*asked(*private, "--method", method, *more, "--epsilon", "1")), "group sizes")


@pytest.mark.parametrize(
    "arguments",
    [
        [*TWO, "--method", "hotelling", "--epsilon", "10"],
        [*ONE, "--method", "me", "--draw-locations", "4", "--epsilon", "10", "--delta", "1e-6"],
        [*ONE, "--method", "scf", "--draw-locations", "2", "--epsilon", "10", "--delta", "1e-6"],
    ],
)
def test_pictures(cli, arguments):
    assert cli(*asked(*arguments, "--plot", "picture.png")).code == 0
    assert Path("picture.png").read_bytes()[:4] == b"\x89PNG"


def test_mean(cli):
    path = write("visits.csv", table())
    described = ["--bounds", "visits=0:80", "--bounds", "age=0:80"]
    run = cli("mean", path, *described, "--epsilon", "1000", "--plot", "means.svg")
    assert run.code == 0
    assert "Private means of 80 rows" in run.out
    assert "Ledger:" in run.out
    assert "<svg" in Path("means.svg").read_text(encoding="utf-8")
    document = json.loads(cli("mean", path, *described, "--epsilon", "1000", "--json").out)
    assert document["mean"][1] == pytest.approx(39.5, abs=1)


def test_mean_refuses(cli, no_noise):
    path = write("visits.csv", table())
    refused(cli("mean", path, "--epsilon", "1"), "--bounds")
    refused(cli("mean", path, "--bounds", "visits=0:80", "--epsilon", "0"), "epsilon")
    refused(cli("mean", path, "--bounds", "height=0:3", "--epsilon", "1"), "height")


def test_quantiles(cli):
    data = write("visits.csv", table())
    run = cli("mean", data, "--q", "0.5", "--bounds", "age=0:80", "--epsilon", "1000")
    assert run.code == 0
    assert "Private median of" in run.out
    asked_by_name = ["mean", data, "--method", "quantiles", "--bounds", "age=0:80"]
    run = cli(*asked_by_name, "--epsilon", "1000", "--cells", "64", "--json")
    document = json.loads(run.out)
    assert document["lower"] <= document["quantile"] <= document["upper"]
    two = ["--bounds", "age=0:80", "--bounds", "visits=0:80", "--epsilon", "1"]
    refused(cli("mean", data, "--q", "0.5", *two), "one numeric column")


def test_a_shift_has_an_interval(cli):
    run = cli(*asked(*ONE, "--method", "hodges-lehmann", "--epsilon", "1000"))
    assert run.code == 0
    assert "private shift, first minus second (95% interval):" in run.out
