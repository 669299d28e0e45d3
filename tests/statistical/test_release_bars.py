"""Bars of releases cover what they say, and tests on releases have their level.

Data and noise are seeded: the tests always give the same answer. With another seed each would
fail with the probability that it states, if all is right.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from privatest.core.privacy import Budget
from privatest.data.encoding import Sample
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.noise import SimulatedNoise
from privatest.synthetic import Facts, SyntheticData, release
from privatest.synthetic.answers import Estimate
from privatest.synthetic.tables import (
    TableRequest,
    measure,
    measure_tables,
    plan_tables,
    schema_cells,
)
from privatest.synthetic.testing import (
    NoisyCounts,
    independence_pvalue,
    same_law_pvalue,
    share_pvalue,
)

SCHEMA = Schema({"x": NumericColumn(0, 40, integer=True), "g": CategoricalColumn(("a", "b"))})
RUNS = 40


def counts(n: int, rng: np.random.Generator) -> dict[str, Any]:
    """Integers with many zeros, for which bars of non-negative weights covered 72%."""
    group = rng.random(n) < 0.3
    visits = np.minimum(rng.negative_binomial(1, 1 / (3 + 3 * group)), 40)
    return {"x": visits, "g": np.where(group, "a", "b")}


def holds(estimate: Estimate, truth: float) -> bool:
    if estimate.limits is not None:
        return estimate.limits[0] <= truth <= estimate.limits[1]
    return abs(estimate.value - truth) <= 1.96 * estimate.error


@pytest.mark.parametrize("method", ["subspace", "features"])
def test_bars_and_limits_hold(method):
    """40 runs, coverage at least .95: 33 of them hold but for a chance of .0003 a question."""
    hits = np.zeros(5)
    settings: dict[str, Any] = {"method": method, "n_points": 60 if method == "subspace" else 20}
    for seed in range(RUNS):
        rng = np.random.default_rng([seed, 3])
        rows = counts(2000, rng)
        made = release(
            rows,
            bounds=SCHEMA,
            epsilon=1,
            delta=1e-6,
            noise=SimulatedNoise(seed),
            rng=0,
            **settings,
        )
        x, inside = rows["x"], rows["g"] == "a"
        asked = [
            (made.mean("x"), x.mean()),
            (made.mean("x", where="g == 'a'"), x[inside].mean()),
            (made.probability("g == 'a'"), inside.mean()),
            (made.probability("x == 0"), (x == 0).mean()),
            (made.quantile("x", 0.9), np.quantile(x, 0.9, method="inverted_cdf")),
        ]
        hits += [holds(estimate, float(truth)) for estimate, truth in asked]
    assert hits.min() >= 33


def measured(rows: dict[str, Any], seed: int, epsilon: float = 1.0) -> SyntheticData:
    """Return what a release by tables measures, with made-up rows in place of a fit."""
    codes = np.column_stack([rows["x"], (rows["g"] == "b").astype(np.intp)]).astype(np.intp)
    cells = (np.arange(41), np.arange(2))
    wanted = [
        TableRequest((0,), cells[:1]),
        TableRequest((1,), cells[1:]),
        TableRequest((0, 1), cells),
    ]
    budget = Budget(epsilon, "1e-6")
    tables = measure(
        Sample(codes.astype(np.float64), None),
        wanted,
        ["x", "g"],
        rows_per_person=1,
        budget=budget,
        share=Fraction(1),
        noise=SimulatedNoise(seed),
    )
    made_up = {"x": np.arange(82) % 41, "g": np.repeat(np.array(["a", "b"], dtype=object), 41)}
    even = np.full(82, 1 / 82)
    facts = Facts(n=len(codes), spent=budget, method="tables", kernel=None, schema=SCHEMA)
    return SyntheticData(made_up, even, even[:, None], facts, measured=tuple(tables))


def test_bars_of_measured_tables_are_exact():
    """300 runs, coverage .95: between .90 and .99 but for a chance of .0005 a question."""
    hits, shown = np.zeros(4), np.zeros(4)
    for seed in range(300):
        rows = counts(500, np.random.default_rng([seed, 5]))
        made = measured(rows, seed)
        x, inside = rows["x"], rows["g"] == "a"
        asked = [
            (made.mean("x"), x.mean()),
            (made.probability("x > 5"), (x > 5).mean()),
            (made.probability("x > 5 and g == 'a'"), ((x > 5) & inside).mean()),
            (made.probability("g == 'a'"), inside.mean()),
        ]
        hits += [holds(estimate, float(truth)) for estimate, truth in asked]
        shown += [estimate.limits is None for estimate, _ in asked]
    assert (shown == 300).all()
    assert (hits >= 270).all()
    assert (hits <= 297).all()


@pytest.mark.parametrize("n", [50, 2000])
def test_the_test_of_a_share_is_exact(n):
    """4000 runs: a level of .05 shows as .040 to .060 but for a chance of .003."""
    rng, sigma, share = np.random.default_rng(n), 4.0, 0.1
    values = (rng.binomial(n, share, size=4000) + rng.normal(scale=sigma, size=4000)) / n
    found = [share_pvalue(float(value), share, n, sigma / n, 0.0) for value in values]
    assert 0.040 <= np.mean(np.array(found) <= 0.05) <= 0.060
    # a rest that is known only to a bound makes it less likely to reject
    assert share_pvalue(0.2, share, n, sigma / n, 0.05) > share_pvalue(0.2, share, n, sigma / n, 0)


@pytest.mark.parametrize(("n", "sigma"), [(50, 5.0), (500, 10.0), (5000, 3.0)])
def test_tests_on_tables_have_their_level(n, sigma):
    """300 runs at .05: at most 28 reject but for a chance of .002; 95% do where it is false."""
    first, second = np.array([0.6, 0.3, 0.1]), np.array([0.5, 0.3, 0.15, 0.05])
    rejected = np.zeros(2)
    for seed in range(300):
        rng = np.random.default_rng([seed, n])
        cells = rng.multinomial(n, np.outer(first, second).ravel()).reshape(3, 4)
        noisy = cells + rng.normal(scale=sigma, size=(3, 4))
        pvalue = independence_pvalue(NoisyCounts(noisy, sigma, n), 99, rng)[1]
        pair = [
            NoisyCounts(rng.multinomial(m, second) + rng.normal(scale=sigma, size=4), sigma, m)
            for m in (n, 2 * n)
        ]
        rejected += [pvalue <= 0.05, same_law_pvalue(pair[0], pair[1], 99, rng)[1] <= 0.05]
    assert (rejected <= 28).all()


def test_tests_on_tables_have_power():
    """Dependence and differences of a tenth, among 5000 rows with little noise: never missed."""
    rng = np.random.default_rng(0)
    joint = np.array([[0.35, 0.15], [0.15, 0.35]])
    for _ in range(20):
        cells = rng.multinomial(5000, joint.ravel()).reshape(2, 2) + rng.normal(
            scale=5, size=(2, 2)
        )
        assert independence_pvalue(NoisyCounts(cells, 5.0, 5000), 99, rng)[1] <= 0.05
        pair = [
            NoisyCounts(
                rng.multinomial(5000, [share, 1 - share]) + rng.normal(scale=5, size=2), 5.0, 5000
            )
            for share in (0.5, 0.6)
        ]
        assert same_law_pvalue(pair[0], pair[1], 99, rng)[1] <= 0.05


def test_limits_hold_where_all_is_in_one_bin():
    """Two thirds at 0, in a bin with other numbers: P(x > 0) is at its lower limit.

    The bin's share is noisy, and the limit must allow for it: 200 runs, of which 194 or more
    hold but for a chance of .0001 where the bound fails once in 200.
    """
    schema = Schema({"x": NumericColumn(0, 12)})
    cells = schema_cells(schema)[0]
    hits = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, 9])
        x = rng.choice([0.0, 1.0, 7.0], size=1000, p=[0.66, 0.2, 0.14])
        budget = Budget(1.0, "1e-6")
        tables = measure(
            Sample(cells.codes(x)[:, None].astype(np.float64), None),
            [TableRequest((0,), (np.arange(len(cells)),))],
            ["x"],
            rows_per_person=1,
            budget=budget,
            share=Fraction(1),
            noise=SimulatedNoise(seed),
        )
        spread = rng.uniform(0.001, 11.999, size=300)
        facts = Facts(n=1000, spent=budget, method="tables", kernel=None, schema=schema)
        even = np.full(300, 1 / 300)
        made = SyntheticData({"x": spread}, even, even[:, None], facts, measured=tuple(tables))
        found = made.probability("x > 0")
        assert found.limits is not None
        hits += holds(found, float(np.mean(x > 0)))
    assert hits >= 194


def test_means_of_groups_and_correlations_have_bars_that_hold():
    """120 runs: a coverage of .95 or more shows as 105 hits or more but for a chance of .0004."""
    schema = Schema(
        {"x": NumericColumn(0, 1), "y": NumericColumn(0, 1), "g": CategoricalColumn(("a", "b"))}
    )
    hits, shown = np.zeros(3), np.zeros(3)
    for seed in range(120):
        rng = np.random.default_rng([seed, 11])
        group = rng.random(6000) < 0.4
        x = rng.beta(2 + group, 4)
        y = np.where(rng.random(6000) < 0.6, x, rng.beta(2, 3, size=6000))
        plan = plan_tables(schema, 6000, Budget(2.0, "1e-6"))
        rows = np.column_stack([x, y, group])
        plan, found = measure_tables(Sample(rows, None), plan, SimulatedNoise(seed))
        assert not plan.starts  # no bin is heavy
        means = plan.own_means(found.moments, found.mean_sigma)
        made = {"x": rng.random(400), "y": rng.random(400), "g": rng.choice(["a", "b"], 400)}
        facts = Facts(n=6000, spent=plan.budget, method="tables", kernel=None, schema=schema)
        even = np.full(400, 1 / 400)
        synthetic = SyntheticData(
            made, even, even[:, None], facts, measured=(*found.measured, *means)
        )
        asked = [
            (synthetic.mean("x", where="g == 'b'"), x[group].mean()),
            (synthetic.by("g", "y")["a"], y[~group].mean()),
            (synthetic.correlation("x", "y"), np.corrcoef(x, y)[0, 1]),
        ]
        hits += [holds(estimate, float(truth)) for estimate, truth in asked]
        shown += [math.isfinite(estimate.error) for estimate, _ in asked]
    assert (shown >= 112).all()
    assert (hits >= 105).all()
    assert (hits[[0, 2]] <= 119).all()
