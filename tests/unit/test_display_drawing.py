"""Every result has a picture, or says why not; and all pictures have one style."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest import planning, simulation
from privatest.noise import SimulatedNoise

pytest.importorskip("matplotlib")

from matplotlib import colors

from privatest.display.plots import plot_budget, plot_power, plot_region
from privatest.display.style import DARK, LIGHT, svg, themed

RNG = np.random.default_rng(4)
X, Y = RNG.random(80), RNG.random(80)
TWO = RNG.random((80, 2))
UNIT: dict[str, Any] = {"bounds": (0, 1), "epsilon": 2, "noise": SimulatedNoise(1)}
SHIFT = simulation.shift(0.5)
RESULTS: dict[str, Any] = {
    "p-value": lambda: pt.mmd_test(X, Y, n_permutations=9, **UNIT),
    "statistic": lambda: pt.ks_2samp(X, Y, epsilon=2),
    "correlation": lambda: pt.kendalltau(X, Y, epsilon=2),
    "slope": lambda: pt.linregress(X, Y, bounds_x=(0, 1), bounds_y=(0, 1), epsilon=2),
    "proportion": lambda: pt.binom_test(X > 0.5, epsilon=2),
    "groups": lambda: pt.f_oneway(X, Y, X, **UNIT),
    "difference": lambda: pt.ttest_ind(X, Y, **UNIT),
    "region": lambda: pt.hotelling_test(TWO, 1 - TWO, n_bootstrap=199, **UNIT),
    "means": lambda: pt.private_mean(TWO, n_bootstrap=19, **UNIT),
    "median": lambda: pt.private_median(X, **UNIT),
    "plan": lambda: planning.sample_size("ks", SHIFT, epsilon=1),
    "ranking": lambda: planning.recommend("two-sample", 90, epsilon=1),
    "prices": lambda: planning.price_of_privacy("ks", SHIFT),
    "power": lambda: simulation.power("ks", SHIFT, n=40, epsilon=2, runs=25),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_has_a_picture(name):
    result = RESULTS[name]()
    drawn = result.plot()
    if name == "groups":
        assert svg(drawn) == svg(result.plot())  # the same bytes each time
    with themed("dark"):
        dark = result.plot()
    for shown, theme in ((drawn, LIGHT), (dark, DARK)):
        assert colors.to_hex(shown.figure.get_facecolor()) == theme.paper
        for axes in shown.figure.axes:
            assert not axes.spines["top"].get_visible()
            assert axes.xaxis.label.get_color() == theme.ink


def test_what_has_no_picture_says_why():
    decided = pt.mmd_test(X, Y, n_permutations=9, release="decision", **UNIT)
    with pytest.raises(pt.ParameterError, match="only a decision was released"):
        decided.plot()
    covariance = pt.private_covariance(TWO, **UNIT)
    with pytest.raises(pt.ParameterError, match="nothing to draw of CovarianceEstimate"):
        covariance.plot()
    drawn: Any = RESULTS["p-value"]().plot()
    with pytest.raises(pt.ParameterError, match="axes must be left out"):
        pt.private_mean(TWO, n_bootstrap=19, **UNIT).plot(axes=drawn)
    with pytest.raises(pt.ParameterError, match="theme must be one of"), themed("blue"):
        pass


def test_without_matplotlib_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("privatest.display.style.find_spec", lambda _: None)
    outcome = RESULTS["statistic"]()
    with pytest.raises(pt.ParameterError, match=r'pip install "privatest\[plot\]"'):
        outcome.plot()
    from privatest.display.reports import report_html

    assert "Pictures need matplotlib" in report_html(outcome)


def luminance(colour: str) -> float:
    parts = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colors.to_rgb(colour)
    ]
    return float(np.dot(parts, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_stand_out_from_the_page(theme):
    for colour, least in ((theme.ink, 7), (theme.soft, 4.5), (theme.main, 3), (theme.answer, 3)):
        pair = sorted(luminance(each) + 0.05 for each in (colour, theme.paper))
        assert pair[1] / pair[0] >= least


def test_power_against_sizes_epsilons_and_effects():
    few: dict[str, Any] = {"runs": 25, "n": 40, "epsilon": 2}
    powers = [simulation.power("ks", SHIFT, **few | {"n": n}) for n in (20, 40)]
    assert plot_power(powers).get_xlabel().startswith("people")
    axes = plot_power(powers, "effect", effects=[0.2, 0.5])
    assert len(axes.collections) == 1  # a band
    with pytest.raises(pt.ParameterError, match="effects must be given"):
        plot_power(powers, "effect")
    with pytest.raises(pt.ParameterError, match="powers must not be empty"):
        plot_power([])


def test_the_region_covers_what_the_test_does_not_reject():
    outcome = RESULTS["region"]()
    axes = plot_region(outcome)
    ellipse: Any = axes.patches[0]
    assert ellipse.contains_point(ellipse.get_transform().transform((0, 0))) == (not outcome.reject)
    with pytest.raises(pt.ParameterError, match="two columns"):
        plot_region(RESULTS["difference"]())


def test_simulated_plans_have_a_band():
    plan = planning.sample_size("ks", simulation.shift(1.0), epsilon=4, refine=True, runs=20)
    assert len(plan.band) == len(plan.curve)
    assert all(
        low <= rate <= high for (_, rate), (low, high) in zip(plan.curve, plan.band, strict=True)
    )
    drawn: Any = plan.plot()
    assert drawn.collections


def test_budgets_over_time(tmp_path):
    from privatest.accounting import event_of
    from privatest.ledger import Ledger

    with Ledger.open(tmp_path / "l.db", create=True) as ledger:
        ledger.create_dataset("visits", pt.Budget(3))
        with pytest.raises(pt.ParameterError, match="nothing was spent"):
            plot_budget(ledger.history("visits"))
        for ends in (ledger.commit, ledger.fail):
            cost = pt.Budget("0.5")
            taken = ledger.reserve("visits", event_of(cost), budget=cost)
            ends(taken)
        axes = plot_budget(ledger.history("visits"), 3.0)
    legend: Any = axes.get_legend()
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["answered", "failed or unfinished", "whole budget"]
    assert axes.lines[0].get_ydata()[-1] == 1.0  # type: ignore[index]
