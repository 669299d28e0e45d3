"""Swapping labels in pairs: the exact privacy loss on all small data sets, no sampling.

The statistics come from the code of the test, with chosen signs in place of random ones; what is
released has an exact law given the statistics. Losses hold for each order of the rows, which is
more than the test needs: its order is secret.
"""

from __future__ import annotations

import inspect
import itertools
import sys
from typing import Any

import numpy as np
import pytest

from privatest import ipm_test, ks_2samp, mmd_test
from privatest.data.schema import Domain
from privatest.mechanisms import permutation
from privatest.mechanisms.permutation import PVALUE_GRID, noise_scale
from privatest.noise import SimulatedNoise
from privatest.numerics.distances import LineMetric, permuted_distance
from privatest.numerics.kernels import Kernel
from privatest.numerics.permutation import pair_swaps, pair_swaps_sensitivity, permuted_mmd
from tests.privacy import exact
from tests.privacy.exact import PermutedStatistics
from tests.privacy.harness import audit, caught

LINE = Domain((0,))
KERNEL = Kernel("gaussian", 1.0)
KOLMOGOROV = LineMetric(np.ones((1, 1)), "kolmogorov", 1.0)
CELLS = np.unique(np.geomspace(1, PVALUE_GRID, 60).round())
CELLS = np.unique(np.append(CELLS, PVALUE_GRID + 1 - CELLS))
ROUNDING = (
    1e-5  # the sensitivity is that of exact arithmetic here; entries of a Gram matrix are not
)


class Signs:
    """All swaps of pairs, in place of a generator of random ones."""

    def integers(self, high: int, size: tuple[int, int]) -> Any:
        assert high == 2
        return np.array(list(itertools.product((0, 1), repeat=size[1])))


def statistics_of(rows, labels, kind):
    """The observed statistic and those of all swaps, each once: swaps × 1."""
    table = np.array(rows, dtype=float)[:, None], np.array(labels, dtype=float)
    count = 2 ** (len(rows) // 2)
    signs: Any = Signs()
    swaps = pair_swaps(len(rows), count, signs)
    if kind == "mmd":
        values, _ = permuted_mmd(swaps, *table, (KERNEL,), LINE)
    else:
        values, _ = permuted_distance(swaps, *table, KOLMOGOROV)
    return np.round(values[0], 12)


def neighbours(total, kind):
    """All pairs of neighbouring statistics: lists of rows on a grid that differ in one place."""
    grid = list(itertools.product((0.0, 1.0) if total > 3 else (0.0, 0.4, 1.0), (0, 1)))
    found = {}
    for data in itertools.product(grid, repeat=total):
        rows, labels = zip(*data, strict=True)
        found[data] = tuple(statistics_of(rows, labels, kind))
    pairs = set()
    for data, first in found.items():
        for place, row in itertools.product(range(total), grid):
            second = found[(*data[:place], row, *data[place + 1 :])]
            if first != second:
                pairs.add((min(first, second), max(first, second)))
    return sorted(pairs)


def drawn(statistics, counts):
    """The statistics of a test whose random swaps were these, so often each."""
    values = np.array(statistics)
    kept = counts > 0
    return PermutedStatistics(float(values[0]), values[1:][kept], counts[kept])


@pytest.mark.parametrize("total", [2, 3, 4, 5])
@pytest.mark.parametrize("kind", ["mmd", "kolmogorov"])
def test_no_small_data_set_loses_more_than_epsilon(kind, total):
    """Whatever swaps were drawn, and however often each."""
    diameter = KERNEL.spread(LINE) if kind == "mmd" else 1.0
    sensitivity = pair_swaps_sensitivity(diameter, total)
    pairs, epsilon = neighbours(total, kind), 1.0
    decision, pvalue = (noise_scale(sensitivity, epsilon, r) for r in ("decision", "pvalue"))
    rng = np.random.default_rng(total)
    most = {"moved": 0.0, "decision": 0.0, "pvalue": 0.0}
    for first, second in pairs:
        moved = np.abs(np.subtract(first, second)) / sensitivity.observed
        most["moved"] = max(most["moved"], float(moved.max()))
        for counts in (np.ones(len(first) - 1), *rng.choice([0, 1, 30, 1e5], (2, len(first) - 1))):
            if not counts.any():
                continue
            laws = drawn(first, counts), drawn(second, counts)
            lost = max(exact.decision_loss(*laws, decision, alpha) for alpha in (0.02, 0.3, 0.7))
            most["decision"] = max(most["decision"], lost)
            lost = exact.pvalue_loss(*laws, pvalue, PVALUE_GRID, CELLS)
            most["pvalue"] = max(most["pvalue"], lost)
    assert 0.99 < most["moved"] <= 1 + ROUNDING
    assert max(most["decision"], most["pvalue"]) <= epsilon + ROUNDING
    if total >= 4:  # with two pairs, and many draws of one swap, the bound is attained
        assert most["decision"] > 0.999 * epsilon
        assert most["pvalue"] > 0.85 * epsilon


def test_less_noise_would_exceed_epsilon():
    """Two pairs: one has two labels; the other gets them. All swaps drawn turn one of the two."""
    sensitivity = pair_swaps_sensitivity(KERNEL.spread(LINE), 4)
    first = statistics_of((0, 1, 0, 0), (0, 1, 0, 0), "mmd")
    second = statistics_of((0, 1, 0, 1), (0, 1, 0, 1), "mmd")
    turned = np.array([0, 1e5, 0, 0])
    laws = drawn(first, turned), drawn(second, turned)
    scale = noise_scale(sensitivity, 1.0, "decision")
    assert exact.decision_loss(*laws, scale, 0.02) == pytest.approx(1, abs=1e-3)
    assert exact.decision_loss(*laws, 0.95 * scale, 0.02) > 1.04


# --- the whole test, with its secret order ---------------------------------------------------

# One row of group x at 1, or two.
DATA = (np.ones(1), np.zeros(3)), (np.ones(2), np.zeros(2))


class Turned:
    """Draws that all turn one of two pairs, which a public generator may give."""

    def integers(self, high: int, size: tuple[int, int]) -> Any:
        assert (high, size[1]) == (2, 2)
        return np.tile([0, 1], (size[0], 1))


@pytest.fixture
def turned(monkeypatch):
    module = sys.modules[inspect.unwrap(mmd_test).__module__]
    monkeypatch.setattr(module, "public_generator", lambda rng: Turned())


def whole_test(release):
    noise = SimulatedNoise(5)

    def run(samples):
        result = mmd_test(
            *samples,
            epsilon=1,
            release=release,
            adjacency="row",
            relabel="swap",
            bounds=(0, 1),
            bandwidths=1.0,
            n_permutations=30,
            noise=noise,
        )
        return result.reject if release == "decision" else result.pvalue

    return run


@pytest.mark.usefixtures("turned")
@pytest.mark.parametrize("release", ["decision", "pvalue"])
def test_an_audit_finds_a_part_of_epsilon_and_never_more(release):
    """The loss is .72 by enumeration of the orders (decision); the noise is seeded."""
    assert 0.1 < audit(whole_test(release), *DATA, runs=1_500, error=1e-2) <= 1


@pytest.mark.usefixtures("turned")
@pytest.mark.parametrize("release", ["decision", "pvalue"])
def test_a_quarter_of_the_noise_is_caught(release, monkeypatch):
    scale_of = permutation.noise_scale
    monkeypatch.setattr(permutation, "noise_scale", lambda *given: 0.25 * scale_of(*given))
    assert caught(whole_test(release), *DATA, above=1.2, runs=800)


def test_the_choice_depends_on_public_numbers_only():
    """The same total, epsilon and rows per person: the same choice, whatever the groups."""
    rng = np.random.default_rng(1)
    tests: list[tuple[Any, dict[str, Any]]] = [
        (mmd_test, {}),
        (ipm_test, {"distance": "kolmogorov"}),
        (ks_2samp, {}),
    ]
    for test, options in tests:
        for epsilon, chosen in ((1.0, "swap"), (9.0, "permute")):
            for sizes in ((0, 40), (20, 20), (1, 39)):
                result = test(
                    *(rng.uniform(size=size) for size in sizes),
                    bounds=(0, 1),
                    epsilon=epsilon,
                    adjacency="row",
                    n_permutations=9,
                    noise=SimulatedNoise(0),
                    **options,
                )
                assert result.parameters["relabel"] == chosen
