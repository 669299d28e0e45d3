"""Attacks on the whole two-sample test by a family: the exact privacy loss of what it releases.

Statistics and their sensitivity come from the test itself, just before the noise. Given them, what
is released has an exact law, so that no run is sampled; neighbours are found by hill climbing for
the loss. Losses hold for each order of the rows, which is more than the test needs: its order is
secret. Audits sample the whole test. Seeded: the same answer in every run.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np
import pytest

from privatest import mmd_test
from privatest.audit.coupling import bins_by_rank
from privatest.core.privacy import PermutationSensitivity
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.mechanisms import permutation
from privatest.mechanisms import permutation as family
from privatest.mechanisms.permutation import PVALUE_GRID, noise_scale
from privatest.noise import SimulatedNoise
from privatest.numerics.portfolio import STATISTICS
from tests.privacy import exact
from tests.privacy.exact import PermutedStatistics
from tests.privacy.harness import audit
from tests.sensitivity import harness
from tests.sensitivity.harness import Space

MMD = sys.modules[inspect.unwrap(mmd_test).__module__]
SCHEMA = Schema(
    {"a": NumericColumn(0, 1), "b": NumericColumn(0, 1), "c": CategoricalColumn((0, 1, 2))}
)
EPSILON = 1.0
CELLS = np.unique(np.geomspace(1, PVALUE_GRID, 40).round())
CELLS = np.unique(np.append(CELLS, PVALUE_GRID + 1 - CELLS))
ROUNDING = 1e-6  # of our own arithmetic: cells are differences of nearby numbers
SCHEMES = {
    "one": Space(SCHEMA.domain, 3, 4, "one"),
    "both": Space(SCHEMA.domain, 4, 3, "both"),
    "permute": Space(SCHEMA.domain, 4, 3, "row"),
    "swap": Space(SCHEMA.domain, 4, 4, "row"),
}


def options(scheme: str) -> dict[str, Any]:
    row = {"adjacency": "row", "relabel": scheme}
    return {"epsilon": EPSILON, "n_permutations": 20, "rng": 0} | (
        row if scheme in ("permute", "swap") else {"adjacency": scheme}
    )


class BeforeNoise:
    """Runs of a test up to its noise, with a chosen order of rows in place of a secret one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, scheme: str, **more: Any) -> None:
        self.options = options(scheme) | {"bounds": SCHEMA} | more
        self.found: list[tuple[Any, PermutationSensitivity]] = []
        self.order: Any = None
        monkeypatch.setattr(MMD, "permutation_result", self._keep)
        monkeypatch.setattr(SimulatedNoise, "permutation", self._order)
        if scheme == "swap":  # one pass: bins by secret keys
            place = "privatest.numerics.permutation"
            monkeypatch.setattr(f"{place}.secret_bins", self._bins(0))
            monkeypatch.setattr(f"{place}.secret_pair_bins", self._bins(1))
            monkeypatch.setattr(f"{place}.secret_few", self._bins(2))

    def _bins(self, which: int) -> Any:
        def bins(*sizes: Any) -> Any:
            return bins_by_rank(self.order)[which](*sizes)  # of the present order

        return bins

    def _keep(self, statistics: Any, *, sensitivity: PermutationSensitivity, **_: Any) -> None:
        self.found.append((statistics, sensitivity))

    def _order(self, size: int) -> Any:
        return np.arange(size) if len(self.order) != size else self.order.copy()

    def __call__(self, rows: Any, labels: Any) -> tuple[Any, PermutationSensitivity]:
        # a row stays where it is whatever its group: neighbours differ in one place
        self.order = np.where(labels, np.cumsum(labels), labels.sum() + np.cumsum(~labels)) - 1
        mmd_test(rows[labels], rows[~labels], noise=SimulatedNoise(0), **self.options)
        return self.found.pop()


def losses(first, second, sensitivity, share=1.0):
    """What a decision and a p-value lose with a share of the noise: the larger of both."""
    laws = PermutedStatistics.from_list(first), PermutedStatistics.from_list(second)
    decision, pvalue = (
        share * noise_scale(sensitivity, EPSILON, release) for release in ("decision", "pvalue")
    )
    lost = [exact.decision_loss(*laws, decision, alpha) for alpha in (0.05, 0.3, 0.8)]
    return max(*lost, exact.pvalue_loss(*laws, pvalue, PVALUE_GRID, CELLS))


def attack(run, space, share=1.0):
    """Climb to neighbours that lose much; return the largest loss and the largest movements."""
    rng = np.random.default_rng(1)
    # groups change as well, and a start may be stuck where nothing is lost
    restarts, steps = (6, 50) if space.adjacency == "row" else (2, 35)
    best, moved = 0.0, np.zeros(2)
    for _ in range(restarts):
        pair, lost = harness._start(space, rng), -1.0
        for _ in range(steps):
            trial = pair.copy()
            for _ in range(int(rng.integers(1, 3))):
                harness._MOVES[rng.integers(len(harness._MOVES))](trial, space, rng)
            (first, bound), (second, same) = run(*trial.first()), run(*trial.second())
            assert bound == same  # it is public
            distance = np.abs(first - second)
            shares = distance[0] / bound.observed, distance[1:].max() / bound.permuted
            moved = np.maximum(moved, shares)
            found = losses(first, second, bound, share)
            if found >= lost:
                pair, lost = trial, found
        best = max(best, lost)
    return best, moved


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("statistics", [None, *STATISTICS])
def test_no_neighbours_lose_more_than_epsilon(statistics, scheme, monkeypatch):
    run = BeforeNoise(monkeypatch, scheme, statistics=statistics)
    lost, moved = attack(run, SCHEMES[scheme])
    assert np.all(moved <= 1)
    assert moved.max() > 0.8  # permuted labels: it takes more permutations to attain both
    assert 0.2 * EPSILON < lost <= EPSILON + ROUNDING


@pytest.mark.parametrize(
    ("scheme", "share"), [("one", 0.4), ("both", 0.4), ("swap", 0.4), ("permute", 0.25)]
)
def test_less_noise_is_caught(scheme, share, monkeypatch):
    """What is found for the default family is well above a third of epsilon."""
    lost, _ = attack(BeforeNoise(monkeypatch, scheme), SCHEMES[scheme], share)
    assert lost > EPSILON


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_weighs_members_is_public_but_for_their_variances(scheme, monkeypatch):
    """The same sizes, the same sensitivities and the same law under the null hypothesis."""
    strongest, seen = MMD.strongest, []

    def watched(values: Any, pooled: Any, *public: Any, **named: Any) -> Any:
        seen.append((len(values), repr((pooled.moves, pooled.most)), repr(public), named))
        return strongest(values, pooled, *public, **named)

    monkeypatch.setattr(MMD, "strongest", watched)
    run = BeforeNoise(monkeypatch, scheme)
    space, rng = SCHEMES[scheme], np.random.default_rng(2)
    for style in range(3):
        labels = np.arange(space.total) < (space.n if space.adjacency != "row" else 2 * style)
        run(style * space.rows(rng, space.total) / 2, labels)
    assert seen[0] == seen[1] == seen[2]


def test_a_result_says_which_family_and_not_which_member():
    """Two samples that differ in means only, and two that differ in a category."""
    rng = np.random.default_rng(3)
    shifted, same = rng.uniform(0.5, 1, size=40), rng.uniform(size=40)
    low, codes = rng.uniform(0, 0.5, size=40), rng.integers(3, size=40)
    pairs = [
        (np.column_stack([shifted, same, codes]), np.column_stack([low, same, codes])),
        (np.column_stack([same, same, 0 * codes]), np.column_stack([same, same, codes])),
    ]
    documents = []
    for x, y in pairs:
        result = mmd_test(x, y, bounds=SCHEMA, noise=SimulatedNoise(1), **options("one"))
        documents.append({**result.to_dict(), "pvalue": 0, "reject": False})
    assert documents[0] == documents[1]
    assert list(documents[0]["parameters"]["statistics"]) == list(STATISTICS)


# --- the whole test, sampled ------------------------------------------------------------------

FAR, NEAR = np.array([1.0, 1.0, 2.0]), np.zeros(3)
NOBODY = (0, 0)  # rows at FAR, of 3 in x and of 4 in y
NEIGHBOURS = [("one", (1, 0)), ("both", (1, 1)), ("permute", (1, 0)), ("swap", (1, 0))]


def whole_test(scheme):
    noise = SimulatedNoise(5)

    def run(far):
        x, y = (
            np.vstack([np.tile(FAR, (count, 1)), np.tile(NEAR, (size - count, 1))])
            for count, size in zip(far, (3, 4), strict=True)
        )
        return mmd_test(x, y, alpha=0.3, bounds=SCHEMA, noise=noise, **options(scheme)).pvalue

    return run


@pytest.mark.parametrize(("scheme", "somebody"), NEIGHBOURS)
def test_an_audit_finds_no_more_than_epsilon(scheme, somebody):
    assert audit(whole_test(scheme), NOBODY, somebody, runs=200) <= EPSILON


def test_an_audit_catches_hardly_any_noise(monkeypatch):
    """The other schemes hide more of seven rows: their noise is tested without sampling."""
    scale_of = permutation.noise_scale
    for module in (permutation, family):
        monkeypatch.setattr(module, "noise_scale", lambda *given: 0.005 * scale_of(*given))
    assert audit(whole_test("one"), NOBODY, (1, 0), runs=200, error=1e-3) > 1.1 * EPSILON
