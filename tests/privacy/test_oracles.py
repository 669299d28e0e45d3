"""Whether there is an answer, and how long it takes, must not depend on values.

A hostile analyst chooses the parameters. Each case here told two neighbours apart for free, or is
a cousin of one that did. Times of neighbours are compared in benchmarks/privacy/oracles.py; here
is what can be decided without a clock.
"""

from __future__ import annotations

import cProfile
import gc
import pstats
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privatest.core.errors import ParameterError, PrivacyError, PrivatestError
from privatest.curator import config
from privatest.curator import curator as answering
from privatest.curator.admission import admit
from privatest.curator.registration import made_up_rows
from privatest.data.files import read_table
from privatest.data.schema import Domain, Schema
from privatest.methods import mean_inference as inference
from privatest.methods import mmd as mmd_plan
from privatest.methods import proportions
from privatest.methods import proportions as binomial
from privatest.methods import regression as linear
from privatest.methods import tables as contingency
from privatest.methods import tables as tables_fit
from privatest.methods.correlation import RankInterval
from privatest.methods.fit_families import BUILT_IN
from privatest.methods.ks import CLOSED_FORMS, read_cdf
from privatest.methods.proportions import PrivateShares
from privatest.methods.quantiles import Curve
from privatest.noise import SimulatedNoise
from privatest.numerics.kernels import Kernel, gram, grams, kernel_grid
from privatest.requests.catalogue import METHODS
from privatest.requests.request import Request
from privatest.synthetic import tables_fit as synthetic_fit
from tests.curators import CONFIG, opened, request, table

PUBLIC = {"group": "region", "groups": ["north", "south"], "columns": ["visits"]}


@pytest.fixture
def curator(tmp_path):
    with opened(tmp_path) as found:
        yield found


# --- only what takes the same steps for all values ----------------------------------------------

UNSTEADY = [
    # seconds for a value just above its location, nothing elsewhere
    request("fit", "distribution", column="visits", dist="ksone(100, loc=70.4995, scale=1)"),
    # memory by the value: one neighbour answers, the other does not
    request("fit", "distribution", column="visits", dist="betabinom(50, 1, 1, loc=20)"),
    request("fit", "distribution", column="visits", dist="gamma(2, scale=3)"),
    request("fit", "distribution", column="visits", dist="poisson(3)"),
    request("two-sample", "tot", **PUBLIC, subtest="spearmanr"),
    request("two-sample", "tot", **PUBLIC, subtest="anderson_ksamp"),
    request("two-sample", "sarrm", **PUBLIC, subtest="ks_2samp"),
    request("independence", "tot", x=["age"], y=["visits"], subtest="kendalltau"),
]


@pytest.mark.parametrize("document", UNSTEADY, ids=lambda d: str(d.get("dist") or d["subtest"]))
def test_a_curator_refuses_what_takes_its_time_from_values(curator, document, monkeypatch):
    # nor is it tried out: it may take long
    monkeypatch.setattr("privatest.methods.ks._probe", None)
    for ask in (curator.price, curator.run):
        with pytest.raises(ParameterError, match="a curator takes"):
            ask(document, analyst="bob")


def test_drawing_axes_is_offered_only_by_name(tmp_path):
    asked = request("two-sample", "hotelling", **{**PUBLIC, "columns": ["visits", "age"]})
    for folder, tests in enumerate(('["two-sample"]', '["two-sample/hotelling"]')):
        (tmp_path / str(folder)).mkdir()
        changed = CONFIG.replace("largest_epsilon = 1", f"tests = {tests}")
        with opened(tmp_path / str(folder), changed) as curator:
            if folder:
                curator.price(asked, analyst="bob")
                continue
            with pytest.raises(ParameterError, match="two-sample/hotelling is not offered"):
                curator.price(asked, analyst="bob")


def test_fitting_a_family_is_offered_only_by_name(tmp_path):
    asked = request("fit", "family", column="visits", family="norm")
    for folder, tests in enumerate((None, '["fit"]', '["fit/family"]')):
        line = "" if tests is None else f"tests = {tests}"
        (tmp_path / str(folder)).mkdir()
        with opened(tmp_path / str(folder), CONFIG.replace("largest_epsilon = 1", line)) as curator:
            if tests == '["fit/family"]':
                curator.run(asked, analyst="bob")
                with pytest.raises(ParameterError, match=f"takes {', '.join(BUILT_IN)}"):
                    curator.price({**asked, "family": "kstwobign"}, analyst="bob")
                continue
            with pytest.raises(ParameterError, match="fit/family is not offered"):
                curator.price(asked, analyst="bob")


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_a_curator_takes_every_closed_form(curator, name):
    shape = f"({CLOSED_FORMS[name].shape}=2)" if CLOSED_FORMS[name].shape else "(0, 1)"
    document = request("fit", "distribution", column="visits", dist=f"{name}{shape}")
    assert 0 < curator.run(document, analyst="bob").result.pvalue <= 1


def test_a_failing_function_changes_one_probability():
    """In the library a distribution may be any function; neighbours still differ in one record."""

    def fragile(x: Any) -> Any:
        if np.any(x == 7.25):
            raise MemoryError
        return np.clip(x / 10, 0, 1)

    reference = read_cdf(fragile)
    values = np.linspace(0, 10, 50)
    _, before = reference.limits(values)
    values[17] = 7.25
    _, after = reference.limits(values)
    assert np.flatnonzero(before != after).tolist() == [17]


# --- the same calls for neighbours ---------------------------------------------------------------

PARTS: dict[str, dict[str, Any]] = {
    "two-sample": {"group": "plan", "columns": ["visits"]},
    "independence": {"x": ["age"], "y": ["visits"]},
    "paired": {"before": "visits", "after": "age"},
    "fit": {"column": "visits", "dist": "norm(40, 1e-6)"},
    "mean": {"columns": ["visits", "age"]},
    "release": {"columns": ["visits", "age"], "delta": 1e-6, "points": 5},
}
SAME: dict[str, list[Any]] = {"visits": [0.0] * 39, "age": [0] * 39, "plan": ["basic"] * 39}
# a value that nobody else has is looked up in the categories: about a microsecond
LOOKED_UP = ("code_of", "spelling")


def offered(question: str, method: str) -> dict[str, Any]:
    entry = METHODS[question][method]
    parts = PUBLIC if entry.public_groups and question == "two-sample" else PARTS[question]
    parts = parts | ({"columns": ["region"]} if method == "tv" else {})
    options = {"permutations": 19} if "permutations" in entry.options else {}
    options |= {"locations": 3} if "locations" in entry.needed else {}
    options |= {"low": -1, "high": 1} if "low" in entry.needed else {}
    options |= {"success": 80} if entry.outcomes else {}
    parts = parts | ({"columns": ["visits"]} if entry.outcomes else {})
    if question == "mean" and entry.one_column:
        parts = {"columns": ["visits"]}
    if entry.categorical:
        one = question == "fit"
        parts = {"column": "plan", "shares": "equal"} if one else {"x": ["plan"], "y": ["region"]}
    return request(question, method, **parts, **options, epsilon=1)


def calls(run: Callable[[], object]) -> dict[tuple[str, str], int]:
    """How often each function is called. The noise is the same for both neighbours."""
    profile = cProfile.Profile()
    gc.disable()  # its callbacks, such as that of Hypothesis, come at any time
    try:
        for _ in range(2):  # the first run fills caches
            profile.clear()
            with suppress(PrivacyError):  # the end: such noise is not released
                profile.runcall(run)
    finally:
        gc.enable()
    found: Any = pstats.Stats(profile)
    return {
        (file, name): count[1]
        for (file, _, name), count in found.stats.items()
        if not file.startswith(("~", "<")) and name not in LOOKED_UP  # nor Python's own
    }


@pytest.mark.parametrize(
    ("question", "method"),
    sorted(config.USUAL_TESTS),
)
def test_neighbours_take_the_same_calls(curator, monkeypatch, question, method):
    """No path of the program depends on one row: not on an empty group, a bound or a tie.

    What is done with the noisy result may depend on it; with the same noise it hardly does.
    """
    monkeypatch.setattr(answering, "SecureNoise", lambda **care: SimulatedNoise(7, **care))

    def at_the_fit(*_: Any, **__: Any) -> None:
        raise PrivacyError("all is measured: what follows sees noisy tables only")

    monkeypatch.setattr(synthetic_fit, "fit_mixture", at_the_fit)
    monkeypatch.setattr(binomial, "_interval", at_the_fit)
    monkeypatch.setattr(inference, "t_pvalue", at_the_fit)
    monkeypatch.setattr(RankInterval, "__call__", at_the_fit)
    monkeypatch.setattr(PrivateShares, "pvalue", at_the_fit)
    monkeypatch.setattr(proportions, "equivalence", at_the_fit)
    monkeypatch.setattr(Curve, "interval", at_the_fit)
    for interval in ("CorrelationInterval", "SlopeInterval"):
        monkeypatch.setattr(linear, interval, at_the_fit)
    monkeypatch.setattr(contingency, "association_ends", at_the_fit)
    for module in (contingency, tables_fit):
        monkeypatch.setattr(module, "cell_intervals", at_the_fit)
    dataset = curator.config.datasets["people"]
    assert_same_calls(admit(Request.from_dict(offered(question, method)), dataset))


@pytest.mark.parametrize("many", [False, True])
def test_private_groups_by_features_take_the_same_calls(curator, monkeypatch, many):
    """As with more rows than the exact kernel is for, and as with a million rows."""
    monkeypatch.setattr(answering, "SecureNoise", lambda **care: SimulatedNoise(7, **care))
    monkeypatch.setattr(mmd_plan, "_MANY_ROWS", 10 if many else 10**6)
    options = {"computation": "nystrom", "permutations": 19, "epsilon": 1}
    asked = request("two-sample", "mmd", **PARTS["two-sample"], **options)
    dataset = curator.config.datasets["people"]
    assert_same_calls(admit(Request.from_dict(asked), dataset))


def assert_same_calls(admitted: Any) -> None:
    """Answer for two neighbours: one of them has an empty group."""
    counts = []
    for visits, age, plan in ((80.0, 120, "plus"), (0.0, 0, "basic")):
        own: dict[str, list[Any]] = {"visits": [visits], "age": [age], "plan": [plan]}
        rows = table(**{name: own[name] + rest for name, rest in SAME.items()})
        pieces = pa.concat_tables([rows.slice(0, 10), rows.slice(10)])  # as large files come
        counts.append(calls(partial(answering.run_privately, admitted, pieces)))
    first, second = counts
    assert {k: (first.get(k), second.get(k)) for k in first.keys() ^ second.keys()} == {}
    assert {k: (v, second[k]) for k, v in first.items() if v != second[k]} == {}


def test_a_missing_value_takes_the_same_calls():
    schema = Schema.from_text(
        '[columns.a]\ntype = "numeric"\nbounds = [0, 1]\nmissing = 0.5\n'
        '[columns.b]\ntype = "categorical"\ncategories = ["x", "y"]\nmissing = "y"\n'
    )
    full = pa.table({"a": [0.25] * 9, "b": ["x", "y", "y"] * 3})
    gaps = pa.table({"a": [*[0.25] * 8, None], "b": [*["x", "y", "y"] * 2, "x", "y", None]})
    encoded = schema.encode(gaps)
    assert encoded[-1].tolist() == [0.5, 1.0]
    assert calls(lambda: schema.encode(full)) == calls(lambda: schema.encode(gaps))


@pytest.mark.parametrize(
    "last",
    ['3,"o k"', "3.5,ok", '"3",ok'],
    ids=["a quoted note", "a number that is not whole", "a quoted number"],
)
def test_reading_a_registered_file_takes_the_same_calls(tmp_path, last):
    """A second pass over a file with a quote took half as long again as the answer."""
    texts = {}
    for name, end in (("plain", "3,ok"), ("other", last)):
        texts[name] = tmp_path / f"{name}.csv"
        texts[name].write_text("visits,note\n" + "1,ok\n" * 50 + end + "\n")
    first, second = (
        calls(partial(read_table, path, ["visits"], registered=True)) for path in texts.values()
    )
    assert first == second
    assert calls(partial(read_table, texts["other"], ["visits"])) != first


# --- hostile parameters ------------------------------------------------------------------------

NUMBERS = [5e-324, 1e-300, 1e-150, 1e-50, 0.0367, 1e10, 1e150, 1e300, 10**400, 0, -1, True]
LOCATIONS = [1, 10**9, 10**400, [1e308], [-1e308, 1e308], [5e-324], [0.0] * 100, [10**400], ["a"]]
HOSTILE: list[dict[str, Any]] = [
    *(
        request("two-sample", method, **about, bandwidths=[value], permutations=19)
        for value in NUMBERS
        for method, about in (("mmd", {}), ("me-permutation", {**PUBLIC, "locations": 3}))
    ),
    *(
        request("two-sample", method, **PUBLIC, locations=3, bandwidths=[value])
        for value in NUMBERS
        for method in ("me", "scf", "scf-permutation")
    ),
    *(
        request("two-sample", method, **PUBLIC, locations=value)
        for value in LOCATIONS
        for method in ("me", "scf")
    ),
    *(
        request("independence", "hsic", x=["age"], y=["visits"], bandwidths=[v], permutations=9)
        for v in NUMBERS
    ),
    *(
        request("fit", "distribution", column="visits", dist=f"{name}({shape}{loc}, {scale})")
        for name, shape in (("norm", ""), ("cauchy", ""), ("lognorm", "0.01, "))
        for loc, scale in ((0, 5e-324), (79.99, 1e-300), (1e308, 1e-308), (-1e308, 1e308))
    ),
]
EXTREMES: list[dict[str, Any]] = [
    {},
    {"visits": [0.0] * 40, "age": [0] * 40, "plan": ["basic"] * 40},
    {"visits": [80.0] * 40, "age": [120] * 40, "plan": ["plus"] * 40},
    {"visits": [80.0] + [0.0] * 39, "age": [120] + [0] * 39, "plan": ["plus"] + ["basic"] * 39},
    {"visits": [40.0] + [0.0] * 39, "age": [60] + [0] * 39},  # the middle of the box
    {"visits": [5e-324] + [0.0] * 39},
]


def outcomes(admitted: Any) -> set[str]:
    """What becomes of a request on each data set."""
    found = set()
    for changes in EXTREMES:
        try:
            answering.run_privately(admitted, table(**changes))
            found.add("answered")
        except Exception as error:
            found.add(type(error).__name__)
    return found


def words(document: dict[str, Any]) -> str:
    extra = {k: v for k, v in document.items() if k in ("bandwidths", "locations", "dist")}
    return f"{document['method']}-{extra}"[:60]


@pytest.mark.parametrize("document", HOSTILE, ids=words)
def test_no_parameter_makes_failing_depend_on_values(curator, document):
    dataset = curator.config.datasets["people"]
    try:
        admitted = admit(Request.from_dict(document), dataset)
        schema = dataset.schema.select(admitted.reads)
        answering.run_privately(admitted, made_up_rows(curator._registrations["people"], schema))
    except PrivatestError:
        return  # refused, for all data
    assert outcomes(admitted) == {"answered"}


def test_not_all_hostile_parameters_are_refused(curator):
    """Otherwise the test above would say nothing."""
    dataset, admitted = curator.config.datasets["people"], 0
    for document in HOSTILE:
        with suppress(PrivatestError):
            admit(Request.from_dict(document), dataset)
            admitted += 1
    assert admitted > 30


# --- subnormal numbers take longer ----------------------------------------------------------------


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("categories", [0, 3])
def test_no_kernel_value_is_subnormal(family, categories):
    levels = (0, 0, *[4] * categories)
    rng = np.random.default_rng(1)
    numeric = np.concatenate([rng.random((60, 2)), np.linspace(0, 1, 240).reshape(-1, 2)])
    rows = np.hstack([numeric, rng.integers(4, size=(len(numeric), categories))])
    domain = Domain(levels)
    least = np.finfo(np.float64).tiny / np.finfo(np.float64).eps ** 2  # sums with weights too
    grid = kernel_grid(family, list(np.geomspace(1e-3, 1, 41)), domain)
    halving = kernel_grid(family, [0.5**k for k in range(12)], domain)
    alone = tuple(gram(kernel, rows, rows, domain).copy() for kernel in grid)
    for matrix in (*alone, *(m.copy() for m in grams(halving, rows, rows, domain))):
        assert matrix.min() > least
    # and where nothing is small, nothing has changed
    narrow = Kernel(family, 1e-3)
    np.testing.assert_array_equal(np.diag(gram(narrow, rows, rows, domain)), 1.0)
