"""The parts of a report, in the order in which they are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from privatest.core.results import Decision
from privatest.plots.drawing import draw
from privatest.reports import reproducing
from privatest.reports.markup import Markup, code, section, table, tag
from privatest.reports.pictures import picture
from privatest.reports.releases import release_parts
from privatest.reports.subject import Subject
from privatest.reports.words import facts, guarantee, methods_paragraph, reason
from privatest.requests.results import ColumnResults
from privatest.synthetic import SyntheticData

__all__ = ["sections"]

_LONGEST_RECORD = 20_000  # characters


def sections(subject: Subject) -> list[Markup]:
    """Return all parts of a report."""
    head = tag("h1", subject.question)
    answer = tag("p", tag("strong", answer_sentence(subject.result)), class_="answer")
    return [
        tag("header", head, *_about(subject), answer),
        section("data", "Data: what everybody may know", table("Public facts", facts(subject))),
        section("test", "Method and reason", *(tag("p", each) for each in reason(subject))),
        section("answer", "Answer", *_numbers(subject.result), *_pictures(subject)),
        section("guarantee", "Guarantee", *guarantee(subject)),
        section("budget", "What was spent, and what is left", *_budget(subject)),
        section("methods", "For a paper", *methods_paragraph(subject)),
        *_again(subject),
        _record(subject),
    ]


def answer_sentence(result: Any) -> str:
    """Return the answer in a sentence."""
    if isinstance(result, Decision):
        return result.verdict
    if isinstance(result, ColumnResults):
        rejected = sum(each.reject for each in result.columns.values())
        return f"The hypothesis is rejected for {rejected} of {len(result.columns)} columns."
    if isinstance(result, SyntheticData):
        return f"{len(result):,} synthetic rows for {result.facts.n:,} private ones."
    rows = result.estimate_table().rows
    return ": ".join([result.heading, *([" ".join(rows[0])] if len(rows) == 1 else [])]) + "."


def _about(subject: Subject) -> list[Markup]:
    compared = subject.document.get("compared")
    return [tag("p", str(compared), class_="soft")] if compared else []


def _numbers(result: Any) -> list[Markup]:
    if isinstance(result, Decision):
        found = [table("The test", [*result.facts().items(), ("alpha", f"{result.alpha:g}")])]
        estimates = result.estimate_table()
        if estimates is not None:
            found.append(table(f"Estimates: {estimates.caption}", estimates.rows))
        return found
    if isinstance(result, ColumnResults):
        return [
            table(
                f"Each column, p-values adjusted ({result.adjustment})",
                result.estimate_table().rows,
                ("column", "adjusted p-value", "decision"),
            )
        ]
    if isinstance(result, SyntheticData):
        return []
    rows = result.estimate_table().rows
    return [table(result.heading, [(first, " ".join(rest)) for first, *rest in rows])]


def _pictures(subject: Subject) -> list[Markup]:
    if isinstance(subject.result, SyntheticData):
        return release_parts(subject.result)
    words = f"Picture of the released numbers. {answer_sentence(subject.result)}"
    return [picture(partial(draw, subject.result), words, "What was released.")]


def _budget(subject: Subject) -> list[Markup]:
    document, spent = subject.document, subject.result.spent
    found = [tag("p", f"This answer cost {spent}.")]
    if document.get("recorded"):
        found = [tag("p", "It was answered from the record, and cost nothing now.")]
    if "shares" in document:
        return [tag("p", "Comparing shares costs nothing: what they cost was paid by each owner.")]
    lines = document.get("ledger")
    if lines:
        rows = [_line(each) for each in lines]
        head = ("data set", "budget", "left", "spent in all")
        return [*found, table("Ledger, with this answer", rows, head)]
    unknown = "Whoever asked keeps count of what these people have spent."
    if document.get("id"):
        unknown = f"It is entry {document['id']} of the ledger."
    elif document.get("dataset"):
        unknown = "It is in the ledger of the data's custodian."
    return [*found, tag("p", unknown)]


def _line(entry: Mapping[str, Any]) -> tuple[str, ...]:
    budget, left = (
        ", ".join(
            f"{name} {float(value):.6g}"
            for name, value in entry[part].items()
            if name == "epsilon" or float(value)
        )
        for part in ("budget", "left")
    )
    return str(entry["dataset"]), budget, left, f"{100 * entry['used']:.3g}%"


def _again(subject: Subject) -> list[Markup]:
    command, program = reproducing.command(subject), reproducing.program(subject)
    if not program:
        return []
    fresh = (
        "Asking again draws new noise: the answer will differ a little, and costs as much again."
    )
    parts = [tag("p", fresh)] if "shares" not in subject.document else []
    schema = reproducing.schema_file(subject)
    if schema:
        parts += [tag("h3", f"{reproducing.SCHEMA_FILE}: the columns"), code(schema, "Schema")]
    if command:
        parts += [tag("h3", "On the command line"), code(command, "Command")]
    parts += [tag("h3", "In Python"), code(program, "Python")]
    return [section("again", "How to reproduce it", *parts)]


def _record(subject: Subject) -> Markup:
    """Return the document itself: whoever has it can write this page again."""
    kept = {name: value for name, value in subject.document.items() if name != "parquet"}
    text = json.dumps(kept, indent=1, ensure_ascii=False)
    if len(text) > _LONGEST_RECORD:
        return Markup("")
    return tag("details", tag("summary", "The whole record, as JSON"), code(text, "JSON"))
