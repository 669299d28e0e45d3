"""The report of many shares: each pair that was compared."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.core.results import Outcome
from privatest.plots.pvalues import plot_pvalues
from privatest.reports import reproducing
from privatest.reports.markup import code, page, section, table, tag
from privatest.reports.pictures import picture
from privatest.reports.subject import Subject
from privatest.reports.words import guarantee, methods_paragraph
from privatest.requests.results import result_from_dict

__all__ = ["is_pairs", "pairs_page"]

_TITLE = "Which owners' data differ?"
_HEAD = ("shares", "adjusted p-value", "decision")


def is_pairs(document: Mapping[str, Any]) -> bool:
    """Whether a document is that of ``compare`` with more than two shares."""
    return bool(document.get("pairs"))


def pairs_page(document: Mapping[str, Any]) -> str:
    """Return the page of all pairs."""
    outcomes = {}
    for each in document["pairs"]:
        found = result_from_dict(each, Budget(each["epsilon"], each["delta"]))
        if not isinstance(found, Outcome):
            raise ParameterError("There is nothing to report: the document has no pairs.")
        outcomes[" and ".join(map(str, each["shares"]))] = found
    names = [*dict.fromkeys(str(name) for each in document["pairs"] for name in each["shares"])]
    rejected = sum(each.reject for each in outcomes.values())
    first = next(iter(outcomes.values()))
    sentence = (
        f"{rejected} of {len(outcomes)} pairs differ in distribution, at level {first.alpha:g} "
        "for all pairs together (Holm)."
    )
    rows = [
        (name, f"{each.pvalue:.4g}", "differ" if each.reject else "no difference found")
        for name, each in outcomes.items()
    ]
    about = {"shares": names, "alpha": first.alpha}
    subject = Subject(about, first)
    draw = partial(plot_pvalues, outcomes)
    again = [
        tag("h3", "On the command line"),
        code(reproducing.command(subject), "Command"),
    ]
    return page(
        _TITLE,
        tag("header", tag("h1", _TITLE), tag("p", tag("strong", sentence), class_="answer")),
        section("data", "Shares", tag("p", ", ".join(names))),
        section(
            "answer",
            "Answer",
            table("Each pair", rows, _HEAD),
            picture(draw, f"The p-value of each pair. {sentence}", "P-values, adjusted (Holm)."),
        ),
        section(
            "guarantee",
            "Guarantee",
            tag("p", "Each owner's share has a guarantee of its own; comparing costs nothing."),
            *guarantee(subject),
        ),
        section("methods", "For a paper, of the first pair", *methods_paragraph(subject)),
        section("again", "How to reproduce it", *again),
    )
