"""Whether there is an answer, and how long it takes, must not depend on values.

A hostile analyst chooses the parameters. Each case here told two neighbours apart for free, or is
a cousin of one that did. Times of neighbours are compared in benchmarks/privacy/oracles.py; here
is what can be decided without a clock.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from privatest.closed_forms import CLOSED_FORMS
from privatest.curator import Inquiry, answering
from privatest.curator.inquiry import admit
from privatest.curator.registration import made_up_rows
from privatest.domain import Domain
from privatest.errors import ParameterError, PrivatestError
from privatest.kernels import Kernel, gram, grams, kernel_grid
from privatest.reference_cdf import read_cdf
from privatest.schema import Schema
from privatest.statistics.families import BUILT_IN
from tests.curators import CONFIG, SCHEMA, opened, request, table

pytestmark = pytest.mark.privacy

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
    monkeypatch.setattr("privatest.reference_cdf._probe", None)  # nor is it tried out: it may take
    for ask in (curator.price, curator.run):
        with pytest.raises(ParameterError, match="a curator takes"):
            ask(document, analyst="bob")


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
    shape = f"({CLOSED_FORMS[name].shape}=2)" if CLOSED_FORMS[name].shape else ""
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
            answering.quietly(admitted, Schema.from_text(SCHEMA), table(**changes))
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
        admitted = admit(Inquiry.from_dict(document), dataset)
        schema = dataset.schema.select(admitted.names)
        answering.quietly(admitted, schema, made_up_rows(curator._registrations["people"], schema))
    except PrivatestError:
        return  # refused, for all data
    assert outcomes(admitted) == {"answered"}


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
