"""All permuted statistics of Kim and Schrab's tests at once, fast enough to run them often.

Nothing here is private, and nothing draws noise.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["hsic_statistics", "mmd_statistics"]

Floats = NDArray[np.float64]
_LANDMARKS = 48  # of one column: what is left of the kernel is below 1e-9
_ROWS = 1000  # of a Gram matrix at a time
_SMALLEST = 1e-13  # eigenvalues that are kept, of the largest


def mmd_statistics(
    x: Floats, y: Floats, bandwidth: float, permutations: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return MMD and its squared U-statistic, observed first, for samples of one size.

    Labels of one column are shifted in a random order of the rows: a group of permutations, so
    that the level is exact, and sums for all shifts are correlations, which Fourier's transform
    gives at once. Labels of several columns are permuted.

    Parameters
    ----------
    x, y : ndarray
        Rows; n of each.
    bandwidth : float
        w of exp(-|x-y|²/w²).
    permutations : int
        How many are drawn from ``rng``, of one column at most 2n - 1.
    """
    n, rows = len(x), np.vstack([x, y])
    signs = np.repeat([1.0, -1.0], n)
    if rows.shape[1] == 1:
        order = rng.permutation(2 * n)
        features = _features(rows[order], bandwidth)
        shifted = _correlation(features.T, signs[order])
        squares = _drawn(np.square(shifted).sum(axis=0), permutations, rng)
        whole = float(np.square(features.sum(axis=0)).sum())
    else:
        squares, whole = _permuted_squares(rows, signs, bandwidth, permutations, rng)
    biased = np.maximum(squares, 0.0) / n**2
    # sums within both samples are half of (all + squares), sums between a quarter of the rest
    within, between = (whole + squares) / 2, (whole - squares) / 4
    unbiased = (within - 2 * n) / (n * (n - 1)) - 2 * between / n**2
    return np.sqrt(biased), unbiased


def hsic_statistics(
    x: Floats, y: Floats, bandwidth: float, permutations: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return HSIC and its squared U-statistic, observed first, for shifts of the rows of ``y``.

    Shifts, by up to n - 1 rows, are a group of permutations. Parameters are as in
    :func:`mmd_statistics`.
    """
    n = len(x)
    if x.shape[1] == y.shape[1] == 1:
        first, second = _features(x, bandwidth), _features(y, bandwidth)
        together = np.zeros(n)
        for column in first.T:
            together += np.square(_correlation(second.T, column)).sum(axis=0)
        together = np.roll(together[::-1], 1)  # the other way round: y is shifted, not x
        sides = first @ first.sum(axis=0), second @ second.sum(axis=0)
    else:
        grams = _gram(x, x, bandwidth), _gram(y, y, bandwidth)
        together = _shifted_sums(*grams)
        sides = grams[0].sum(axis=1), grams[1].sum(axis=1)
    total = float(sides[0].sum()), float(sides[1].sum())
    across = _correlation(*sides)
    squares = together / n**2 + total[0] * total[1] / n**4 - 2 * across / n**3
    bare = (total[0] - n) * (total[1] - n) / ((n - 1) * (n - 2))
    bare_across = _correlation(sides[0] - 1, sides[1] - 1) * 2 / (n - 2)
    unbiased = (together - n + bare - bare_across) / (n * (n - 3))
    both = _drawn(np.stack([np.maximum(squares, 0.0), unbiased]), permutations, rng)
    return np.sqrt(both[0]), both[1]


def _drawn(values: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Keep the first value, and ``count`` of the others."""
    others = 1 + rng.permutation(values.shape[-1] - 1)[:count]
    result: Floats = values[..., np.concatenate([[0], others])]
    return result


def _permuted_squares(
    rows: Floats, signs: Floats, bandwidth: float, permutations: int, rng: np.random.Generator
) -> tuple[Floats, float]:
    """Return the square of each signed sum of features, and of the plain sum."""
    many = np.tile(signs, (permutations + 1, 1))
    rng.permuted(many[1:], axis=1, out=many[1:])
    squares, whole = np.zeros(permutations + 1), 0.0
    for start in range(0, len(rows), _ROWS):  # a whole matrix would not fit in memory
        own, later = slice(start, start + _ROWS), slice(start + _ROWS, None)
        # the matrix is symmetric: what is below its diagonal counts twice
        for block, times in ((own, 1.0), (later, 2.0)):
            gram = _gram(rows[block], rows[own], bandwidth)
            squares += times * np.einsum("bi,bi->b", many[:, block] @ gram, many[:, own])
            whole += times * float(gram.sum())
    return squares, whole


def _gram(rows: Floats, others: Floats, bandwidth: float) -> Floats:
    distances = rows @ others.T
    distances *= -2
    distances += np.square(rows).sum(axis=1)[:, None]
    distances += np.square(others).sum(axis=1)
    np.maximum(distances, 0, out=distances)
    distances *= -1 / bandwidth**2
    result: Floats = np.exp(distances, out=distances)
    return result


def _features(rows: Floats, bandwidth: float) -> Floats:
    """Return features whose products are the kernel of one column, to nine digits."""
    low, high = float(rows.min()), float(rows.max())
    angles = (np.arange(_LANDMARKS) + 0.5) * math.pi / _LANDMARKS
    nodes = (low + high) / 2 + (high - low) / 2 * np.cos(angles)
    values, vectors = np.linalg.eigh(np.exp(-np.square((nodes[:, None] - nodes) / bandwidth)))
    kept = values > _SMALLEST * values[-1]
    across = np.exp(-np.square((rows - nodes) / bandwidth))
    result: Floats = across @ (vectors[:, kept] / np.sqrt(values[kept]))
    return result


def _shifted_sums(first: Floats, second: Floats) -> Floats:
    """Return sum_ij first[i, j] second[i+t, j+t] for all t, modulo n, of symmetric matrices."""
    n = len(first)
    places = np.arange(n)
    total = np.zeros(n // 2 + 1, dtype=np.complex128)
    for start in range(0, n // 2 + 1, 256):
        lines = places[start : min(start + 256, n // 2 + 1), None]
        columns = (lines + places) % n
        one = np.fft.rfft(first[places, columns], axis=1)
        two = np.fft.rfft(second[places, columns], axis=1)
        # the matrices are symmetric: diagonals k and n - k are one another, shifted
        times = np.where((lines[:, 0] == 0) | (2 * lines[:, 0] == n), 1.0, 2.0)
        total += times @ (one.conj() * two)
    return np.fft.irfft(total, n)


def _correlation(first: Floats, second: Floats) -> Floats:
    """Return sum_i first[..., i] second[i+t] for all t."""
    spectrum = np.fft.rfft(first).conj() * np.fft.rfft(second)
    return np.fft.irfft(spectrum, first.shape[-1])
