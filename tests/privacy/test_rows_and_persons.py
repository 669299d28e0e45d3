"""Two rules that every test keeps: rows come in a secret order, and a person may have several.

A file may be sorted by value, so whatever cuts or permutes rows by position must shuffle them
first (docs/proofs/row-order.md). And where a person may have three rows, a statistic moves three
times as far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import privatest as pt
from privatest.core import secret_order
from privatest.data import engines
from privatest.mechanisms import lattice, permutation
from privatest.mechanisms import permutation as family
from privatest.methods import signs as nonzero
from privatest.noise import SimulatedNoise

N, M = 90, 70  # apart, so that an order of one sample cannot serve the other
RNG = np.random.default_rng(0)
X, Y = np.sort(RNG.uniform(size=N)), np.sort(RNG.uniform(size=M))  # sorted, as files are
PARTNER = RNG.uniform(size=N)

Run = Callable[..., Any]
FEW: dict[str, Any] = {"n_permutations": 99, "rng": 0}
ROW: dict[str, Any] = {"adjacency": "row", **FEW}
ONE_WIDTH: dict[str, Any] = {"bandwidths": 0.5}


def two(test: Run, **more: Any) -> Run:
    return lambda x, y, _, bounds, **o: test(x, y, bounds=bounds, **more, **o)


def sides(**more: Any) -> Run:
    return lambda x, _, z, bounds, **o: pt.hsic_test(
        x, z, bounds_x=bounds, bounds_y=bounds, **FEW, **more, **o
    )


def gap(x: Any, y: Any) -> float:
    return abs(float(np.mean(x)) - float(np.mean(y)))


def by_position(x: Any, y: Any) -> float:
    """A statistic that sees where a row stands."""
    return abs(float(np.mean(x[: len(x) // 3])) - float(np.mean(y))) / 9


PERMUTED: dict[str, Run] = {
    "mmd": two(pt.mmd_test, bin_size=7, **ONE_WIDTH, **FEW),
    "mmd row": two(pt.mmd_test, relabel="permute", **ONE_WIDTH, **ROW),
    "mmd pairs row": two(pt.mmd_test, relabel="swap", **ONE_WIDTH, **ROW),
    "family": two(pt.mmd_test, bin_size=7, **FEW),
    "family row": two(pt.mmd_test, relabel="permute", **ROW),
    "family pairs row": two(pt.mmd_test, relabel="swap", **ROW),
    "ipm": two(pt.ipm_test, distance="wasserstein", **FEW),
    "ipm mean": two(pt.ipm_test, distance="mean", **FEW),
    "ipm row": two(pt.ipm_test, distance="mean", **ROW),
    "ks row": two(pt.ks_2samp, **ROW),
    "mann-whitney row": two(pt.mannwhitneyu, **ROW),
    "me": two(pt.me_permutation_test, locations=[0.3, 0.7], **FEW),
    "scf": two(pt.scf_permutation_test, frequencies=[[2.0]], **FEW),
    "own": lambda x, y, _, bounds, **o: pt.permutation_test(
        (x, y), gap, sensitivity=0.1, check_sensitivity=False, bounds=bounds, **FEW, **o
    ),
    "hsic": lambda x, _, z, bounds, **o: pt.hsic_test(
        x, z, bounds_x=bounds, bounds_y=bounds, bandwidths_x=0.5, bandwidths_y=0.5, **FEW, **o
    ),
    "hsic family": sides(shuffle="permute"),
    "hsic pairs": sides(shuffle="swap"),
    "hsic trend": sides(statistics="trend"),
}
LATTICE: dict[str, Run] = {
    "ks": two(pt.ks_2samp),
    "ks one sample": lambda x, _y, _z, bounds, **o: pt.ks_1samp(x, "uniform", bounds=bounds, **o),
    "family": lambda x, _y, _z, bounds, **o: pt.ks_family(x, "normal", bounds=bounds, **o),
    "mann-whitney": two(pt.mannwhitneyu),
    "median": two(pt.median_test),
    "kruskal": lambda x, y, _, bounds, **o: pt.kruskal(x, y, bounds=bounds, **o),
    "sign": lambda x, _, z, bounds, **o: pt.sign_test(x, z, bounds=bounds, **o),
    "wilcoxon": lambda x, _, z, bounds, **o: pt.wilcoxon(x, z, bounds=bounds, **o),
    "symmetry": lambda x, _, z, bounds, **o: pt.symmetry_test(x, z, bounds=bounds, **o),
    "tests": two(pt.test_of_tests, pvalue="mannwhitneyu", n_subsets=7),
}
# rows are put in bins as they pass, or in the order of their keys
HSIC = ("hsic", "hsic family", "hsic pairs", "hsic trend")
KEYED = ("ipm mean", "me", "scf", "tests", *HSIC)
ORDERED = PERMUTED | {
    "own": lambda x, y, _, bounds, **o: pt.permutation_test(
        (x, y), by_position, sensitivity=0.2, check_sensitivity=False, bounds=bounds, **FEW, **o
    ),
    "tests": two(pt.test_of_tests, pvalue="mannwhitneyu", n_subsets=7),
}


def run(test: Run, x: Any = X, y: Any = Y, z: Any = PARTNER, rows: int = 1) -> Any:
    schema = pt.Schema.from_bounds({"a": (0, 1)}, rows_per_person=rows)
    return test(x, y, z, bounds=schema, epsilon=60, noise=SimulatedNoise(1))


def shuffle(monkeypatch: pytest.MonkeyPatch, orders: dict[int, Any]) -> None:
    """Put chosen orders in the place of secret ones; no other draw is changed."""
    monkeypatch.setattr(SimulatedNoise, "permutation", lambda _, size: orders[size].copy())


@pytest.mark.parametrize("name", KEYED)
def test_rows_are_put_in_bins_by_secret_keys(name, monkeypatch):
    draw = np.random.default_rng(1)
    shuffled = {size: draw.permutation(size) for size in (N, M)}

    def order_by(orders: dict[int, Any]) -> None:
        def keys(_secret: bytes, start: int, stop: int) -> Any:
            return (np.argsort(orders[stop]).astype(np.uint64) << np.uint64(40))[start:]

        monkeypatch.setattr(secret_order, "_keys", keys)

    order_by(shuffled)
    given = run(ORDERED[name]).pvalue
    order_by({size: np.arange(size) for size in shuffled})
    assert run(ORDERED[name]).pvalue != given
    rows = X[shuffled[N]], Y[shuffled[M]], PARTNER[shuffled[N]]
    assert run(ORDERED[name], *rows).pvalue == given


@pytest.mark.parametrize("name", [name for name in ORDERED if name not in KEYED])
def test_rows_are_taken_in_a_secret_order(name, monkeypatch):
    draw = np.random.default_rng(1)
    shuffled = {size: draw.permutation(size) for size in (N, M, N + M)}
    if not name.endswith("row"):  # pairs of rows, for the pooled variances of a family
        shuffled[N + M] = np.concatenate([shuffled[N], N + shuffled[M]])
    stored = {size: np.arange(size) for size in shuffled}
    shuffle(monkeypatch, shuffled)
    given = run(ORDERED[name]).pvalue
    shuffle(monkeypatch, stored)
    assert run(ORDERED[name]).pvalue != given
    if name.endswith("row"):
        return  # rows and groups are shuffled together, which no order of samples can do
    rows = X[shuffled[N]], Y[shuffled[M]], PARTNER[shuffled[N]]
    assert run(ORDERED[name], *rows).pvalue == given


@pytest.mark.parametrize("name", [*PERMUTED, *LATTICE])
def test_rows_of_a_person_multiply_the_sensitivity(name, monkeypatch):
    seen: list[float] = []
    scale_of, law_of, part_of = permutation.noise_scale, lattice.noise_law, lattice.part_law

    def scale(sensitivity: Any, *rest: Any) -> float:
        seen.append(sensitivity.permuted)
        return scale_of(sensitivity, *rest)

    def law(width: int, *rest: Any, **options: Any) -> Any:
        seen.append(width)
        return law_of(width, *rest, **options)

    def part(width: int, epsilon: float) -> Any:
        seen.append(width)
        return part_of(width, epsilon)

    for module in (family, permutation):
        monkeypatch.setattr(module, "noise_scale", scale)
    monkeypatch.setattr(lattice, "noise_law", law)
    monkeypatch.setattr(nonzero, "part_law", part)  # what is left for the statistic
    # as many differences count, whatever the noise
    monkeypatch.setattr(nonzero, "noisy_integer", lambda value, **_: float(value))
    declared = []
    for rows in (1, 3):
        seen.clear()
        run((PERMUTED | LATTICE)[name], rows=rows)
        declared.append(seen[0])
    assert declared[1] == pytest.approx(3 * declared[0], rel=1e-3)


POINTS = {"public_points": [[0.2, 0.3], [0.7, 0.1], [0.5, 0.9]]}


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": (0, 1), "method": "subspace"},
        # with bounds all orders have the same error, which is paid for
        {"method": "features", "bandwidth": 0.5, **POINTS},
    ],
)
def test_a_release_sums_its_rows_in_a_secret_order(options, monkeypatch):
    """Kernel values and angles depend on a row's place, by their last digits."""
    seen: list[Any] = []
    original = engines.BlockJob.add_to

    def watched(self: Any, *told: Any) -> Any:
        seen.extend(rows.copy() for _, rows in self.held.blocks(self.start, self.stop))
        return original(self, *told)

    monkeypatch.setattr(engines.BlockJob, "add_to", watched)
    rows, found = np.column_stack([X, PARTNER]), []
    for seed in (1, 2):
        noise = SimulatedNoise(seed)
        pt.release(rows, epsilon=5, delta=1e-6, noise=noise, rng=0, **options)
        found.append(np.vstack(seen))
        seen.clear()
    assert (found[0] != found[1]).any()
    for each in found:
        assert (each != rows).any()
        np.testing.assert_array_equal(np.sort(each, axis=0), np.sort(rows, axis=0))
