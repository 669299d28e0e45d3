"""Tests give the same answer from memory and from a stream, to the last bit.

Same code, same blocks: whatever the parts, the batches and the threads are.
"""

from __future__ import annotations

import pickle
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privatest as pt
from privatest.core.privacy import Budget
from privatest.data import engines
from privatest.data.encoding import encode_sample
from privatest.data.engines import BLOCK_ROWS, EngineConfig, added
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.data.sources import Part, Source
from privatest.noise import SimulatedNoise
from privatest.synthetic.tables import measure_tables, plan_tables

HALF = BLOCK_ROWS + 2_345
N = 2 * HALF
RNG = np.random.default_rng(5)
NUMBERS = RNG.normal(0.6, 0.3, size=(N, 3))
NUMBERS[:, 2] = np.round(NUMBERS[:, 0] + RNG.normal(size=N), 1)  # ties, and another column's
CODES = RNG.integers(3, size=(N, 2))
LABELS = np.array(["a", "b", "c"])
COLUMNS = {
    **{name: NUMBERS[:, place] for place, name in enumerate("uvw")},
    "g": LABELS[CODES[:, 0]],
    "h": LABELS[np.where(RNG.random(N) < 0.5, CODES[:, 0], CODES[:, 1])],
    "k": CODES[:, 1] == 1,
}


class Rows(Part):
    """Some of the rows, in batches of one size."""

    label: str

    def __init__(self, start, stop, batch):
        self.start, self.stop, self.batch = start, stop, batch
        self.label = "a part"

    @property
    def rows(self):
        return self.stop - self.start

    def batches(self, columns):
        for first in range(self.start, self.stop, self.batch):
            part = slice(first, min(first + self.batch, self.stop))
            yield pa.record_batch({name: COLUMNS[name][part] for name in columns})


class Memory:
    """The first rows, or the others, in memory."""

    def __call__(self, *names, start=0):
        return pa.table({name: COLUMNS[name][start : start + HALF] for name in names})


class Streamed:
    def __init__(self, cuts, batch, threads):
        self.cuts, self.batch, self.threads = cuts, batch, threads

    def __call__(self, *names, start=0):
        inner = [start + cut for cut in sorted(self.cuts)]
        edges = [start, *inner, start + HALF]
        parts = tuple(Rows(a, b, self.batch) for a, b in pairwise(edges))
        return Source(names, parts, EngineConfig(threads=self.threads))


BOX = (0.0, 1.0)
OWN: dict[str, Any] = {"epsilon": 1.0, "rng": 0}
DELTA: dict[str, Any] = OWN | {"delta": 1e-6}
QUICK: dict[str, Any] = {"n_bootstrap": 19}
BOTH: dict[str, Any] = {"bounds_x": BOX, "bounds_y": BOX}
SIDES: dict[str, Any] = {"categories_x": list(LABELS), "categories_y": list(LABELS)}
GROUP = Schema({"g": CategoricalColumn(("a", "b", "c"))})


TESTS: dict[str, Any] = {
    "mean": lambda d, n: pt.private_mean(d("u", "v", "w"), bounds=BOX, noise=n, **OWN),
    "covariance": lambda d, n: pt.private_covariance(d("u", "v"), bounds=BOX, noise=n, **OWN),
    "hotelling": lambda d, n: pt.hotelling_test(
        d("u", "v"), d("u", "v", start=HALF), bounds=BOX, noise=n, **OWN, **QUICK
    ),
    "hotelling, delta": lambda d, n: pt.hotelling_1samp(
        d("u", "v"), [0.5, 0.6], bounds=BOX, noise=n, **DELTA, **QUICK
    ),
    "t": lambda d, n: pt.ttest_ind(
        d("u"), d("u", start=HALF), bounds=BOX, noise=n, equal_var=False, **OWN
    ),
    "paired t": lambda d, n: pt.ttest_rel(d("u"), d("w"), bounds=BOX, noise=n, **OWN),
    "tost": lambda d, n: pt.tost_rel(d("u"), d("v"), -0.1, 0.1, bounds=BOX, noise=n, **OWN),
    "anova": lambda d, n: pt.f_oneway(
        d("u"), d("u", start=HALF), d("u", start=9), bounds=BOX, noise=n, **OWN, **QUICK
    ),
    "pearson": lambda d, n: pt.pearsonr(d("u"), d("w"), noise=n, n_simulations=19, **BOTH, **OWN),
    "slope": lambda d, n: pt.linregress(d("u"), d("w"), noise=n, n_simulations=19, **BOTH, **OWN),
    "conditional": lambda d, n: pt.conditional_independence_test(
        d("u"), d("v"), d("w"), bounds_z=(-2, 3), noise=n, **BOTH, **OWN, **QUICK
    ),
    "hsic": lambda d, n: pt.hsic_test(
        d("u"), d("w"), noise=n, release="decision", n_permutations=99, **BOTH, **OWN
    ),
    "hsic, swaps": lambda d, n: pt.hsic_test(
        d("u", "v"), d("w"), noise=n, shuffle="swap", n_permutations=99, **BOTH, **OWN
    ),
    "test of tests": lambda d, n: pt.test_of_tests(
        d("u"), d("u", start=HALF), pvalue="mannwhitneyu", n_subsets=30, noise=n, **OWN
    ),
    "majority of tests": lambda d, n: pt.sarrm_test(
        d("u"), d("w"), pvalue="pearsonr", noise=n, **OWN | {"epsilon": 20.0}
    ),
    "sign": lambda d, n: pt.sign_test(d("u"), d("w"), noise=n, epsilon=1.0),
    "binomial": lambda d, n: pt.binom_test(d("k"), 0.3, noise=n, epsilon=1.0),
    "labels": lambda d, n: pt.binom_test(d("g"), 0.3, success="b", noise=n, epsilon=1.0),
    "proportions": lambda d, n: pt.proportions_test(
        d("g"), d("g", start=HALF), bounds=GROUP, success="a", noise=n, **OWN
    ),
    "shares of categories": lambda d, n: pt.chisquare(
        d("g"), categories=list(LABELS), noise=n, n_simulations=19, **OWN
    ),
    "contingency": lambda d, n: pt.chi2_contingency(
        d("g"), d("h"), noise=n, n_simulations=19, **SIDES, **OWN
    ),
    "median": lambda d, n: pt.private_median(d("u"), bounds=BOX, noise=n, epsilon=1.0),
    "shift": lambda d, n: pt.hodges_lehmann(
        d("u"), d("u", start=HALF), bounds=BOX, noise=n, epsilon=1.0, cells=64
    ),
    "me": lambda d, n: pt.me_test(
        d("u", "v"), d("u", "v", start=HALF), bounds=BOX, locations=3, noise=n, **DELTA
    ),
    "scf": lambda d, n: pt.scf_test(
        d("u"), d("u", start=HALF), bounds=BOX, frequencies=2, noise=n, **DELTA
    ),
    "paired me": lambda d, n: pt.me_test(
        d("u"), d("u", start=9), bounds=BOX, locations=3, paired=True, noise=n, **DELTA
    ),
    "statistic": lambda d, n: pt.me_test(
        d("u"), d("u", start=HALF), bounds=BOX, locations=3, release="statistic", noise=n, **OWN
    ),
    "permuted me": lambda d, n: pt.me_permutation_test(
        d("u", "v"), d("u", "v", start=HALF), bounds=BOX, locations=3, noise=n, **OWN
    ),
    "flipped me": lambda d, n: pt.me_permutation_test(
        d("u"), d("u", start=9), bounds=BOX, locations=3, paired=True, noise=n, **OWN
    ),
    "means": lambda d, n: pt.ipm_test(
        d("u", "v"), d("u", "v", start=HALF), bounds=BOX, distance="mean", noise=n, **OWN
    ),
    "total variation": lambda d, n: pt.ipm_test(
        d("g"), d("g", start=HALF), bounds=GROUP, distance="total-variation", noise=n, **OWN
    ),
    "Wasserstein": lambda d, n: pt.ipm_test(
        d("u"), d("u", start=HALF), bounds=BOX, distance="wasserstein", noise=n, **OWN
    ),
    "Kolmogorov": lambda d, n: pt.ipm_test(
        d("w"), d("w", start=HALF), bounds=BOX, distance="kolmogorov", noise=n, **OWN
    ),
    "Wasserstein, private groups": lambda d, n: pt.ipm_test(
        d("u"),
        d("u", start=HALF),
        bounds=BOX,
        distance="wasserstein",
        adjacency="row",
        relabel="swap",
        noise=n,
        **OWN,
    ),
    "means, private groups": lambda d, n: pt.ipm_test(
        d("u", "v"),
        d("u", "v", start=HALF),
        bounds=BOX,
        distance="mean",
        adjacency="row",
        relabel="swap",
        noise=n,
        **OWN,
    ),
    "ks, private groups": lambda d, n: pt.ks_2samp(  # so small an epsilon that labels are swapped
        d("w"),
        d("w", start=HALF),
        bounds=BOX,
        grid=64,
        adjacency="row",
        noise=n,
        rng=0,
        epsilon=0.01,
    ),
    "share": lambda d, n: pt.share(
        d("u", "v"), bounds=BOX, epsilon=1.0, delta=1e-6, locations=4, noise=n
    ),
}


def plain(result):
    """All that is released, in full precision."""
    if hasattr(result, "to_dict"):
        return repr(result.to_dict())
    shown = result.moments if hasattr(result, "moments") else result
    names = ("mean", "lower", "upper", "covariance", "second", "quantile")
    return [np.asarray(getattr(shown, name)).tolist() for name in names if hasattr(shown, name)]


@cache
def from_memory(name):
    return plain(TESTS[name](Memory(), SimulatedNoise(3)))


@pytest.mark.parametrize("name", TESTS)
@settings(max_examples=3, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, HALF), max_size=3), st.integers(3_000, 2 * N), st.integers(1, 3))
def test_a_stream_gives_the_answer_from_memory(name, cuts, batch, threads):
    found = TESTS[name](Streamed(cuts, batch, threads), SimulatedNoise(3))
    assert plain(found) == from_memory(name)


@pytest.mark.parametrize("name", TESTS)
def test_jobs_and_what_they_found_travel(name, monkeypatch):
    """As on a cluster: a job is sent, and its summary comes back, in another order."""

    def elsewhere(self, jobs, found):
        del self
        for place, job in reversed(jobs):
            with engines.one_blas_thread():
                summary = added([pickle.loads(pickle.dumps(job))])
            found[place].merge(pickle.loads(pickle.dumps(summary)))

    expected = from_memory(name)
    monkeypatch.setattr(engines.LocalEngine, "run", elsewhere)
    assert plain(TESTS[name](Streamed([HALF // 3], N, 1), SimulatedNoise(3))) == expected


@pytest.mark.parametrize("columns", [("u", "g"), ("u", "v", "w")])
def test_releases_by_tables_count_what_passes(columns):
    described = {
        name: CategoricalColumn(tuple(LABELS)) if name == "g" else NumericColumn(0, 1)
        for name in columns
    }
    schema = Schema(described)
    found = []
    for data in (Memory(), Streamed([5_000, 70_000], 30_000, 2)):
        sample = encode_sample(data(*columns), schema, units="own")
        plan = plan_tables(schema, len(sample), Budget(1, "1e-6"))
        found.append(measure_tables(sample, plan, SimulatedNoise(1))[1])
    for one, other in zip(found[0].measured, found[1].measured, strict=True):
        np.testing.assert_array_equal(one.counts, other.counts)
    for means in zip(found[0].moments, found[1].moments, strict=True):
        np.testing.assert_array_equal(*means)
