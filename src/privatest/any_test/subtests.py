"""What is run on a subset: any function that returns a p-value, or a test by its name.

Nothing here is private. On private rows a test never raises and never warns, since that would
say something about them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from privatest.any_test.permutation import (
    DEPENDENCE,
    TWO_SAMPLE,
    dependence_pvalue,
    two_sample_pvalue,
)
from privatest.any_test.sides import TwoSides, as_columns
from privatest.core.errors import DataError, ParameterError
from privatest.core.user_code import UserCodeError, run_user_code
from privatest.core.validation import number, one_of, public_generator, reject
from privatest.custom.space import Rows, Scheme, typical
from privatest.data.columns import Units
from privatest.data.domain import Domain
from privatest.kernels.kernels import UNIT_ROUNDOFF, Kernel, gram, gram_roundings
from privatest.statistics.bins import two_sample_bins
from privatest.statistics.hsic import permuted_hsic_exact
from privatest.statistics.mmd import permuted_mmd_exact

__all__ = [
    "OWN_TESTS",
    "Bandwidth",
    "SubTest",
    "hsic_pvalue",
    "mmd_pvalue",
    "probe",
    "scheme_of",
    "sub_test",
    "units_of",
]

Bandwidth = float | Sequence[float] | None

# These take the same steps for all values of a subset, to the last one; the time of the others
# was not examined. Behind a curator only these run.
OWN_TESTS: dict[str, Scheme] = {"mmd": "two-sample", "hsic": "independence"}
_SCHEMES: dict[str, Scheme] = {
    **OWN_TESTS,
    **dict.fromkeys(TWO_SAMPLE, "two-sample"),
    **dict.fromkeys(DEPENDENCE, "independence"),
}
_SCIPY_ROWS = 8  # fewer rows have hardly any power
_KENDALL_ROWS = 10_000  # with more, comparing all pairs for every permutation takes minutes
_HSIC_SINGLE_ROWS = 256  # up to here single rows are permuted: n² steps for each permutation
_HSIC_BLOCKS = 32
_HSIC_ROWS = 4_000  # with more, the Gram matrices of a subset take too much memory
_MOST_BINS = 2_048  # of a subset's rows, for its permutations


@dataclass(frozen=True, slots=True)
class SubTest:
    """A test of one subset.

    Parameters
    ----------
    name : str
        What results call it.
    function : callable
        (x, y, number of permutations, generator) to anything that may be a p-value.
    by_rank : bool
        Whether its p-values come from permutations: multiples of 1/(number of permutations
        + 1), valid for every law of the rows. A function of the caller is trusted instead.
    least_rows, most_rows : int
        How large a subset may be.
    refuse_warnings : bool
        Whether a warning counts as 1. Those of tests that are called by name are known: they do
        not make a p-value wrong.
    """

    name: str
    function: Callable[[Rows, Rows, int, np.random.Generator], object]
    by_rank: bool = False
    least_rows: int = 2
    most_rows: int | None = None
    refuse_warnings: bool = False

    def pvalue(self, x: Rows, y: Rows, n_permutations: int, rng: np.random.Generator) -> float:
        """Return the p-value, and 1 for whatever goes wrong: rows are private."""
        try:
            value = run_user_code(
                lambda: _as_pvalue(self.function(x, y, n_permutations, rng)),
                refuse_warnings=self.refuse_warnings,
            )
        except UserCodeError:
            return 1.0
        return 1.0 if math.isnan(value) else value


def scheme_of(pvalue: object, scheme: Scheme | None) -> Scheme:
    """Return what is tested; a name says it itself."""
    if scheme is not None:
        one_of("scheme", scheme, get_args(Scheme))
    if callable(pvalue):
        return scheme or "two-sample"
    if not isinstance(pvalue, str) or pvalue not in _SCHEMES:
        names = ", ".join(repr(name) for name in _SCHEMES)
        reject("pvalue", f"a function of (x, y) or one of {names}", pvalue)
    if scheme not in (None, _SCHEMES[pvalue]):
        reject("scheme", f"{_SCHEMES[pvalue]!r} for pvalue={pvalue!r}", scheme)
    return _SCHEMES[pvalue]


def units_of(pvalue: object) -> Units:
    """Return the units of the rows that a test sees: ours need [0, 1], others the data's own."""
    return "box" if isinstance(pvalue, str) and pvalue in OWN_TESTS else "own"


def sub_test(pvalue: str | Callable[..., object], sides: TwoSides, bandwidth: Bandwidth) -> SubTest:
    """Return the test that ``pvalue`` names or is."""
    if isinstance(pvalue, str) and pvalue in OWN_TESTS:
        return _kernel_test(pvalue, sides, bandwidth)
    if bandwidth is not None:
        raise ParameterError("bandwidth is for pvalue='mmd' and 'hsic'.")
    if not isinstance(pvalue, str):
        name = getattr(pvalue, "__name__", type(pvalue).__name__).strip("<>")
        return SubTest(name, lambda x, y, _, __: pvalue(x, y), refuse_warnings=True)
    if any(side.domain.dimension != 1 for side in sides.samples):
        raise DataError(f"pvalue={pvalue!r} needs data of one column; 'mmd' and 'hsic' take more.")
    function = (
        partial(two_sample_pvalue, TWO_SAMPLE[pvalue])
        if pvalue in TWO_SAMPLE
        else partial(dependence_pvalue, DEPENDENCE[pvalue])
    )
    most = _KENDALL_ROWS if pvalue == "kendalltau" else None
    return SubTest(pvalue, function, by_rank=True, least_rows=_SCIPY_ROWS, most_rows=most)


def probe(test: SubTest, sides: TwoSides, n_subsets: int) -> None:
    """Run a function on public synthetic rows, where its faults may be reported."""
    if test.by_rank:
        return
    rng = public_generator(0)
    sizes = [len(side) // n_subsets for side in sides.samples]
    x, y = (
        as_columns(typical(side.box, rng, size))
        for side, size in zip(sides.samples, sizes, strict=True)
    )
    where = f"on public synthetic rows ({sizes[0]} and {sizes[1]})"
    try:
        with warnings.catch_warnings(record=True) as shown, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            value = _as_pvalue(test.function(x, y, 0, rng))
    except Exception as error:
        raise ParameterError(
            f"pvalue must return a number in [0, 1]; {where} it raised {type(error).__name__}."
        ) from error
    if math.isnan(value):
        raise ParameterError(f"pvalue must return a number in [0, 1]; {where} it did not.")
    if test.refuse_warnings and shown:
        raise ParameterError(
            f"pvalue must not warn, as a warning counts as a p-value of 1; {where} it did "
            f"({shown[0].category.__name__}). Let it suppress warnings that mean no harm."
        )


def _as_pvalue(result: object) -> float:
    """Return a number in [0, 1], else NaN; a decision (a bool) is not a p-value."""
    value = getattr(result, "pvalue", result)
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        return math.nan
    read = float(value)
    return read if 0 <= read <= 1 else math.nan


# --- kernels ---------------------------------------------------------------------------------


def _kernel_test(name: str, sides: TwoSides, bandwidth: Bandwidth) -> SubTest:
    domains = sides.samples.x.domain, sides.samples.y.domain
    first, second = (
        Kernel("gaussian", _bandwidth(given, domain))
        for given, domain in zip(_pair(name, bandwidth), domains, strict=True)
    )

    def mmd(x: Rows, y: Rows, n_permutations: int, rng: np.random.Generator) -> float:
        return mmd_pvalue(x, y, first, domains[0], n_permutations, rng)

    def hsic(x: Rows, y: Rows, n_permutations: int, rng: np.random.Generator) -> float:
        return hsic_pvalue(x, y, (first, second), domains, n_permutations, rng)

    if name == "mmd":
        return SubTest(name, mmd, by_rank=True)
    return SubTest(name, hsic, by_rank=True, most_rows=_HSIC_ROWS)


def _pair(name: str, bandwidth: object) -> Sequence[object]:
    """Return a bandwidth for each side."""
    if not isinstance(bandwidth, Sequence):
        return bandwidth, bandwidth
    if name == "mmd" or len(bandwidth) != 2:
        reject("bandwidth", "one number, or for 'hsic' a pair", bandwidth)
    return bandwidth


def _bandwidth(given: object, domain: Domain) -> float:
    if given is not None:
        return number("bandwidth", given, above=0)
    if not domain.bounded:
        raise ParameterError("bandwidth must be given when bounds are not, in the data's units.")
    return math.sqrt(domain.dimension) / 4  # as in the experiments of Kim and Schrab


def mmd_pvalue(
    x: Rows, y: Rows, kernel: Kernel, domain: Domain, n_permutations: int, rng: np.random.Generator
) -> float:
    """Return the permutation p-value of MMD."""
    orders = np.arange(len(x)), np.arange(len(y))  # subsets come in a secret order already
    bins = two_sample_bins(x, y, *orders, size=None, max_bins=_MOST_BINS)
    membership = bins.membership(n_permutations, rng)
    values, errors = permuted_mmd_exact(bins, membership, (kernel,), domain)
    return _rank_pvalue(values[0], float(errors[0]))


def hsic_pvalue(
    x: Rows,
    y: Rows,
    kernels: tuple[Kernel, Kernel],
    domains: tuple[Domain, Domain],
    n_permutations: int,
    rng: np.random.Generator,
) -> float:
    """Return the permutation p-value of HSIC, by blocks of rows where there are many."""
    by_block = len(x) > _HSIC_SINGLE_ROWS
    shuffles = np.tile(np.arange(_HSIC_BLOCKS if by_block else len(x)), (n_permutations + 1, 1))
    rng.permuted(shuffles[1:], axis=1, out=shuffles[1:])
    if not by_block:
        sides = (kernels[:1], kernels[1:])
        values, errors = permuted_hsic_exact(x, y, sides, domains, shuffles)
        return _rank_pvalue(values[0], float(errors[0]))
    error = 4 * len(x) * UNIT_ROUNDOFF
    error += sum(gram_roundings(kernels[i : i + 1], domains[i])[0] for i in (0, 1))
    grams = gram(kernels[0], x, x, domains[0]), gram(kernels[1], y, y, domains[1])
    return _rank_pvalue(_block_hsic(*grams, shuffles), 8 * error)


def _block_hsic(left: Rows, right: Rows, shuffles: NDArray[np.intp]) -> Rows:
    """HSIC² of two Gram matrices when blocks of rows are permuted; leftovers keep partners.

    One matrix product gives the inner product of every block of one matrix with every block of
    the other; a permutation picks some of them and adds them up.
    """
    blocks, rows = shuffles.shape[1], len(left)
    size = rows // blocks
    whole = blocks * size
    cut, strips, rest = [], [], []
    for matrix in (left, right):
        means = matrix.mean(axis=0)
        centred = matrix - means - means[:, None] + means.mean()
        square = centred[:whole, :whole].reshape(blocks, size, blocks, size)
        cut.append(square.transpose(0, 2, 1, 3).reshape(blocks**2, size**2))
        strips.append(centred[:whole, whole:].reshape(blocks, -1))
        rest.append(centred[whole:, whole:])
    pairs, edges = cut[0] @ cut[1].T, strips[0] @ strips[1].T
    chosen = (shuffles[:, :, None] * blocks + shuffles[:, None, :]).reshape(len(shuffles), -1)
    inner = pairs[np.arange(blocks**2), chosen].sum(axis=1)
    outer = 2 * edges[np.arange(blocks), shuffles].sum(axis=1)
    result: Rows = (inner + outer + np.vdot(*rest)) / rows**2
    return result


def _rank_pvalue(values: Rows, error: float) -> float:
    """Share of statistics that reach the observed, first one; ties that rounding parts count."""
    return int(np.count_nonzero(values >= values[0] - 2 * error)) / len(values)
