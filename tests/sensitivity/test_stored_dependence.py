"""What hsic_test computes of neighbours that are stored in different orders, from the rows on.

Files are sorted by value, so that a replaced record shifts others. Shared records have the same
secret keys in both files: the coupling of docs/proofs/secret-order.md.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import privatest as pt
from privatest.core import secret_order
from privatest.data.encoding import encode_pairs
from privatest.noise import SimulatedNoise
from privatest.numerics.independence import DependenceQuery, compute, make_plan
from privatest.numerics.kernels import kernel_grid

N = 70  # two rows in each block, and leftovers
BOX = {"a": (0, 1), "b": (0, 1), "c": (0, 1)}


def file_of(records, keys):
    """Records as they are stored, sorted by value, and the key of each row."""
    stored = np.lexsort(records.T[::-1])
    return records[stored], keys[stored]


def statistics(records, keys, shuffle, *, scanned):
    rows, own = file_of(records, keys)
    table = pa.table(dict(zip("abc", rows.T, strict=True)))
    data = pt.scan(table, threads=1) if scanned else table
    sides = encode_pairs(
        data.select(["a", "b"]), data.select(["c"]), {k: BOX[k] for k in "ab"}, {"c": (0, 1)}
    )
    kernels = tuple(kernel_grid("gaussian", None, side.domain) for side in sides)
    query = DependenceQuery(None, "v", "auto", shuffle, 60, True, "decision", 0.8, 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret_order, "_keys", lambda _secret, start, stop: own[start:stop])
        plan = make_plan(sides, kernels, query)  # type: ignore[arg-type]
        return compute(plan, np.random.default_rng(0), SimulatedNoise(0))


def furthest(first, second):
    """How far statistics move, as a share of what they declare; trends from the observed."""
    ratios = []
    moved = np.abs(first.family.values - second.family.values)
    for own, bound in zip(moved, first.family.sensitivities, strict=True):
        ratios += [own[0] / bound.observed, own[1:].max() / bound.permuted]
    differences = [values[:, :1] - values for values, _ in (first.trends, second.trends)]
    ratios.append(np.abs(differences[0] - differences[1]).max() / first.trends[1].permuted)
    return max(ratios)


def corners(rng):
    """A record that is replaced, among others that differ little: then it moves much."""
    records = np.clip(rng.normal(0.1, 0.05, size=(N, 3)), 0, 1)
    records[rng.random(N) < 0.3] = rng.integers(2, size=3)
    other = records.copy()
    place = rng.integers(N)
    records[place], other[place] = rng.integers(2, size=3), rng.integers(2, size=3)
    return records, other


@pytest.mark.parametrize("shuffle", ["permute", "swap"])
@pytest.mark.parametrize("scanned", [False, True])
def test_stored_orders_do_not_matter(shuffle, scanned):
    largest = 0.0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        records, other = corners(rng)
        keys = rng.permutation(N).astype(np.uint64) << np.uint64(40)
        found = [statistics(each, keys, shuffle, scanned=scanned) for each in (records, other)]
        largest = max(largest, furthest(*found))
    assert 0.3 < largest <= 1 + 1e-9


def test_without_secret_keys_sorted_files_would_break_the_bound():
    """A record that goes from the first place to the last shifts all others."""
    rng = np.random.default_rng(0)
    records = rng.uniform(size=(N, 3))
    records[:, 2] = records[:, 0]
    other = records.copy()
    records[0], other[0] = 0.0, 1.0
    found = []
    for each in (records, other):
        stored = np.argsort(np.lexsort(each.T[::-1])).astype(np.uint64)  # keys by place
        found.append(statistics(each, stored, "permute", scanned=False))
    assert furthest(*found) > 1.5
