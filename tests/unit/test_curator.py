"""The curator: what it refuses, what it charges, and in which order."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privatest.core.errors import (
    BudgetError,
    DataError,
    LedgerError,
    LedgerMissing,
    ParameterError,
    PrivacyError,
    PrivatestError,
)
from privatest.core.privacy import Budget
from privatest.curator import Curator, Policy, RequestFailed
from privatest.curator import curator as answering
from privatest.curator import curator as curator_module
from privatest.curator.admission import admit
from privatest.curator.config import ALL_TESTS
from privatest.curator.registration import load_registrations, made_up_rows, register
from privatest.ledger import Ledger
from privatest.noise import SecureNoise, SimulatedNoise
from privatest.requests.catalogue import METHODS
from privatest.requests.request import Prepared, Request
from privatest.synthetic import SyntheticData
from tests.curators import CONFIG, SCHEMA, opened, request, table, write

PUBLIC = {"group": "region", "groups": ["north", "south"], "columns": ["visits"]}


@pytest.fixture
def curator(tmp_path):
    with opened(tmp_path) as found:
        yield found


def spent(folder) -> Decimal:
    with Ledger.open(folder / "ledger.db") as ledger:
        return ledger.totals("people").account.spent.epsilon


@pytest.fixture
def untouchable(curator, monkeypatch):
    """Let every look at data fail, once it is registered."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("data was touched")

    monkeypatch.setattr("privatest.data.files.read_table", fail)


# --- the good way ----------------------------------------------------------------------------


def test_an_answer_is_recorded_and_charged(curator, tmp_path):
    answer = curator.run(request(), analyst="ada")
    assert answer.result.spent == Budget("0.1")
    assert answer.result.adjacency == "row"
    assert dict(answer.result.sizes) == {"N": 40}
    assert not answer.result.simulated
    assert not answer.recorded
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.totals("people").account.spent.epsilon == Decimal("0.1")
        assert ledger.totals("people").analysts["ada"].spent.epsilon == Decimal("0.1")
        committed, reserved, *_ = ledger.history("people")
        assert (committed.kind, reserved.kind) == ("committed", "reserved")
        assert committed.body["released"] == answer.result.to_dict()
        assert reserved.body["opens"] == answer.id
        asked = reserved.body["asked"]
        assert (asked["method"], asked["columns"], asked["group"]) == ("ks", ["visits"], "plan")
        assert ledger.answer(answer.id).analyst == "ada"
        ledger.verify()


def test_the_same_request_is_free_for_the_same_analyst(curator, tmp_path, monkeypatch):
    first = curator.run(request(), analyst="ada")
    monkeypatch.setattr(answering, "answer_from_rows", None)  # neither data nor noise is needed
    again = curator.run(dict(reversed(request(epsilon="0.10").items())), analyst="ada")
    assert again.recorded
    assert again.id is None
    assert again.result == first.result
    assert type(again.result) is type(first.result)
    assert again.result.to_dict() == first.result.to_dict()
    assert spent(tmp_path) == Decimal("0.1")


def test_an_answer_of_others_is_not_free(curator, tmp_path):
    # otherwise bob would see more than his own budget covers
    curator.run(request(), analyst="ada")
    assert not curator.run(request(), analyst="bob").recorded
    assert spent(tmp_path) == Decimal("0.2")


def rewrite(folder, *, same_time: bool, **changes: Any) -> None:
    """Put other rows of the same length into the data file."""
    source = folder / "people.csv"
    before = source.stat()
    write(folder, **changes)
    assert source.stat().st_size == before.st_size
    if same_time:
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert source.stat().st_mtime_ns == before.st_mtime_ns


OTHER: dict[str, Any] = {"plan": ["plus", "basic"] * 20}  # as many bytes as before


@pytest.mark.parametrize("same_time", [False, True])
def test_other_data_has_no_recorded_answer(curator, tmp_path, same_time):
    curator.run(request(), analyst="ada")
    rewrite(tmp_path, same_time=same_time, **OTHER)
    curator.register("people")
    assert not curator.price(request(), analyst="ada").recorded
    assert not curator.run(request(), analyst="ada").recorded
    assert spent(tmp_path) == Decimal("0.2")


@pytest.mark.parametrize("same_time", [False, True])
def test_a_change_that_nobody_registered_is_refused(curator, tmp_path, same_time):
    curator.run(request(), analyst="ada")
    rewrite(tmp_path, same_time=same_time, **OTHER)
    with pytest.raises(ParameterError, match="changed since it was registered"):
        curator.run(request(alpha=0.01), analyst="ada")
    if same_time:  # of what is on record no file is opened: how long that takes would tell its size
        assert curator.run(request(), analyst="ada").recorded
    else:
        with pytest.raises(ParameterError, match="changed since it was registered"):
            curator.run(request(), analyst="ada")
    assert spent(tmp_path) == Decimal("0.1")


def test_the_same_data_keeps_its_answers(curator, tmp_path):
    curator.run(request(), analyst="ada")
    os.utime(tmp_path / "people.csv", ns=(1, 1))
    with pytest.raises(ParameterError, match="changed since it was registered"):
        curator.run(request(), analyst="ada")
    curator.register("people")
    assert curator.run(request(), analyst="ada").recorded


def test_a_guess_of_the_data_cannot_be_checked_against_the_ledger(tmp_path):
    """Equal data and requests leave different fingerprints: they have a secret key."""
    digests = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        with opened(tmp_path / name) as curator:
            curator.run(request(), analyst="ada")
            digests.append(curator._admitted(request(), "ada").digest)
            contents = curator._registrations["people"].contents
        with Ledger.open(tmp_path / name / "ledger.db") as ledger:
            bodies = [entry.body for entry in ledger.history("people")]
        assert digests[-1] in str(bodies)
        assert contents not in str(bodies)
    plain = hashlib.sha256((tmp_path / "first" / "people.csv").read_bytes()).hexdigest()
    assert digests[0] != digests[1]
    assert contents != plain


TWICE = CONFIG.replace("[datasets.people.policy]\nlargest_epsilon = 1\n", "").replace(
    "[analysts.ada]",
    """[datasets.copy]
source = "copy.csv"
schema = "people.toml"
epsilon = 3

[analysts.ada]""",
)


def test_two_data_sets_with_the_same_contents_are_refused(tmp_path):
    path = write(tmp_path, TWICE)
    (tmp_path / "copy.csv").write_bytes((tmp_path / "people.csv").read_bytes())
    with Curator.open(path, create=True) as curator:
        curator.register("people")
        with pytest.raises(ParameterError, match="'copy' has the same contents as 'people'"):
            curator.register("copy")
        assert "not registered" in (curator.not_ready("copy") or "")
        assert curator.not_ready("people") is None
        write(tmp_path, TWICE, **OTHER)
        curator.register("people")
        curator.register("copy")  # other people


@pytest.mark.parametrize(
    "document",
    [
        request("two-sample", "mmd", permutations=99),
        request("two-sample", "mann-whitney", **PUBLIC),
        request("two-sample", "mmd", release="decision", adjacency="row", permutations=99),
        request("independence", "hsic", x=["age"], y=["visits"], permutations=99, delta="1e-7"),
        request("paired", "sign", before="visits", after="age"),
        request("fit", "distribution", column="visits", dist="uniform(0, 80)"),
        request("two-sample", "ks", where={"region": "north"}),
        request("two-sample", "tot", **PUBLIC, subtest="mmd", permutations=99),
    ],
    ids=lambda d: f"{d['question']}-{d['method']}",
)
def test_requests_of_all_kinds(curator, document):
    answer = curator.run(document, analyst="ada")
    assert answer.result.spent == Budget(document["epsilon"], document.get("delta", 0))
    json.dumps(answer.to_dict())


# --- means and releases ------------------------------------------------------------------------

MEANS = CONFIG.replace(
    "largest_epsilon = 1",
    'tests = ["mean/moments", "release", "release/features"]\nlargest_points = 30',
)
MEAN = request("mean", "moments", columns=["visits", "age"])
RELEASE = request("release", "subspace", columns=["visits", "plan"], points=20, delta="1e-7")


@pytest.fixture
def estimating(tmp_path):
    with opened(tmp_path, MEANS) as found:
        yield found


@pytest.mark.parametrize(
    "document",
    [MEAN, {**MEAN, "delta": "1e-7"}, RELEASE, {**RELEASE, "weights": "nonnegative"}],
    ids=["mean", "mean with delta", "release", "nonnegative release"],
)
def test_estimates_are_priced_charged_recorded_and_recalled(
    estimating, tmp_path, document, monkeypatch
):
    price = estimating.price(document, analyst="ada")
    assert (price.budget.epsilon, price.affordable, price.recorded) == (Decimal("0.1"), True, False)
    answer = estimating.run(document, analyst="ada")
    assert answer.result.spent == Budget("0.1", document.get("delta", 0))
    assert not answer.result.simulated
    assert spent(tmp_path) == Decimal("0.1")
    released = json.loads(json.dumps(answer.to_dict()))  # all of it is plain JSON
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        committed, reserved, *_ = ledger.history("people")
        assert reserved.body["asked"]["columns"] == document["columns"]
        assert {**released, **committed.body["released"]} == released
    monkeypatch.setattr(curator_module, "answer_from_rows", None)
    again = estimating.run(document, analyst="ada")
    assert again.recorded
    assert type(again.result) is type(answer.result)
    assert str(again.result) == str(answer.result)
    plain = json.loads(json.dumps(again.to_dict()))
    assert plain == {**released, "id": None, "recorded": True}
    assert spent(tmp_path) == Decimal("0.1")


def test_a_release_comes_back_whole(estimating, tmp_path):
    asked = {**RELEASE, "weights": "nonnegative"}  # signed ones may cancel, and have no mean then
    made = estimating.run(asked, analyst="ada").result
    again = estimating.run(asked, analyst="ada").result
    assert isinstance(made, SyntheticData)
    assert isinstance(again, SyntheticData)
    assert len(made) == 20
    assert made.facts.n == 40
    np.testing.assert_array_equal(again.weights, made.weights)
    np.testing.assert_array_equal(again.draws, made.draws)
    assert again.mean("visits") == made.mean("visits")
    # an analyst keeps the document as a file
    (tmp_path / "answer.json").write_text(json.dumps(made.to_dict()), encoding="utf-8")
    assert SyntheticData.load(tmp_path / "answer.json").mean("visits") == made.mean("visits")


def test_estimates_of_public_parts(estimating):
    where = {"region": "north"}
    assert estimating.run({**MEAN, "where": where}, analyst="ada").result.to_dict()["n"] == 20
    answer = estimating.run({**RELEASE, "where": where, "points": 10}, analyst="ada")
    assert answer.result.to_dict()["n"] == 20
    assert answer.words == "visits, plan; where region = north"


@pytest.mark.parametrize(
    ("document", "fragment"),
    [
        ({**MEAN, "columns": ["visits", "plan"]}, "'plan' is categorical"),
        ({**MEAN, "group": "plan"}, "unknown key 'group'"),
        ({**MEAN, "epsilon": 5}, "epsilon must be at most"),
        ({**RELEASE, "delta": 0}, "delta must be above 0"),
        ({**RELEASE, "alpha": 0.05}, "alpha does not go with"),
        ({**RELEASE, "points": 31}, "points must be at most 30"),
        ({**RELEASE, "points": "all"}, "points must be an integer"),
        ({**RELEASE, "points": None}, "points must be given, and at most 30"),
        ({**RELEASE, "points": 21, "where": {"region": "north"}}, "number of rows, 20"),
        ({**RELEASE, "bandwidth": 0}, "bandwidth"),
        ({**RELEASE, "weights": "heavy"}, "weights"),
        ({**RELEASE, "kernel": "linear"}, "not bounded"),
        ({**RELEASE, "rng": 1}, "unknown key 'rng'"),
        ({**RELEASE, "public_points": {"visits": [1], "plan": ["basic"]}}, "no code of others"),
        ({**RELEASE, "method": "features", "weights": "signed"}, "signed"),
    ],
)
def test_estimates_are_refused_for_free(estimating, tmp_path, document, fragment, monkeypatch):
    monkeypatch.setattr(curator_module, "answer_from_rows", None)
    with pytest.raises(PrivatestError, match=fragment) as caught:
        estimating.run(document, analyst="bob")
    assert not isinstance(caught.value, RequestFailed)
    assert spent(tmp_path) == 0


def test_the_only_method_of_a_question_needs_no_name(estimating):
    short = {key: value for key, value in MEAN.items() if key != "method"}
    estimating.run(short, analyst="ada")
    assert estimating.run(MEAN, analyst="ada").recorded


def test_means_are_offered_only_by_name(curator):
    """Axes of a covariance are drawn in a time that depends on values."""
    with pytest.raises(ParameterError, match="mean/moments is not offered"):
        curator.price(MEAN, analyst="bob")
    curator.price(RELEASE, analyst="bob")


def test_a_request_comes_back_from_its_document():
    asked = Request.from_dict(request(where={"region": ["south", "north", "north"]}))
    assert asked.where == {"region": ("north", "south")}
    assert Request.from_dict(json.loads(json.dumps(asked.to_dict()))).to_dict() == asked.to_dict()
    assert "where" not in Request.from_dict(request()).to_dict()


# --- what is refused before data is touched ---------------------------------------------------

REFUSED = [
    (request(dataset="others"), ParameterError, "no data set 'others'"),
    (request(dataset=""), ParameterError, "dataset must be"),
    (request(question="weather"), ParameterError, "question"),
    (request(method="guess"), ParameterError, "method must be one of"),
    (request(epsilon=0), ParameterError, "epsilon"),
    (request(epsilon=-1), ParameterError, "epsilon"),
    (request(epsilon=1.01), ParameterError, "epsilon must be at most 1 in one request"),
    (request(delta=1e-5), ParameterError, "delta must be at most 0.000001 in one request"),
    (request(alpha=2), ParameterError, "alpha"),
    (request(seed=1), ParameterError, "unknown key 'seed'"),
    (request(noise="none"), ParameterError, "unknown key 'noise'"),
    (request(rng=1), ParameterError, "unknown key 'rng'"),
    (request(membership="public"), PrivacyError, "custodian's to declare"),
    (request(membership="private"), PrivacyError, "custodian's to declare"),
    (request(adjacency="one"), PrivacyError, "needs public membership"),
    (request(method="kruskal"), ParameterError, "needs public membership"),
    (request(group="name"), ParameterError, "group column 'name' is not in the schema"),
    (request(group=None), ParameterError, "group"),
    (request(columns=["name"]), ParameterError, "name"),
    (request(groups=["basic", "plus", "rest"]), ParameterError, "list of two"),
    (request(groups=["basic", "none"]), ParameterError, "not a category"),
    (request(permutations=10_000), ParameterError, "permutations must be at most 9999"),
    (request(permutations="many"), ParameterError, "permutations must be an integer"),
    (request(where={"plan": "basic"}), PrivacyError, "the number of rows that pass is not hidden"),
    (request(where={"visits": 3}), PrivacyError, "is private"),
    (request(where={"name": "x"}), ParameterError, "not in the schema"),
    (request(where={"region": "east"}), ParameterError, "'east' is not a category"),
    (request(where={"region": []}), ParameterError, "list of categories"),
    (request(where={"region": {"not": "north"}}), ParameterError, "list of categories"),
    (request(where="region = north"), ParameterError, "where must be a table"),
    (request(columns=["visits"] * 101), ParameterError, "at most 100 entries"),
    (request("fit", "distribution", column="age", dist="x" * 501), ParameterError, "500"),
    (request("fit", "distribution", column="age", dist="__import__('os')"), ParameterError, "cdf"),
    (request("fit", "distribution", column="age", dist=["norm", [0, 1]]), ParameterError, "dist"),
    ([], ParameterError, "table"),
    (request(group=["region"]), ParameterError, "^group must be text"),
    (request(group=3), ParameterError, "^group must be text"),
    (request(adjacency=["one"]), ParameterError, "^adjacency must be text"),
    (request(membership=["public"]), ParameterError, "^membership must be text"),
    (
        request("fit", "distribution", column=["age"], dist="norm"),
        ParameterError,
        "^column must be",
    ),
    (request("fit", "distribution", column="age", dist=1), ParameterError, "^dist must be text"),
    (request("fit", "family", column="age", family=[]), ParameterError, "^family must be text"),
    (request("paired", "sign", before=["age"], after="visits"), ParameterError, "^before must be"),
    (request("paired", "sign", before="age", after=["visits"]), ParameterError, "^after must be"),
    (request(columns=[]), ParameterError, "columns must name at least one column"),
    (request() | {"k" * 501: 1}, ParameterError, "^the request must have at most 100 names"),
    (request() | {f"k{i}": 1 for i in range(101)}, ParameterError, "at most 100 names"),
    (request(where={"k" * 501: []}), ParameterError, "^where must have at most 100 names"),
    (request(where={"k" * 501: "north"}), ParameterError, "^where must have at most 100 names"),
]


def without(name: str, **document: Any) -> dict[str, Any]:
    return {key: value for key, value in request(**document).items() if key != name}


WITHOUT_FLAGS = [document for document, _, _ in REFUSED if isinstance(document, dict)] + [
    without("group"),
    without("method"),
    without("question"),
    request("two-sample", "kruskal"),
    request("two-sample", "ks", columns=["visits", "age"]),
    request("two-sample", "me", **PUBLIC),
    request("two-sample", "me", **PUBLIC, locations=3, bandwidths=[1, 2]),
    request("two-sample", "ks", group="region"),
    request("two-sample", "mmd", release="all"),
    request("two-sample", "mmd", columns=["height"]),
    request("two-sample", "mmd", groups=["basic", "basic"]),
    request("independence", "hsic", x=["age"]),
    request("fit", "distribution", column="age"),
    request("fit", "distribution", dist="norm"),
    request("fit", "distribution", column="age", dist="norm", family="norm"),
]


@pytest.mark.parametrize("document", WITHOUT_FLAGS)
def test_refusals_speak_of_keys_and_not_of_flags(curator, document):
    with pytest.raises(PrivatestError) as caught:
        curator.run(document, analyst="bob")
    assert "--" not in str(caught.value)
    assert "got 'None'" not in str(caught.value)


@pytest.mark.usefixtures("untouchable")
@pytest.mark.parametrize(("document", "kind", "fragment"), REFUSED)
def test_refused_before_data_is_touched(curator, tmp_path, document, kind, fragment):
    with pytest.raises(kind, match=fragment):
        curator.run(document, analyst="bob")
    with pytest.raises(kind, match=fragment):
        curator.price(document, analyst="bob")
    assert spent(tmp_path) == 0


@pytest.mark.parametrize(
    ("document", "fragment"),
    [
        (request("two-sample", "ks", columns=["visits", "age"]), "one numeric column"),
        (request("two-sample", "mmd", kernel="magic"), "kernel"),
        (request("two-sample", "mmd", bandwidths=[-1]), "bandwidth"),
        (request("two-sample", "mmd", release="all"), "release"),
        (request("two-sample", "tot", **PUBLIC, subtest="os.system"), "subtest: a curator takes"),
        (
            request("two-sample", "tot", **PUBLIC, subtest="hsic"),
            "is for the question independence",
        ),
        (request("two-sample", "tot", **PUBLIC, where={"region": "north"}), "sample|rows"),
        (request("two-sample", "ks", **PUBLIC, where={"region": "west"}), "sample|rows"),
    ],
)
def test_a_rehearsal_finds_bad_parameters_for_free(
    curator, tmp_path, untouchable, document, fragment
):
    with pytest.raises(PrivatestError, match=fragment):
        curator.run(document, analyst="bob")
    assert spent(tmp_path) == 0


WIDTHS = [round(0.05 * i, 2) for i in range(1, 101)]
UNBIASED: dict[str, Any] = {
    **{"question": "independence", "method": "hsic", "x": ["visits"], "y": ["age"]},
    "estimator": "u",
}


@pytest.mark.parametrize(
    ("rows", "document"),
    [
        (400, {**UNBIASED, "permutations": 9999}),
        (400, {**UNBIASED, "bandwidths": WIDTHS, "permutations": 99}),
        (400, {**UNBIASED, "estimator": "v", "bandwidths": WIDTHS}),
        (20_000, {"method": "mmd", "computation": "exact", "bandwidths": WIDTHS}),
        (20_000, {"method": "mmd", "computation": "exact", "epsilon": 1}),
        (20_000, {"method": "mmd", "computation": "exact", **PUBLIC, "bandwidths": WIDTHS}),
        (500, {"method": "mmd", "bandwidths": WIDTHS, "permutations": 9999}),
        (2000, {"method": "mmd", **PUBLIC, "bandwidths": WIDTHS, "permutations": 9999}),
        (1_000_000, {"method": "mmd", "computation": "fourier", "bandwidths": WIDTHS}),
    ],
)
def test_long_requests_are_refused_before_the_rehearsal(
    curator, tmp_path, monkeypatch, rows, document
):
    monkeypatch.setattr(curator_module, "rows_of", lambda *_: rows)
    monkeypatch.setattr(curator_module, "run_privately", lambda *_: 1 / 0)
    for ask in (curator.price, curator.run):
        with pytest.raises(
            ParameterError, match=r"largest_work of people is 50,000,000,000\. Lower"
        ):
            ask(request(**document), analyst="ada")
    assert spent(tmp_path) == 0


@pytest.mark.parametrize(
    ("rows", "document"),
    [
        (400, UNBIASED),
        (1_000_000, {**UNBIASED, "estimator": "v"}),
        (20_000, {**UNBIASED, "estimator": "v", "permutations": 9999}),
        (1_000_000, {"method": "mmd"}),
        (1_000_000, {"method": "mmd", "permutations": 9999}),
        (500, {"method": "mmd", "permutations": 9999}),
        (10_000, {"method": "mmd", **PUBLIC, "columns": ["visits", "age", "plan"]}),
        (1_000_000, {"method": "wasserstein", "permutations": 9999}),
    ],
)
def test_usual_requests_are_not_too_long(curator, monkeypatch, rows, document):
    monkeypatch.setattr(curator_module, "rows_of", lambda *_: rows)
    curator.price(request(**document), analyst="ada")


def test_work_is_counted_for_the_rows_that_are_meant(tmp_path):
    # 2 bandwidths, 40² or 20² pairs of rows, and as much for 10 permutations with the identity
    config = CONFIG.replace("largest_epsilon = 1", "largest_work = 20000")
    document: dict[str, Any] = {"method": "mmd", "bandwidths": [0.5, 1.0], "permutations": 9}
    with opened(tmp_path, config) as curator:
        with pytest.raises(ParameterError, match="35,200 steps"):
            curator.price(request(**document), analyst="ada")
        curator.run(request(**document, where={"region": "north"}), analyst="ada")


@pytest.mark.parametrize(
    ("options", "steps"),
    [  # 10 permutations; 40 rows, swapped in 20 pairs
        ({"statistics": "mean"}, 10 * 20 + 40),
        ({"statistics": ["kolmogorov"]}, 512 * (10 * 20 + 40)),
        ({"statistics": ["kernel", "mean"]}, 6 * (40**2 + 10 * 40**2) + 10 * 20 + 40),
        ({}, 6 * (40**2 + 10 * 40**2) + 513 * (10 * 20 + 40)),
        # public groups: bins of one row
        ({**PUBLIC, "groups": ["north", "rest"], "statistics": "mean"}, 10 * 40 + 40),
    ],
)
def test_work_is_counted_for_all_members(tmp_path, options, steps):
    config = CONFIG.replace("largest_epsilon = 1", "largest_work = 1")
    document = {"method": "mmd", "permutations": 9, "columns": ["visits"]} | options
    with opened(tmp_path, config) as curator, pytest.raises(ParameterError, match=f" {steps:,} st"):
        curator.price(request(**document), analyst="ada")


ROWS = 1_000_000
LINES: dict[str, Any] = {"columns": ["visits", "age"], "method": "wasserstein"}
PAIRED = {"question": "independence", "method": "hsic", "x": ["visits"], "y": ["age", "plan"]}


@pytest.mark.parametrize(
    ("document", "steps"),
    [
        # 1 numeric column with 1 or 23 functions; 1 or 23 and 2 categories; four widths of "mean";
        # 32 blocks, whose sums over rows are a matrix product
        (PAIRED | {"statistics": "mean"}, 12 * (32 * 1000 + 8 * ROWS)),
        (PAIRED | {"statistics": ["mean", "kolmogorov"]}, (12 + 23 * 25) * (32 * 1000 + 8 * ROWS)),
        # one line, or 32 of a sliced distance; 1000 permutations with the identity
        ({"method": "ks"}, 16 * (ROWS + 1000 * 4096)),
        ({"method": "ks", "grid": "exact"}, ROWS * 1000),
        ({"method": "ks", "grid": 500}, 16 * (ROWS + 1000 * 500)),
        ({"method": "ks", "grid": [1.0, 2.0]}, 16 * (ROWS + 1000 * 3)),
        ({"method": "ks", "epsilon": 0.01}, ROWS * 1000),  # labels are swapped
        ({"method": "kuiper", "permutations": 9999}, 16 * (ROWS + 10_000 * 4096)),
        ({"method": "mann-whitney"}, ROWS * 1000),
        ({"method": "wasserstein"}, 16 * (ROWS + 1000 * 4096)),
        ({"method": "kolmogorov", **PUBLIC}, 16 * (ROWS + 1000 * 4096)),
        ({"method": "kolmogorov", "grid": "exact", **PUBLIC}, ROWS * 1000),
        (LINES, 32 * 16 * (ROWS + 1000 * 4096)),
        ({**PUBLIC, **LINES, "permutations": 99}, 32 * 16 * (ROWS + 100 * 4096)),
    ],
)
def test_work_is_counted_without_kernels(tmp_path, monkeypatch, document, steps):
    monkeypatch.setattr(curator_module, "rows_of", lambda *_: ROWS)
    config = CONFIG.replace("largest_epsilon = 1", "largest_work = 1")
    with opened(tmp_path, config) as curator, pytest.raises(ParameterError, match=f" {steps:,} st"):
        curator.price(request(**document), analyst="ada")


@pytest.mark.parametrize("method", ["ks", "kuiper", "mann-whitney"])
def test_laws_for_public_groups_are_no_work(tmp_path, monkeypatch, method):
    monkeypatch.setattr(curator_module, "rows_of", lambda *_: ROWS)
    config = CONFIG.replace("largest_epsilon = 1", "largest_work = 1")
    with opened(tmp_path, config) as curator:
        curator.price(request("two-sample", method, **PUBLIC), analyst="ada")


@pytest.mark.parametrize("rows", [500, 20_000, ROWS])
@pytest.mark.parametrize("about", [{}, {**PUBLIC, "groups": ["north", "rest"]}])
@pytest.mark.parametrize("epsilon", [0.001, 1])
def test_many_columns_are_not_too_long(tmp_path, monkeypatch, rows, about, epsilon):
    monkeypatch.setattr(curator_module, "rows_of", lambda *_: rows)
    names = [f"c{i}" for i in range(10)]
    schema = SCHEMA + "".join(
        f'[columns.{name}]\ntype = "numeric"\nbounds = [0, 1]\n' for name in names
    )
    document = {**request("two-sample", "mmd"), **about, "columns": names, "epsilon": epsilon}
    values: dict[str, Any] = {name: [0.5] * 40 for name in names}
    with opened(tmp_path, schema=schema, **values) as curator:
        curator.price(document, analyst="ada")


@pytest.mark.parametrize("rows", [0, 1, 2, 5])
def test_work_of_few_rows_is_counted(curator, monkeypatch, rows):
    monkeypatch.setattr(curator_module, "rows_of", lambda *_: rows)
    for about in ({}, PUBLIC):
        curator.price(request("two-sample", "mmd", **about), analyst="ada")


@pytest.mark.parametrize("analyst", ["eve", "", None, 3])
def test_unknown_analysts(curator, analyst):
    with pytest.raises(ParameterError, match="analyst must be one that the curator knows"):
        curator.run(request(), analyst=analyst)


def test_an_analyst_asks_only_about_their_own(tmp_path):
    text = CONFIG.replace('[analysts.bob]\ndatasets = ["people"]', "[analysts.bob]\ndatasets = []")
    with opened(tmp_path, text) as curator, pytest.raises(ParameterError, match="has no data set"):
        curator.run(request(), analyst="bob")


def test_tests_that_are_not_offered(tmp_path):
    text = CONFIG.replace("largest_epsilon = 1", 'tests = ["fit", "two-sample/mmd"]')
    with opened(tmp_path, text) as curator:
        with pytest.raises(ParameterError, match="two-sample/ks is not offered for people"):
            curator.run(request(), analyst="ada")
        curator.run(request("two-sample", "mmd", permutations=9), analyst="ada")


@pytest.mark.parametrize("options", [{"pvalue": len}, {"subtest": len}])
def test_code_is_refused(curator, options):
    with pytest.raises(ParameterError, match=r"runs no code of others|unknown key"):
        curator.run(request("two-sample", "tot", **PUBLIC, **options), analyst="ada")


def test_code_in_a_ready_request_is_refused(curator):
    code: dict[str, Any] = {"options": {"subtest": len}, "parts": PUBLIC}
    asked = Request("two-sample", "tot", Budget("0.1"), **code, dataset="people")
    with pytest.raises(ParameterError, match="runs no code of others"):
        curator.run(asked, analyst="ada")


def test_noise_is_no_parameter(curator, tmp_path):
    with pytest.raises(TypeError, match="noise"):
        curator.run(request(), analyst="ada", noise=SimulatedNoise(1))
    with pytest.raises(ParameterError, match="unknown key 'noise'"):
        curator.run(request(noise="simulated"), analyst="ada")
    assert spent(tmp_path) == 0


# --- budgets ---------------------------------------------------------------------------------


def test_budgets_end(curator, tmp_path, monkeypatch):
    for index in range(2):
        curator.run(request(epsilon=1, alpha=0.01 + index / 100), analyst="ada")
    looked: list[object] = []
    monkeypatch.setattr(curator_module, "made_up_rows", looked.append)
    with pytest.raises(BudgetError, match="analyst 'ada'") as refused:
        curator.run(request(epsilon="0.000001"), analyst="ada")
    assert refused.value.asked == {"epsilon": Decimal("0.000001"), "delta": 0}
    assert refused.value.left == {"epsilon": 0, "delta": Decimal("0.000001")}
    assert refused.value.missing == ("epsilon",)
    assert looked == []  # a request that cannot be paid costs no time either
    monkeypatch.undo()
    curator.run(request(epsilon=1), analyst="bob")
    with pytest.raises(BudgetError):
        curator.run(request(epsilon="0.000001"), analyst="bob")
    assert spent(tmp_path) == 3
    assert curator.run(request(epsilon=1), analyst="bob").recorded  # but that stays free


def test_reserving_has_the_last_word(curator, tmp_path, monkeypatch):
    # somebody else may have spent it between the question and the reservation
    for index in range(3):
        curator.run(request(epsilon=1, alpha=0.01 + index / 100), analyst="bob")
    monkeypatch.setattr(Ledger, "affords", lambda *_, **__: True)
    with pytest.raises(BudgetError):
        curator.run(request(epsilon=1), analyst="ada")
    assert spent(tmp_path) == 3


def test_the_price_touches_nothing(curator, tmp_path, untouchable, monkeypatch):
    monkeypatch.setattr(SecureNoise, "laplace", None)
    found = curator.price(request(epsilon="0.25", delta="1e-7"), analyst="ada")
    assert found.to_dict() == {
        "dataset": "people",
        "epsilon": 0.25,
        "delta": 1e-7,
        "part": None,
        "affordable": True,
        "recorded": False,
    }
    assert spent(tmp_path) == 0


def test_the_price_knows_the_record_and_the_budget(curator):
    curator.run(request(epsilon=1), analyst="ada")
    assert curator.price(request(epsilon=1), analyst="ada").recorded
    curator.run(request(epsilon=1, alpha=0.1), analyst="ada")
    assert not curator.price(request(epsilon=1, alpha=0.2), analyst="ada").affordable


def test_parts_are_charged_side_by_side(tmp_path):
    text = CONFIG.replace("delta = 1e-6", 'delta = 1e-6\npartition = "region"', 1)
    with opened(tmp_path, text) as curator:
        for part in ("north", "south"):
            document = request(epsilon=1, where={"region": part})
            assert curator.price(document, analyst="bob").part == part
            curator.run(document, analyst="bob")
        assert spent(tmp_path) == 1
        both = request(epsilon=1, where={"region": ["north", "south"]})
        assert curator.price(both, analyst="bob").part is None
        curator.run(both, analyst="bob")
        assert spent(tmp_path) == 2


def test_without_a_partition_filters_are_charged_to_all(curator, tmp_path):
    for part in ("north", "south"):
        curator.run(request(where={"region": part}), analyst="bob")
    assert spent(tmp_path) == Decimal("0.2")


def test_equal_requests(tmp_path):
    words = 'composition = "equal"\neach_epsilon = 0.1'
    text = CONFIG.replace("delta = 1e-6", words, 1).replace("delta = 1e-6\n", "")
    with opened(tmp_path, text) as curator:
        with pytest.raises(ParameterError, match=r"must cost epsilon = 0\.1"):
            curator.run(request(epsilon="0.2"), analyst="ada")
        curator.run(request(), analyst="ada")


def test_gaussian_noise_is_charged_as_such(tmp_path, monkeypatch):
    text = CONFIG.replace("delta = 1e-6", 'delta = 1e-6\ncomposition = "tight"', 1)
    entries: Any = METHODS["two-sample"]
    monkeypatch.setitem(entries, "ks", replace(entries["ks"], gaussian=True))
    with opened(tmp_path, text) as curator:
        curator.run(request(delta="1e-8"), analyst="ada")
        curator.run(request(), analyst="ada")  # without delta there is no such noise
        curator.run(request("two-sample", "kuiper", delta="1e-8"), analyst="ada")
        entries = curator._ledger.history("people")
    kinds = [entry.body["event"]["kind"] for entry in entries if entry.kind == "reserved"]
    assert kinds == ["approximate", "pure", "gaussian"]


# --- registration ----------------------------------------------------------------------------


def test_nothing_is_asked_of_what_is_not_registered(tmp_path):
    with Curator.open(write(tmp_path), create=True) as curator:
        assert "not registered" in (curator.not_ready("people") or "")
        with pytest.raises(ParameterError, match="privatest curator register people"):
            curator.run(request(), analyst="ada")
        found = curator.register("people")
        assert found.rows == 40
        assert curator.not_ready("people") is None
        with pytest.raises(ParameterError, match="dataset must be one"):
            curator.register("others")


def test_an_open_curator_notices_a_registration_elsewhere(curator, tmp_path):
    os.utime(tmp_path / "people.csv", ns=(1, 1))
    assert "has changed" in (curator.not_ready("people") or "")
    with Curator.open(tmp_path / "curator.toml") as other:
        other.register("people")
    assert curator.not_ready("people") is None
    curator.run(request(), analyst="ada")


@pytest.mark.parametrize(
    ("changes", "fragment"),
    [
        ({"plan": ["basic", "gold"] * 20}, "column 'plan'"),
        ({"age": [0.5] * 40}, "column 'age'"),
        ({"visits": [None] + [1.0] * 39}, "column 'visits'"),
        ({"visits": ["secret"] * 40}, "column 'visits'"),
    ],
)
def test_registration_shows_the_custodian_what_is_wrong(tmp_path, changes, fragment):
    with Curator.open(write(tmp_path, **changes), create=True) as curator:
        with pytest.raises(DataError, match=fragment):
            curator.register("people")
        with pytest.raises(ParameterError, match="not registered"):
            curator.run(request(), analyst="ada")


def test_a_changed_schema_is_refused(tmp_path):
    opened(tmp_path).close()
    changed = SCHEMA.replace("[0, 80]", "[0, 90]")
    (tmp_path / "people.toml").write_text(changed, encoding="utf-8")
    with Curator.open(tmp_path / "curator.toml") as curator:
        with pytest.raises(ParameterError, match="schema"):
            curator.run(request(), analyst="ada")
        with pytest.raises(ParameterError, match="schema of data set 'people' differs"):
            curator.register("people")
    commented = f"# the same\n{SCHEMA}"
    (tmp_path / "people.toml").write_text(commented, encoding="utf-8")
    with Curator.open(tmp_path / "curator.toml") as curator:
        curator.run(request(), analyst="ada")


def test_a_changed_budget_waits_for_the_custodian(tmp_path):
    opened(tmp_path).close()
    path = tmp_path / "curator.toml"
    path.write_text(CONFIG.replace("epsilon = 3", "epsilon = 0.05"), encoding="utf-8")
    with Curator.open(path) as curator:
        with pytest.raises(ParameterError, match="budgets of data set 'people'"):
            curator.run(request(epsilon="0.04"), analyst="ada")
        curator.register("people")
        curator.run(request(epsilon="0.04"), analyst="bob")
        with Curator.open(path) as other, pytest.raises(ParameterError, match="at most"):
            other.run(request(epsilon=2), analyst="bob")
    path.write_text(CONFIG.replace("epsilon = 2", "epsilon = 0.01"), encoding="utf-8")
    with Curator.open(path) as curator:
        assert "budgets" in (curator.not_ready("people") or "")
        curator.register("people")
        with pytest.raises(BudgetError):
            curator.run(request(), analyst="ada")


def test_a_lost_ledger_is_not_made_anew(tmp_path):
    opened(tmp_path).close()
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    for create in (False, True):
        with pytest.raises(LedgerError, match="The ledger is gone, though") as caught:
            Curator.open(tmp_path / "curator.toml", create=create)
        assert not isinstance(caught.value, LedgerMissing)  # it is not to be made anew
    assert not (tmp_path / "ledger.db").exists()


@pytest.mark.parametrize(
    "text", ["", "[]", '{"people": 3}', '{"people": {"rows": "x"}}', "[" * 9999]
)
def test_a_damaged_state_is_not_taken_for_none(tmp_path, text):
    opened(tmp_path).close()
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    state = tmp_path / "curator.state.json"
    state.write_text(text, encoding="utf-8")
    for create in (False, True):
        with pytest.raises(LedgerError, match=r"curator\.state\.json cannot be read.*put it back"):
            Curator.open(tmp_path / "curator.toml", create=create)
    assert not (tmp_path / "ledger.db").exists()
    assert state.read_text(encoding="utf-8") == text


def test_a_state_that_cannot_be_opened_is_not_taken_for_none(tmp_path):
    path = write(tmp_path)
    (tmp_path / "curator.state.json").mkdir()  # fails for everybody, the superuser too
    with pytest.raises(LedgerError, match="cannot be read"):
        Curator.open(path, create=True)
    assert not (tmp_path / "ledger.db").exists()


def test_registering_does_not_overwrite_a_damaged_state(curator, tmp_path):
    state = tmp_path / "curator.state.json"
    damaged = state.read_text(encoding="utf-8")[:-9]
    state.write_text(damaged, encoding="utf-8")
    with pytest.raises(LedgerError, match="cannot be read"):
        curator.register("people")
    assert state.read_text(encoding="utf-8") == damaged
    state.unlink()  # what the message says where there is no copy
    curator.register("people")
    assert load_registrations(state).keys() == {"people"}


def test_files_of_the_curator_are_its_owners_alone(curator, tmp_path, monkeypatch):
    monkeypatch.setattr(curator_module, "answer_from_rows", lambda *_: 1 / 0)
    with pytest.raises(RequestFailed):
        curator.run(request(), analyst="ada")
    for name in ("curator.state.json", "curator.log", "ledger.db"):
        assert (tmp_path / name).stat().st_mode & 0o077 == 0


def test_made_up_rows_have_the_public_sizes(curator, tmp_path):
    dataset = curator.config.datasets["people"]
    found = register(dataset, "key")
    rows = made_up_rows(found, dataset.schema)
    assert rows.column("region").value_counts().to_pylist() == [
        {"values": "north", "counts": 20},
        {"values": "south", "counts": 16},
        {"values": "west", "counts": 4},
    ]
    dataset.schema.encode(rows)  # they fit the schema
    assert rows.equals(made_up_rows(found, dataset.schema))
    assert not rows.column("visits").equals(table().column("visits"))


def test_made_up_rows_know_only_sizes(tmp_path):
    # data that differs in everything private is rehearsed on the same rows
    rows = []
    others: dict[str, Any] = {"visits": [7.0] * 40, "plan": ["plus"] * 40}
    for index, changes in enumerate(({}, others)):
        folder = tmp_path / str(index)
        folder.mkdir()
        with opened(folder, **changes) as curator:
            dataset = curator.config.datasets["people"]
            rows.append(made_up_rows(register(dataset, "key"), dataset.schema))
    assert rows[0].equals(rows[1])


# --- failures --------------------------------------------------------------------------------


def test_a_failure_after_reservation_is_spent(curator, tmp_path, monkeypatch):
    def fail(*_: object) -> None:
        raise ValueError("row 17 holds 8675309")

    monkeypatch.setattr(curator_module, "answer_from_rows", fail)
    with pytest.raises(RequestFailed) as caught:
        curator.run(request(), analyst="ada")
    assert str(caught.value) == (
        "The request failed, and nothing was released; its budget is spent. "
        f"The custodian finds the reason by its id, {caught.value.id}."
    )
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert spent(tmp_path) == Decimal("0.1")
    log = (tmp_path / "curator.log").read_text()
    assert f"id={caught.value.id}" in log
    assert "ValueError at curator.py:" in log
    assert "8675309" not in log
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.history("people")[0].kind == "failed"
        assert ledger.unfinished("people") == []
    monkeypatch.undo()
    assert not curator.run(request(), analyst="ada").recorded  # a failure is no answer
    assert spent(tmp_path) == Decimal("0.2")


def test_a_fault_in_rehearsal_costs_nothing(curator, tmp_path, monkeypatch):
    monkeypatch.setattr(Prepared, "run", lambda *_, **__: 1 / 0)
    with pytest.raises(RequestFailed, match="nothing was spent"):
        curator.run(request(), analyst="ada")
    assert spent(tmp_path) == 0
    assert "ZeroDivisionError" in (tmp_path / "curator.log").read_text()


def test_nothing_leaves_without_a_record(curator, tmp_path, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise LedgerError("the disk is full")

    monkeypatch.setattr(Ledger, "commit", fail)
    monkeypatch.setattr(Ledger, "fail", fail)
    with pytest.raises(RequestFailed, match="its budget is spent"):
        curator.run(request(), analyst="ada")
    monkeypatch.undo()
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert len(ledger.unfinished("people")) == 1
    assert spent(tmp_path) == Decimal("0.1")


def test_a_log_that_cannot_be_written_changes_no_message(curator, tmp_path, monkeypatch):
    (tmp_path / "curator.log").mkdir()
    monkeypatch.setattr(curator_module, "answer_from_rows", lambda *_: 1 / 0)
    with pytest.raises(RequestFailed, match="its budget is spent"):
        curator.run(request(), analyst="ada")


@pytest.mark.parametrize("change", ["rows", "time"])
def test_a_file_that_changes_in_between_fails(curator, tmp_path, monkeypatch, change):
    from privatest.data.files import read_table

    def swapped(*arguments: object, **options: object) -> pa.Table:
        found = read_table(*arguments, **options)  # type: ignore[arg-type]
        if change == "time":
            os.utime(tmp_path / "people.csv", ns=(1, 1))
        return found if change == "time" else found.slice(1)

    monkeypatch.setattr("privatest.data.files.read_table", swapped)
    with pytest.raises(RequestFailed):
        curator.run(request(), analyst="ada")
    assert "DataError" in (tmp_path / "curator.log").read_text()


def test_a_test_that_spends_more_than_its_price_releases_nothing(curator, monkeypatch):
    real, calls = Prepared.run, []

    def dear(self: Prepared, *tables: pa.Table, noise: SecureNoise) -> Any:
        result: Any = real(self, *tables, noise=noise)
        calls.append(1)
        return result if len(calls) == 1 else replace(result, spent=Budget(1))

    monkeypatch.setattr(Prepared, "run", dear)
    with pytest.raises(RequestFailed):
        curator.run(request(), analyst="ada")


# --- no data makes a test fail ----------------------------------------------------------------

ENTRIES = [(question, name) for question, methods in METHODS.items() for name in methods]
EXTREMES = {
    "all equal": {"visits": [0.0] * 40, "age": [0] * 40, "plan": ["basic"] * 40},
    "all at the other end": {"visits": [80.0] * 40, "age": [120] * 40, "plan": ["plus"] * 40},
    "beyond": {"visits": [1e300, -1e300] * 20, "age": [-(10**15)] * 40},
    "one apart": {"visits": [80.0] + [0.0] * 39, "plan": ["plus"] + ["basic"] * 39},
}


def asked(question: str, method: str) -> Request:
    entry = METHODS[question][method]
    private = {"group": "plan", "columns": ["region" if method == "tv" else "visits"]}
    parts: dict[str, dict[str, Any]] = {
        "two-sample": PUBLIC if entry.public_groups else private,
        "independence": {"x": ["age"], "y": ["visits"]},
        "paired": {"before": "visits", "after": "age"},
        "fit": {"column": "visits"},
        "mean": {"columns": ["visits", "age"]},
        "release": {"columns": ["visits", "plan"], "delta": 1e-6},
    }
    target = {"distribution": {"dist": "norm(40, 10)"}, "family": {"family": "norm"}}
    if question == "mean" and entry.one_column:
        parts["mean"] = {"columns": ["visits"]}
    if entry.categorical:
        parts["independence"] = {"x": ["plan"], "y": ["region"]}
        parts["fit"] = {"column": "plan", "shares": "equal"}
    if entry.part == "given":
        parts["independence"] |= {"given": ["plan"]}
    few: dict[str, Any] = {"permutations": 19} if "permutations" in entry.options else {}
    few |= {"locations": 3} if "locations" in entry.needed else {}
    few |= {"low": -1, "high": 1} if "low" in entry.needed else {}
    few |= {"points": 5} if "points" in entry.options else {}
    few |= {"columns": ["visits"], "success": 80} if entry.outcomes else {}
    return Request.from_dict(
        {"dataset": "people", "question": question, "method": method, "epsilon": 1}
        | parts[question]
        | few
        | (target.get(method, {}) if question == "fit" else {})
    )


def test_answers_take_constant_time_paths(curator, monkeypatch):
    admitted = admit(asked("paired", "sign"), curator.config.datasets["people"])
    sources, run = [], type(admitted).run

    def spy(self, table, *, noise, **options):
        sources.append(noise)
        return run(self, table, noise=noise, **options)

    monkeypatch.setattr(type(admitted), "run", spy)
    answering.run_privately(admitted, table())
    assert [type(noise) for noise in sources] == [SecureNoise]
    assert sources[0].constant_time


@pytest.mark.parametrize(("question", "method"), ENTRIES)
def test_no_data_makes_a_test_fail(curator, question, method):
    # whether a request fails would tell something: an empty private group, for example
    dataset = replace(curator.config.datasets["people"], policy=Policy(ALL_TESTS))
    admitted = admit(asked(question, method), dataset)
    for changes in EXTREMES.values():
        answering.run_privately(admitted, table(**changes))
