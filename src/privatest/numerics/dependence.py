"""Sums of products of functions of x and of y, as independence tests need them, in one pass.

Rows come in a secret order. Blocks are permuted, or y is swapped within pairs of rows:
:class:`BlockProducts` and :class:`PairProducts` hold what all permutations or swaps are made from.
Proof of the rounding bounds: docs/proofs/exact-sums.md.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privatest.core.privacy import SMALLEST_SENSITIVITY, PermutationSensitivity
from privatest.data.encoding import Sample
from privatest.data.engines import BLOCK_ROWS, within_block
from privatest.data.schema import Domain
from privatest.data.summaries import PIECE, FixedPoint, pieces, summarise
from privatest.numerics.features import Basis, SharedFeatures
from privatest.numerics.kernels import UNIT_ROUNDOFF, Kernel, gram, gram_roundings, grams
from privatest.numerics.permutation import parallel

BLOCKS = 32  # blocks of rows that are permuted
_BINS = 128  # of pairs, which are swapped together
_MOST_ENTRIES = 1 << 25  # sums of one pass: 256 MiB for each worker
_SUM_ENTRIES = 1 << 16  # sums of permutations held at a time: they stay in the processor's cache
_SIGNED_ENTRIES = 1 << 21

Matrix = NDArray[np.float64]
Reduce = Callable[[Matrix], Matrix]
"""Permutations × functions of x × functions of y, to permutations × statistics.

Each statistic has to be a norm, or linear: what it returns is divided by the number of rows.
"""


@dataclass(frozen=True, slots=True, eq=False)
class Bases:
    """Functions of the rows of each side; they travel to other processes.

    Parameters
    ----------
    left, right : function
        Encoded rows to rows × functions, each row by itself.
    widths : (int, int)
        How many functions.
    reaches : (float, float)
        Bounds on their absolute values, at least 1.
    """

    left: Basis
    right: Basis
    widths: tuple[int, int]
    reaches: tuple[float, float] = (1.0, 1.0)

    def of_rows(self, x: Matrix, y: Matrix) -> tuple[Matrix, Matrix]:
        """Return the functions of a block of rows, which are made piece by piece."""
        made = []
        sides = zip((self.left, self.right), (x, y), self.widths, strict=True)
        for basis, rows, width in sides:
            out = np.empty((len(rows), width))
            for place, piece in enumerate(pieces(rows)):
                out[place * PIECE : place * PIECE + len(piece)] = basis(piece)
            made.append(out)
        return made[0], made[1]

    @property
    def size(self) -> int:
        """Number of pairs of functions."""
        return math.prod(self.widths)

    @property
    def reach(self) -> float:
        """Bound on the absolute value of a product."""
        return math.prod(self.reaches)


class Products(Protocol):
    """Sums of products over the rows of a sample."""

    def update(self, x: Matrix, y: Matrix, start: int) -> None:
        """Add a block of both sides."""

    def merge(self, other: Any) -> None:
        """Add other blocks."""

    def reduced(self, draws: NDArray[Any], reduce: Reduce) -> Matrix:
        """Return statistics × permutations, of cross-covariances."""

    def rounding(self, widths: int = 0) -> float:
        """Bound the rounding of a covariance of vectors of norm at most 1, but for fixed point."""

    @property
    def fixed(self) -> float:
        """Bound how far fixed point puts an entry of a cross-covariance off."""


class BlockProducts:
    """Sums over every pair of blocks, of x and of y.

    Row r of the secret order is in block r mod ``blocks``. A permutation pairs block a of x with
    block pi(a) of y, place by place: a subgroup of all permutations. Rows that are left over at
    the end keep their partners.
    """

    __slots__ = ("bases", "blocks", "left", "products", "rest", "right", "total")

    def __init__(self, bases: Bases, total: int, blocks: int) -> None:
        self.bases, self.total, self.blocks = bases, total, blocks
        reach = bases.reach
        self.products = FixedPoint((blocks, blocks, *bases.widths), total // blocks * reach)
        self.rest = FixedPoint(bases.widths, blocks * reach)
        self.left, self.right = (
            FixedPoint((width,), total * own)
            for width, own in zip(bases.widths, bases.reaches, strict=True)
        )

    def update(self, x: Matrix, y: Matrix, start: int) -> None:
        """Add a block of rows, which begins with one of block 0."""
        left, right = self.bases.of_rows(x, y)
        whole = self.total - self.total % self.blocks
        inside = min(max(whole - start, 0), len(x))
        shape = (inside // self.blocks, self.blocks)
        leading = left[:inside].reshape(*shape, left.shape[1])
        partners = right[:inside].reshape(*shape, right.shape[1])
        flat = partners.reshape(shape[0], -1)

        def one(block: int) -> None:
            sums = leading[:, block].T @ flat
            by_partner = sums.reshape(left.shape[1], self.blocks, -1).transpose(1, 0, 2)
            self.products.add(by_partner, block)

        work = inside * self.blocks * self.bases.size // 16
        for _ in within_block(one, range(self.blocks), self.total, work):
            pass
        self.rest.add(left[inside:].T @ right[inside:])
        # by block first, as products are: one sum over all rows would round more
        self.left.add(leading.sum(axis=0).sum(axis=0) + left[inside:].sum(axis=0))
        self.right.add(partners.sum(axis=0).sum(axis=0) + right[inside:].sum(axis=0))

    def merge(self, other: BlockProducts) -> None:
        """Add other blocks."""
        for name in ("products", "rest", "left", "right"):
            getattr(self, name).merge(getattr(other, name))

    def reduced(self, draws: NDArray[np.intp], reduce: Reduce) -> Matrix:
        """Reduce the cross-covariance of each permutation of blocks (permutations × blocks)."""
        products = self.products.value
        # what all permutations share: leftover rows, less the product of the means
        fixed = self.rest.value - np.outer(self.left.value, self.right.value) / self.total

        def statistics(chunk: NDArray[np.intp]) -> Matrix:
            sums = np.broadcast_to(fixed, (len(chunk), *fixed.shape)).copy()
            for block, partners in enumerate(chunk.T):
                sums += products[block, partners]
            return reduce(sums) / self.total

        return _in_chunks(statistics, draws, max(1, _SUM_ENTRIES // fixed.size), fixed.size)

    def rounding(self, widths: int = 0) -> float:
        """Bound the rounding of a covariance of vectors of norm at most 1, but for fixed point.

        No sum has more additions one after the other than a block of rows has places, and two for
        each block that is permuted. The mean product and both means are off by so many each.
        """
        places = min(self.total, BLOCK_ROWS) / self.blocks
        return 4 * (places + 2 * self.blocks + widths + 64) * UNIT_ROUNDOFF

    @property
    def fixed(self) -> float:
        """Bound how far fixed point puts an entry of a cross-covariance off."""
        return _fixed(self.total, self.bases.reach)


class PairProducts:
    """Sums, over bins of pairs of rows, of products of differences within pairs.

    Rows 0 and 1, 2 and 3, ... make pairs (a, b). The covariance is the mean over pairs of
    (f(x_a) - f(x_b)) (x) (g(y_a) - g(y_b))/2, and swapping y_a and y_b turns a pair's sign. An odd
    last row is in no pair.
    """

    __slots__ = ("bases", "edges", "products", "total")

    def __init__(self, bases: Bases, total: int) -> None:
        self.bases, self.total, self.edges = bases, total, pair_edges(total)
        largest = int(self.edges[1]) / 2 * 4 * bases.reach  # differences are twice as large
        self.products = FixedPoint((len(self.edges) - 1, bases.size), largest)

    def update(self, x: Matrix, y: Matrix, start: int) -> None:
        """Add a block of rows, which begins with a pair."""
        stop = min(start + len(x), int(self.edges[-1]))
        if stop <= start:
            return
        made = self.bases.of_rows(x[: stop - start], y[: stop - start])
        left, right = (np.subtract(side[::2], side[1::2]) for side in made)
        first = int(np.searchsorted(self.edges, start, side="right")) - 1
        last = int(np.searchsorted(self.edges, stop))
        cuts = (np.clip(self.edges[first : last + 1], start, stop) - start) // 2
        sums = [left[a:b].T @ right[a:b] for a, b in pairwise(cuts)]
        self.products.add(np.reshape(sums, (len(sums), -1)), slice(first, last))

    def merge(self, other: PairProducts) -> None:
        """Add other blocks."""
        self.products.merge(other.products)

    def reduced(self, draws: Matrix, reduce: Reduce) -> Matrix:
        """Reduce the cross-covariance of each draw of signs (permutations × bins)."""
        products, widths = self.products.value, self.bases.widths

        def statistics(chunk: Matrix) -> Matrix:
            return reduce((chunk @ products).reshape(len(chunk), *widths)) / self.total

        size = max(1, _SIGNED_ENTRIES // self.bases.size)
        return _in_chunks(statistics, draws, size, self.bases.size)

    def rounding(self, widths: int = 0) -> float:
        """Bound the rounding of a covariance of vectors of norm at most 1, but for fixed point.

        A bin's pairs within a block of rows are added up, then blocks, then signed bins.
        """
        bins = len(self.edges) - 1
        together = min(int(self.edges[1]), BLOCK_ROWS) / 2
        return 4 * (together + 2 * bins + widths + 64) * UNIT_ROUNDOFF

    @property
    def fixed(self) -> float:
        """Bound how far fixed point puts an entry of a cross-covariance off."""
        return _fixed(self.total, self.bases.reach)


def pair_edges(rows: int) -> NDArray[np.intp]:
    """Where each bin of pairs starts, and the end; an odd last row is in none."""
    pairs = rows // 2
    size = -(-pairs // _BINS)
    return 2 * np.minimum(np.arange(0, pairs + size, size), pairs)


def _fixed(total: int, reach: float) -> float:
    """Bound the error of fixed point: each block of rows is rounded once in every sum.

    Sums over blocks or bins, of leftover rows and of both sides have errors of at most
    2^-61 reach for each block of rows, when divided by the rows.
    """
    return 5 * (-(-total // BLOCK_ROWS)) * reach * 2.0**-61


class _CrossSums:
    """Several sums of products of the same rows: those of x, and beside them those of y."""

    __slots__ = ("every", "makers", "split")

    def __init__(self, split: int, makers: Sequence[Callable[[], Products]]) -> None:
        self.split, self.makers = split, makers
        self.every: list[Products] = []  # made when they are needed: they are large

    def update(self, rows: Matrix, start: int) -> None:
        """Add a block."""
        self.every = self.every or [make() for make in self.makers]
        x, y = (np.ascontiguousarray(side) for side in np.split(rows, [self.split], axis=1))
        for products in self.every:
            products.update(x, y, start)

    def merge(self, other: _CrossSums) -> None:
        """Add other blocks."""
        if not self.every:
            self.every = other.every
            return
        for own, more in zip(self.every, other.every, strict=bool(other.every)):
            own.merge(more)


def cross_sums(
    rows: Sample, split: int, asked: Sequence[tuple[Bases, int | None]]
) -> Iterator[Products]:
    """Go through rows in their secret order, once for as many sums as there is room for.

    Parameters
    ----------
    rows : Sample
        Columns of x, ``split`` of them, and of y.
    asked : sequence of (Bases, int or None)
        What is summed: over pairs of so many blocks, or with None over pairs of rows.
    """
    waiting = deque(asked)
    while waiting:
        makers: list[Callable[[], Products]] = []
        room = _MOST_ENTRIES
        while waiting and (not makers or room >= _entries(*waiting[0])):
            bases, blocks = waiting.popleft()
            room -= _entries(bases, blocks)
            makers.append(_maker(bases, len(rows), blocks))
        (sums,) = summarise((rows, partial(_CrossSums, split, makers)))
        yield from sums.every


def _entries(bases: Bases, blocks: int | None) -> int:
    return bases.size * (_BINS if blocks is None else blocks**2)


def _maker(bases: Bases, total: int, blocks: int | None) -> Callable[[], Products]:
    if blocks is None:
        return partial(PairProducts, bases, total)
    return partial(BlockProducts, bases, total, blocks)


def _in_chunks(
    statistics: Callable[[NDArray[Any]], Matrix], draws: NDArray[Any], size: int, entries: int
) -> Matrix:
    chunks = [draws[start : start + size] for start in range(0, len(draws), size)]
    found = list(parallel(statistics, chunks, draws.size * entries))
    return np.ascontiguousarray(np.concatenate(found).T)


# Hilbert-Schmidt independence criterion: the statistic, its sensitivity, permuted values.
#
# T = |(1/n) sum_i (phi(x_i) - mean) (x) (psi(y_i) - mean)|, the norm of a cross-covariance.
# Kim and Schrab (2023), section 4.2, with the sharper constants of
# docs/proofs/hsic-sensitivity.md.


def hsic(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    kernels: tuple[Kernel, Kernel],
    domains: tuple[Domain, Domain],
) -> float:
    """Return HSIC (V-statistic, square root) of paired encoded rows; not private."""
    left = _centred(gram(kernels[0], x, x, domains[0]))
    right = _centred(gram(kernels[1], y, y, domains[1]))
    return math.sqrt(max(float(np.vdot(left, right)), 0.0)) / len(x)


def hsic_u(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    kernels: tuple[Kernel, Kernel],
    domains: tuple[Domain, Domain],
) -> float:
    """Return the unbiased estimate of HSIC² (U-statistic) of paired rows; not private."""
    identity = np.arange(len(x))[None, :]
    values, _ = permuted_hsic_exact(
        x, y, (kernels[:1], kernels[1:]), domains, identity, unbiased=True
    )
    return float(values[0, 0])


def hsic_sensitivity(spread_x: float, spread_y: float, n: int) -> PermutationSensitivity:
    """How far HSIC moves when one pair is replaced, spreads being c of the two kernels.

    Notes
    -----
    **Sensitivity** With C = c_x c_y (n-1)/n²: sqrt(3/2) C for the observed statistic, where
    both parts of the pair change in one row; 2 C for permuted ones, where a permutation separates
    them. Proof: docs/proofs/hsic-sensitivity.md.

    Examples
    --------
    Without bounds that of permuted statistics is 4 (n-1)/n², lemma 6 of Kim and Schrab (2023).

    >>> unbounded = Kernel("gaussian", 1.0).spread(Domain((0,), bounded=False))
    >>> round(hsic_sensitivity(unbounded, unbounded, 4).permuted, 6)
    0.75
    """
    step = spread_x * spread_y * (n - 1) / n**2
    return PermutationSensitivity(math.sqrt(1.5) * step * (1 + 1e-15), 2 * step)


def hsic_u_sensitivity(spread_x: float, spread_y: float, n: int) -> PermutationSensitivity:
    """How far the U-statistic of HSIC² moves when one pair is replaced.

    Notes
    -----
    **Sensitivity** (16/27) c_x² c_y² (n-1)/(n (n-3)), observed or permuted. Proof:
    docs/proofs/hsic-sensitivity.md.
    """
    step = 16 * spread_x**2 * spread_y**2 * (n - 1) / (27 * n * (n - 3)) * (1 + 1e-14)
    step = max(step, SMALLEST_SENSITIVITY)  # kernels that round to 1 everywhere
    return PermutationSensitivity(step, step)


def permuted_hsic_exact(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    kernels: tuple[Sequence[Kernel], Sequence[Kernel]],
    domains: tuple[Domain, Domain],
    shuffles: NDArray[np.intp],
    *,
    unbiased: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return HSIC (pairs of kernels × permutations), or HSIC² unbiased, and a bound on its error.

    ``shuffles`` holds permutations of the rows of y. Keeps Gram matrices in memory; time grows
    with n² times permutations.
    """
    prepare = _hollow if unbiased else _centred
    left = [prepare(matrix) for matrix in grams(kernels[0], x, x, domains[0])]
    right = [prepare(matrix) for matrix in grams(kernels[1], y, y, domains[1])]
    count = len(left) * len(right)

    def values(shuffle: NDArray[np.intp]) -> NDArray[np.float64]:
        shuffled = [np.take(matrix[shuffle], shuffle, axis=1) for matrix in right]
        return np.array([np.vdot(a, b) for a in left for b in shuffled])

    n = len(x)
    traces = np.array(list(parallel(values, shuffles, shuffles.size * n * count))).T
    own = [np.array(gram_roundings(*side)) for side in zip(kernels, domains, strict=True)]
    errors = 8 * (own[0][:, None] + own[1] + 4 * n * UNIT_ROUNDOFF).ravel()
    if unbiased:
        traces += _hollow_correction(left, right, shuffles)
        return traces / (n * (n - 3)), 4 * errors
    return np.sqrt(np.maximum(traces, 0.0)) / n, np.sqrt(errors)


def _centred(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    means = matrix.mean(axis=0)
    centred: NDArray[np.float64] = matrix - means - means[:, None] + means.mean()
    return centred


def _hollow(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    hollow = matrix.copy()
    np.fill_diagonal(hollow, 0.0)
    return hollow


def _hollow_correction(
    left: list[NDArray[np.float64]], right: list[NDArray[np.float64]], shuffles: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return what turns traces of hollow matrices into n (n-3) times the U-statistic."""
    n = shuffles.shape[1]
    rows, columns = (np.array([matrix.sum(axis=0) for matrix in side]) for side in (left, right))
    both = np.outer(rows.sum(axis=1), columns.sum(axis=1)).ravel() / ((n - 1) * (n - 2))
    crossed = np.array([rows @ columns[:, shuffle].T for shuffle in shuffles])
    correction: NDArray[np.float64] = (
        both[:, None] - 2 / (n - 2) * crossed.reshape(len(shuffles), -1).T
    )
    return correction


# HSIC of features, observed and rearranged, from sums of products of two bases.


Features = tuple[SharedFeatures, SharedFeatures]


def block_shuffles(rows: int, n_permutations: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Permutations of blocks; the first is the identity, which gives the observed statistic."""
    blocks = min(BLOCKS, rows)
    shuffles = np.tile(np.arange(blocks), (n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    return shuffles


def feature_bases(features: Features) -> Bases:
    """Return the functions whose products are summed."""
    left, right = features
    return Bases(left.basis, right.basis, (left.width, right.width), (left.reach, right.reach))


def permuted_hsic_features(
    products: Products, features: Features, draws: NDArray[Any]
) -> tuple[Matrix, Matrix]:
    """Return HSIC of features (pairs of kernels × permutations) and a bound on its error.

    ``draws`` is how rows are rearranged: permutations of blocks, or signs of bins.
    """
    return products.reduced(draws, partial(_norms, features)), _errors(features, products)


def _norms(features: Features, sums: Matrix) -> Matrix:
    return np.sqrt(_squares(sums, features)).reshape(len(sums), -1)


def _squares(sums: Matrix, features: Features) -> Matrix:
    """Squared norms of each pair of kernels' features, from sums of products of bases."""
    left, right = features
    if left.mix is not None:
        sums = np.matmul(left.mix.T, sums)
    count, height, width = sums.shape
    if right.mix is not None:
        sums = sums.reshape(-1, width) @ right.mix
    squares = np.square(sums, out=sums).reshape(count * height, -1) @ right.weights
    pairs: Matrix = np.matmul(left.weights.T, squares.reshape(count, height, -1))
    return pairs


def _errors(features: Features, products: Products) -> Matrix:
    """Bound the rounding error of HSIC of features, for each pair of kernels.

    Features are off by their own error, and centred ones have norm at most twice their size;
    products are then summed, and mixed by two matrix products.
    """
    left, right = features
    summing = products.rounding(left.width + right.width)
    errors: Matrix = (
        2 * np.outer(left.errors, right.sizes)
        + 2 * np.outer(left.sizes, right.errors)
        + summing * np.outer(left.sizes, right.sizes)
        + products.fixed * np.outer(left.gains, right.gains)
    ).ravel()
    return errors


# Norms of cross-covariances whose null is made by swapping y within pairs of rows.
#
# Rows come in a secret order, and rows 0 and 1, 2 and 3, ... make pairs (a, b). The covariance is
# the mean over pairs of (f(x_a) - f(x_b)) (x) (g(y_a) - g(y_b))/2, and swapping y_a and y_b turns a
# pair's sign. A swap keeps a replaced row within its pair, so that permuted statistics move no
# further than the observed one; but under the null hypothesis they are sqrt 2 larger than those of
# all rows permuted. Proof: docs/proofs/hsic-sensitivity.md.


def swapped_hsic_sensitivity(spread_x: float, spread_y: float, n: int) -> PermutationSensitivity:
    """How far HSIC of pairs moves when one row is replaced, spreads being c of the two kernels.

    Notes
    -----
    **Sensitivity** sqrt(3/2) c_x c_y/n, observed or permuted. A row is in one pair, whose term is
    a product of differences from its partner's features: the vectors that bound the observed
    statistic when all rows are permuted. Proof: docs/proofs/hsic-sensitivity.md.
    """
    step = math.sqrt(1.5) * spread_x * spread_y / n * (1 + 1e-15)
    return PermutationSensitivity(step, step)


def swapped_covariance_sensitivity(n: int) -> PermutationSensitivity:
    """How far the largest covariance of pairs moves, for functions with values in [0, 1].

    Notes
    -----
    **Sensitivity** 1/n, observed or permuted: the products (f - f_b)(g - g_b) lie within 1 of
    each other. Proof: docs/proofs/hsic-sensitivity.md.
    """
    step = 1 / n * (1 + 1e-15)
    return PermutationSensitivity(step, step)


def pair_signs(rows: int, n_permutations: int, rng: np.random.Generator) -> Matrix:
    """Signs of bins of pairs (permutations × bins); the first are as observed."""
    signs = np.ones((n_permutations + 1, len(pair_edges(rows)) - 1))
    signs[1:] = 2.0 * rng.integers(2, size=signs[1:].shape) - 1.0
    return signs


# The largest covariance between bounded functions of two sides of rows.
#
# T = max |(1/n) sum (f(x_i) - mean)(g(y_i) - mean)| over functions f and g with values in [0, 1].
# With the columns themselves this is the largest covariance; with [x <= s] and [y <= t] for public
# s and t it is the largest |F(s, t) - F(s) F(t)|, Kolmogorov's distance from independence. Signed
# covariances, of one pair of functions each, need a third of the noise.


_THRESHOLDS = 48  # of all numeric columns of a side, at most 23 of one
_MOST_THRESHOLDS = 23
_MOST_LEVELS = 24  # a column with more categories has no functions
_REFERENCE_POINTS, _DRAWS = 768, 400

Functions = Callable[[Matrix, Domain], Matrix]


def values(rows: Matrix, domain: Domain, width: float = 1.0) -> Matrix:
    """Numeric columns, and [x = category] for each category.

    ``width`` is the share of the bounds, in their middle, to which columns are clipped and which
    is stretched to [0, 1]: data that crowd there then vary more for the same sensitivity.
    """
    return np.hstack([_middle(rows, domain, width), *_categories(rows, domain)])


def trends(rows: Matrix, domain: Domain, width: float) -> Matrix:
    """As :func:`values`, with one function for two categories: the other differs by its sign."""
    categories = [own[:, :1] if own.shape[1] == 2 else own for own in _categories(rows, domain)]
    return np.hstack([_middle(rows, domain, width), *categories])


def _middle(rows: Matrix, domain: Domain, width: float) -> Matrix:
    columns = rows[:, domain.numeric]
    return columns if width == 1 else np.clip((columns - 0.5) / width + 0.5, 0.0, 1.0)


def indicators(rows: Matrix, domain: Domain) -> Matrix:
    """[x <= s] for public thresholds s of numeric columns, and [x = category]."""
    numeric = domain.numeric
    count = max(1, min(_MOST_THRESHOLDS, _THRESHOLDS // max(len(numeric), 1)))
    thresholds = np.arange(1, count + 1) / (count + 1)
    steps = [(rows[:, [column]] <= thresholds).astype(np.float64) for column in numeric]
    return np.hstack([np.zeros((len(rows), 0)), *steps, *_categories(rows, domain)])


def _categories(rows: Matrix, domain: Domain) -> list[Matrix]:
    return [
        (rows[:, [column]] == np.arange(domain.levels[column])).astype(np.float64)
        for column in domain.categorical
        if domain.levels[column] <= _MOST_LEVELS
    ]


def largest(covariances: Matrix) -> Matrix:
    """Return the largest absolute entry of each matrix, as a column."""
    flat = covariances.reshape(len(covariances), -1)
    found: Matrix = np.maximum(flat.max(axis=1), -flat.min(axis=1))[:, None]
    return found


def covariance_sensitivity(n: int) -> PermutationSensitivity:
    """How far the largest covariance moves when one pair is replaced.

    Notes
    -----
    **Sensitivity** (n-1)/n² for the observed statistic, twice that for permuted ones. Proof:
    docs/proofs/hsic-sensitivity.md.
    """
    step = (n - 1) / n**2 * (1 + 1e-15)
    return PermutationSensitivity(step, 2 * step)


def signed_covariance_sensitivity(n: int) -> PermutationSensitivity:
    """How far a signed covariance moves from permuted ones when one pair is replaced.

    Notes
    -----
    **Sensitivity** 1/n: the difference of an observed covariance of two functions and a permuted
    one depends on the pair by (f - f_i)(g - g_j) alone, whose values lie within 1 of each other.
    A permutation test looks at such differences only, so the observed covariance counts as
    fixed (PermutationSensitivity needs a positive bound). Proof: docs/proofs/hsic-sensitivity.md.
    """
    step = 1 / n * (1 + 1e-15)
    return PermutationSensitivity(1e-12 * step, step)


@lru_cache(maxsize=64)
def covariance_moments(make: Functions, domains: tuple[Domain, Domain]) -> tuple[float, float]:
    """Mean and standard deviation of sqrt(n) T for independent uniform rows and many of them.

    By drawing from the limit, a Gaussian matrix; tests are weighed by it, their level is not.
    """
    roots = []
    for domain in domains:
        functions = make(domain.points(_REFERENCE_POINTS), domain)
        spectrum, vectors = np.linalg.eigh(np.atleast_2d(np.cov(functions.T, bias=True)))
        roots.append(vectors * np.sqrt(np.maximum(spectrum, 0)))
    rng = np.random.default_rng(0)  # a public constant
    normal = rng.normal(size=(_DRAWS, len(roots[0]), len(roots[1])))
    found = largest(np.matmul(np.matmul(roots[0], normal), roots[1].T))
    return float(found.mean()), float(found.std())


# What kernel statistics look like under the uniform law on a public domain.
#
# Tests weigh kernels against each other by these numbers; level and privacy do not depend on
# them, so an accuracy of 20% is enough.


@lru_cache(maxsize=64)
def null_moments(kernels: tuple[Kernel, ...], domain: Domain) -> tuple[tuple[float, float], ...]:
    """Return (1 - E k, E k~²) of each kernel under the uniform law on the public domain.

    k~ is the doubly centred kernel. From these follow mean and standard deviation that MMD and
    HSIC would have if the data were uniform:

    - MMD: mean² = (1/n + 1/m)(1 - E k), sd = (1/n + 1/m) sqrt(E k~²/2) / mean;
    - HSIC: mean² = (1 - E k)(1 - E l)/n, sd = sqrt(E k~² E l~²/2) / (n mean).
    """
    points = domain.points(_REFERENCE_POINTS)
    moments = []
    for matrix in grams(kernels, points, points, domain):
        count = len(points)
        off_diagonal_mean = (matrix.sum() - count) / (count * (count - 1))
        column_means = matrix.mean(axis=0)
        total_mean = column_means.mean()
        centred = matrix - column_means - column_means[:, None] + total_mean
        squares = np.einsum("ij,ij->", centred, centred) - np.square(np.diag(centred)).sum()
        moments.append((float(1 - off_diagonal_mean), float(squares / (count * (count - 1)))))
    return tuple(moments)
