"""Hypothesis tests on releases, from what was measured: valid where tests on rows are not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.documents import fingerprint
from privatest.core.errors import ParameterError
from privatest.core.levels import declare_level
from privatest.core.results import Outcome
from privatest.core.validation import Rng, integer_at_least, number, public_generator, reject
from privatest.synthetic.answers import per_row
from privatest.synthetic.tables.cells import schema_cells
from privatest.synthetic.tables.measured import Measured
from privatest.synthetic.tables.null_tests import (
    Counted,
    coarsened,
    common_groups,
    independence_pvalue,
    normal_pvalue,
    same_law_pvalue,
    share_pvalue,
)

if TYPE_CHECKING:
    from privatest.synthetic.data import SyntheticData
    from privatest.synthetic.queries import Expression

__all__ = ["compare_releases", "independence_outcome", "value_outcome"]

NOTE = "testing costs nothing more: a release may be tested any number of times"
_NO_TABLES = (
    "this release holds no measured tables, and tests on synthetic rows reject true hypotheses "
    "far too often. Release with method='tables'."
)


def value_outcome(
    release: SyntheticData,
    what: Expression,
    equals: float,
    where: Expression | None,
    alpha: float,
) -> Outcome:
    """Test whether a share or a mean of the population is a given number."""
    alpha = number("alpha", alpha, above=0, below=1)
    equals = number("equals", equals)
    share = isinstance(what, str) and what not in release.columns
    if share and not 0 <= equals <= 1:
        raise ParameterError("equals must be between 0 and 1: it is a share.")
    if release.source is None:
        raise ParameterError("this release keeps nothing that was measured: no test is valid.")
    ask = release.probability if share else release.mean
    found = ask(what, where=where)
    if math.isnan(found.error) and (where is not None or found.limits is None):
        raise ParameterError(f"this cannot be tested: {found.reason}.")
    value, noise, unseen = found.value, found.error, 0.0
    if where is None:
        value, noise, unseen = _estimated(release, what, share)
    if math.isinf(unseen):
        raise ParameterError(f"this cannot be tested: {found.reason}.")
    people = _people(release)
    if share and where is None:
        pvalue = share_pvalue(value, equals, people, noise, unseen)
    else:
        pvalue = normal_pvalue(value, equals, math.hypot(noise, found.sampling), unseen)
    name = what if isinstance(what, str) else "a function"
    text = f"the {'share of' if share else 'mean of'} {name}"
    if isinstance(where, str):
        text += f" where {where}"
    return _outcome(
        release,
        pvalue,
        alpha,
        statistic=found.value,
        method=f"test of a {'share' if share else 'mean'} from a release",
        hypothesis=f"{text} is {equals:g}",
        parameters={"equals": equals, "noise": noise, "unseen": unseen},
    )


def _estimated(release: SyntheticData, what: Expression, share: bool) -> tuple[float, float, float]:
    """Return an estimate, its noise, and the bound on what else it may miss."""
    from privatest.synthetic.queries import known_jumps, selected  # noqa: PLC0415

    source = release.source
    assert source is not None

    def function(columns: Any) -> Any:
        if callable(what):
            return per_row(what(columns), columns)
        return per_row(selected(what, columns) if share else columns[what], columns)

    found = source.means(function, known_jumps(what, release.columns))
    return float(found.values[0]), float(found.noise[0]), float(found.unseen[0])


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
    counted = Counted(table.counts, table.sigma, release.facts.n, _rows(release))
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


def _common(a: SyntheticData, b: SyntheticData) -> dict[str, tuple[Counted, Counted]]:
    """Return the tables that both releases have, in common groups of cells."""
    found: dict[str, tuple[Counted, Counted]] = {}
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


def _finer(table: Measured, release: SyntheticData, other: SyntheticData) -> Measured:
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
    table: Measured, groups: tuple[NDArray[np.intp], ...], release: SyntheticData
) -> Counted:
    counts, sizes = coarsened(table.counts, table.groups, groups)
    sigma = table.sigma * np.sqrt(sizes).ravel()
    return Counted(counts, sigma, release.facts.n, _rows(release))


def _rows(release: SyntheticData) -> int:
    schema = release.facts.schema
    return 1 if schema is None else schema.rows_per_person


def _people(release: SyntheticData) -> int:
    return max(release.facts.n // _rows(release), 1)


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
        method=method,
        null_hypothesis=hypothesis,
        sizes=sizes,
        parameters=parameters | {"cost": NOTE},
        unit=facts.unit,
        simulated=facts.simulated or (other is not None and other.facts.simulated),
    )
