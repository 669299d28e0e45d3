"""Hypothesis tests on releases, from what was measured: valid where tests on rows are not.

A synthetic row is no person, and tests that count rows as people reject true hypotheses. These
use the released counts and the known size of their noise: under the null hypothesis there are
sampling error and noise. Post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.documents import fingerprint
from privatest.core.errors import ParameterError
from privatest.core.results import Outcome, declare_level
from privatest.core.validation import Rng, integer_at_least, number, public_generator, reject
from privatest.methods.descriptor import Method
from privatest.synthetic.answers import Columns, Floats, MeanSource, per_row
from privatest.synthetic.embedding import to_simplex
from privatest.synthetic.tables import Measurement, schema_cells

if TYPE_CHECKING:
    from privatest.synthetic.data import SyntheticData
    from privatest.synthetic.queries import Expression

_AGAIN = 0.03  # p-values below this are looked for with more draws
_BLOCK = 1 << 22  # counts that are drawn at once
NOTE = "testing costs nothing more: a release may be tested any number of times"
_NO_TABLES = (
    "this release holds no measured tables, and tests on synthetic rows reject true hypotheses "
    "far too often. Release with method='tables'."
)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCounts:
    """Noisy counts of ``n`` rows of which ``n/rows`` people have at most ``rows`` each.

    Rows of one person may be equal; then counts vary as those of n/rows people do, times rows.
    """

    counts: Floats
    sigma: float | Floats  # of every count, or one for each in a flat array
    n: int
    rows: int = 1

    def drawn(self, shares: Floats, draws: int, rng: np.random.Generator) -> Floats:
        """Draw counts with noise from given shares: draws × cells."""
        people = max(round(self.n / self.rows), 1)
        counts = rng.multinomial(people, shares.ravel() / shares.sum(), size=draws)
        noise = rng.normal(scale=self.sigma, size=counts.shape)
        return np.asarray(counts * (self.n / people) + noise)


def same_law_pvalue(
    first: NoisyCounts, second: NoisyCounts, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return a statistic of the difference of two tables, and its p-value.

    The statistic sums squared differences of shares over their variances, at pooled shares.
    """
    pair = first, second

    def statistic(*counts: Floats) -> Floats:
        pooled = _shares(counts[0] + counts[1])
        variance = sum(
            (each.rows * pooled / each.n + (each.sigma / each.n) ** 2 for each in pair),
            start=np.zeros_like(pooled),
        )
        away = counts[0] / first.n - counts[1] / second.n
        return np.asarray((away**2 / variance).sum(axis=1), dtype=np.float64)

    observed = first.counts.reshape(1, -1), second.counts.reshape(1, -1)
    pooled = _shares(observed[0] + observed[1])[0]
    return _pvalue(
        float(statistic(*observed)[0]),
        lambda size: statistic(*(each.drawn(pooled, size, rng) for each in pair)),
        draws,
        pooled.size,
    )


def independence_pvalue(
    table: NoisyCounts, draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Return a statistic of the dependence in a table of two columns, and its p-value."""
    shape = table.counts.shape

    def sides(counts: Floats) -> tuple[Floats, Floats]:
        cube = counts.reshape(-1, *shape)
        return _shares(cube.sum(axis=2)), _shares(cube.sum(axis=1))

    def statistic(counts: Floats) -> Floats:
        first, second = sides(counts)
        expected = (first[:, :, None] * second[:, None, :]).reshape(len(counts), -1)
        variance = table.rows * table.n * expected + table.sigma**2
        away = counts - table.n * expected
        return np.asarray((away**2 / variance).sum(axis=1), dtype=np.float64)

    observed = table.counts.reshape(1, -1)
    first, second = sides(observed)
    product = np.outer(first[0], second[0])
    return _pvalue(
        float(statistic(observed)[0]),
        lambda size: statistic(table.drawn(product, size, rng)),
        draws,
        product.size,
    )


def _pvalue(
    observed: float, null: Callable[[int], Floats], draws: int, cells: int
) -> tuple[float, float]:
    """Compare with draws of the null law: a few first, all of them if the p-value is small."""
    few = min(draws, 999)
    pvalue = _share_above(observed, null, few, cells)
    if pvalue < _AGAIN and draws > few:
        pvalue = _share_above(observed, null, draws, cells)
    return observed, pvalue


def _share_above(observed: float, null: Callable[[int], Floats], draws: int, cells: int) -> float:
    above, left = 0, draws
    while left:
        size = min(left, max(_BLOCK // cells, 1))
        above += int(np.count_nonzero(null(size) >= observed))
        left -= size
    return (1 + above) / (1 + draws)


def _shares(counts: Floats) -> Floats:
    """Return the nearest probabilities to each row of counts."""
    totals = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    return to_simplex((counts / totals).T).T


def common_groups(first: NDArray[np.intp], second: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the finest groups of cells of which both groupings' groups are parts.

    Examples
    --------
    >>> common_groups(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])).tolist()
    [0, 0, 0, 1]
    """
    found = first.copy()
    while True:
        lowest = np.full(int(second.max()) + 1, found.size, dtype=np.intp)
        np.minimum.at(lowest, second, found)
        merged = lowest[second]
        back = np.full(int(first.max()) + 1, found.size, dtype=np.intp)
        np.minimum.at(back, first, merged)
        merged = back[first]
        if np.array_equal(merged, found):
            return np.unique(found, return_inverse=True)[1].astype(np.intp)
        found = merged


def coarsened(
    counts: Floats, groups: tuple[NDArray[np.intp], ...], wanted: tuple[NDArray[np.intp], ...]
) -> tuple[Floats, Floats]:
    """Sum a table's counts over coarser groups of cells.

    Returns
    -------
    counts, sizes : ndarray
        The sums, and how many counts are in each: the variances of their noise add up.
    """
    size = np.ones_like(counts)
    for axis, (own, coarse) in enumerate(zip(groups, wanted, strict=True)):
        of_group = np.zeros(int(own.max()) + 1, dtype=np.intp)
        of_group[own] = coarse
        summed = []
        for each in (counts, size):
            moved = np.moveaxis(each, axis, 0)
            sums = np.zeros((int(of_group.max()) + 1, *moved.shape[1:]))
            np.add.at(sums, of_group, moved)
            summed.append(np.moveaxis(sums, 0, axis))
        counts, size = summed
    return counts, size


def share_pvalue(value: float, hypothesis: float, n: int, noise: float, unseen: float) -> float:
    """Return the p-value of a share: a binomial share, normal noise, and a bounded rest.

    Exact for every n: the law of Binomial(n, p)/n + N(0, noise²) is summed.
    """
    away = max(abs(value - hypothesis) - unseen, 0.0)
    width = 12 * math.sqrt(n * hypothesis * (1 - hypothesis)) + 30
    low = max(0, math.floor(n * hypothesis - width))
    high = min(n, math.ceil(n * hypothesis + width))
    successes = np.arange(low, high + 1)
    masses = _binomial(successes, n, hypothesis)
    at = successes / n - hypothesis
    if noise <= 0:
        return min(1.0, float(masses[np.abs(at) >= away - 1e-12].sum()))
    beyond = _tail((away - at) / noise) + _tail((away + at) / noise)
    return min(1.0, float(masses @ beyond) + 1e-12)


def normal_pvalue(value: float, hypothesis: float, deviation: float, unseen: float) -> float:
    """Return the p-value of a mean whose error is normal, but for a bounded rest."""
    away = max(abs(value - hypothesis) - unseen, 0.0)
    if deviation <= 0:
        return 1.0 if away == 0 else 0.0
    # a bias towards the side of the value is the worst
    far = max(abs(value - hypothesis) + unseen, away)
    return min(1.0, float(_tail(np.array([away / deviation, far / deviation])).sum()))


def _tail(z: Floats) -> Floats:
    from scipy.special import ndtr  # noqa: PLC0415

    return np.asarray(ndtr(-z), dtype=np.float64)


def _binomial(successes: NDArray[np.intp], n: int, share: float) -> Floats:
    from scipy.special import gammaln, xlogy  # noqa: PLC0415

    logs = gammaln(n + 1) - gammaln(successes + 1) - gammaln(n - successes + 1)
    logs = logs + xlogy(successes, share) + xlogy(n - successes, 1 - share)
    return np.asarray(np.exp(logs), dtype=np.float64)


# --- tests ---------------------------------------------------------------------------------------


def value_outcome(
    release: SyntheticData, what: Expression, equals: float, where: Expression | None, alpha: float
) -> Outcome:
    """Test whether a share or a mean of the population is a given number."""
    alpha = number("alpha", alpha, above=0, below=1)
    equals = number("equals", equals)
    share = isinstance(what, str) and what not in release.columns
    if share and not 0 <= equals <= 1:
        raise ParameterError("equals must be between 0 and 1: it is a share.")
    if release.source is None:
        raise ParameterError("this release keeps nothing that was measured: no test is valid.")
    estimate = (release.probability if share else release.mean)(what, where=where)
    untestable = ParameterError(f"this cannot be tested: {estimate.reason}.")
    if math.isnan(estimate.error) and (where is not None or estimate.limits is None):
        raise untestable
    value, noise, unseen = estimate.value, estimate.error, 0.0
    if where is None:
        value, noise, unseen = _error_parts(release.source, release.columns, what, share)
    if math.isinf(unseen):
        raise untestable
    people = max(release.facts.n // release.facts.rows_per_person, 1)
    if share and where is None:
        pvalue = share_pvalue(value, equals, people, noise, unseen)
    else:
        pvalue = normal_pvalue(value, equals, math.hypot(noise, estimate.sampling), unseen)
    name = what if isinstance(what, str) else "a function"
    text = f"the {'share of' if share else 'mean of'} {name}"
    if isinstance(where, str):
        text += f" where {where}"
    return _outcome(
        release,
        pvalue,
        alpha,
        statistic=estimate.value,
        method=f"test of a {'share' if share else 'mean'} from a release",
        hypothesis=f"{text} is {equals:g}",
        parameters={"equals": equals, "noise": noise, "unseen": unseen},
    )


def _error_parts(
    source: MeanSource, rows: Columns, what: Expression, share: bool
) -> tuple[float, float, float]:
    """Return an estimate, its noise, and the bound on what else it may miss."""
    from privatest.synthetic.queries import known_jumps, selected  # noqa: PLC0415

    def function(columns: Columns) -> Floats:
        if callable(what):
            return per_row(what(columns), columns)
        return per_row(selected(what, columns) if share else columns[what], columns)

    means = source.means(function, known_jumps(what, rows))
    return float(means.values[0]), float(means.noise[0]), float(means.unseen[0])


def independence_outcome(
    release: SyntheticData, a: str, b: str, alpha: float, n_bootstrap: int, rng: Rng
) -> Outcome:
    """Test whether two columns are independent, from their measured table."""
    alpha = number("alpha", alpha, above=0, below=1)
    n_bootstrap = integer_at_least("n_bootstrap", n_bootstrap, 1)
    if not release.measured:
        raise ParameterError(_NO_TABLES)
    for name in (a, b):
        if name not in release.columns:
            raise ParameterError(f"there is no column {str(name)[:60]!r}.")
    every = [table for table in release.measured if table.is_table]
    tables = [table for table in every if {*table.columns} == {a, b} and a != b]
    if not tables:
        pairs = [" and ".join(t.columns) for t in every if len(t.columns) == 2]
        raise ParameterError(
            f"{a} and {b} were not measured together; these were: {'; '.join(pairs) or 'none'}."
        )
    table = max(tables, key=lambda each: each.counts.size)
    counted = NoisyCounts(table.counts, table.sigma, release.facts.n, release.facts.rows_per_person)
    generator = public_generator(_seed([release], a, b) if rng is None else rng)
    statistic, pvalue = independence_pvalue(counted, n_bootstrap, generator)
    return _outcome(
        release,
        pvalue,
        alpha,
        statistic=statistic,
        method="independence from a measured table",
        hypothesis=f"{a} and {b} are independent",
        parameters={"groups": list(table.counts.shape), "n_bootstrap": n_bootstrap},
    )


@declare_level("measured")
def compare_releases(
    a: SyntheticData,
    b: SyntheticData,
    *,
    alpha: float = 0.05,
    n_bootstrap: int | None = None,
    rng: Rng = None,
) -> Outcome:
    r"""Test whether two releases are of data with the same distribution.

    Parameters
    ----------
    a, b : SyntheticData
        Releases by ``method="tables"`` of two data sets of different people, with the same
        columns.
    alpha : float
        Level of the test.
    n_bootstrap : int, optional
        Draws of the null law of each table; by default enough for the smallest corrected
        p-value to be a tenth of ``alpha``, at least 999.
    rng : None, int or Generator
        Public randomness, for these draws. With None they follow from the releases, so that
        everybody who compares the same two gets the same p-value.

    Returns
    -------
    Outcome
        ``spent`` is what the first release cost its people; comparing adds nothing.
        ``parameters["tables"]`` has the p-value of each table, before the correction.

    Notes
    -----
    **Sensitivity** None: no private data is touched.

    **Privacy** Post-processing of two releases. A person in both data sets is protected by the
    sum of both budgets.

    **Validity** Every table of one column, and every pair of columns that both releases
    measured, in groups of cells that both can sum up. Under the hypothesis counts are
    multinomial and the noise is Gaussian of known size; the law of the statistic is drawn from
    pooled shares, which is valid as far as these are accurate. The smallest p-value is
    multiplied by the number of tables (Bonferroni), valid whatever their dependence. If people
    have several rows, these are taken to be equal, which is the worst case.

    Examples
    --------
    >>> import numpy as np, privatest as pt
    >>> schema = pt.Schema.from_text('[columns.plan]\ntype = "categorical"\n'
    ...     'categories = ["a", "b"]')
    >>> rng = np.random.default_rng(0)
    >>> first, second = (
    ...     pt.release({"plan": rng.choice(["a", "b"], 2000, p=[share, 1 - share])},
    ...         bounds=schema, method="tables", epsilon=1, delta=1e-6)
    ...     for share in (0.5, 0.7))
    >>> pt.compare_releases(first, second).reject
    True
    """
    from privatest.synthetic.data import SyntheticData  # noqa: PLC0415 - it imports this module

    alpha = number("alpha", alpha, above=0, below=1)
    for name, given in (("a", a), ("b", b)):
        if not isinstance(given, SyntheticData):
            reject(name, "a SyntheticData: release(...) or SyntheticData.load(path)", given)
    _check_pair(a, b)
    tables = _common(a, b)
    draws = max(999, math.ceil(10 * len(tables) / alpha)) if n_bootstrap is None else n_bootstrap
    draws = integer_at_least("n_bootstrap", draws, 1)
    generator = public_generator(_seed([a, b]) if rng is None else rng)
    found = {
        name: same_law_pvalue(first, second, draws, generator)
        for name, (first, second) in tables.items()
    }
    best = min(found, key=lambda name: found[name][1])
    pvalue = min(1.0, len(found) * found[best][1])
    return _outcome(
        a,
        pvalue,
        alpha,
        statistic=found[best][0],
        method="comparison of two releases",
        hypothesis="the two data sets come from the same distribution",
        parameters={
            "tables": {name: each[1] for name, each in found.items()},
            "most different": best,
            "correction": f"Bonferroni, {len(found)} tables",
            "n_bootstrap": draws,
        },
        other=b,
    )


def _check_pair(a: SyntheticData, b: SyntheticData) -> None:
    if not a.measured or not b.measured:
        raise ParameterError(_NO_TABLES)
    first, second = a.facts.schema, b.facts.schema
    if first is None or second is None or first.to_toml() != second.to_toml():
        raise ParameterError(
            "the two releases must have the same schema: their tables are of different cells."
        )
    if _mark(a) == _mark(b):
        raise ParameterError("the two releases are the same: compare those of two data sets.")


def _common(a: SyntheticData, b: SyntheticData) -> dict[str, tuple[NoisyCounts, NoisyCounts]]:
    """Return the tables that both releases have, in common groups of cells."""
    found: dict[str, tuple[NoisyCounts, NoisyCounts]] = {}
    for first in a.measured:
        for second in b.measured:
            if first.columns != second.columns or not (first.is_table and second.is_table):
                continue
            tables = ((_finer(first, a, b), a), (_finer(second, b, a), b))
            both = zip(tables[0][0].groups, tables[1][0].groups, strict=True)
            groups = tuple(common_groups(*pair) for pair in both)
            if min(int(group.max()) for group in groups) < 1 and first.counts.size > 1:
                continue
            name = " × ".join(first.columns)
            pair = tuple(_counted(table, groups, release) for table, release in tables)
            size = pair[0].counts.size
            if name not in found or size > found[name][0].counts.size:
                found[name] = (pair[0], pair[1])
    if not found:
        raise ParameterError("the two releases have no table in common.")
    return found


def _finer(table: Measurement, release: SyntheticData, other: SyntheticData) -> Measurement:
    """Return a table with groups of cells that both releases' cells are made of."""
    names, starts, others = table.columns, release.facts.starts, other.facts.starts
    if all(starts.get(name) == others.get(name) for name in names):
        return table
    assert release.facts.schema is not None
    schema = release.facts.schema
    own, theirs = (
        dict(zip(schema.columns, schema_cells(schema, each), strict=True))
        for each in (starts, others)
    )
    groups = []
    for name, group in zip(names, table.groups, strict=True):
        finer = np.union1d(own[name].lowest, theirs[name].lowest)
        groups.append(group[own[name].codes(finer)])
    return replace(table, groups=tuple(groups))


def _counted(
    table: Measurement, groups: tuple[NDArray[np.intp], ...], release: SyntheticData
) -> NoisyCounts:
    counts, sizes = coarsened(table.counts, table.groups, groups)
    sigma = table.sigma * np.sqrt(sizes).ravel()
    return NoisyCounts(counts, sigma, release.facts.n, release.facts.rows_per_person)


def _mark(release: SyntheticData) -> str:
    return fingerprint([table.counts.tolist() for table in release.measured])


def _seed(releases: Sequence[SyntheticData], *words: str) -> int:
    return int(fingerprint([*sorted(_mark(each) for each in releases), *words])[:16], 16)


def _outcome(
    release: SyntheticData,
    pvalue: float,
    alpha: float,
    *,
    statistic: float,
    method: str,
    hypothesis: str,
    parameters: dict[str, Any],
    other: SyntheticData | None = None,
) -> Outcome:
    facts = release.facts
    sizes = {"n": facts.n} if other is None else {"n": facts.n, "m": other.facts.n}
    return Outcome(
        reject=pvalue <= alpha,
        alpha=alpha,
        pvalue=pvalue,
        statistic=statistic,
        spent=facts.spent,
        adjacency="one",
        method_id="release_test" if other is None else "compare_releases",
        method=method,
        null_hypothesis=hypothesis,
        sizes=sizes,
        parameters=parameters | {"cost": NOTE},
        rows_per_person=facts.rows_per_person,
        simulated=facts.simulated or (other is not None and other.facts.simulated),
    )


DESCRIPTORS = (
    Method(
        name="compare-releases",
        question="",
        function=compare_releases,
        also=("release_test",),
        sentence="We tested noisy tables that releases of synthetic data had measured",
        papers=("balog2018", "balle2018"),
    ),
)
