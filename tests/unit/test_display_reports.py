"""Reports: valid HTML, everything escaped, and a function of the JSON document alone."""

from __future__ import annotations

import json
from typing import Any

import html5lib
import numpy as np
import pytest

import privatest as pt
from privatest.core.results import Decision, Outcome
from privatest.display.citations import REFERENCES
from privatest.display.reports import report_html
from privatest.noise import SimulatedNoise
from privatest.requests.catalogue import METHODS, described

RNG = np.random.default_rng(0)
X, Y = RNG.random(120), RNG.random(110)
FEW: dict[str, Any] = {"bounds": (0, 1), "epsilon": 1}


def valid(page: str) -> Any:
    """Parse a page as a browser does, and refuse what a validator would."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


def text_of(page: str) -> str:
    return " ".join("".join(valid(page).itertext()).split())


def outcome(**changes: Any) -> Outcome:
    told: dict[str, Any] = {
        "reject": True,
        "alpha": 0.05,
        "spent": pt.Budget(1),
        "adjacency": "one",
        "method": "two-sample t-test",
        "null_hypothesis": "both have the same mean",
        "sizes": {"n": 10, "m": 12},
        "pvalue": 0.01,
    }
    return Outcome(**(told | changes))


def test_a_name_that_looks_like_a_formula_is_drawn_as_it_is():
    frame = {r"$\frac$": X, "b$": X}
    schema = pt.Schema.from_bounds(dict.fromkeys(frame, (0, 1)))
    found = pt.hotelling_test(frame, frame, bounds=schema, epsilon=1, n_bootstrap=99)
    assert "<img" in report_html(found)


# --- the page --------------------------------------------------------------------------------


def test_a_page_has_all_parts():
    page = report_html(pt.mmd_test(X, Y, n_permutations=99, **FEW))
    root = valid(page)
    assert [each.text for each in root.iter("h1")] == ["What is the result?"]
    titles = " ".join(each.text for each in root.iter("h2"))
    for part in ("Data", "Method", "Answer", "Guarantee", "spent", "paper"):
        assert part in titles
    said = text_of(page)
    assert "e1 · P(result on D′ in E)" in said
    assert "Kim and Schrab 2023" in said
    assert len(page) < 2_000_000


def test_a_page_needs_nothing_and_runs_nothing():
    root = valid(report_html(outcome()))
    kinds = {each.tag for each in root.iter()}
    assert not kinds & {"script", "link", "iframe", "object", "embed", "form", "base"}
    (policy,) = [m.get("content") for m in root.iter("meta") if m.get("http-equiv")]
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    for image in root.iter("img"):
        assert image.get("src").startswith("data:image/svg+xml;base64,")
        assert image.get("alt")
    assert not [name for each in root.iter() for name in each.attrib if name.startswith("on")]


HOSTILE = "<script>alert('x')</script><img src=x onerror=alert(1)>\"'&"


def test_everything_is_escaped():
    about = {
        "title": HOSTILE,
        "compared": HOSTILE,
        "files": [HOSTILE],
        "dataset": HOSTILE,
        "request": {
            "question": "two-sample",
            "method": "ttest",
            "epsilon": "1",
            "delta": "0",
            "group": HOSTILE,
            "columns": [HOSTILE],
            "groups": [HOSTILE, "b"],
        },
        "ledger": [
            {
                "dataset": HOSTILE,
                "budget": {"epsilon": "3"},
                "left": {"epsilon": "2"},
                "used": 0.3,
            }
        ],
    }
    page = report_html(outcome(method=HOSTILE, null_hypothesis=HOSTILE), about=about)
    root = valid(page)
    assert HOSTILE in [each.text for each in root.iter("h1")]
    assert "<script" not in page
    assert not [each for each in root.iter("img") if each.get("src") == "x"]


def test_the_page_is_a_function_of_the_document():
    result = pt.ttest_ind(X, Y, **FEW)
    assert result.estimates
    page, again = report_html(result), report_html(json.loads(result.to_json()))
    assert page == report_html(result)
    record = "<details>"  # the document itself, which a command gives more words
    assert page.split(record)[0] == again.split(record)[0]


def test_simulated_noise_is_marked():
    said = text_of(report_html(pt.ttest_ind(X, Y, noise=SimulatedNoise(1), **FEW)))
    assert "NOT private and must not be published" in said
    assert "is differentially private" not in said


def test_a_decision_has_a_page_without_a_picture():
    page = report_html(pt.mmd_test(X, Y, n_permutations=99, release="decision", **FEW))
    assert "only a decision was released" in text_of(page)
    assert not list(valid(page).iter("img"))


@pytest.mark.parametrize("thing", [3, "text", {}, {"reject": True}, {"epsilon": 1}, None])
def test_what_is_no_result_is_refused(thing):
    with pytest.raises(pt.ParameterError, match=r"result must be|nothing to report"):
        report_html(thing)


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "r.html"
    outcome().report(path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    pt.report(outcome(reject=False), path)
    assert "do not reject" in path.read_text(encoding="utf-8")
    with pytest.raises(pt.ParameterError, match="cannot be written"):
        outcome().report(tmp_path / "nowhere" / "r.html")
    assert [each.name for each in tmp_path.iterdir()] == ["r.html"]


# --- citations -------------------------------------------------------------------------------


def test_every_method_is_cited():
    entries = [entry for methods in METHODS.values() for entry in methods.values()]
    library = ("compare", "compare_releases", "conditional_randomisation_test", "permutation_test")
    entries += [entry for name in library if (entry := described(name)) is not None]
    assert {*library} <= {entry.function.__name__ for entry in entries}
    for entry in entries:
        found = described(entry.method_id)
        assert found is not None
        assert (found.function, found.sentence) == (entry.function, entry.sentence)
        assert not entry.sentence.endswith(".")
    used = {key for entry in entries for key in entry.papers} | {"dwork2006"}
    assert used == REFERENCES.keys()


def test_a_missing_citation_would_be_seen():
    assert described("unheard_of") is None


@pytest.mark.parametrize(
    ("method_id", "key"),
    [
        ("mmd_test/largest", "kim2023"),
        ("mmd_test/several", "kim2023"),
        ("mannwhitneyu", "couch2019"),
        ("ks_2samp/kuiper", "awan2022"),
        ("compare", "raj2019"),
        ("binom_test", "awan2018"),
    ],
)
def test_results_of_functions_are_cited_by_their_method_id(method_id, key):
    found = described(method_id)
    assert found is not None
    assert key in found.papers


def test_decisions_can_be_asked_for_pictures():
    decided = pt.mmd_test(X, Y, n_permutations=99, release="decision", **FEW)
    assert type(decided) is Decision
    with pytest.raises(pt.ParameterError, match="only a decision was released"):
        decided.plot()
