"""The picture of a release: shares, their bands, and what it says about itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.display.release_plots import marginals, plot_marginals, strained
from privatest.noise import SimulatedNoise
from privatest.synthetic import SyntheticData, release

RNG = np.random.default_rng(0)
SCHEMA = Schema(
    {
        "visits": NumericColumn(0, 9, integer=True),
        "age": NumericColumn(0, 100),
        "plan": CategoricalColumn(("basic", "plus", "none")),
    }
)
DATA = {
    "visits": RNG.integers(0, 10, size=4000),
    "age": RNG.uniform(0, 100, size=4000),
    "plan": RNG.choice(["basic", "plus"], size=4000, p=[0.75, 0.25]),
}


def made(bounds: Any = SCHEMA, data: Any = DATA, **options: Any) -> SyntheticData:
    settings: dict[str, Any] = {"epsilon": 10, "delta": 1e-6, "n_points": 150, "rng": 0}
    settings["method"] = "subspace"
    settings |= {"noise": SimulatedNoise(0)} | options
    return release(data, bounds=bounds, **settings)


@pytest.fixture(scope="module")
def synthetic() -> SyntheticData:
    return made()


def test_shares_are_the_release_s_own(synthetic):
    """Shares and bars are what ``probability`` says of each bin."""
    visits, age, plan = marginals(synthetic)
    shares = synthetic.nonnegative()
    assert visits.labels is None
    np.testing.assert_array_equal(visits.edges, np.arange(11) - 0.5)
    for value in range(10):
        own = shares.weights[shares.columns["visits"] == value].sum()
        assert visits.shares[value] == pytest.approx(own, abs=1e-12)
        assert 0 <= visits.low[value] < visits.high[value] <= 1
    assert len(age.shares) == 20
    own = shares.weights[shares.columns["age"] >= 95].sum()  # the last bin has both its ends
    assert age.shares[-1] == pytest.approx(own, abs=1e-12)
    asked = synthetic.probability("plan == 'plus'")
    low, high = asked.limits or (-np.inf, np.inf)
    assert plan.low[1] == pytest.approx(max(low, asked.value - 1.96 * asked.error), abs=2e-3)
    assert plan.high[1] == pytest.approx(min(high, asked.value + 1.96 * asked.error), abs=2e-3)
    assert plan.labels == ("basic", "plus", "none")
    assert plan.shares == pytest.approx([0.75, 0.25, 0], abs=0.05)
    for marginal in (visits, age, plan):
        assert marginal.shares.sum() == pytest.approx(1)
        assert marginal.shares.min() >= 0


def test_less_noise_has_narrower_bands():
    noisy, quiet = made(epsilon=0.1), made(epsilon=2)  # of 10, most of the band is misfit
    wide, narrow = ([each.high - each.low for each in marginals(m)] for m in (noisy, quiet))
    assert np.mean(wide[2]) > 2 * np.mean(narrow[2])  # categories, which the kernel tells apart
    assert np.mean(wide[0]) > np.mean(narrow[0])  # of single integers it never tells much


def test_a_narrow_column_is_drawn_where_it_is():
    schema = Schema.from_bounds({"x": (0, 1000)})
    points = {"x": np.concatenate([np.linspace(0, 1000, 20), np.linspace(1, 99, 99)])}
    data = {"x": RNG.uniform(0, 100, size=4000)}
    (found,) = marginals(made(schema, data, public_points=points, n_points=None))
    assert found.edges[-1] < 500
    assert 0.97 < found.shares.sum() <= 1 + 1e-9


def test_columns_without_bounds_and_after_transform():
    data = {"x": RNG.normal(size=3000)}
    plain = made(
        None, data, public_points={"x": np.linspace(-3, 3, 60)}, bandwidth=1, n_points=None
    )
    assert marginals(plain)[0].edges[0] >= -3
    sides = plain.nonnegative().transform(
        lambda c: {
            "side": np.where(c["x"] > 0, "right", "left"),
            "big": c["x"] > 1,
            "one": 1 + 0 * c["x"],
        }
    )
    side, big, one = marginals(sides)
    assert side.labels == ("left", "right")
    assert side.shares == pytest.approx([0.5, 0.5], abs=0.1)
    assert big.labels == ("False", "True")
    assert one.shares.sum() == pytest.approx(1)
    assert strained(sides) == []
    assert len(plot_marginals(sides).axes) == 3


def test_strained_columns_are_named(synthetic):
    assert strained(synthetic) == []
    # all of the data lies in a corner of six columns, and hardly any point does
    names = tuple(f"c{index}" for index in range(6))
    wide = Schema.from_bounds(dict.fromkeys(names, (0, 100)))
    corner = dict.fromkeys(names, RNG.uniform(0, 3, size=4000))
    poor = made(wide, corner, n_points=40, method="subspace")
    assert strained(poor)
    assert set(strained(poor)) <= set(names)
    titles = [axes.get_title() for axes in plot_marginals(poor).axes]
    assert {title.removesuffix(" *") for title in titles if title.endswith(" *")} == set(
        strained(poor)
    )
    assert strained(poor.nonnegative()) == strained(poor)


def test_picture(synthetic, tmp_path):
    figure = plot_marginals(synthetic)
    assert [axes.get_title() for axes in figure.axes] == ["visits", "age", "plan"]
    assert [label.get_text() for label in figure.axes[2].get_xticklabels()] == [
        "basic",
        "plus",
        "none",
    ]
    assert "4,000 private ones" in figure.get_suptitle()
    assert "NOT private" in figure.get_supxlabel()
    real = replace(synthetic, facts=replace(synthetic.facts, simulated=False))
    words = plot_marginals(real).get_supxlabel().replace("\n", " ")
    assert "with probability .95 or more: privacy noise, and" in words
    figure.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 0


@pytest.mark.parametrize(("count", "shown"), [(1, 1), (4, 4), (5, 5)])
def test_any_number_of_columns(count, shown):
    schema = Schema.from_bounds({f"c{index}": (0, 1) for index in range(count)})
    data = {name: RNG.uniform(size=500) for name in schema.columns}
    figure = plot_marginals(made(schema, data, n_points=60))
    assert sum(axes.get_visible() for axes in figure.axes) == shown
