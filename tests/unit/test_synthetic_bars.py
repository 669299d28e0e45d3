"""Estimates from what was measured: bars, limits, conditions, groups, correlations, regressions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.synthetic import Estimate, SyntheticData, release
from privatest.synthetic.answers import Facts, honest_error, normal_maximum
from privatest.synthetic.embedding import leaders, nearest, probe_places
from privatest.synthetic.table_means import TrackedColumns
from privatest.synthetic.tables import Measurement

SCHEMA = Schema(
    {
        "x": NumericColumn(0, 10),
        "visits": NumericColumn(0, 8, integer=True),
        "plan": CategoricalColumn(("a", "b", "c")),
    }
)
RNG = np.random.default_rng(0)
N = 4000
PLAN = RNG.choice(3, size=N, p=[0.5, 0.3, 0.2])
DATA = {
    "x": np.clip(RNG.normal(4 + PLAN, 1.5), 0, 10),
    "visits": np.minimum(RNG.poisson(2 + PLAN), 8),
    "plan": np.array([*"abc"])[PLAN],
}


def made(method: str, columns: tuple[str, ...] = ("x", "visits", "plan"), **options: Any) -> Any:
    settings: dict[str, Any] = {"epsilon": 2, "delta": 1e-6, "rng": 0, "n_points": 300}
    settings |= {"noise": SimulatedNoise(0), "method": method} | options
    rows = {name: DATA[name] for name in columns}
    return release(rows, bounds=SCHEMA.select(columns), **settings)


@pytest.fixture(scope="module")
def tables() -> SyntheticData:
    found: SyntheticData = made("tables")
    return found


@pytest.fixture(scope="module")
def subspace() -> SyntheticData:
    found: SyntheticData = made("subspace", ("x", "plan"))
    return found


def within(estimate: Estimate, truth: float, errors: float = 4.0) -> bool:
    """Whether a bar, made longer, or the limits hold the truth."""
    if estimate.limits is not None:
        return estimate.limits[0] <= truth <= estimate.limits[1]
    return abs(estimate.value - truth) <= errors * estimate.error


# --- the arithmetic of bars ------------------------------------------------------------------


@pytest.mark.parametrize("unseen", [0.0, 0.3, 0.9, 2.0, 50.0])
def test_bars_cover_the_worst_bias(unseen):
    """At nominal .95, by the normal law: exactly at the worst bias, more at any other."""
    error = float(honest_error(np.ones(1), np.array([unseen]))[0])
    for bias, least in ((unseen, 0.95), (unseen / 2, 0.95), (0.0, 0.95)):
        covered = (
            math.erf((1.959964 * error - bias) / math.sqrt(2))
            + math.erf((1.959964 * error + bias) / math.sqrt(2))
        ) / 2
        assert covered >= least - 1e-4
        if bias == unseen:
            assert covered == pytest.approx(0.95, abs=1e-3)
        if unseen <= 0.9:
            assert covered <= 0.9905  # such bars are shown


def test_simultaneous_bars():
    assert normal_maximum(np.zeros((3, 2))) == pytest.approx(1.96, abs=1e-3)
    assert normal_maximum(np.ones((3, 5))) == pytest.approx(1.96, abs=0.05)  # one and the same
    assert normal_maximum(np.eye(10)) == pytest.approx(2.80, abs=0.05)  # .95^(1/10): 2.80


def test_leaders_are_apart():
    domain = SCHEMA.select(["x", "plan"]).domain
    rows = np.array([[0.0, 0], [0.01, 0], [0.5, 0], [0.5, 1]])
    chosen, owner = leaders(rows, domain, 0.1)
    assert len(chosen) == 3  # the first two stand for the same people; categories do not
    assert owner[0] == owner[1] != owner[2] != owner[3]
    assert nearest(np.array([[0.02, 0.0]]), chosen, domain).shape == (1, 2)


def test_probes_are_at_bounds_and_at_the_numbers_of_a_question():
    schema = SCHEMA.select(["x", "visits"])
    rows = np.array([[0.3, 0.5]])
    places = probe_places(rows, schema.domain, schema, 0.1, {"x": [5.0]})
    assert {0.0, 1.0, 0.5} <= set(places[:, 0])
    assert np.allclose(places[:, 1] * 8, np.rint(places[:, 1] * 8))  # integers stay integers
    assert places.min() >= 0
    assert places.max() <= 1
    corners = {(float(a), float(b)) for a, b in places if a in (0, 1) and b in (0, 1)}
    assert len(corners) == 4


def test_columns_that_were_used():
    watched = TrackedColumns({"a": np.arange(3), "b": np.arange(3)})
    assert len(next(iter(watched.values()))) == 3
    assert "b" in watched
    assert watched["a"][1] == 1
    assert watched.used == {"a"}


# --- what was measured -----------------------------------------------------------------------


def test_shares_of_cells_have_the_noise_of_the_counts(tables):
    """A category's share: the table's own count, and the margins of pairs, averaged."""
    share = tables.probability("plan == 'b'")
    alone = next(table for table in tables.measured if table.columns == ("plan",))
    own = alone.sigma / N * math.sqrt(2 / 3)  # the total is known
    assert 0 < share.error <= own * 1.001
    assert share.limits is None
    assert within(share, float(np.mean(DATA["plan"] == "b")))
    assert share.sampling == pytest.approx(math.sqrt(0.3 * 0.7 / N), rel=0.1)


def test_measured_means_have_bars(tables):
    mean = tables.mean("x")
    assert math.isfinite(mean.error)
    assert within(mean, float(DATA["x"].mean()))
    assert within(tables.mean("visits"), float(DATA["visits"].mean()))


def test_conditions_within_a_bin_have_limits(tables):
    """Bins of x are multiples of 10/128: nothing is known between two of them."""
    at = tables.probability("x > 5")
    inside = tables.probability("x > 5.03")
    assert inside.limits is not None
    assert "bins" in inside.reason
    assert math.isnan(inside.error)
    assert within(at, float(np.mean(DATA["x"] > 5)))
    assert within(inside, float(np.mean(DATA["x"] > 5.03)))


def test_three_columns_were_never_measured_together(tables):
    found = tables.probability("x > 5 and plan == 'a' and visits == 1")
    assert math.isnan(found.error)
    assert found.limits == (0.0, 1.0)
    assert found.reason.startswith("these columns were not measured together")


@pytest.mark.parametrize("kind", ["tables", "subspace"])
def test_questions_are_answered(kind, request):
    release_: SyntheticData = request.getfixturevalue(kind)
    inside = DATA["plan"] == "b"
    truth = {name: DATA["x"][DATA["plan"] == name].mean() for name in "abc"}
    assert within(release_.mean("x", where="plan == 'b'"), truth["b"])
    groups = release_.by("plan", "x")
    assert list(groups) == ["a", "b", "c"]
    for name, estimate in groups.items():
        assert within(estimate, truth[name])
    shares = release_.by("plan", "x > 5")
    assert within(shares["b"], float(np.mean(DATA["x"][inside] > 5)))
    assert within(release_.quantile("x", 0.5), float(np.median(DATA["x"])))
    assert within(
        release_.quantile("x", 0.5, where="plan == 'b'"), float(np.median(DATA["x"][inside]))
    )
    slopes = release_.regression("x", ["plan"])
    assert list(slopes) == ["intercept", "plan == b", "plan == c"]
    assert within(slopes["intercept"], truth["a"])
    assert within(slopes["plan == c"], truth["c"] - truth["a"])


def test_correlations_and_regressions_of_numbers():
    rows = made("subspace", ("x", "visits"), epsilon=5)
    truth = float(np.corrcoef(DATA["x"], DATA["visits"])[0, 1])
    assert within(rows.correlation("x", "visits"), truth)
    slope, intercept = np.polyfit(DATA["visits"], DATA["x"], 1)
    found = rows.regression("x", ["visits"])
    assert within(found["visits"], slope)
    assert within(found["intercept"], intercept)
    assert rows.correlation("x", "x").value == pytest.approx(1)


def test_a_regression_on_integers_measured_with_their_products(tables):
    """Squares turn at the mean of the integers, which is none: only integers are evaluated."""
    slope, intercept = np.polyfit(DATA["visits"], DATA["x"], 1)
    found = tables.regression("x", ["visits"])
    assert within(found["visits"], slope)
    assert within(found["intercept"], intercept)


def test_groups_hold_together(tables):
    """Bars of three groups are longer than those of one, by less than Bonferroni's factor."""
    alone = [tables.probability("visits <= 2", where=f"plan == '{name}'") for name in "abc"]
    groups = tables.by("plan", "visits <= 2")
    for one, estimate in zip(alone, groups.values(), strict=True):
        if one.limits is None and estimate.limits is None:
            assert 1.15 < estimate.error / one.error < 2.394 / 1.96 + 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: r.by("x", "visits"), "does not make groups"),
        (lambda r: r.by("gone", "visits"), "no column"),
        (lambda r: r.mean("x", where="gone > 1"), "no column 'gone'"),
        (lambda r: r.correlation("x", "plan"), "categories"),
        (lambda r: r.regression("x", []), "at least one column"),
        (lambda r: r.regression("x", "plan"), "a list"),
        (lambda r: r.regression("x", ["x"]), "only once"),
        (lambda r: r.write("a.xls"), "must end in"),
    ],
)
def test_bad_questions(tables, call, message):
    with pytest.raises(ParameterError, match=message):
        call(tables)


def test_a_function_that_fails_elsewhere_has_no_bar(subspace):
    kept = subspace.columns["x"]
    found = subspace.mean(lambda columns: np.where(len(columns["x"]) == len(kept), kept, np.nan))
    assert math.isnan(found.error)
    assert "could not be computed" in found.reason


def test_releases_without_coefficients_answer_too(subspace):
    bare = SyntheticData(
        subspace.columns,
        subspace.nonnegative().weights,
        subspace.nonnegative().draws,
        subspace.facts,
    )
    assert bare.source is None
    assert bare.mean("x", where="plan == 'b'").error > 0
    assert list(bare.by("plan", "x")) == ["a", "b", "c"]
    assert bare.regression("x", ["plan"])["intercept"].error > 0


def test_frames(tables):
    pl = pytest.importorskip("polars")
    frame = tables.to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["x", "visits", "plan", "weight"]


def test_json_has_null_for_what_is_missing():
    found = Estimate(0.5, math.nan, math.nan, 0.1, (0.2, 0.8), "why").to_dict()
    assert found["error"] is None
    assert found["misfit"] is None
    assert found["limits"] == [0.2, 0.8]
    assert found["reason"] == "why"
    assert str(Estimate(0.5, math.nan, 0.0, 0.1, (0.2, 0.8), "why")) == (
        "0.50 (no bar; between 0.20 and 0.80)"
    )
    assert str(Estimate(0.5, 0.01, sampling=0.002)) == "0.500 ± 0.010 (sampling ± 0.002)"
    assert Estimate(0.5, 0.03, sampling=0.04).total == pytest.approx(0.05)


def tables_of(rows: Any, columns: dict[str, Any], **options: Any) -> SyntheticData:
    return release(
        rows,
        bounds=Schema(columns),
        **options,
        epsilon=1,
        delta=1e-6,
        method="tables",
        rng=0,
        noise=SimulatedNoise(1),
    )


def test_what_may_jump_within_a_bin_has_no_bar():
    """A third of all rows has one value of a bin; nothing but its bin was counted."""
    rng = np.random.default_rng(0)
    pay = np.where(rng.uniform(size=3000) < 0.3, 12350, rng.integers(100_001, size=3000))
    made = tables_of(
        {"pay": pay, "after": pay.astype(float)},
        {"pay": NumericColumn(0, 100_000, integer=True), "after": NumericColumn(500, 120_001)},
        bins="even",
    )
    truth = {
        "pay == 12350": np.mean(pay == 12350),
        "pay - 5 == 12345": np.mean(pay == 12350),
        "-pay == -12350": np.mean(pay == 12350),
        "pay == after": np.mean(pay == np.maximum(pay, 500)),
        'column("pay") == column("after")': np.mean(pay == np.maximum(pay, 500)),
    }
    for condition, share in truth.items():
        found = made.probability(condition)
        assert math.isnan(found.error)
        assert found.limits is not None
        assert found.limits[0] <= share <= found.limits[1] + 0.02
    own = made.mean(lambda columns: (columns["pay"] == 12350) * 1.0)
    assert math.isnan(own.error)
    with pytest.raises(ParameterError, match="cannot be tested"):
        made.test(lambda columns: (columns["pay"] == 12350) * 1.0, equals=0.3)


@pytest.mark.parametrize(("errors", "known"), [(4.0, True), (2.5, False), (1.0, False)])
def test_a_quantile_is_known_exactly_at_three_errors(errors, known):
    """Half of the rows are at 2; shares up to 1 and 2 are so many errors away from a half."""
    half = 1000 / 2 / errors  # rows on either side of the middle, in noise of one row
    counts = np.array([0, 500 - half / 2, half, 500 - half / 2, 0])
    sigma = float(half / 2 / errors / np.sqrt(5 / 4))
    schema = Schema({"x": NumericColumn(0, 4, integer=True)})
    facts = Facts(n=1000, spent=Budget(1, 1e-6), method="tables", kernel=None, schema=schema)
    table = Measurement(("x",), (np.arange(5),), counts, sigma)
    rows, even = np.full(100, 2), np.full(100, 0.01)
    made = SyntheticData({"x": rows}, even, np.empty((100, 0)), facts, measured=(table,))
    found = made.quantile("x", 0.5)
    assert found.value == 2
    if known:
        assert found.error == 0
    else:
        assert math.isnan(found.error)
        assert found.limits == (1, 3)


def test_a_function_that_hides_what_it_uses_has_no_bar():
    rows = {"a": np.arange(400) % 7, "b": np.arange(400) % 3}
    columns = {"a": NumericColumn(0, 6, integer=True), "b": NumericColumn(0, 2, integer=True)}
    made = tables_of(rows, columns)
    assert math.isnan(made.probability(lambda _: made.columns["a"] > 2).error)
    whole = made.mean(lambda columns: sum(columns.values()))
    assert whole.error > 0  # both columns were looked at, and measured together
    assert made.mean(lambda columns: 3.0 + 0 * columns["a"]).error == 0


def test_quantiles_on_a_plateau_are_covered():
    """Half of the rows at each end. 40 runs at .95: fewer than 31 with probability below 2e-4."""
    rows = {"x": np.repeat([0, 200], 500)}
    hits = 0
    for seed in range(40):
        made = release(
            rows,
            bounds=Schema({"x": NumericColumn(0, 200, integer=True)}),
            epsilon=1,
            delta=1e-6,
            method="tables",
            rng=0,
            noise=SimulatedNoise(seed),
        )
        found = made.quantile("x", 0.5)
        reach = 1.96 * found.error
        low, high = found.limits or (found.value - reach, found.value + reach)
        hits += low <= 0 <= high
    assert hits >= 31


def test_bounds_beyond_exact_floats_are_refused():
    for column in (NumericColumn(0, 1e19, integer=True), NumericColumn(-8e307, 8e307)):
        with pytest.raises(ParameterError, match="too large for method='tables'"):
            tables_of({"x": [0, 1, 2]}, {"x": column})
