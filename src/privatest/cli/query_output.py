"""What ``privatest query`` prints."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privatest.cli.output import Page, print_json

if TYPE_CHECKING:
    from privatest.synthetic import SyntheticData
    from privatest.synthetic.queries import Query, QueryAnswer

__all__ = [
    "print_about",
    "print_answer",
    "print_answer_json",
    "print_written",
]

_BAR = (
    "The bar is one standard deviation of the privacy noise: the value ± 1.96 bars covers the "
    "private rows' own value with probability .95."
)
_OLD_BAR = (
    "The bar is one standard deviation of the privacy noise. It covers only in part how well the "
    "synthetic rows can represent the data."
)
_SAMPLING = "In brackets: the sampling error of {n:,} rows, which is not in the bar."
_TOGETHER = "Bars and limits hold for all groups together."
_POOR = (
    "Poorly represented: no non-negative weights of these rows match what was released, so the "
    "bar is long. A release of fewer columns, or with --public-points where people are, would "
    "say more."
)
_LIMITS = "The limits hold with probability .95 or more, whatever the data."
_DISTANCE_BAR = (
    "Distances (MMD, in the release's kernel) go from 0, alike, to 1.41. The bar is the size of "
    "the privacy noise: it moves the distance by no more than about that."
)
_FREE = "This query cost nothing."


def print_answer(asked: Query, found: QueryAnswer, made: SyntheticData) -> None:
    """Print estimates, and what their bars mean."""
    page = Page()
    estimates = found.estimates
    if list(estimates) == [""]:
        page.line(f"{asked.name}: {estimates['']}", style="bold")
    else:
        page.line(f"{asked.name}:", style="bold")
        width = max(map(len, estimates))
        for name, estimate in estimates.items():
            page.line(f"  {name:<{width}}  {estimate}")
    every = [*estimates.values()]
    if any(math.isfinite(each.error) for each in every):
        page.line(_bar(asked, found))
        if any(math.isfinite(each.sampling) and not each.reason for each in every):
            page.line(_SAMPLING.format(n=made.facts.n))
    for reason in dict.fromkeys(each.reason for each in every if each.reason):
        page.line(f"No bar: {reason}.")
    if any(each.limits is not None for each in every):
        page.line(_LIMITS)
    if asked.by is not None:
        page.line(_TOGETHER)
    if any(each.poor for each in every):
        page.line(_POOR)
    if made.facts.simulated:
        page.line(made.facts.guarantee)
    page.line(_FREE)


def _bar(asked: Query, found: QueryAnswer) -> str:
    if asked.question == "compare":
        return _DISTANCE_BAR
    return _BAR if found.source == "measured" else _OLD_BAR


def print_answer_json(asked: Query, found: QueryAnswer, made: SyntheticData) -> None:
    """Print the same as JSON."""
    from privatest.synthetic.queries import describe_answer  # noqa: PLC0415

    print_json(describe_answer(asked, found, made))


def print_about(made: SyntheticData, *, as_json: bool) -> None:
    """Print what is public about a release."""
    if as_json:
        print_json({"question": "about", "release": _facts(made)})
        return
    page = Page()
    for line in str(made).splitlines():
        page.line(line)


def print_written(question: str, output: Path, made: SyntheticData, *, as_json: bool) -> None:
    """Say which file was written."""
    if as_json:
        print_json({"question": question, "file": str(output), "release": _facts(made)})
    else:
        Page().line(f"Wrote {output}.")


def _facts(made: SyntheticData) -> dict[str, Any]:
    from privatest.synthetic.storage import summary  # noqa: PLC0415

    return summary(made)
