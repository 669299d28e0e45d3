"""Kernels on encoded rows, with the bounds that decide how much noise is needed.

A kernel is a radial function of the numeric columns times ``mismatch`` for every categorical
column in which two rows differ. Its supremum is 1, reached at equal rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import number, one_of, reject
from privatest.data.domain import Domain

__all__ = [
    "UNIT_ROUNDOFF",
    "Kernel",
    "KernelFamily",
    "gram",
    "gram_roundings",
    "grams",
    "kernel_grid",
]

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
