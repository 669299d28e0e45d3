"""Pictures of plans."""

from __future__ import annotations

import dataclasses

import pytest

from privatest import planning, simulation
from privatest.core.errors import ParameterError

pytest.importorskip("matplotlib")

from privatest.display.plots import plot_plan, plot_recommendation

SHIFT = simulation.shift(0.3)


@pytest.mark.parametrize("wanted", ["power", "n", "effect", "epsilon"])
def test_curves(wanted):
    plan = {
        "power": lambda: planning.expected_power("ks", SHIFT, n=180, epsilon=1),
        "n": lambda: planning.sample_size("ks", SHIFT, epsilon=1),
        "effect": lambda: planning.detectable_effect("ks", SHIFT, n=180, epsilon=1),
        "epsilon": lambda: planning.epsilon_needed("ks", SHIFT, n=400),
    }[wanted]()
    axes = plot_plan(plan)
    assert axes.get_ylabel() == "power"
    legend = axes.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert ("without noise" in labels) == (wanted != "epsilon")


def test_ranking():
    axes = plot_recommendation(planning.recommend("two-sample", 180, epsilon=1))
    assert axes.get_yticklabels()[0].get_text() == "mann-whitney"


def test_nothing_to_draw():
    plan = planning.expected_power("ks", SHIFT, n=180, epsilon=1)
    with pytest.raises(ParameterError, match="plan has no curve"):
        plot_plan(dataclasses.replace(plan, curve=()))
