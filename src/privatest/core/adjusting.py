"""Many tests at once: p-values adjusted for how many there are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.results import Outcome
from privatest.core.validation import of_type, one_of, reject

__all__ = ["ADJUSTMENTS", "Adjustment", "adjust"]

Adjustment = Literal["holm", "bonferroni", "bh", "by"]
ADJUSTMENTS: tuple[str, ...] = get_args(Adjustment)


def adjust(results: Sequence[Outcome], *, method: Adjustment = "holm") -> list[Outcome]:
    """Adjust the p-values of several tests, so that their decisions hold together.

    Parameters
    ----------
    results : sequence of Outcome
        Tests with p-values, all of one level. Pass all that were made: leaving some out because
        of what they showed makes the rest look better than they are.
    method : {"holm", "bonferroni", "bh", "by"}
        "holm" and "bonferroni" bound the chance of any false rejection, however the tests depend
        on each other (Holm is never worse); "bh" bounds the expected share of false rejections
        where the p-values are independent or positively dependent (Benjamini and Hochberg), "by"
        does so always.

    Returns
    -------
    list of Outcome
        In the same order, each with its adjusted p-value and its decision at the level. Compare
        the adjusted p-value with alpha, or with nothing else. Printed results say that they were
        adjusted, and ``parameters["adjusted"]`` says how, in their JSON documents too.

    Notes
    -----
    **Sensitivity** None: this uses released p-values only.

    **Privacy** Post-processing; it costs nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from privatest.methods.signs import sign_test
    >>> rng = np.random.default_rng(0)
    >>> columns = [rng.normal(shift, 1, size=2000) for shift in (0.3, 0.0, 0.3)]
    >>> tests = [sign_test(column, epsilon=1) for column in columns]
    >>> [result.reject for result in adjust(tests)][::2]
    [True, True]
    """
    one_of("method", method, ADJUSTMENTS)
    found = list(results) if of_type(results, Iterable) else []
    if not found or not all(isinstance(result, Outcome) for result in found):
        raise ParameterError(
            "results must be tests with p-values, at least one: a decision has none to adjust."
        )
    if any("adjusted" in result.parameters for result in found):
        raise ParameterError(
            "results must be tests as they came: some were adjusted before. Adjust all tests once."
        )
    if len({result.alpha for result in found}) > 1:
        reject("results", "tests of one level alpha", "several levels")
    pvalues = _adjusted(np.array([result.pvalue for result in found]), method)
    return [
        replace(
            result,
            pvalue=float(pvalue),
            reject=bool(pvalue <= result.alpha),
            parameters={**result.parameters, "adjusted": f"{method}, {len(found)} tests"},
        )
        for result, pvalue in zip(found, pvalues, strict=True)
    ]


def _adjusted(pvalues: NDArray[np.float64], method: Adjustment) -> NDArray[np.float64]:
    count = len(pvalues)
    order = np.argsort(pvalues, kind="stable")
    ranks = np.arange(1, count + 1)
    raised = pvalues[order]
    if method in ("holm", "bonferroni"):
        raised = raised * (count + 1 - ranks if method == "holm" else count)
        raised = np.maximum.accumulate(raised)
    else:
        harmonic = float(np.sum(1 / ranks)) if method == "by" else 1.0
        raised = raised * (count * harmonic / ranks)
        raised = np.minimum.accumulate(raised[::-1])[::-1]
    adjusted = np.empty(count)
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted
