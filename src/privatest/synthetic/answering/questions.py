"""What one may ask a release: the part of SyntheticData that answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from privatest.core.errors import ParameterError
from privatest.core.levels import declare_level
from privatest.core.results import Outcome
from privatest.core.validation import Rng
from privatest.synthetic import testing
from privatest.synthetic.answering import answers
from privatest.synthetic.answering.answers import Words
from privatest.synthetic.answering.estimates import Estimate

if TYPE_CHECKING:
    from privatest.synthetic.data import SyntheticData

__all__ = ["Questions"]


class Questions:
    """Questions to a release. All answers are post-processing: they cost nothing."""

    __slots__ = ()

    def mean(self, what: Words, *, where: Words | None = None) -> Estimate:
        """Estimate the mean of a column, or of a function of the columns.

        Parameters
        ----------
        what : str or callable
            A numeric column; or a function that takes the columns (a mapping of names to
            arrays) and returns a number for each row. It is also called with rows around the
            synthetic ones, to find out how much is left open there.
        where : str or callable, optional
            A condition, as in :meth:`probability`: the mean of the rows that satisfy it.

        Notes
        -----
        Functions as smooth as the kernel are estimated best.
        """
        return answers.mean(_own(self), what, where)

    def probability(self, region: Words, *, where: Words | None = None) -> Estimate:
        """Estimate the probability of a region.

        Parameters
        ----------
        region : str or callable
            A condition such as ``"visits > 10 and idp == 1"``, with the grammar of
            :func:`privatest.synthetic.answering.conditions.selected`, or a function of the columns
            that returns true or false for each row.
        where : str or callable, optional
            Another condition: the share among the rows that satisfy it.

        Notes
        -----
        A condition on a number that may be anywhere has limits instead of a bar: the release
        does not tell on which side of it people near it are.
        """
        return answers.probability(_own(self), region, where)

    def quantile(self, column: str, q: float, *, where: Words | None = None) -> Estimate:
        """Estimate the ``q`` quantile of a column, of all rows or of those in ``where``."""
        return answers.quantile(_own(self), column, q, where)

    def by(self, column: str, what: Words, *, where: Words | None = None) -> dict[str, Estimate]:
        """Estimate a mean, or the probability of a condition, in every group of a column.

        Bars hold for all groups together: with probability .95 no group's own value is more
        than 1.96 errors away, or outside its limits.

        Parameters
        ----------
        column : str
            Categories, or integers with few values.
        what : str or callable
            A numeric column, a condition, or a function of the columns.
        where : str or callable, optional
            Only rows that satisfy this.
        """
        return answers.by(_own(self), column, what, where)

    def correlation(self, a: str, b: str, *, where: Words | None = None) -> Estimate:
        """Estimate the correlation of two numeric columns."""
        return answers.correlation(_own(self), a, b, where)

    def regression(
        self,
        target: str,
        predictors: Sequence[str],
        *,
        where: Words | None = None,
    ) -> dict[str, Estimate]:
        """Estimate the coefficients of a least-squares regression, the intercept first.

        A predictor with categories has a coefficient for each but the first.
        """
        return answers.regression(_own(self), target, predictors, where)

    @declare_level("measured")
    def test(
        self,
        what: Words,
        *,
        equals: float | None = None,
        independent_of: str | None = None,
        where: Words | None = None,
        alpha: float = 0.05,
        n_bootstrap: int = 999,
        rng: Rng = None,
    ) -> Outcome:
        """Test a hypothesis about the population, by what was measured and not by synthetic rows.

        Parameters
        ----------
        what : str or callable
            A condition, for its share, or a numeric column or function, for its mean
            (``equals``); or a column that was measured together with ``independent_of``.
        equals : float, optional
            The hypothesis about the share or the mean.
        independent_of : str, optional
            The other column.
        where : str or callable, optional
            With ``equals``: only rows that satisfy this.
        alpha, n_bootstrap, rng
            The level; draws of the null law of independence, and their public randomness.

        Notes
        -----
        **Validity** A share is binomial, plus the noise; a mean is taken to be normal
        (docs/proofs/synthetic.md).
        """
        if (equals is None) == (independent_of is None):
            raise ParameterError("give either equals or independent_of.")
        if equals is not None:
            return testing.value_outcome(_own(self), what, equals, where, alpha)
        if where is not None or callable(what):
            raise ParameterError("independent_of takes two columns, and no where.")
        return testing.independence_outcome(
            _own(self), what, str(independent_of), alpha, n_bootstrap, rng
        )

    def groups(self, column: str) -> list[Any]:
        """Return the values of a column that makes groups, for :meth:`by`."""
        return answers.groups(_own(self), column)


def _own(release: Questions) -> SyntheticData:
    return cast("SyntheticData", release)
