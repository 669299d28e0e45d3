"""Sums of rows over bins, a tile at a time; and of a symmetric matrix, by weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import number, one_of, reject
from privatest.data.schema import Domain

Real = TypeVar("Real", np.float32, np.float64)

ROWS_PER_TILE = 1024  # a tile of raw features stays in the processor's cache
_LEAST_HALVED = 128  # columns up to which a product of all is as quick as one of half of them
_PRODUCT_ROWS = 32  # rows a bin, from which sums are matrix products


def tiles(
    edges: NDArray[np.intp], limit: int = ROWS_PER_TILE
) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Cut bins into tiles of about ``limit`` rows: (first bin, edges of the rows within it).

    A tile holds several small bins whole, or a part of one large bin.
    """
    first, last_bin = 0, len(edges) - 1
    while first < last_bin:
        stop = first + 1
        while stop < last_bin and edges[stop + 1] - edges[first] <= limit:
            stop += 1
        if edges[stop] - edges[first] <= limit:
            yield first, edges[first : stop + 1]
        else:
            for piece in pieces(edges[first], edges[stop], limit):
                yield first, np.array([piece.start, piece.stop])
        first = stop


def pieces(start: int, stop: int, limit: int) -> Iterator[slice]:
    """Cut rows ``start`` to ``stop`` into pieces of about one size, at most ``limit``."""
    count = max(1, -(-(stop - start) // limit))
    for i in range(count):
        yield slice(start + i * (stop - start) // count, start + (i + 1) * (stop - start) // count)


def tile_sums(
    raw: Callable[[NDArray[np.float64]], Iterator[NDArray[np.float64]]],
    x: NDArray[np.float64],
    edges: NDArray[np.intp],
    weights: NDArray[np.float64] | None,
) -> list[NDArray[np.float64]]:
    """Sum each block of raw features over the rows between edges, a tile at a time."""
    if edges[-1] - edges[0] <= ROWS_PER_TILE:
        return [sum_rows(block, edges, weights) for block in raw(x)]
    sums: list[NDArray[np.float64]] = []
    for first, inner in tiles(edges):
        part = slice(inner[0], inner[-1])
        own = None if weights is None else weights[part]
        found = [sum_rows(block, inner - inner[0], own) for block in raw(x[part])]
        if not sums:
            sums = [np.zeros((len(edges) - 1, each.shape[1])) for each in found]
        for total, each in zip(sums, found, strict=True):
            total[first : first + len(each)] += each
    return sums


def sum_rows(
    matrix: NDArray[Real], edges: NDArray[np.intp], weights: NDArray[Real] | None = None
) -> NDArray[Real]:
    """Sum the (weighted) rows of ``matrix`` between consecutive edges; an empty bin sums to 0."""
    if len(edges) == 2:
        ones = np.ones(len(matrix), dtype=matrix.dtype) if weights is None else weights
        return ones[None, :] @ matrix
    filled = np.flatnonzero(np.diff(edges))
    sums = np.zeros_like(matrix, shape=(len(edges) - 1, matrix.shape[1]))  # and in its order
    if len(matrix) > _PRODUCT_ROWS * len(filled):  # few long sums: products are quicker
        own = np.ones(len(matrix), dtype=matrix.dtype) if weights is None else weights
        for place in filled:
            part = slice(edges[place], edges[place + 1])
            np.matmul(own[part], matrix[part], out=sums[place])
        return sums
    weighted = matrix if weights is None else matrix * weights[:, None]
    alike = _add_alike(weighted, edges, sums)
    rest = filled[filled >= alike]
    if len(rest):
        sums[rest] = np.add.reduceat(weighted, edges[rest], axis=0)
    return sums


def _add_alike(matrix: NDArray[Real], edges: NDArray[np.intp], sums: NDArray[Real]) -> int:
    """Sum the first bins, which are of one size as a rule; return how many these are.

    All first rows of bins, then all second ones: each time one long addition.
    """
    sizes = np.diff(edges)
    size = int(sizes[0])
    others = np.flatnonzero(sizes != size)
    alike = int(others[0]) if len(others) else len(sizes)
    if size > 0:
        first, stop = int(edges[0]), int(edges[alike])
        np.copyto(sums[:alike], matrix[first:stop:size])
        for place in range(first + 1, first + size):
            sums[:alike] += matrix[place:stop:size]
    return alike


def quadratic_forms(
    matrix: NDArray[np.float64], vectors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return v'Kv for each row v of the vectors, K symmetric but for rounding.

    It is the sum for both halves of K, and twice what is between them: the lower half of K is not
    multiplied, and no entry meets more additions than in (v'K)v.
    """
    result: NDArray[np.float64]
    if len(matrix) <= _LEAST_HALVED:
        result = np.einsum("ij,ij->i", vectors @ matrix, vectors)
        return result
    cut = len(matrix) // 16 * 8  # whole cache lines
    left, right = vectors[:, :cut], vectors[:, cut:]
    result = 2 * np.einsum("ij,ij->i", left @ matrix[:cut, cut:], right)
    result += quadratic_forms(matrix[:cut, :cut], left)
    result += quadratic_forms(matrix[cut:, cut:], right)
    return result


# Kernels on encoded rows, with the bounds that decide how much noise is needed.
#
# A kernel is a radial function of the numeric columns times ``mismatch`` for every categorical
# column in which two rows differ. Its supremum is 1, reached at equal rows.


KernelFamily = Literal["gaussian", "laplace", "imq"]
KERNEL_FAMILIES: tuple[str, ...] = get_args(KernelFamily)

UNIT_ROUNDOFF = 2.0**-53
_GRID = (4.0, 1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16)  # default bandwidths, in box diameters
_DIRECT_DIMENSION = 3  # up to here differences are cheaper than a matrix product
_NARROWEST, _WIDEST = 1e-100, 1e100  # bandwidths whose squares are floats
# A kernel that could become subnormal somewhere in its box is kept above e^-150: for tiny numbers
# processors and exp take longer, and timing would show that a row is far from the others. An error
# of e^-150 vanishes in the roundings that are paid for.
_FAINT, _LEAST_EXPONENT = 300.0, -150.0
_MOST_SQUARINGS = 12  # from one exponential: each doubles its relative error

# exp on [-1/16, 0], interpolated at Chebyshev points, to 2e-16. The widest kernel of the
# default grid needs no more, and these products are twice as fast as calls of exp.
_SMALL_EXPONENT = 1 / 16
_EXP_POLYNOMIAL = np.array(
    [
        0.9999999999999999,
        0.9999999999998623,
        0.49999999996474054,
        0.16666666327899257,
        0.041666511578964636,
        0.0083296844689086,
        0.0013461983521229,
    ]
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A public kernel.

    Parameters
    ----------
    family : {"gaussian", "laplace", "imq"}
        exp(-|x-y|²/w²), exp(-|x-y|₁/w) or (1 + |x-y|²/w²)^(-1/2) on numeric columns.
    bandwidth : float
        w, in the units of the encoded rows.
    mismatch : float, optional
        Factor in [0, 1) for each category that differs; by default the factor of a numeric
        column at its full range, so that one bandwidth serves mixed rows.
    """

    family: KernelFamily
    bandwidth: float
    mismatch: float | None = None

    def __post_init__(self) -> None:
        """Refuse parameters that are not a kernel."""
        one_of("kernel", self.family, KERNEL_FAMILIES)
        number("bandwidth", self.bandwidth, at_least=_NARROWEST, below=_WIDEST)
        if self.mismatch is not None:
            number("mismatch", self.mismatch, at_least=0, below=1)

    @property
    def log_mismatch(self) -> float:
        """Logarithm of the factor for one differing category."""
        if self.mismatch is None:
            return self._log_radial(1.0)
        return math.log(self.mismatch) if self.mismatch > 0 else -math.inf

    def spread(self, domain: Domain) -> float:
        """Largest RKHS distance between two rows, c = sqrt(2 (sup k - inf k)), rounded up.

        Proof that this is the diameter of the embedded box: docs/proofs/mmd-sensitivity.md.
        """
        numeric, categorical = len(domain.numeric), len(domain.categorical)
        log_infimum = -math.inf if numeric and not domain.bounded else self._log_radial(numeric)
        if categorical:
            log_infimum += categorical * self.log_mismatch
        return math.sqrt(-2 * math.expm1(log_infimum)) * (1 + 1e-14)

    def is_faint(self, furthest: float) -> bool:
        """Whether values may be so small that arithmetic slows down; a public fact."""
        return self.family != "imq" and -self._log_radial(furthest) > _FAINT

    def _log_radial(self, distance: float) -> float:
        """Logarithm of the kernel at a squared (for Laplace: absolute) distance."""
        if self.family == "laplace":
            return -distance / self.bandwidth
        if self.family == "gaussian":
            return -distance / self.bandwidth**2
        return -0.5 * math.log1p(distance / self.bandwidth**2)


def kernel_grid(
    family: str, bandwidths: float | Sequence[float] | None, domain: Domain
) -> tuple[Kernel, ...]:
    """Return the kernels that a test adapts over, widest first.

    Without ``bandwidths`` a grid that needs the box only: {4, 1, 1/2, ..., 1/16} of its
    diameter.
    """
    one_of("kernel", family, KERNEL_FAMILIES)
    if bandwidths is None:
        if not domain.bounded:
            raise ParameterError(
                "bandwidths must be given when bounds are not: choosing them from the data "
                "would leak it. Declare bounds to get a default grid."
            )
        diameter = domain.dimension if family == "laplace" else math.sqrt(domain.dimension)
        values = [fraction * diameter for fraction in _GRID]
    else:
        listed = [bandwidths] if np.ndim(bandwidths) == 0 else list(bandwidths)  # type: ignore[arg-type]
        if not listed:
            reject("bandwidths", "a positive number or a non-empty list of them", bandwidths)
        values = sorted(
            {number("bandwidths", value, at_least=_NARROWEST, below=_WIDEST) for value in listed},
            reverse=True,
        )
    return tuple(Kernel(family, value) for value in values)  # type: ignore[arg-type]


def gram(
    kernel: Kernel, x: NDArray[np.float64], y: NDArray[np.float64], domain: Domain
) -> NDArray[np.float64]:
    """Return the matrix k(x_i, y_j)."""
    return next(grams((kernel,), x, y, domain))


def grams(
    kernels: Sequence[Kernel], x: NDArray[np.float64], y: NDArray[np.float64], domain: Domain
) -> Iterator[NDArray[np.float64]]:
    """Yield the matrix of each kernel in turn; one buffer is reused, so use it before going on.

    A Gaussian kernel of half the bandwidth is the fourth power: one exponential serves a
    halving grid, the rest is squaring.
    """
    distance = _numeric_distance(kernels[0], x, y, domain)
    furthest = len(domain.numeric) if domain.bounded else math.inf
    mismatches = _mismatches(x, y, domain)
    buffer = np.empty_like(distance)
    for kernel, steps in zip(kernels, _squaring_plan(kernels), strict=True):
        for _ in range(steps):
            if kernel.is_faint(furthest):
                np.maximum(buffer, math.exp(_LEAST_EXPONENT / 2), out=buffer)
            np.square(buffer, out=buffer)
        if not steps:
            _radial(kernel, distance, furthest, out=buffer)
            if mismatches is not None:
                buffer *= _mismatch_factor(kernel, mismatches)
        yield buffer


def paired_kernels(
    kernels: Sequence[Kernel], x: NDArray[np.float64], y: NDArray[np.float64], domain: Domain
) -> NDArray[np.float64]:
    """Return k(x_i, y_i) for each kernel (rows of the result) and i; one family of kernels."""
    absolute = kernels[0].family == "laplace"
    apart = x[:, domain.numeric] - y[:, domain.numeric]
    distance = (np.abs(apart) if absolute else np.square(apart)).sum(axis=1)
    furthest = len(domain.numeric) if domain.bounded else math.inf
    values = np.empty((len(kernels), len(x)))
    mismatches = (x[:, domain.categorical] != y[:, domain.categorical]).sum(axis=1)
    for place, kernel in enumerate(kernels):
        _radial(kernel, distance, furthest, out=values[place])
        if domain.categorical:
            values[place] *= _mismatch_factor(kernel, mismatches)
    return values


def gram_roundings(kernels: Sequence[Kernel], domain: Domain) -> tuple[float, ...]:
    """Bound the rounding error of one entry of each matrix of :func:`grams`.

    The kernel at squared distance q has relative error (error of q)/w² plus a few units of
    roundoff u, and n squarings multiply that by 2^n. Differences give q to (d + 4) u q, and
    q/w² times the kernel is below 1. A matrix product, around the centre of the box, gives q
    to (d + 4) u 4|x|² with |x|² <= d/4.
    """
    dimension = domain.dimension
    errors: list[float] = []
    for kernel, steps in zip(kernels, _squaring_plan(kernels), strict=True):
        relative = 16.0 + 2 * dimension
        if _uses_product(kernel, domain):
            relative += 2 * (dimension + 4) * dimension / kernel.bandwidth**2
        if steps:
            relative = max(relative, 2**steps * errors[-1] / UNIT_ROUNDOFF + 2**steps)
        errors.append(relative * UNIT_ROUNDOFF)
    return tuple(errors)


def _squaring_plan(kernels: Sequence[Kernel]) -> list[int]:
    """How often to square the previous kernel's matrix to get each one; 0: evaluate it afresh."""
    plan, total = [0], 0
    for previous, kernel in pairwise(kernels):
        steps = _squarings(previous, kernel)
        total = total + steps if steps and total + steps <= _MOST_SQUARINGS else 0
        plan.append(steps if total else 0)
    return plan


def _squarings(previous: Kernel, kernel: Kernel) -> int:
    """How often to square ``previous`` to get ``kernel``; 0 if that does not give it."""
    if kernel.family != "gaussian" or kernel.mismatch is not None or previous.mismatch is not None:
        return 0
    log_ratio = 2 * math.log2(previous.bandwidth / kernel.bandwidth)
    steps = round(log_ratio)
    return steps if steps > 0 and abs(log_ratio - steps) < 1e-12 else 0


def _uses_product(kernel: Kernel, domain: Domain) -> bool:
    """Whether distances come from a matrix product; never where coordinates have no bound."""
    return kernel.family != "laplace" and domain.bounded and len(domain.numeric) > _DIRECT_DIMENSION


def _numeric_distance(
    kernel: Kernel, x: NDArray[np.float64], y: NDArray[np.float64], domain: Domain
) -> NDArray[np.float64]:
    """Squared Euclidean distances (for Laplace: absolute ones) of the numeric columns."""
    numeric = domain.numeric
    if not domain.categorical:
        x_numeric, y_numeric = x, y
    else:
        x_numeric, y_numeric = x[:, numeric], y[:, numeric]
    if _uses_product(kernel, domain):
        left, right = x_numeric - 0.5, y_numeric - 0.5  # the centre: the smallest rounding error
        square_left = np.einsum("ij,ij->i", left, left)[:, None]
        square_right = np.einsum("ij,ij->i", right, right)[:, None]
        # |a|² + |b|² - 2ab as one matrix product; for equal rows it may come out below 0
        left = np.hstack([left, square_left, np.ones_like(square_left)])
        right = np.hstack([-2 * right, np.ones_like(square_right), square_right])
        product: NDArray[np.float64] = left @ right.T
        return np.maximum(product, 0.0, out=product)
    total = np.zeros((len(x), len(y)))
    with np.errstate(over="ignore"):  # unbounded columns: a distance of infinity is k = 0
        for column in range(len(numeric)):
            difference = np.subtract.outer(x_numeric[:, column], y_numeric[:, column])
            function = np.abs if kernel.family == "laplace" else np.square
            function(difference, out=difference)
            total += difference
    return total


def _radial(
    kernel: Kernel, distance: NDArray[np.float64], furthest: float, *, out: NDArray[np.float64]
) -> None:
    """Evaluate the kernel at ``distance``, which is at most ``furthest``.

    Without bounds a distance may overflow: the kernel is 0 there, and no warning is given.
    """
    with np.errstate(over="ignore"):
        _evaluate(kernel, distance, furthest, out)


def _evaluate(
    kernel: Kernel, distance: NDArray[np.float64], furthest: float, out: NDArray[np.float64]
) -> None:
    if kernel.family == "imq":
        np.multiply(distance, 1 / kernel.bandwidth**2, out=out)
        out += 1.0
        np.sqrt(out, out=out)
        np.reciprocal(out, out=out)
        return
    rate = -1 / kernel.bandwidth ** (1 if kernel.family == "laplace" else 2)
    if -rate * furthest <= _SMALL_EXPONENT:
        coefficients = _EXP_POLYNOMIAL * rate ** np.arange(len(_EXP_POLYNOMIAL))
        np.multiply(distance, coefficients[-1], out=out)
        for coefficient in coefficients[-2:0:-1]:
            out += coefficient
            out *= distance
        out += coefficients[0]
        return
    np.multiply(distance, rate, out=out)
    if kernel.is_faint(furthest):
        np.maximum(out, _LEAST_EXPONENT, out=out)
    np.exp(out, out=out)


def _mismatches(
    x: NDArray[np.float64], y: NDArray[np.float64], domain: Domain
) -> NDArray[np.int64] | None:
    if not domain.categorical:
        return None
    count = np.zeros((len(x), len(y)), dtype=np.int64)
    for column in domain.categorical:
        count += np.not_equal.outer(x[:, column], y[:, column])
    return count


def _mismatch_factor(kernel: Kernel, mismatches: NDArray[np.int64]) -> NDArray[np.float64]:
    powers = np.arange(mismatches.max(initial=0) + 1)
    exponents = powers[1:] * kernel.log_mismatch
    faint = (exponents < -_FAINT) & np.isfinite(exponents)  # a mismatch of 0 stays 0
    table = np.exp(np.where(faint, _LEAST_EXPONENT, exponents))
    factors: NDArray[np.float64] = np.concatenate(([1.0], table))[mismatches]
    return factors


# Nyström features by looking kernels up, so that their sums are exact.
#
# Rows and landmarks are rounded to a public lattice. Squared distances are then integers, which a
# matrix product in single precision gets exactly, and a table holds the kernels of all bandwidths
# at each of them, as multiples of a power of two: sums of up to 512 rows are exact in single
# precision, sums of these in double. So a sum does not depend on the order of its rows, and what
# rounding does to a feature counts for the replaced row alone. Proof: docs/proofs/exact-sums.md.


Floats = NDArray[np.float64]

_ENTRIES = 1 << 14  # of the table: what is used of it stays in the processor's cache
_FINE = 2.0**14  # kernels, scaled to [-1, 1], are multiples of its inverse
_EXACT_ROWS = 512  # of which so many add up exactly in 24 bits
_MOST_CODES = 4096
# Directions of the landmarks' span with less than this share of the largest eigenvalue are
# dropped: they hold hardly any signal and would magnify what rounding to the table does.
_EIGENVALUE_CUT = 1e-4


@dataclass(frozen=True, eq=False)
class TabulatedKernels:
    """Projections on the span of public landmarks in each kernel's RKHS, from a table.

    Notes
    -----
    **Sensitivity** The features of a row are a fixed function of the row: the projection of its
    kernels at the landmarks, each off by at most ``error``. A projection is a contraction, so two
    rows' features are no further apart than c of the kernel plus twice the amplified error.
    """

    kernels: tuple[Kernel, ...]
    domain: Domain
    landmarks: Floats  # as codes
    steps: int  # of a numeric column
    cells: int  # a number counts as the centre of its cell first; 0: it does not
    table: NDArray[np.float32]  # (squared distance, mismatches) × kernels, padded
    projections: tuple[Floats, ...]
    spreads: tuple[float, ...]
    amplifications: tuple[float, ...]

    exact = True

    @property
    def roundings(self) -> tuple[float, ...]:
        """None: the table is exact."""
        return (0.0,) * len(self.kernels)

    @property
    def raw_width(self) -> int:
        """Number of landmarks."""
        return len(self.landmarks)

    @property
    def blocks(self) -> int:
        """One for each kernel."""
        return len(self.kernels)

    def raw(self, x: Floats) -> Iterator[Floats]:
        """Yield rows × landmarks for each kernel."""
        values = self._looked_up(self._codes(x), _Buffers.of(self, len(x)))
        by_kernel = values.reshape(len(x), self.raw_width, -1)
        return (by_kernel[:, :, index].astype(np.float64) for index in range(self.blocks))

    def binned(
        self, x: Floats, edges: NDArray[np.intp], weights: Floats | None = None
    ) -> Iterator[Floats]:
        """Yield, for each kernel, sums over the rows between edges; weights are -1, 0 and 1."""
        codes, buffers = self._codes(x), _Buffers.of(self, _EXACT_ROWS)
        signs = None if weights is None else weights.astype(np.float32)
        sums = np.zeros((len(edges) - 1, self.raw_width * self.table.shape[1]))
        for first, inner in tiles(edges, _EXACT_ROWS):
            part = slice(inner[0], inner[-1])
            values = self._looked_up(codes[:, part], buffers)
            own = None if signs is None else signs[part]
            found = sum_rows(values, inner - inner[0], own)
            sums[first : first + len(found)] += found
        by_kernel = sums.reshape(len(sums), self.raw_width, -1)
        return (np.ascontiguousarray(by_kernel[:, :, index]) for index in range(self.blocks))

    def project(self, index: int, sums: Floats) -> Floats:
        """Apply the linear part."""
        projection = self.projections[index]
        flat = sums.reshape(-1, len(projection))  # one product, not a stack of small ones
        return (flat @ projection).reshape(*sums.shape[:-1], projection.shape[1])

    def measure(self, index: int, sums: Floats) -> Floats:
        """Return the Euclidean norm."""
        del index
        norms: Floats = np.linalg.norm(sums, axis=1)[None, :]
        return norms

    def _codes(self, x: Floats) -> NDArray[np.float32]:
        """Lattice points of the numeric columns, their squared lengths, 1, and categories."""
        numeric, categorical = self.domain.numeric, self.domain.categorical
        codes = np.empty((len(numeric) + 2 + len(categorical), len(x)), dtype=np.float32)
        lengths = codes[len(numeric)]
        lengths[:] = 0.0
        for place, column in enumerate(numeric):
            np.rint(self._centred(x[:, column]) * self.steps, out=codes[place], casting="same_kind")
            lengths += np.square(codes[place])
        codes[len(numeric) + 1] = 1.0
        for place, column in enumerate(categorical, start=len(numeric) + 2):
            codes[place] = x[:, column]
        return codes

    def _centred(self, values: Floats) -> Floats:
        if not self.cells:
            return values
        cell: Floats = np.floor(np.minimum(values * self.cells, self.cells - 1))
        return (cell + 0.5) / self.cells

    @cached_property
    def _right(self) -> NDArray[np.float32]:
        """What codes are multiplied by: |a|² + |b|² - 2ab as one matrix product."""
        points = self.landmarks[:, self.domain.numeric].T
        ones = np.ones((1, points.shape[1]))
        stacked = np.vstack([-2 * points, ones, np.square(points).sum(axis=0)])
        return (stacked * self._strides).astype(np.float32)

    @property
    def _strides(self) -> int:
        """How many entries of the table have one squared distance."""
        return len(self.domain.categorical) + 1

    @cached_property
    def _items(self) -> NDArray[np.void]:
        """The table with a row as one item: items of 16 or 32 bytes are quick to look up."""
        return self.table.view(np.dtype((np.void, self.table.strides[0])))[:, 0]

    def _looked_up(self, codes: NDArray[np.float32], buffers: _Buffers) -> NDArray[np.float32]:
        """Return rows × (landmarks, kernels), in a buffer."""
        shared, rows = len(self.domain.numeric) + 2, codes.shape[1]
        distances, places = buffers.distances[:rows], buffers.places[:rows]
        found = buffers.found[:rows]
        np.matmul(codes[:shared].T, self._right, out=distances)  # integers: exact in any order
        for own, column in zip(codes[shared:], self.domain.categorical, strict=True):
            distances += np.not_equal.outer(own, self.landmarks[:, column].astype(np.float32))
        np.copyto(places, distances, casting="unsafe")
        np.take(self._items, places, out=found, mode="clip")  # other modes are slower
        return found.view(np.float32)


class _Buffers(NamedTuple):
    """Memory that is used again for every tile: fetching it anew would take most of the time."""

    distances: NDArray[np.float32]
    places: NDArray[np.intp]
    found: NDArray[np.void]

    @classmethod
    def of(cls, maps: TabulatedKernels, rows: int) -> _Buffers:
        """Make room for so many rows."""
        shape = rows, maps.raw_width
        found = np.empty(shape, dtype=maps._items.dtype)
        return cls(np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.intp), found)


def tabulated_kernels(
    kernels: Sequence[Kernel], landmarks: Floats, domain: Domain, cells: int = 0
) -> TabulatedKernels | None:
    """Build the features, or None where a table would be too long or distances are no sums.

    With ``cells`` a number counts as the centre of one of so many (:mod:`.coded`).

    psi(x) = D^(-1/2) U' k_L(x) with K_LL = U D U', small eigenvalues cut, rescaled so that
    W' K_LL W <= I despite rounding.
    """
    numeric, categorical = domain.numeric, domain.categorical
    if not domain.bounded or any(kernel.family == "laplace" for kernel in kernels):
        return None
    if any(level > _MOST_CODES for level in domain.levels) or len(kernels) > 8:
        return None
    room = _ENTRIES // ((len(categorical) + 1) * max(len(numeric), 1))
    steps = math.isqrt(room)
    if steps < 16:
        return None
    points = landmarks.copy()
    points[:, numeric] = np.rint(points[:, numeric] * steps)
    placed = points.copy()
    placed[:, numeric] /= steps
    values = _values(kernels, len(numeric), len(categorical), steps)
    width = next(size for size in (2, 4, 8) if len(kernels) <= size)
    table = np.zeros((len(values), width), dtype=np.float32)
    projections, spreads, amplifications = [], [], []
    for index, kernel in enumerate(kernels):
        middle = (values[:, index].max() + values[:, index].min()) / 2
        reach = float(np.abs(values[:, index] - middle).max())
        scale = 2.0 ** -math.ceil(math.log2(max(reach, 2.0**-30)))
        # a constant part is the same for all rows, and weights of rows add up to 0
        table[:, index] = np.rint((values[:, index] - middle) * scale * _FINE) / _FINE
        projection, smallest = _projection(kernel, placed, domain)
        error = 0.5 / (_FINE * scale) + 2.0**-45  # of the table, and of computing a kernel
        amplification = math.sqrt(len(points) / smallest)
        # W' (K + E) W <= I with |E| <= count · error of an entry: a contraction up to this factor
        distortion = len(points) * gram_roundings((kernel,), domain)[0] / smallest
        projections.append(projection / scale)
        widest = kernel.spread(domain) * (1 + distortion + 1e-12)
        spreads.append(widest + 2 * amplification * error)
        amplifications.append(amplification / scale)
    return TabulatedKernels(
        kernels=tuple(kernels),
        domain=domain,
        landmarks=points,
        steps=steps,
        cells=cells,
        table=table,
        projections=tuple(projections),
        spreads=tuple(spreads),
        amplifications=tuple(amplifications),
    )


def _values(kernels: Sequence[Kernel], numeric: int, categorical: int, steps: int) -> Floats:
    """Kernels at every squared distance and number of mismatches: entries × kernels."""
    squares = np.arange(numeric * steps**2 + 1) / steps**2
    columns = []
    for kernel in kernels:
        if kernel.family == "gaussian":
            radial = np.exp(-squares / kernel.bandwidth**2)
        else:
            radial = 1 / np.sqrt(1 + squares / kernel.bandwidth**2)
        factors = np.exp(np.append(0.0, np.full(categorical, kernel.log_mismatch)).cumsum())
        columns.append(np.outer(radial, factors).ravel())
    return np.stack(columns, axis=1)


def _projection(kernel: Kernel, points: Floats, domain: Domain) -> tuple[Floats, float]:
    """Return W, and the smallest eigenvalue that was kept."""
    matrix = gram(kernel, points, points, domain)
    values, vectors = np.linalg.eigh(matrix)
    kept = values >= _EIGENVALUE_CUT * values[-1]
    projection = vectors[:, kept] / np.sqrt(values[kept])
    size = np.linalg.norm(projection.T @ matrix @ projection, 2)
    projection /= math.sqrt(max(float(size), 1.0))
    return projection, float(values[kept][0])
