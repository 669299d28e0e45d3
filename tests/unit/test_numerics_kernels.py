"""Kernels: values, infima, the squaring grid, and the bound on rounding errors."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from privatest.core.errors import ParameterError
from privatest.data.schema import Domain
from privatest.numerics.kernels import (
    UNIT_ROUNDOFF,
    Kernel,
    gram,
    gram_roundings,
    grams,
    kernel_grid,
)

LINE = Domain((0,))
FAMILIES = pytest.mark.parametrize("family", ["gaussian", "laplace", "imq"])
BOXES = [LINE, Domain((0, 0)), Domain((0,) * 5), Domain((0, 3)), Domain((2, 0, 4)), Domain((3,))]


def exact_kernel(kernel: Kernel, x, y, domain) -> Decimal:
    """The kernel in 50 decimals, from the definition."""
    with localcontext() as context:
        context.prec = 50
        differences = [abs(Decimal(float(x[j])) - Decimal(float(y[j]))) for j in domain.numeric]
        width = Decimal(kernel.bandwidth)
        mismatches = sum(int(x[j] != y[j]) for j in domain.categorical)

        def radial(distance: Decimal) -> Decimal:
            if kernel.family == "imq":
                return 1 / (1 + distance / width**2).sqrt()
            return (-distance / (width if kernel.family == "laplace" else width**2)).exp()

        power = 1 if kernel.family == "laplace" else 2
        factor = radial(Decimal(1)) if kernel.mismatch is None else Decimal(kernel.mismatch)
        numeric = radial(sum((d**power for d in differences), Decimal(0)))
        return numeric * factor**mismatches if mismatches else numeric


def adversarial_rows(domain, rng, count=12):
    """Rows with ties, corners, and neighbours that differ by next to nothing."""
    rows = rng.uniform(size=(count, domain.dimension))
    rows[:3] = np.round(rows[:3])
    rows[4] = np.minimum(rows[3] + 1e-8, 1.0)
    rows[5] = np.minimum(rows[3] + 1e-5, 1.0)
    rows[6] = np.minimum(rows[3] + 3e-3, 1.0)
    for column in domain.categorical:
        levels = domain.levels[column]
        rows[:, column] = np.minimum(np.floor(rows[:, column] * levels), levels - 1)
    return rows


def corners(domain):
    far = np.array([[max(level - 1, 1) for level in domain.levels]], dtype=float)
    return np.zeros((1, domain.dimension)), far


# --- values ----------------------------------------------------------------------------------


@FAMILIES
def test_definition(family):
    x, y = np.array([[0.2, 0.5]]), np.array([[0.6, 0.1]])
    width = 0.7
    squared, absolute = 0.4**2 + 0.4**2, 0.8
    expected = {
        "gaussian": math.exp(-squared / width**2),
        "laplace": math.exp(-absolute / width),
        "imq": (1 + squared / width**2) ** -0.5,
    }[family]
    assert gram(Kernel(family, width), x, y, Domain((0, 0))) == pytest.approx(expected)


@FAMILIES
@pytest.mark.parametrize("domain", BOXES, ids=str)
def test_a_gram_matrix_is_symmetric_positive_and_one_on_its_diagonal(family, domain):
    rows = adversarial_rows(domain, np.random.default_rng(1))
    matrix = gram(Kernel(family, 0.6), rows, rows, domain)
    assert np.abs(matrix - matrix.T).max() < 1e-14
    assert np.abs(np.diag(matrix) - 1).max() < 1e-13
    assert np.linalg.eigvalsh(matrix).min() > -1e-12


@pytest.mark.parametrize("mismatch", [0.0, 0.3])
def test_a_declared_mismatch(mismatch):
    domain = Domain((3, 2))
    x, y = np.array([[0.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 1.0]])
    found = gram(Kernel("gaussian", 1.0, mismatch), x, y, domain)
    assert found[0] == pytest.approx([1, mismatch, mismatch**2])


def test_no_rows():
    for domain in BOXES:
        empty = np.empty((0, domain.dimension))
        rows = np.zeros((3, domain.dimension))
        assert gram(Kernel("gaussian", 1.0), empty, rows, domain).shape == (0, 3)


@FAMILIES
def test_unbounded_rows_may_be_anywhere(family):
    domain = Domain((0,), bounded=False)
    rows = np.array([[0.0], [1e200], [-1e308], [1e308]])
    matrix = gram(Kernel(family, 1.0), rows, rows, domain)
    assert np.all(np.isfinite(matrix))
    assert np.array_equal(np.diag(matrix), np.ones(4))
    assert matrix[0, 1] < 1e-60


@pytest.mark.parametrize(
    ("family", "spread"),
    [("gaussian", 1.124384772957), ("laplace", 1.124384772957), ("imq", 0.765366864730)],
)
def test_published_spreads(family, spread):
    assert Kernel(family, 1.0).spread(LINE) == pytest.approx(spread, rel=1e-11)


@FAMILIES
@pytest.mark.parametrize("width", [0.01, 0.3, 1.0, 20.0])
@pytest.mark.parametrize("domain", BOXES, ids=str)
def test_the_infimum_is_attained_at_opposite_corners(family, width, domain):
    kernel = Kernel(family, width)
    near, far = corners(domain)
    with localcontext() as context:
        context.prec = 50
        value = (2 * (1 - exact_kernel(kernel, near[0], far[0], domain))).sqrt()
    assert kernel.spread(domain) == pytest.approx(float(value), rel=1e-13)
    assert Decimal(kernel.spread(domain)) >= value  # rounded up
    rows = adversarial_rows(domain, np.random.default_rng(2), 40)
    infimum = 1 - kernel.spread(domain) ** 2 / 2
    assert gram(kernel, rows, rows, domain).min() >= infimum - 1e-13


def test_the_spread_of_an_unbounded_domain_is_the_papers_constant():
    assert Kernel("imq", 3.0).spread(Domain((0,), bounded=False)) == pytest.approx(math.sqrt(2))


# --- grids -----------------------------------------------------------------------------------


def test_default_grid():
    widths = [kernel.bandwidth for kernel in kernel_grid("gaussian", None, Domain((0,) * 4))]
    assert widths == [8, 2, 1, 0.5, 0.25, 0.125]
    laplace = [kernel.bandwidth for kernel in kernel_grid("laplace", None, Domain((0,) * 4))]
    assert laplace == [16, 4, 2, 1, 0.5, 0.25]


def test_bandwidths_are_sorted_and_told_once():
    kernels = kernel_grid("imq", [0.1, 2, 0.1, 1.0], LINE)
    assert [kernel.bandwidth for kernel in kernels] == [2, 1, 0.1]
    assert kernel_grid("imq", list(np.array([0.5])), LINE) == (Kernel("imq", 0.5),)
    assert kernel_grid("imq", 0.5, LINE) == (Kernel("imq", 0.5),)


@pytest.mark.parametrize(
    "bandwidths", [0, -1, [], [1, 0], math.nan, math.inf, "1", [None], [True], [[1.0]]]
)
def test_bandwidths_that_are_refused(bandwidths):
    with pytest.raises(ParameterError, match="bandwidths must be"):
        kernel_grid("gaussian", bandwidths, LINE)


@FAMILIES
@pytest.mark.parametrize("width", [1e-200, 1e-160, 1e160, 1e200])
def test_bandwidths_beyond_floats_are_refused_by_name(family, width):
    """Their squares are 0 or infinite."""
    with pytest.raises(ParameterError, match="bandwidths must be"):
        kernel_grid(family, width, LINE)


def test_unbounded_data_has_no_default_grid():
    with pytest.raises(ParameterError, match="bandwidths must be given"):
        kernel_grid("gaussian", None, Domain((0,), bounded=False))


@pytest.mark.parametrize(
    "arguments",
    [("cubic", 1.0), ("gaussian", 0.0), ("gaussian", 1.0, 1.0), ("gaussian", 1.0, -0.1)],
)
def test_kernels_that_are_refused(arguments):
    with pytest.raises(ParameterError, match="must be"):
        Kernel(*arguments)


@pytest.mark.parametrize(
    "widths",
    [
        (4.0, 1.0, 0.5, 0.25, 0.125, 0.0625),
        (1.0, 0.7, 0.35),
        (3.0, 0.01),
        (0.5, 1.0, 2.0),  # upwards: nothing to square
        (1.0, 1.0),
    ],
)
@pytest.mark.parametrize("domain", BOXES, ids=str)
def test_squaring_gives_the_same_as_exponentials(widths, domain):
    rows = adversarial_rows(domain, np.random.default_rng(3))
    kernels = [Kernel("gaussian", width) for width in widths]
    together = [matrix.copy() for matrix in grams(kernels, rows, rows, domain)]
    for kernel, matrix in zip(kernels, together, strict=True):
        alone = gram(kernel, rows, rows, domain)
        tolerance = sum(gram_roundings(kernels, domain)) + gram_roundings((kernel,), domain)[0]
        assert np.abs(matrix - alone).max() <= tolerance


# --- rounding --------------------------------------------------------------------------------


@FAMILIES
@pytest.mark.parametrize("domain", BOXES, ids=str)
@pytest.mark.parametrize(
    "widths", [(4.0, 1.0, 0.5, 0.25, 0.125, 0.0625), (10.0,), (0.3, 0.01)], ids=str
)
def test_rounding_errors_stay_within_their_bound(family, domain, widths):
    rows = adversarial_rows(domain, np.random.default_rng(4), 9)
    kernels = [Kernel(family, width) for width in widths]
    bounds = gram_roundings(kernels, domain)
    for kernel, bound, matrix in zip(
        kernels, bounds, grams(kernels, rows, rows, domain), strict=True
    ):
        errors = [
            abs(Decimal(float(matrix[i, j])) - exact_kernel(kernel, rows[i], rows[j], domain))
            for i in range(len(rows))
            for j in range(len(rows))
        ]
        assert float(max(errors)) <= bound
        assert bound < 1e-8 or kernel.bandwidth < 0.05


def test_squaring_magnifies_errors_and_the_bound_knows():
    kernels = [Kernel("gaussian", width) for width in (4.0, 0.0625)]
    together, alone = gram_roundings(kernels, LINE)[1], gram_roundings(kernels[1:], LINE)[0]
    assert alone < 100 * UNIT_ROUNDOFF
    points = np.concatenate([np.linspace(0, 1, 400), np.logspace(-9, 0, 400)])[:, None]
    *_, squared = grams(kernels, np.zeros((1, 1)), points, LINE)
    exact = np.exp(-((points[:, 0].astype(np.longdouble) / np.longdouble(0.0625)) ** 2))
    assert float(np.abs(squared[0] - exact).max()) <= together


@pytest.mark.parametrize("family", ["gaussian", "imq"])
@pytest.mark.parametrize("width", [1e-3, 1e-6, 1e-8, 2e-9])
def test_narrow_kernels_in_high_dimension(family, width):
    """Distances by a matrix product are off by 1e-15, which a narrow kernel magnifies."""
    domain = Domain((0,) * 6)
    rows = np.random.default_rng(5).uniform(size=(40, 6))
    matrix = gram(Kernel(family, width), rows, rows, domain)
    bound = gram_roundings((Kernel(family, width),), domain)[0]
    assert np.all(np.isfinite(matrix))
    assert np.abs(np.diag(matrix) - 1).max() <= bound
