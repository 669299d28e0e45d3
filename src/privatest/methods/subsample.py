"""Private rows of two samples, or of the two sides of pairs, and their subsets."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from numbers import Real
from types import MappingProxyType
from typing import Annotated, Any, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError, PrivacyError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, Adjacency, Amount, Budget
from privatest.core.results import Decision, Outcome, declare_level
from privatest.core.user_code import UserCodeError, run_user_code
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.columns import Units
from privatest.data.encoding import TwoSamples, beside, encode_pairs, encode_samples
from privatest.data.schema import Bounds, Domain
from privatest.data.summaries import secret_subsets
from privatest.mechanisms.lattice import PublicNull, lattice_outcome
from privatest.mechanisms.subsample import (
    LEAST_SUB_ALPHA,
    MOST_SUB_ALPHA,
    SarrmParameters,
    rejections_width,
    sarrm_parameters,
    sarrm_rejects,
)
from privatest.methods.custom import Rows, Scheme, typical
from privatest.methods.descriptor import Method, Option
from privatest.numerics.dependence import permuted_hsic_exact
from privatest.numerics.kernels import UNIT_ROUNDOFF, Kernel, gram, gram_roundings
from privatest.numerics.laws import binomial_law
from privatest.numerics.permutation import bin_layout, permuted_mmd


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class TwoSides:
    """Private rows with their public description, and what is to be hidden."""

    samples: TwoSamples
    scheme: Scheme
    adjacency: Adjacency

    @property
    def paired(self) -> bool:
        """Whether row i of x belongs to row i of y."""
        return self.scheme == "independence"

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of each side."""
        return len(self.samples.x), len(self.samples.y)

    def subsets(self, count: int, noise: NoiseSource) -> Iterator[tuple[Rows, Rows]]:
        """Cut the rows, in a secret order, into subsets of nearly equal sizes; yield copies."""
        for left, right in self._parts(count, noise):
            if self.samples.x.units == "own":
                yield as_columns(left), as_columns(right)
            else:
                yield left, right

    def _parts(self, count: int, noise: NoiseSource) -> Iterator[tuple[Rows, Rows]]:
        if not self.paired:
            yield from zip(
                *(secret_subsets(side, count, noise) for side in self.samples), strict=True
            )
            return
        width = self.samples.x.width
        for rows in secret_subsets(beside(*self.samples), count, noise):
            yield np.ascontiguousarray(rows[:, :width]), np.ascontiguousarray(rows[:, width:])


def as_columns(rows: Rows) -> Rows:
    """One column as a flat array, as the tests of scipy.stats take it."""
    return rows[:, 0] if rows.shape[1] == 1 else rows


def read_sides(
    x: Any,
    y: Any,
    scheme: Scheme,
    adjacency: Adjacency,
    given: tuple[Bounds, Bounds, Bounds],
    units: Units,
) -> TwoSides:
    """Fit data to the bounds, bounds_x and bounds_y that were given; refuse what is of no use."""
    bounds, bounds_x, bounds_y = given
    one_of("adjacency", adjacency, ADJACENCIES)
    if scheme == "independence":
        if adjacency == "both":
            raise ParameterError("adjacency='both' is for two samples; here one pair is replaced.")
        if bounds is not None:
            raise ParameterError("bounds is for two samples; give bounds_x and bounds_y.")
        return TwoSides(encode_pairs(x, y, bounds_x, bounds_y, units=units), scheme, "one")
    if adjacency == "row":
        raise PrivacyError(
            "adjacency='row' is not possible here: each group is cut into subsets by its "
            "size, which is then private. Use mmd_test or ipm_test."
        )
    if bounds_x is not None or bounds_y is not None:
        raise ParameterError("bounds_x and bounds_y are for independence; give bounds.")
    samples = encode_samples(x, y, bounds, units=units, adjacency=adjacency)
    return TwoSides(samples, scheme, adjacency)


# Permutation p-values of the statistics of scipy.stats, for the rows of one subset.
#
# SciPy's own p-values are approximate on few rows. Here labels (or partners) are permuted, and ties
# are broken at random, so that under the null hypothesis a p-value is exactly uniform on the
# multiples of 1/(number of permutations + 1): for every law of the rows, every number of them, and
# with ties. Proof: docs/proofs/subsample.md, "The level of a subset".
#
# A statistic is a function of one row of a matrix of permutations, the same for every row; larger
# values speak against the null hypothesis.


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

# What is run on a subset: any function that returns a p-value, or a test by its name.
#
# Nothing here is private. On private rows a test never raises and never warns, since that would
# say something about them.


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
    layout = bin_layout(len(x), len(y), None, _MOST_BINS)
    rows, permutation = layout.arrange(x, y, *orders), layout.permute(n_permutations, rng)
    values, errors = permuted_mmd(permutation, rows, None, (kernel,), domain)
    return _rounded_rank_pvalue(values[0], float(errors[0]))


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
        return _rounded_rank_pvalue(values[0], float(errors[0]))
    error = 4 * len(x) * UNIT_ROUNDOFF
    error += sum(gram_roundings(kernels[i : i + 1], domains[i])[0] for i in (0, 1))
    grams = gram(kernels[0], x, x, domains[0]), gram(kernels[1], y, y, domains[1])
    return _rounded_rank_pvalue(_block_hsic(*grams, shuffles), 8 * error)


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


def _rounded_rank_pvalue(values: Rows, error: float) -> float:
    """Share of statistics that reach the observed, first one; ties that rounding parts count."""
    return int(np.count_nonzero(values >= values[0] - 2 * error)) / len(values)


# Split the rows and test each subset: common to the test of tests and SARRM.


_INDEPENDENT = "the two sides are independent"
_SAME = "the two samples come from the same distribution"


@dataclass(frozen=True, slots=True)
class SubsetPlan:
    """How subsets are tested; all of it public."""

    test: SubTest
    n_subsets: int
    sub_alpha: float
    n_permutations: int


def most_subsets(sides: TwoSides, test: SubTest) -> int:
    """Return the largest number of subsets that each have the rows that the test needs."""
    needed = max(4, test.least_rows)
    if min(sides.sizes) < needed:
        which = "x and y" if sides.paired else "each sample"
        raise DataError(f"{which} must have at least {needed} rows.")
    return min(sides.sizes) // test.least_rows


def check_rows(sides: TwoSides, test: SubTest, n_subsets: int) -> None:
    """Refuse subsets that are too large for the test."""
    rows = max(sides.sizes)
    if test.most_rows is not None and rows > n_subsets * test.most_rows:
        least = -(-rows // test.most_rows)
        reject("n_subsets", f"at least {least} for pvalue={test.name!r}", n_subsets)


def rejections(
    sides: TwoSides, plan: SubsetPlan, rng: np.random.Generator, noise: NoiseSource
) -> list[bool]:
    """Return which subsets reject; private.

    Every subset has its own generator, so that draws for one do not depend on the rows of
    another.
    """
    probe(plan.test, sides, plan.n_subsets)
    seeds = rng.integers(2**63, size=plan.n_subsets)
    subsets = sides.subsets(plan.n_subsets, noise)
    return [
        plan.test.pvalue(x, y, plan.n_permutations, np.random.default_rng(seed)) <= plan.sub_alpha
        for (x, y), seed in zip(subsets, seeds, strict=True)
    ]


def facts(sides: TwoSides, plan: SubsetPlan, method: str) -> dict[str, Any]:
    """Return the public fields of a result."""
    n, m = sides.sizes
    parameters = {
        "pvalue": plan.test.name,
        "n_subsets": plan.n_subsets,
        "sub_alpha": plan.sub_alpha,
    }
    called = f"{method} of {plan.test.name}"
    if plan.test.by_rank:
        parameters["n_permutations"] = plan.n_permutations
    else:
        called += ", at a level that rests on its own p-values"
    return {
        "adjacency": sides.adjacency,
        "method": called,
        "null_hypothesis": _INDEPENDENT if sides.paired else _SAME,
        "sizes": {"n": n} if sides.paired else {"n": n, "m": m},
        "parameters": parameters,
        "rows_per_person": sides.samples.rows_per_person,
        "level": "valid" if plan.test.by_rank else "measured",
    }


# SARRM: a majority vote of subsets, each vote flipped with a small probability.


@declare_level("valid", measured="a function of yours as the sub-test")
def sarrm_test(
    x: Any,
    y: Any,
    *,
    pvalue: Annotated[str | Callable[..., object], Option("subtest")],
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_subsets: int | None = None,
    min_sub_alpha: float = LEAST_SUB_ALPHA,
    scheme: Scheme | None = None,
    adjacency: Adjacency = "one",
    bounds: Any = None,
    bounds_x: Any = None,
    bounds_y: Any = None,
    bandwidth: Bandwidth = None,
    n_permutations: Annotated[int, Option("permutations")] = 399,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Decision:
    """Make any test private by a noisy majority of subsets (SARRM).

    Each subset's decision is flipped with a small probability, and the hypothesis is rejected
    if most of them then reject. The subsets are few and large: this is stronger than
    :func:`test_of_tests` at a large epsilon and impossible at a small one.

    Parameters
    ----------
    x, y, pvalue, epsilon, delta, alpha, scheme
        As in :func:`test_of_tests`.
    n_subsets : int, optional
        Number of subsets, odd; by default the smallest that works.
    min_sub_alpha : float
        Least level of the sub-tests. The level itself follows from epsilon, alpha and the
        number of subsets.
    adjacency : {"one"}
        Two samples: one record is replaced. Independence: one pair.
    bounds, bounds_x, bounds_y, bandwidth
        As in :func:`test_of_tests`.
    n_permutations : int
        Most permutations of each subset, for a test by its name. Fewer are drawn where that
        comes closer to the level of the sub-tests.
    rng, noise
        As in :func:`test_of_tests`.

    Returns
    -------
    Decision
        The decision alone.

    Notes
    -----
    **Sensitivity** A row lies in one subset and changes one rejection. A person with several
    rows, or in both samples, could change several: that is refused. Proof:
    docs/proofs/subsample.md.

    **Privacy** Only the decision is released, at (epsilon, delta). What is said of functions
    in :func:`test_of_tests` holds here too.

    **Level** A true hypothesis is rejected with probability at most alpha for a test by its
    name, and for a function whose p-values are valid.

    References
    ----------
    Peña and Barrientos (2022), Differentially private hypothesis testing with the subsampled
    and aggregated randomized response mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=2000), rng.normal(0.5, 1, size=2000)
    >>> sarrm_test(x, y, pvalue="mannwhitneyu", epsilon=40).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    integer_at_least("n_permutations", n_permutations, 2)
    least = number("min_sub_alpha", min_sub_alpha, above=0, below=MOST_SUB_ALPHA)
    generator, source = public_generator(rng), noise_source(noise)
    kind = scheme_of(pvalue, scheme)
    given = bounds, bounds_x, bounds_y
    sides = read_sides(x, y, kind, adjacency, given, units_of(pvalue))
    _refuse_several_subsets(sides)
    test = sub_test(pvalue, sides, bandwidth)
    if test.by_rank:
        least = max(least, 1 / (n_permutations + 1))
    found = _parameters(budget.pure_epsilon, alpha, least, n_subsets)
    _check_room(found, sides, test)
    if test.by_rank:
        found, n_permutations = _level_on_grid(found, n_permutations)
    plan = SubsetPlan(test, found.n_subsets, found.sub_alpha, n_permutations)
    public = facts(sides, plan, "SARRM test")
    public["parameters"]["truth_probability"] = found.truth
    return Decision(
        reject=sarrm_rejects(rejections(sides, plan, generator, source), found, source),
        alpha=alpha,
        spent=budget,
        simulated=source.simulated,
        **public,
    )


def _refuse_several_subsets(sides: TwoSides) -> None:
    if sides.adjacency == "both" or sides.samples.rows_per_person > 1:
        which = "adjacency='both'" if sides.adjacency == "both" else "rows_per_person above 1"
        raise PrivacyError(
            f"sarrm_test cannot be used with {which}: it hides a change of one subset, and a "
            "person could change several. Use test_of_tests."
        )


def _parameters(
    epsilon: float, alpha: float, least: float, n_subsets: int | None
) -> SarrmParameters:
    smallest = sarrm_parameters(epsilon, alpha, least)
    if math.isnan(smallest.sub_alpha):  # no float is the level of a subset then
        reject("alpha", "a larger level for SARRM", alpha)
    if n_subsets is None:
        return smallest
    count = integer_at_least("n_subsets", n_subsets, 1)
    if count % 2 == 0 or count < smallest.n_subsets:
        expected = f"an odd number of at least {smallest.n_subsets} at this epsilon and alpha"
        reject("n_subsets", expected, n_subsets)
    return sarrm_parameters(epsilon, alpha, k=count // 2)


def _check_room(found: SarrmParameters, sides: TwoSides, test: SubTest) -> None:
    needed = max(4, found.n_subsets * test.least_rows)
    if found.n_subsets > most_subsets(sides, test):
        raise ParameterError(
            f"sarrm_test needs {found.n_subsets} subsets of at least {test.least_rows} rows at "
            f"this epsilon and alpha: the smallest n that works is {needed}; got "
            f"{min(sides.sizes)}. Use a larger epsilon, or test_of_tests."
        )
    check_rows(sides, test, found.n_subsets)


def _level_on_grid(found: SarrmParameters, n_permutations: int) -> tuple[SarrmParameters, int]:
    """Choose permutations for which a rank p-value has nearly the level that was found.

    With r = floor((B+1) level), r/(B+1) may be far below the level; the smallest B' for which
    r/(B'+1) is not above it is at most B.
    """
    level = Fraction(found.sub_alpha)
    ranks = math.floor(level * (n_permutations + 1))
    total = math.ceil(ranks / level)
    return replace(found, sub_alpha=ranks / total), total - 1


# The test of tests: how many subsets reject, with noise.


# ruff: noqa: PT028 -- test_of_tests is a test, but not one of pytest


@declare_level("valid", measured="a function of yours as the sub-test")
def test_of_tests(
    x: Any,
    y: Any,
    *,
    pvalue: Annotated[str | Callable[..., object], Option("subtest")],
    epsilon: Amount,
    delta: Amount = 0.0,
    alpha: float = 0.05,
    n_subsets: int | None = None,
    sub_alpha: float | None = None,
    scheme: Scheme | None = None,
    adjacency: Adjacency = "one",
    bounds: Any = None,
    bounds_x: Any = None,
    bounds_y: Any = None,
    bandwidth: Bandwidth = None,
    n_permutations: Annotated[int, Option("permutations")] = 199,
    rng: Rng = None,
    noise: NoiseSource | None = None,
) -> Outcome:
    """Make any test private by running it on disjoint subsets (test of tests, TOT).

    The number of subsets whose p-value is small is released with Tulap noise; its law under
    the null hypothesis is known.

    Parameters
    ----------
    x, y : array, data frame or Arrow table
        Two samples, or for independence the two sides of the same rows.
    pvalue : callable or str
        A function of (x, y) that returns a p-value, or an object that has one, as the tests of
        scipy.stats do. It is your code and runs on the private data: it must only compute.
        One column comes as a flat array.
        Or a name, whose statistic is then tested by permutations: "mmd" and "hsic"; for one
        column the two-sided statistics of scipy.stats "anderson_ksamp", "ansari",
        "brunnermunzel", "cramervonmises_2samp", "epps_singleton_2samp", "kruskal", "ks_2samp",
        "mannwhitneyu", "mood" and "ttest_ind" (two samples), "kendalltau", "pearsonr" and
        "spearmanr" (independence).
    epsilon, delta : float, int, str or Decimal
        The privacy budget.
    alpha : float
        Level of the decision.
    n_subsets : int, optional
        Number of subsets; by default the square root of the smaller sample's size.
    sub_alpha : float, optional
        A subset rejects if its p-value is at most this; by default 5 alpha, at most 1/2.
    scheme : {"two-sample", "independence"}, optional
        What a function tests; "two-sample" by default. A name implies it.
    adjacency : {"one", "both"}
        Two samples: one record is replaced, or one in each. Independence: one pair, always.
    bounds : pair, (d, 2) array, mapping of names to pairs, or Schema, optional
        Public bounds of two samples. A function sees values clipped to them, in their own
        units; categories as 0, 1, ... Without bounds the data is used as it is.
    bounds_x, bounds_y : pair, (d, 2) array, mapping of names to pairs, or Schema, optional
        The same for each side, for independence.
    bandwidth : float or pair of float, optional
        Of the Gaussian kernel of "mmd" and "hsic" (a pair: of each side), as a share of the
        bounds; by default a quarter of the box's diagonal. Must be given without bounds.
    n_permutations : int
        Permutations of each subset, for a test by its name.
    rng : None, int or Generator
        Public randomness, for permutations and the order of ties.
    noise : NoiseSource, optional
        Secret randomness; leave it out except in simulations.

    Returns
    -------
    Outcome
        Its statistic is the noisy number of subsets that reject.

    Notes
    -----
    **Sensitivity** A row lies in one subset, so the number of rejections moves by at most 1,
    by 2 for "both", times the rows a person may have; whatever the test is. Proof:
    docs/proofs/subsample.md.

    **Privacy** The noisy number is released at (epsilon, delta), and the p-value follows from
    it. A function must depend on nothing but its arguments. On private rows one that raises,
    warns or returns no number in [0, 1] counts as a p-value of 1; such a fault is reported,
    before noise is drawn, if it shows on public synthetic rows of the same sizes.

    **Level** By a name the p-value is valid for every law of independent rows and every number of
    them, with ties: each subset is tested by permutations. Of a function it is as valid as the
    p-values that the function returns, and the result says so. Many are only approximate on few
    rows: SciPy's ``kruskal`` on 8 and 8 rows has p <= .25 with probability .279.

    References
    ----------
    Kazan, Shi, Groce and Bray (2023), The test of tests: a framework for differentially private
    hypothesis testing.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x, y = rng.normal(size=2000), rng.normal(0.5, 1, size=2000)
    >>> test_of_tests(x, y, pvalue="mannwhitneyu", epsilon=1).reject
    True
    """
    budget, alpha = Budget(epsilon, delta), number("alpha", alpha, above=0, below=1)
    integer_at_least("n_permutations", n_permutations, 1)
    generator, source = public_generator(rng), noise_source(noise)
    kind = scheme_of(pvalue, scheme)
    given = bounds, bounds_x, bounds_y
    sides = read_sides(x, y, kind, adjacency, given, units_of(pvalue))
    test = sub_test(pvalue, sides, bandwidth)
    count = _subsets(n_subsets, sides, test)
    level = _on_grid(_level(sub_alpha, alpha), n_permutations, test)
    plan = SubsetPlan(test, count, level, n_permutations)
    return lattice_outcome(
        sum(rejections(sides, plan, generator, source)),
        PublicNull(
            binomial_law(count, level),
            rejections_width(count, sides.adjacency, sides.samples.rows_per_person),
        ),
        mechanism="tulap",
        budget=budget,
        alpha=alpha,
        noise=source,
        facts=facts(sides, plan, "test of tests"),
    )


# pytest would take the name for a test wherever it is imported
test_of_tests.__dict__["__test__"] = False


def _subsets(given: int | None, sides: TwoSides, test: SubTest) -> int:
    most = most_subsets(sides, test)
    if given is None:
        count = min(math.isqrt(min(sides.sizes)), most)
    else:
        count = integer_at_least("n_subsets", given, 1)
        if count > most:
            reject("n_subsets", f"at most {most}: {test.least_rows} rows for each", given)
    check_rows(sides, test, count)
    return count


def _level(given: float | None, alpha: float) -> float:
    if given is None:
        # in decimals: 5 · 0.011 is 0.055, not the float below it
        return float(min(5 * Decimal(repr(alpha)), Decimal("0.5")))
    return number("sub_alpha", given, above=0, below=1)


def _on_grid(level: float, n_permutations: int, test: SubTest) -> float:
    """Return the level that a rank p-value has: a multiple of 1/(permutations + 1)."""
    if not test.by_rank:
        return level
    ranks = math.floor(Fraction(Decimal(repr(level))) * (n_permutations + 1))
    if ranks == 0:
        least = math.ceil(1 / Fraction(Decimal(repr(level)))) - 1
        reject("n_permutations", f"at least {least} for sub_alpha = {level:g}", n_permutations)
    return ranks / (n_permutations + 1)


DESCRIPTORS = (
    Method(
        name="tot",
        question="two-sample",
        function=test_of_tests,
        about="a subtest on parts of the data",
        preset={"pvalue": "mmd", "scheme": "two-sample"},
        public_groups="it cuts each group into parts by its size",
        sentence=(
            "We used a test of tests, which runs a test on disjoint parts of the data and adds "
            "noise to how many reject"
        ),
        papers=("kazan2023",),
    ),
    Method(
        name="tot",
        question="independence",
        function=test_of_tests,
        about="a subtest on parts of the data",
        preset={"pvalue": "hsic", "scheme": "independence"},
        public_groups="it cuts each group into parts by its size",
        sentence=(
            "We used a test of tests, which runs a test on disjoint parts of the data and adds "
            "noise to how many reject"
        ),
        papers=("kazan2023",),
    ),
    Method(
        name="sarrm",
        question="two-sample",
        function=sarrm_test,
        about="a subtest on parts of the data",
        preset={"pvalue": "mmd", "scheme": "two-sample"},
        public_groups="it cuts each group into parts by its size",
        sentence=(
            "We used SARRM, which runs a test on disjoint parts of the data and flips their "
            "answers at random"
        ),
        papers=("pena2022",),
    ),
    Method(
        name="sarrm",
        question="independence",
        function=sarrm_test,
        about="a subtest on parts of the data",
        preset={"pvalue": "hsic", "scheme": "independence"},
        public_groups="it cuts each group into parts by its size",
        sentence=(
            "We used SARRM, which runs a test on disjoint parts of the data and flips their "
            "answers at random"
        ),
        papers=("pena2022",),
    ),
)
