"""Release a private synthetic database (Balog, Tolstikhin and Schölkopf 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import Amount, Budget
from privatest.core.validation import (
    Rng,
    integer_at_least,
    number,
    one_of,
    public_generator,
    reject,
)
from privatest.data.encoding import Sample, encode_like, encode_sample, rows_of_a_person
from privatest.data.reading import check_bounds
from privatest.data.schema import Bounds, Domain
from privatest.data.summaries import in_secret_order
from privatest.methods.descriptor import Method, Offered, Option
from privatest.numerics.kernels import KERNEL_FAMILIES, Kernel, KernelFamily
from privatest.synthetic.answers import Facts, Floats, Weighting
from privatest.synthetic.data import SyntheticData
from privatest.synthetic.embedding import (
    Coefficients,
    Denoised,
    Weights,
    best_points,
    box_points,
    check_points,
    check_size,
    coefficient_sensitivity,
    coefficients,
    denoise,
    kernel_sums,
    nested_moments,
    noisy_share,
    of_subspace,
    snapping,
    span,
    usual_tolerance,
    weighted,
)
from privatest.synthetic.fourier import (
    Constraint,
    noisy_features,
    of_features,
    reduced_set,
    weight_draws,
)
from privatest.synthetic.tables import (
    ATOM_SHARE,
    Bins,
    Measurement,
    TablesPlan,
    count_steps,
    has_atoms,
    measure_atoms,
    measure_tables,
    planned_rounds,
    suits_tables,
    tables_of,
)
from privatest.synthetic.tables_fit import fit_rows

ReleaseMethod = Literal["auto", "tables", "subspace", "features"]
_DEFAULT_POINTS = 500
_CONSTRAINTS: dict[Weights, Constraint] = {
    "nonnegative": "simplex",
    "bounded": "l1",
    "equal": "equal",
}
_UNBOUNDED = ("linear", "poly", "polynomial", "quadratic", "cosine", "sigmoid")


def release(
    x: object,
    *,
    bounds: Bounds = None,
    public_points: Offered[object] = None,
    kernel: Offered[KernelFamily | Kernel | None] = None,
    bandwidth: Offered[float | None] = None,
    epsilon: Amount,
    delta: Amount,
    method: ReleaseMethod = "auto",
    n_points: Annotated[int | None, Option("points")] = None,
    bins: Offered[Bins | None] = None,
    weights: Offered[Weights | None] = None,
    weight_bound: float = 1.0,
    n_frequencies: int = 10_000,
    tolerance: float | None = None,
    rng: Rng = None,
    noise: NoiseSource | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> SyntheticData:
    """Release weighted synthetic rows that represent private ones.

    Publish once; anyone may then compute means, probabilities, distances and models from the
    result, at no further cost.

    Parameters
    ----------
    x : array, data frame or Arrow table
        Private rows.
    bounds : None, (lower, upper), (d, 2) array, mapping of names to pairs, or Schema
        Public bounds. With None, numbers are used unscaled; ``public_points`` and
        ``bandwidth`` must then be given.
    public_points : array, data frame or table, optional
        Rows that are PUBLIC already: from a published subset, from a similar data set, or made
        up. The release contains them unchanged. By default points are spread over the box.
    kernel : {"gaussian", "laplace", "imq"} or Kernel, optional
        The measure of similarity, by default "gaussian". Categories are handled by a product
        kernel. Not for "tables".
    bandwidth : float, optional
        Bandwidth w of the kernel: exp(-|x-y|²/w²) and so on. In units of the box if there are
        bounds (each column has length 1), else in the data's own units. By default it follows
        from the numbers of columns and points.
    epsilon, delta : float
        The budget. The mechanism needs delta > 0.
    method : {"auto", "tables", "subspace", "features"}
        "tables": rows that fit noisy counts of each column and of pairs of columns; the counts
        are released too. "subspace" (Algorithm 1): public points, private weights. "features"
        (Algorithm 2): points and weights are fitted to a noisy mean of random Fourier features.
        In both a tenth of the budget counts the schema's atoms, if there are any.
        "auto" takes "tables" if there are categories, atoms or more than two columns and none
        of the options of "subspace" is given, else "subspace".
    n_points : int, optional
        Rows to release, by default all public points, or 500. If there are more public points,
        the best are chosen after noise was added, and no more than stand out from the noise.
        For "tables" any number; by default that of the private rows, or 50,000 if it is less.
    bins : {"adaptive", "even"}, optional
        For "tables", of numbers with many values: 128 bins of equal length between the bounds
        ("even"), or finer ones where noisy counts show many rows ("adaptive", the default).
        Looking for them takes up to a tenth of the budget, and a thirtieth if no bin holds an
        eighth of the rows; nothing if noise would hide them, by n and the budget. The bins that
        are found are public.
    weights : {"signed", "bounded", "nonnegative", "equal"}, optional
        "signed" (default for "subspace") is nearest in the RKHS. "bounded" has |w|₁ <=
        ``weight_bound``. "nonnegative" (default for "features") sums to 1, so that
        probabilities are in [0, 1]. "equal" (always so for "tables") repeats rows instead.
    weight_bound : float
        The bound for "bounded".
    n_frequencies : int
        The most frequencies for "features".
    tolerance : float, optional
        A public point whose squared distance to the span of others is below this gets no
        coefficient of its own; by default 1e-6, and 1e-5 for more than 1000 points.
    rng : None, int or Generator
        Public randomness, for error bars and the frequencies of "features".
    noise : NoiseSource, optional
        Secret randomness; by default SecureNoise.
    progress : callable, optional
        Called with (steps done, steps) while "tables" or "features" fits.

    Returns
    -------
    SyntheticData
        Rows, weights and error bars.

    Notes
    -----
    **Sensitivity** The embedding of n rows moves by at most c/n, c² = 2 (sup k - inf k) over
    the box, and so does its projection on the span of public points, in l2 (the paper has
    2/n); times the rows per person, widened for rounding. Proof: docs/proofs/synthetic.md; for
    "features" docs/proofs/fourier-release.md. A table of counts moves by sqrt(2), times the rows
    per person: docs/proofs/tables.md.

    **Privacy** The coefficients plus analytic Gaussian noise are (epsilon, delta)-private.
    Points, kernel and basis are public. Shrinkage, weights and error bars are computed from
    the noisy coefficients: post-processing. The number of rows is public. So are the noisy tables
    of "tables": Gaussian noise in rounds whose squared ratios of sensitivity to scale add up.

    References
    ----------
    Balog, Tolstikhin and Schölkopf (2018), Differentially private database release via kernel
    mean embeddings.

    Examples
    --------
    >>> import numpy as np
    >>> from privatest.synthetic import release
    >>> x = np.random.default_rng(0).beta(2, 5, size=(20_000, 2))
    >>> synthetic = release(x, bounds=(0, 1), epsilon=1, delta=1e-6)
    >>> abs(float(synthetic.mean("x1")) - 2 / 7) < 0.05
    True
    """
    budget = _budget(epsilon, delta)
    one_of("method", method, get_args(ReleaseMethod))
    given = {"kernel": kernel, "bandwidth": bandwidth, "public_points": public_points}
    own = [name for name, value in given.items() if value is not None]
    if method == "tables" and own:
        raise ParameterError(f"{own[0]} must not be given for method='tables'.")
    if bins is not None:
        one_of("bins", bins, get_args(Bins))
        if method not in ("auto", "tables"):
            raise ParameterError("bins needs method='tables'.")
    if n_points is not None:
        n_points = integer_at_least("n_points", n_points, 1)
    if weights is not None:
        one_of("weights", weights, get_args(Weights))
    kernel = _public_kernel(kernel, bandwidth)
    number("weight_bound", weight_bound, above=0)
    if tolerance is not None:
        number("tolerance", tolerance, at_least=1e-10, below=1)
    integer_at_least("n_frequencies", n_frequencies, 1)
    check_bounds(bounds)
    generator, source = public_generator(rng), noise_source(noise)
    if method == "auto":
        plain = not own and tolerance is None and weights not in ("signed", "bounded")
        method = "tables" if plain and suits_tables(bounds, x) else "subspace"
        if bins is not None and method != "tables":
            raise ParameterError("bins needs method='tables'.")
    chosen = _weights(method, weights)
    if method == "tables":
        sample, rounds, size = tables_of(x, bounds, n_points, budget, bins or "adaptive")
        return tables_release(
            sample, rounds, n_rows=size, rng=generator, noise=source, progress=progress
        )
    plan = _plan(x, bounds, public_points, n_points, kernel, method)
    tolerance = usual_tolerance(len(plan.points)) if tolerance is None else tolerance
    atoms = _atoms(x, plan, budget, source)
    rest = 1 - ATOM_SHARE if atoms else None
    shared = (plan, chosen, weight_bound, budget, rest, generator, source)
    if method == "features":
        made = _features(*shared, n_frequencies, progress)
    else:
        made = _subspace(*shared, tolerance)
    points, fitted, before, measured = made
    facts = Facts(
        n=len(plan.sample),
        spent=budget,
        method=f"{method} ({plan.kernel.family} kernel)",
        kernel=plan.kernel,
        schema=plan.sample.schema,
        unit=plan.sample.unit,
        sigma=measured.sigma,
        parameters={"weights": chosen, "n_points": plan.n_points, "tolerance": tolerance},
        simulated=source.simulated,
    )
    rows = _columns(points, plan.sample)
    return SyntheticData(rows, fitted.weights, fitted.draws, facts, before, measured, atoms)


def _atoms(x: object, plan: _Plan, budget: Budget, noise: NoiseSource) -> tuple[Measurement, ...]:
    """Count rows at atoms, in the columns' own units: scaled ones may be off by a rounding."""
    schema = plan.sample.schema
    if schema is None or not has_atoms(schema):
        return ()
    return measure_atoms(encode_sample(x, schema, units="own"), schema, budget, noise)


def _columns(points: Floats, sample: Sample) -> Mapping[str, NDArray[Any]]:
    """Return public points as read-only columns in the data's own units."""
    if sample.schema is None:
        columns = dict(zip(sample.column_names, points.T.copy(), strict=True))
    else:
        columns = sample.schema.decode(points)
    for column in columns.values():
        column.flags.writeable = False
    return MappingProxyType(columns)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Plan:
    """The data, and everything that is decided before it is used."""

    sample: Sample
    points: Floats
    n_points: int
    kernel: Kernel


def _plan(
    x: object,
    bounds: Bounds,
    public_points: object,
    n_points: int | None,
    kernel: KernelFamily | Kernel,
    method: ReleaseMethod,
) -> _Plan:
    sample = encode_sample(x, bounds)
    n, schema = len(sample), sample.schema
    if n < 1:
        raise DataError("x must have at least one row.")
    if public_points is not None:
        points = encode_like(public_points, sample, "public_points").rows
    elif schema is None:
        raise ParameterError(
            "public_points or bounds must be given: points may not be chosen from the data."
        )
    else:
        wanted = min(_DEFAULT_POINTS, n) if n_points is None else n_points
        check_size(wanted, n)
        points = box_points(schema, wanted)
    check_points(points, n)
    size = len(points) if n_points is None else n_points
    if method == "subspace":
        size = min(size, len(points))
    check_size(size, n)
    return _Plan(sample, points, size, _kernel(kernel, sample.domain, size))


_Made = tuple[Floats, Weighting, Weighting | None, Coefficients]
"""Points, their weights, the signed weights, and what was measured."""


def _features(
    plan: _Plan,
    weights: Weights,
    weight_bound: float,
    budget: Budget,
    share: Fraction | None,
    rng: np.random.Generator,
    noise: NoiseSource,
    n_frequencies: int,
    progress: Callable[[int, int], None] | None,
) -> _Made:
    """Release by Algorithm 2; the features take ``share`` of the budget, None for all of it.

    Notes
    -----
    **Sensitivity** Of the mean feature: docs/proofs/fourier-release.md.

    **Privacy** The noisy mean feature is (epsilon, delta)-private; the rest is post-processing.
    """
    sample = plan.sample
    noisy = noisy_features(
        sample.held,
        kernel=plan.kernel,
        domain=sample.domain,
        n_frequencies=n_frequencies,
        budget=budget,
        rows_per_person=rows_of_a_person(sample),
        share=share,
        rng=rng,
        noise=noise,
    )
    points, fitted = reduced_set(
        noisy,
        domain=sample.domain,
        n_points=plan.n_points,
        constraint=_CONSTRAINTS[weights],
        weight_bound=weight_bound,
        start=plan.points,
        snap=snapping(sample.schema),
        rng=rng,
        progress=progress,
    )
    space = span(points, plan.kernel, sample.domain)
    draws = weight_draws(space, noisy, fitted, weights, rng)
    return points, Weighting(fitted, draws), None, of_features(noisy)


def _subspace(
    plan: _Plan,
    weights: Weights,
    weight_bound: float,
    budget: Budget,
    share: Fraction | None,
    rng: np.random.Generator,
    noise: NoiseSource,
    tolerance: float,
) -> _Made:
    """Release by Algorithm 1; the coefficients take ``share`` of the budget, None for all."""
    n = len(plan.sample)
    space = span(plan.points, plan.kernel, plan.sample.domain, tolerance)
    sensitivity = coefficient_sensitivity(space, n, rows_of_a_person(plan.sample))
    ordered = in_secret_order(plan.sample, noise)
    exact = coefficients(space, kernel_sums(space, ordered.held), n)
    noisy, sigma = noisy_share(
        exact, sensitivity=sensitivity, budget=budget, share=share, noise=noise
    )
    # from here on everything is post-processing
    points, coordinates = plan.points, space.coordinates
    known, *fewer = nested_moments(coordinates)
    if plan.n_points < len(points) and weights != "equal":
        best = np.sort(best_points(coordinates, noisy, plan.n_points, sigma))
        points, coordinates = points[best], coordinates[best]
        # choosing few points already shrinks: project on their span, and no more
        denoised = Denoised(noisy, sigma, math.inf, math.inf, known)
    else:
        denoised = denoise(noisy, known, sigma, fewer)
    chosen, fitted, before = weighted(
        coordinates,
        denoised,
        known if len(coordinates) == len(plan.points) else None,
        kind=weights,
        bound=weight_bound,
        count=plan.n_points,
        rng=rng,
    )
    return points[chosen], fitted, before, of_subspace(space, noisy, sigma)


def _budget(epsilon: Amount, delta: Amount) -> Budget:
    budget = Budget(epsilon, delta)
    if budget.delta == 0:
        raise ParameterError(
            "delta must be above 0: synthetic data needs Gaussian noise on many coefficients, "
            "which is not private for any epsilon alone. Choose delta well below 1/n, for "
            "example 1e-6."
        )
    return budget


def _weights(method: ReleaseMethod, weights: Weights | None) -> Weights:
    if weights is None:
        return "signed" if method == "subspace" else "nonnegative"
    if method == "tables" and weights in ("signed", "bounded"):
        raise ParameterError(
            f"weights={weights!r} needs method='subspace'; 'tables' has equal ones."
        )
    if method == "features" and weights == "signed":
        raise ParameterError("weights='signed' needs method='subspace'; 'bounded' works for both.")
    return weights


def _public_kernel(
    kernel: KernelFamily | Kernel | None, bandwidth: float | None
) -> KernelFamily | Kernel:
    """Return the family, or the kernel if its bandwidth is given."""
    kernel = "gaussian" if kernel is None else kernel
    if isinstance(kernel, Kernel):
        if bandwidth is not None:
            raise ParameterError("bandwidth must be None if kernel is a Kernel: it has its own.")
        return kernel
    if kernel in _UNBOUNDED:
        families = ", ".join(repr(family) for family in KERNEL_FAMILIES)
        raise ParameterError(
            f"kernel {kernel!r} is not bounded: one row could move the release without limit. "
            f"Use one of {families}."
        )
    one_of("kernel", kernel, KERNEL_FAMILIES)
    return kernel if bandwidth is None else Kernel(kernel, number("bandwidth", bandwidth, above=0))


def _kernel(kernel: KernelFamily | Kernel, domain: Domain, n_points: int) -> Kernel:
    """Return the kernel, by default as wide as the spacing of the points."""
    if isinstance(kernel, Kernel):
        return kernel
    if not domain.bounded:
        reject("bandwidth", "given when bounds are not: choosing it from the data leaks", None)
    size = domain.dimension
    diameter = size if kernel == "laplace" else math.sqrt(size)
    # so that together they cover the box
    return Kernel(kernel, diameter * max(1 / 8, n_points ** (-1 / size)))


def tables_release(
    sample: Sample,
    plan: TablesPlan,
    *,
    n_rows: int,
    rng: np.random.Generator,
    noise: NoiseSource,
    progress: Callable[[int, int], None] | None = None,
) -> SyntheticData:
    """Release rows that fit noisy tables of one and two columns.

    Notes
    -----
    **Sensitivity** Of the tables: docs/proofs/tables.md.

    **Privacy** The noisy tables are (epsilon, delta)-private; the rest is post-processing.
    """
    assert sample.schema is not None
    plan, tables = measure_tables(sample, plan, noise)
    rows = fit_rows(tables, plan, n_rows, rng, progress)  # post-processing, as all below
    facts = Facts(
        n=plan.n,
        spent=plan.budget,
        method="tables (counts of columns and of pairs)",
        kernel=None,
        schema=sample.schema,
        unit=sample.unit,
        sigma=tables.single[0].sigma,
        parameters={"weights": "equal", "n_points": n_rows, "shares": plan.shares},
        simulated=noise.simulated,
        starts=plan.starts,
    )
    means = plan.own_means(tables.moments, tables.mean_sigma) if plan.means else []
    weights = np.full(n_rows, 1 / n_rows)
    # no draws: bars come from what was measured, and refitted rows were seen not to cover
    draws = np.empty((n_rows, 0))
    return SyntheticData(rows, weights, draws, facts, measured=(*tables.measured, *means))


DESCRIPTORS = (
    Method(
        name="auto",
        question="release",
        function=release,
        about="what suits the columns",
        preset={"method": "auto"},
        gaussian=True,
        plan=planned_rounds,
        work=count_steps,
        sentence="We released synthetic rows that fit noisy measurements of the data",
        papers=("balog2018", "balle2018"),
    ),
    Method(
        name="tables",
        question="release",
        function=release,
        about="rows that fit noisy tables of columns and pairs",
        preset={"method": "tables"},
        without=("bandwidth", "kernel", "public_points"),
        gaussian=True,
        plan=planned_rounds,
        work=count_steps,
        sentence=(
            "We released synthetic rows that fit noisy tables of columns and of pairs of columns"
        ),
        papers=("balog2018", "balle2018"),
    ),
    Method(
        name="subspace",
        question="release",
        function=release,
        about="public points, private weights",
        preset={"method": "subspace"},
        without=("bins",),
        gaussian=True,
        sentence=(
            "We released public points with private weights, by the kernel mean embedding of "
            "the data"
        ),
        papers=("balog2018", "balle2018"),
    ),
    Method(
        name="features",
        question="release",
        function=release,
        about="private points and weights, found by a search",
        preset={"method": "features"},
        without=("bins",),
        caution="its search may take minutes; what it starts from is private already",
        gaussian=True,
        sentence=(
            "We released synthetic points with weights, found by a search from noisy features "
            "of the data"
        ),
        papers=("balog2018", "balle2018"),
    ),
)
