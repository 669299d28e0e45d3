"""Kim and Schrab's own data sets and noise, drawn again from their seeds: is a gap due to the draw?

Their published runs seed JAX's generator (threefry; here in NumPy) with 42 or 43. Noise is that
of single precision, which the published rates of their naive test show to the last run; data is
that of double precision. Run: python -m benchmarks.power.authors_data. Writes
results/power-authors-data.json.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import save, start
from benchmarks.report import print_table
from privatest_papers.kim_schrab import paper_hsic_sensitivity, paper_mmd_sensitivity
from privatest_papers.kim_schrab_statistics import hsic_statistics, mmd_statistics
from privatest_papers.results import published
from privatest_papers.samplers import bump

Floats = NDArray[np.float64]
Words = NDArray[np.uint32]
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_RUNS, _PERMUTATIONS, _WIDTH, _ALPHA = 200, 2000, 0.25, 0.05
_SUBSETS, _SUB_ALPHA = 5, 0.18925  # of SARRM, where epsilon is so large that no vote is flipped
SIZES = (1000, 2000, 3000, 4000, 5000)


def threefry(key: Words, count: Words) -> Words:
    """Hash counters by keys (..., 2): JAX's random bits, 32 of each counter."""
    odd = len(count) % 2
    halves = np.split(np.append(count, np.zeros(odd, np.uint32)), 2)
    keys = [key[..., :1], key[..., 1:]]
    keys.append(keys[0] ^ keys[1] ^ np.uint32(0x1BD11BDA))
    first, second = halves[0] + keys[0], halves[1] + keys[1]
    for round_ in range(5):
        for turn in _ROTATIONS[round_ % 2]:
            first = first + second
            second = (second << np.uint32(turn)) | (second >> np.uint32(32 - turn))
            second = first ^ second
        first = first + keys[(round_ + 1) % 3]
        second = second + keys[(round_ + 2) % 3] + np.uint32(round_ + 1)
    bits = np.concatenate([first, second], axis=-1)
    return bits[..., :-1] if odd else bits


def split(key: Words, number: int = 2) -> Words:
    """Return new keys, (..., number, 2)."""
    bits = threefry(key, np.arange(2 * number, dtype=np.uint32))
    return bits.reshape(*key.shape[:-1], number, 2)


def uniform(key: Words, size: int) -> Floats:
    """Draw from [0, 1) in double precision, ``size`` of each key."""
    high, low = np.split(threefry(key, np.arange(2 * size, dtype=np.uint32)), 2, axis=-1)
    bits = (high.astype(np.uint64) << np.uint64(32)) | low
    return np.asarray(bits >> np.uint64(12), dtype=np.float64) * 2.0**-52


def laplace(key: Words, size: int) -> Floats:
    """Draw Laplace noise in single precision."""
    bits = threefry(key, np.arange(size, dtype=np.uint32))
    drawn = (bits >> np.uint32(9)).astype(np.float32) * np.float32(2.0**-23)
    least = np.float32(-1) + np.finfo(np.float32).epsneg
    signed = np.maximum(drawn * (np.float32(1) - least) + least, least)
    return np.asarray(np.sign(signed) * np.log1p(-np.abs(signed)), dtype=np.float64)


def perturbed(key: Words, n: int, columns: int, amplitude: float) -> Floats:
    """Draw all data sets by rejection, row after row, each from a key of its own."""
    keys, rows = split(key, _RUNS), np.zeros((_RUNS, n + 1, columns))
    known, lanes = np.zeros(_RUNS, dtype=np.intp), np.arange(_RUNS)
    while (known < n).any():
        pair = split(keys)
        proposed, pair = uniform(pair[:, 1], columns), split(pair[:, 0])
        height, keys = uniform(pair[:, 1], 1)[:, 0] * (1 + amplitude), pair[:, 0]
        rows[lanes, known] = proposed
        kept = height < 1 + amplitude * np.prod(bump(proposed), axis=1)
        known = np.minimum(known + kept, n)
    return rows[:, :n]


def samples(kind: str, key: Words, n: int, amplitude: float) -> tuple[Floats, Floats]:
    """Return both samples, or both columns, of all data sets."""
    keys = split(key, 3)
    if kind == "mmd":
        other = uniform(keys[2], _RUNS * n).reshape(_RUNS, n, 1)
        return perturbed(keys[0], n, 1, amplitude), other
    both = perturbed(keys[0], n, 2, amplitude)
    return both[..., :1], both[..., 1:]


def chained(key: Words, number: int) -> tuple[Words, Words]:
    """Split a key again and again; return the last, and all that were split off."""
    found = []
    for _ in range(number):
        key, own = split(key)
        found.append(own)
    return key, np.stack(found)


def by_size(kind: str, n: int, amplitude: float) -> tuple[tuple[Floats, Floats], Words]:
    """Data and keys of a figure in which n grows."""
    key, own, noise = np.array([0, 43], np.uint32), np.zeros(2, np.uint32), np.zeros(0, np.uint32)
    for _ in SIZES[: SIZES.index(n) + 1]:
        key, own = split(key)
        key, noise = chained(key, _RUNS)
    return samples(kind, own, n, amplitude), noise[:, None]


def by_epsilon(kind: str, n: int, amplitude: float) -> tuple[tuple[Floats, Floats], Words]:
    """Data and keys of a figure in which epsilon grows, over six values."""
    key, own = split(np.array([0, 42], np.uint32))
    _, noise = chained(key, _RUNS * 6)
    return samples(kind, own, n, amplitude), noise.reshape(_RUNS, 6, 2)


def rates(
    kind: str, data: tuple[Floats, Floats], keys: Words, epsilons: Sequence[float]
) -> NDArray[np.float64]:
    """Return rejection rates of the test and of its U-statistic at each epsilon."""
    n = data[0].shape[1]
    statistics = mmd_statistics if kind == "mmd" else hsic_statistics
    steps = (
        (paper_mmd_sensitivity(n, n), 4 / n)
        if kind == "mmd"
        else (paper_hsic_sensitivity(n), 2 / n)
    )
    found = np.zeros((2, len(epsilons)))
    for run in range(_RUNS):
        rng = np.random.default_rng([run, 1])
        values = statistics(data[0][run], data[1][run], _WIDTH, _PERMUTATIONS, rng)
        for place, epsilon in enumerate(epsilons):
            own = keys[run, place % keys.shape[1]]
            # the last of their values is the observed one
            noise = laplace(split(own)[1], _PERMUTATIONS + 1)[::-1]
            for which in range(2):
                noisy = values[which] + noise[: len(values[which])] * 2 * steps[which] / epsilon
                found[which, place] += np.mean(noisy >= noisy[0]) <= _ALPHA
    return found / _RUNS


def sarrm_rate(kind: str, data: tuple[Floats, Floats]) -> float:
    """Return how often SARRM rejects at a large epsilon: subsets are the rows in their order."""
    statistics = mmd_statistics if kind == "mmd" else hsic_statistics
    votes = np.zeros((_RUNS, _SUBSETS), dtype=bool)
    for run in range(_RUNS):
        rng = np.random.default_rng([run, 2])
        first, second = (np.split(side[run], _SUBSETS) for side in data)
        for place in range(_SUBSETS):
            values, _ = statistics(first[place], second[place], _WIDTH, _PERMUTATIONS, rng)
            votes[run, place] = np.mean(values >= values[0]) <= _SUB_ALPHA
    return float(np.mean(votes.sum(axis=1) > _SUBSETS // 2))


def main() -> None:
    """Measure the points of figures 2, 3, 9 and 10 at which other data sets differ most."""
    arrays = published("kim-schrab.json")["arrays"]
    root = math.sqrt(2000)
    cases: list[tuple[str, str, Callable[..., Any], int, float, list[tuple[str, int, float]]]] = [
        ("figure 2", "mmd", by_epsilon, 3000, 0.1, [
            ("uniform_mmd_power_vary_privacy_low", 5, math.sqrt(3000)),
        ]),
        ("figure 3", "mmd", by_size, 2000, 0.1, [
            ("uniform_mmd_power_vary_n_high", 1, 10 / root),
            ("uniform_mmd_power_vary_n_mid", 1, 1.0),
            ("uniform_mmd_power_vary_n_low", 1, root / 10),
        ]),
        ("figure 9", "hsic", by_epsilon, 3000, 0.15, [
            ("uniform_hsic_power_vary_privacy_low", place, epsilon)
            for place, epsilon in enumerate(arrays["uniform_hsic_power_vary_privacy_low"]["x"])
        ]),
        ("figure 10", "hsic", by_size, 3000, 0.1, [
            ("uniform_hsic_power_vary_n_low", 2, math.sqrt(3000) / 10),
        ]),
    ]  # fmt: skip
    rows: list[dict[str, Any]] = []
    for figure, kind, draw, n, amplitude, points in cases:
        data, keys = draw(kind, n, amplitude)
        found = rates(kind, data, keys, [epsilon for *_, epsilon in points])
        for column, (array, place, epsilon) in enumerate(points):
            for which, method in enumerate((f"dp{kind.upper()}", "U-statistic")):
                paper = arrays[array]["rates"][method][place]
                where = {"figure": figure, "n": n, "epsilon": round(epsilon, 4), "method": method}
                rows.append(where | {"published": paper, "own data": found[which, column]})
        if draw is by_epsilon:
            array, place, epsilon = points[-1]
            paper = arrays[array]["rates"]["SARRM"][place]
            where = {"figure": figure, "n": n, "epsilon": round(epsilon, 4), "method": "SARRM"}
            rows.append(where | {"published": paper, "own data": sarrm_rate(kind, data)})
        save("power-authors-data", {"runs": _RUNS, "rows": rows})
    print_table("the authors' own data sets", list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    start(main, __doc__)
