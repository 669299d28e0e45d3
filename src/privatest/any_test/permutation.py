"""Permutation p-values of the statistics of scipy.stats, for the rows of one subset.

SciPy's own p-values are approximate on few rows. Here labels (or partners) are permuted, and ties
are broken at random, so that under the null hypothesis a p-value is exactly uniform on the
multiples of 1/(number of permutations + 1): for every law of the rows, every number of them, and
with ties. Proof: docs/proofs/subsample.md, "The level of a subset".

A statistic is a function of one row of a matrix of permutations, the same for every row; larger
values speak against the null hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DEPENDENCE", "TWO_SAMPLE", "dependence_pvalue", "two_sample_pvalue"]

Values = NDArray[np.float64]
Order = NDArray[np.intp]
TwoSampleStatistic = Callable[["Pooled", Values], Values]
DependenceStatistic = Callable[[Values, Values], Callable[[Order], Values]]

_GRID = 1e-9  # statistics are rounded to multiples of it: rounding errors must not break ties
_CHUNK = 1 << 22  # entries of a matrix of permutations in memory


def two_sample_pvalue(
    statistic: TwoSampleStatistic,
    x: Values,
    y: Values,
    n_permutations: int,
    rng: np.random.Generator,
) -> float:
    """Return the p-value of a statistic when rows are assigned to the samples at random."""
    # in a random order, so that rows of equal value are in a random order when sorted
    shuffled = rng.permutation(len(x) + len(y))
    pooled = Pooled(np.concatenate([x, y])[shuffled])
    observed = (shuffled[pooled.order] < len(x)).astype(np.float64)
    chunks = _permuted(observed, n_permutations, rng)
    return _rank_pvalue(np.concatenate([statistic(pooled, inside) for inside in chunks]), rng)


def dependence_pvalue(
    statistic: DependenceStatistic,
    x: Values,
    y: Values,
    n_permutations: int,
    rng: np.random.Generator,
) -> float:
    """Return the p-value of a statistic when y is put in random orders."""
    shuffled = rng.permutation(len(x))
    evaluate = statistic(x, y[shuffled])
    chunks = _permuted(np.argsort(shuffled), n_permutations, rng)
    return _rank_pvalue(np.concatenate([evaluate(order) for order in chunks]), rng)


def _rank_pvalue(statistics: Values, rng: np.random.Generator) -> float:
    """Return the rank from above of the first, observed statistic; its place in a tie is random."""
    # what is not a number is the smallest: it must not make a p-value small
    rounded = np.nan_to_num(np.rint(statistics / _GRID), nan=-np.inf, posinf=np.inf)
    above = int(np.count_nonzero(rounded > rounded[0]))
    tied = int(np.count_nonzero(rounded == rounded[0]))
    return (above + int(rng.integers(1, tied + 1))) / len(statistics)


def _permuted(row: NDArray[Any], count: int, rng: np.random.Generator) -> Iterator[NDArray[Any]]:
    """Yield matrices with a row for the given order and for each of ``count`` random ones."""
    rows = max(1, _CHUNK // len(row))
    for start in range(0, count + 1, rows):
        chunk = np.tile(row, (min(rows, count + 1 - start), 1))
        first = 1 if start == 0 else 0  # the observed order
        chunk[first:] = rng.permuted(chunk[first:], axis=1)
        yield chunk


# --- two samples -----------------------------------------------------------------------------


class Pooled:
    """The rows of both samples in the order of their values, with their ties.

    Attributes
    ----------
    order : ndarray of int
        Positions of the sorted values in the input.
    values, ranks : ndarray
        Sorted, with midranks.
    starts, ends : ndarray of int
        For each distinct value, the numbers of rows below it and up to it.
    sizes : ndarray of int
        For each distinct value, how many rows have it.
    """

    def __init__(self, rows: Values) -> None:
        self.order: Order = np.argsort(rows, kind="stable")
        self.values: Values = rows[self.order]
        changes = np.flatnonzero(self.values[1:] != self.values[:-1]) + 1
        self.starts = np.concatenate([[0], changes])
        self.ends = np.concatenate([changes, [len(rows)]])
        self.sizes = self.ends - self.starts
        self.ranks = self.spread((self.starts + self.ends + 1) / 2)

    def spread(self, of_values: Values) -> Values:
        """Return for each row what its value has (along the last axis)."""
        return np.repeat(of_values, self.sizes, axis=-1)

    def average(self, scores: Values) -> Values:
        """Return the scores of rows with each averaged over the rows of the same value."""
        return self.spread(np.add.reduceat(scores, self.starts) / self.sizes)

    def counts(self, inside: Values) -> tuple[Values, Values]:
        """Return how many rows of the first sample are below each value, and up to it."""
        zeros = np.zeros((len(inside), 1))
        cumulative = np.hstack([zeros, np.cumsum(inside, axis=1)])
        return cumulative[:, self.starts], cumulative[:, self.ends]


def _sizes(inside: Values) -> tuple[float, float]:
    first = float(inside[0].sum())
    return first, inside.shape[1] - first


def _scaled(values: Values) -> Values:
    """Return values over their largest size: differences and squares then do not overflow."""
    largest = float(np.abs(values).max())
    return values / largest if largest > 0 else values


def _centred(scores: Values) -> Values:
    """Return scores with mean 0 and norm 1, or zeros if all are equal."""
    scaled = _scaled(scores)
    if np.all(scaled == scaled[0]):
        return np.zeros_like(scores)
    centred = scaled - scaled.mean()
    result: Values = centred / np.linalg.norm(centred)
    return result


def _score_sum(scores: Values, inside: Values) -> Values:
    """Return how far the sum of scores in the first sample is from its mean, either side."""
    # no matrix product: its last bits may depend on where a row is
    result: Values = np.abs(np.sum(inside * _centred(scores), axis=1))
    return result


def _rank_sum(pooled: Pooled, inside: Values) -> Values:
    return _score_sum(pooled.ranks, inside)


def _mean(pooled: Pooled, inside: Values) -> Values:
    # the pooled sum of squares is the same for all permutations: |t| grows with this
    return _score_sum(pooled.values, inside)


def _ansari_bradley(pooled: Pooled, inside: Values) -> Values:
    ranks = pooled.ranks
    return _score_sum(np.minimum(ranks, len(ranks) + 1 - ranks), inside)


def _mood(pooled: Pooled, inside: Values) -> Values:
    places = np.arange(1.0, len(pooled.values) + 1)
    return _score_sum(pooled.average((places - (len(places) + 1) / 2) ** 2), inside)


def _kolmogorov_smirnov(pooled: Pooled, inside: Values) -> Values:
    first, second = _sizes(inside)
    counts = pooled.counts(inside)[1]
    apart = np.abs((first + second) * counts - first * pooled.ends)  # integers
    result: Values = apart.max(axis=1) / (first * second)
    return result


def _cramer_von_mises(pooled: Pooled, inside: Values) -> Values:
    first, second = _sizes(inside)
    own = np.cumsum(inside, axis=1)
    other = np.arange(1, inside.shape[1] + 1) - own
    apart = np.sum(first * inside * (pooled.ranks - own) ** 2, axis=1)
    apart += np.sum(second * (1 - inside) * (pooled.ranks - other) ** 2, axis=1)
    product, n = first * second, first + second
    result: Values = apart / (product * n) - (4 * product - 1) / (6 * n)
    return result


def _anderson_darling(pooled: Pooled, inside: Values) -> Values:
    """Return the statistic of Scholz and Stephens with midranks (A²akN), for two samples."""
    first, second = _sizes(inside)
    n = first + second
    below, up_to = pooled.counts(inside)
    middle = (pooled.starts + pooled.ends) / 2
    spread = middle * (n - middle) - n * pooled.sizes / 4
    if len(spread) == 1:
        return np.zeros(len(inside))
    apart = (n * (below + up_to) / 2 - first * middle) ** 2
    result: Values = np.sum(apart * (pooled.sizes / spread), axis=1) / (n * first * second)
    return result


def _brunner_munzel(pooled: Pooled, inside: Values) -> Values:
    first, second = _sizes(inside)
    below, up_to = pooled.counts(inside)
    own = pooled.spread((below + up_to) / 2)
    other = pooled.spread((pooled.starts + pooled.ends) / 2) - own
    # placements: for a row of one sample, the share of the other sample below it
    x_mean, x_error = _mean_and_error(other / second, inside, first)
    y_mean, y_error = _mean_and_error(own / first, 1 - inside, second)
    apart, error = np.abs(x_mean - y_mean), np.sqrt(x_error + y_error)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(apart < _GRID, 0.0, apart / error)  # inf: without overlap
    return ratio


def _mean_and_error(values: Values, chosen: Values, size: float) -> tuple[Values, Values]:
    """Return the mean of the chosen values in each row, and its squared standard error."""
    mean = np.sum(chosen * values, axis=1) / size
    spread = np.sum(chosen * (values - mean[:, None]) ** 2, axis=1) / size
    # placements are multiples of 1/(2 size): what is smaller than this is rounding
    return mean, np.where(spread < 1e-20, 0.0, spread) / max(size - 1, 1)


def _epps_singleton(pooled: Pooled, inside: Values) -> Values:
    first, second = _sizes(inside)
    values = _scaled(pooled.values)
    low, high = np.percentile(values, [25, 75])
    scale = (high - low) / 2
    if scale < 1e-12:  # angles that large have no digits
        return np.zeros(len(inside))
    angles = values * (np.array([[0.4], [0.8]]) / scale)
    waves = np.vstack([np.cos(angles), np.sin(angles)]).T
    squares = (waves[:, :, None] * waves[:, None, :]).reshape(len(waves), -1)
    covariance = np.zeros((len(inside), 4, 4))
    means = []
    for chosen, size in ((inside, first), (1 - inside, second)):
        mean = _sums(chosen, waves) / size
        square = (_sums(chosen, squares) / size).reshape(-1, 4, 4)
        covariance += (square - mean[:, :, None] * mean[:, None, :]) / size
        means.append(mean)
    apart = means[0] - means[1]
    inverse = np.linalg.pinv(covariance, rcond=1e-12, hermitian=True)
    result: Values = np.einsum("bi,bij,bj->b", apart, inverse, apart)
    return result


def _sums(chosen: Values, columns: Values) -> Values:
    return np.column_stack([np.sum(chosen * column, axis=1) for column in columns.T])


TWO_SAMPLE: Mapping[str, TwoSampleStatistic] = MappingProxyType(
    {
        "anderson_ksamp": _anderson_darling,
        "ansari": _ansari_bradley,
        "brunnermunzel": _brunner_munzel,
        "cramervonmises_2samp": _cramer_von_mises,
        "epps_singleton_2samp": _epps_singleton,
        "kruskal": _rank_sum,
        "ks_2samp": _kolmogorov_smirnov,
        "mannwhitneyu": _rank_sum,
        "mood": _mood,
        "ttest_ind": _mean,
    }
)


# --- dependence ------------------------------------------------------------------------------


def _product_sum(x: Values, y: Values) -> Callable[[Order], Values]:
    first, second = _centred(x), _centred(y)
    return lambda order: np.abs(np.sum(second[order] * first, axis=1))


def _pearson(x: Values, y: Values) -> Callable[[Order], Values]:
    return _product_sum(x, y)


def _spearman(x: Values, y: Values) -> Callable[[Order], Values]:
    return _product_sum(_midranks(x), _midranks(y))


def _midranks(values: Values) -> Values:
    pooled = Pooled(values)
    ranks = np.empty_like(pooled.ranks)
    ranks[pooled.order] = pooled.ranks
    return ranks


def _kendall(x: Values, y: Values) -> Callable[[Order], Values]:
    """Return |concordant - discordant| as a share of all pairs; tau-b is a multiple of it."""
    along = Pooled(x)
    group = np.repeat(np.arange(len(along.sizes)), along.sizes)
    ranks = (2 * _midranks(y)).astype(np.int32)

    def evaluate(order: Order) -> Values:
        permuted = np.ascontiguousarray(ranks[order[:, along.order]].T)
        balance = np.zeros(len(order), dtype=np.int64)
        for step in range(1, len(x)):  # pairs of rows i and i + step
            low, high = permuted[:-step], permuted[step:]
            signs = (high > low).view(np.int8) - (high < low).view(np.int8)
            apart = (group[step:] > group[:-step]).astype(np.float32)  # x is not equal
            balance += (apart @ signs.astype(np.float32)).astype(np.int64)  # integers below 2^24
        result: Values = np.abs(balance) / (len(x) * (len(x) - 1) / 2)
        return result

    return evaluate


DEPENDENCE: Mapping[str, DependenceStatistic] = MappingProxyType(
    {"kendalltau": _kendall, "pearsonr": _pearson, "spearmanr": _spearman}
)
