"""The guarantee in words and as a formula, the methods paragraph, and public facts of the data."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from privatest.core.privacy import Budget
from privatest.core.results import Decision, Outcome
from privatest.reports.citations import Cited, cited
from privatest.reports.markup import Markup, listed, tag
from privatest.reports.references import REFERENCES
from privatest.reports.subject import Subject, software
from privatest.requests.catalogue import METHODS, usual
from privatest.requests.results import ColumnResults
from privatest.synthetic import SyntheticData

__all__ = ["facts", "guarantee", "methods_paragraph", "reason"]

_PLACES = {"n": "rows", "m": "rows of the second sample", "N": "rows in all"}


def amount(value: Decimal | float) -> str:
    """Write epsilon or delta as people do."""
    return f"{float(value):.10g}"


def facts(subject: Subject) -> list[tuple[str, str]]:
    """Return what everybody may know of the data."""
    document, request = subject.document, subject.request
    rows = [("compared" if document.get("compared") else "", str(document.get("compared", "")))]
    rows += [("files", ", ".join(map(str, document.get("files", ()))))]
    rows += [("shares", ", ".join(map(str, document.get("shares", ()))))]
    rows += [("data set", str(document.get("dataset", "")))]
    for name, size in subject.sizes.items():
        first = "rows of the first sample" if name == "n" and "m" in subject.sizes else ""
        rows.append((first or _PLACES.get(name, f"rows of {name}"), f"{size:,}"))
    rows += [("columns", ", ".join(map(str, request.get("columns", ()))))]
    rows += [("groups", ", ".join(map(str, request.get("groups", ()))))]
    if request.get("membership"):
        known = "everybody may know" if request["membership"] == "public" else "it is hidden"
        rows.append(("who is in which group", known))
    rows.append(("what is hidden", f"one {subject.unit}"))
    return [(name, text) for name, text in rows if text and name]


def reason(subject: Subject) -> list[str]:
    """Say which test it was, and why: by the catalogue and public numbers, never by the data."""
    question, method = (str(subject.request.get(key, "")) for key in ("question", "method"))
    said = [f"{subject.method[:1].upper()}{subject.method[1:]}."]
    entry = METHODS.get(question, {}).get(method)
    if entry is not None:
        about = f" It looks at: {entry.about}." if entry.about else ""
        why = "It is what the command takes where none is named." * (usual(question) == method)
        why = why or f"It was chosen by its name, {method}, before the data was read."
        said.append(f"{why}{about}")
    one = subject.one
    note = one.noise_note if isinstance(one, Decision) else ""
    return [*said, note] if note else said


def guarantee(subject: Subject) -> list[Markup]:
    """Return the guarantee, in words and as a formula with its numbers."""
    result = subject.result
    if result.simulated:
        return [tag("p", result.guarantee, class_="warning")]
    spent: Budget = result.spent
    epsilon, delta = float(spent.epsilon), float(spent.delta)
    factor = f"{math.exp(min(epsilon, 700)):.3g}"
    fails = f", plus {amount(delta)}" if delta else ""
    words = (
        f"Let D and D′ be two data sets that are neighbours: {_neighbours(subject)}. For every set "
        "E of possible results"
    )
    meaning = (
        f"Whoever sees this result, and even knows all other rows, can hardly tell which of the "
        f"two it came from: nothing is more than e^{amount(epsilon)} = {factor} times as likely "
        f"under one of them as under the other{fails}. What can be computed from the result, such "
        "as this page, has the same guarantee."
    )
    more = f" + {amount(delta)}" if delta else ""
    formula = tag(
        "p",
        "P(result on D in E) ≤ e",
        tag("sup", amount(epsilon)),
        f" · P(result on D′ in E){more}",
        class_="formula",
    )
    return [tag("p", result.guarantee), tag("p", words), formula, tag("p", meaning)]


def _neighbours(subject: Subject) -> str:
    sentence = str(subject.result.guarantee)
    return sentence[sentence.find("(") + 1 : sentence.rfind(")")]


def methods_paragraph(subject: Subject) -> list[Markup]:
    """Return a paragraph for a paper, and its references."""
    found = cited(subject.method_id)
    keys = [] if found is None else [*found.keys]
    spent: Budget = subject.result.spent
    delta = f" and δ = {amount(spent.delta)}" if spent.delta else ""
    private = (
        "The noise was simulated, so the result is not private."
        if subject.result.simulated
        else f"The result is differentially private ({REFERENCES['dwork2006'].short}) with "
        f"ε = {amount(spent.epsilon)}{delta}; neighbouring data sets differ by "
        f"{_neighbours(subject)}."
    )
    text = " ".join([_done(found), *_found(subject), private, f"We used {software()}."])
    references = [REFERENCES[key].full for key in (*keys, "dwork2006")]
    return [tag("p", text), tag("p", "References", class_="soft"), listed(sorted(references))]


def _done(found: Cited | None) -> str:
    if found is None:
        return ""
    return f"{found.sentence} ({'; '.join(each.short for each in found.references)})."


def _found(subject: Subject) -> list[str]:
    result: Any = subject.result
    if isinstance(result, ColumnResults):
        rejected = [name for name, each in result.columns.items() if each.reject]
        which = f": {', '.join(rejected)}" if rejected else ""
        return [
            f"Each of {len(result.columns)} columns was tested at level {subject.one.alpha:g}, "
            f"with p-values adjusted for their number ({result.adjustment}); the hypothesis was "
            f"rejected for {len(rejected)}{which}."
        ]
    if isinstance(result, SyntheticData):
        rows, n = f"{len(result):,}", f"{result.facts.n:,}"
        return [f"The release has {rows} synthetic rows for {n} private ones."]
    sizes = ", ".join(f"{name} = {size:,}" for name, size in subject.sizes.items())
    if isinstance(result, Decision):
        value = f", p = {result.pvalue:.4g}" if isinstance(result, Outcome) else ""
        if result.parameters.get("adjusted"):
            value += f" (adjusted: {result.parameters['adjusted']})"
        word = "rejected" if result.reject else "not rejected"
        return [
            f"The hypothesis that {result.null_hypothesis} was {word} at level "
            f"{result.alpha:g} ({sizes}{value})."
        ]
    estimates = (" ".join(row) for row in result.estimate_table().rows)
    return [f"The estimates are {'; '.join(estimates)} ({sizes})."]
