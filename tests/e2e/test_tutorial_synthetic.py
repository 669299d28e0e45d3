"""The tutorial on synthetic data works as printed.

Noise is secret, so numbers differ from run to run; words may not. What is found by the page's
Python is looked at here, so its noise is seeded; commands have secret noise.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privatest.datasets import randhie
from tests.e2e.test_tutorials import blocks, run, shape_of
from tests.seeding import seed_everything

PAGE = "tutorials/synthetic-data.md"
POOR = re.compile(r" \(poorly represented\)|^Poorly represented: .*\n", re.M)
SPACES = re.compile(r"\s+")
# whether a noisy release can tell a conditional share to within a bar is chance
BAR = re.compile(r"± #(?: \(sampling ± #\))?|\(no bar; between # and #\)")


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("tutorial"))
        seed_everything(patch, 1)
        names, comparisons = run(PAGE)
        names["picture"] = Path("synthetic.png").read_bytes()
    return names, comparisons


def shape(text: str) -> str:
    """Words without numbers; a number of another length moves the spaces beside it.

    In one of 60 releases an estimate was marked as poor.
    """
    return BAR.sub("(bar)", SPACES.sub(" ", POOR.sub("", shape_of(text))))


def test_it_prints_what_it_says(tutorial):
    _, comparisons = tutorial
    assert len(comparisons) >= 4
    for expected, printed in comparisons:
        assert shape(printed) == shape(expected)


def test_the_truth_is_the_truth(tutorial):
    """What does not depend on noise is printed to the letter."""
    _, comparisons = tutorial
    expected, printed = next(pair for pair in comparisons if "10.58" in pair[0])
    assert printed == expected


def test_estimates_are_near_the_truth(tutorial):
    """Bars are at most 6 standard errors off; limits hold."""
    names, _ = tutorial
    made, tables = names["synthetic"], names["tables"]
    for share in (made.probability("idp == 1"), tables.probability("idp == 1")):
        assert abs(share.value - 0.26) < 6 * share.error
    mean, often = tables.mean("mdvis"), tables.probability("mdvis > 5")
    assert abs(mean.value - 2.86) < 6 * mean.error
    assert abs(often.value - 0.152) < 6 * often.error
    low, high = made.mean("mdvis").limits
    assert low < 2.86 < high
    assert names["picture"].startswith(b"\x89PNG")


def test_tests_on_rows_are_a_trap(tutorial):
    """Of 20 true hypotheses a valid test rejects 5 or more once in 400 seeds."""
    names, _ = tutorial
    assert names["valid"] <= 4 < names["naive"]


def test_the_model_learns(tutorial):
    """Over 80 releases: AUC 0.627 ± 0.005, coefficient 3.6 ± 0.9."""
    names, _ = tutorial
    table, model = names["table"], names["private"]
    area = names["roc_auc_score"](
        names["often"](table), model.decision_function(names["features"](table))
    )
    assert area > 0.55
    assert model.coef_[0][0] > 0
    assert np.shape(model.coef_) == (1, 2)


def test_commands(cli, monkeypatch):
    """Every command of the page runs, and prints the lines that follow it."""
    console = [text for language, text in blocks(PAGE) if language == "console"]
    asked = re.findall(
        r"^\$ privatest (.*?)$\n(.*?)(?=^\$|\Z)", "".join(console).replace("\\\n", ""), re.M | re.S
    )
    assert [command.split()[0] for command, _ in asked] == ["ledger", "release", "query", "query"]
    monkeypatch.chdir(Path.cwd())
    for command, expected in asked:
        words = command.replace("src/privatest/datasets", str(randhie().data.parent))
        result = cli(*shlex.split(words), *(["--dataset", "randhie"] * words.startswith("release")))
        assert result.code == 0, result.err
        assert shape(result.out) == shape(expected)
    assert Path("visits.png").stat().st_size > 0
