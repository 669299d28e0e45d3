"""What a custodian tells the public of a data set's deployment: no row, no answer, no name.

The words are those of NIST SP 800-226 (Guidelines for Evaluating Differential Privacy Guarantees):
unit of privacy, privacy parameters, mechanisms and their composition, trust model, and what
beside the theorem a guarantee rests on.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from privatest.requests.catalogue import METHODS

if TYPE_CHECKING:
    from privatest.curator.config import DatasetConfig
    from privatest.ledger.state import Totals

__all__ = ["deployment_facts", "facts_page"]

_COMPOSITIONS = {
    "basic": "Basic composition: the epsilons and deltas of all answers are added up.",
    "tight": "Zero-concentrated differential privacy: the rhos of all answers are added up, and "
    "converted to epsilon and delta.",
    "equal": "Every answer costs the same; their largest number follows from the privacy loss "
    "distribution of one.",
}
_MECHANISMS = {
    "two-sample": "discrete Laplace, Tulap, Laplace, l-infinity or Gaussian noise on counts, rank "
    "statistics, moments or differences; a permutation test whose observed statistic has Laplace "
    "noise; votes of tests on parts of the rows, with noise or flipped coins",
    "independence": "as for two samples, on statistics of dependence, moments and tables",
    "paired": "Tulap noise on counts and rank sums; l-infinity, signed-sums or Gaussian noise on "
    "moments of differences",
    "fit": "Tulap noise on a distance of distribution functions; discrete Laplace or Gaussian "
    "noise on counts",
    "mean": "l-infinity, signed-sums or Gaussian noise on clipped moments, with axes of a "
    "covariance drawn by the exponential mechanism; discrete Laplace or Tulap noise on counts",
    "release": "Gaussian noise on counts and means of tables, or on coefficients of features",
}


def deployment_facts(dataset: DatasetConfig, totals: Totals) -> dict[str, Any]:
    """Return the facts, in the order in which they are read."""
    schema, policy = dataset.schema, dataset.policy
    people = schema.rows_per_person
    unit = "one row" if people == 1 else f"one person, who has at most {people} rows"
    questions = [question for question in METHODS if any(q == question for q, _ in policy.tests)]
    return {
        "dataset": dataset.name,
        "unit_of_privacy": f"{unit}, replaced by any other; the number of rows is public",
        "rows_per_person": people,
        "model": "central: a curator holds the rows and adds the noise",
        "epsilon": f"{totals.account.budget.epsilon:f}",
        "delta": f"{totals.account.budget.delta:f}",
        "period": _period(dataset),
        "composition": _COMPOSITIONS[totals.composition],
        "share_spent": float(totals.account.used),
        "largest_epsilon_of_one_answer": f"{(policy.largest or dataset.budget).epsilon:f}",
        "mechanisms": {question: _MECHANISMS[question] for question in questions},
        "methods": sorted(f"{question}/{method}" for question, method in policy.tests),
        "public": _public(dataset),
        "noise": "from the operating system's secure randomness; it cannot be seeded. It is drawn "
        "on integers or grids, so that rounding reveals nothing, but for the axes of a covariance",
        "side_channels": "the service gives answers and failures at multiples of a time that "
        "follows from public sizes; a request that takes longer than that can be seen to be late",
        "record": "a hash chain over every request, its price and its answer",
        "not_covered": "a guarantee is about the answers: it does not say that the data was "
        "collected rightly, nor that what holds for people like someone is unknown of them",
    }


def _period(dataset: DatasetConfig) -> str:
    """Say for how long the budget is; of periods, what they add up to."""
    if dataset.renew is None:
        return "for ever: a budget is never refilled by itself"
    days = isinstance(dataset.renew, int)
    often = f"every {dataset.renew} days" if days else str(dataset.renew)
    return (
        f"renewed {often}: epsilon, delta and share_spent are those of one period. Somebody who is "
        "in the data for k periods has k times epsilon and k times delta"
    )


def _public(dataset: DatasetConfig) -> list[str]:
    """Return what is treated as public: declared, not measured."""
    schema = dataset.schema
    known = ["the number of rows", "names, types, bounds and categories of the columns"]
    shown = [n for n, c in schema.columns.items() if getattr(c, "membership", "") == "public"]
    known += [f"which rows are in which category of {name!r}" for name in shown]
    return known


def facts_page(facts: dict[str, Any]) -> str:
    """Write the facts as one page of HTML that needs nothing else."""
    rows = "\n".join(
        f"<tr><th scope='row'>{escape(name.replace('_', ' '))}</th><td>{_cell(value)}</td></tr>"
        for name, value in facts.items()
    )
    title = f"How the answers about {escape(str(facts['dataset']))} are protected"
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{title}</title></head>\n<body><main><h1>{title}</h1>\n"
        "<p>In the terms of NIST SP 800-226, Guidelines for Evaluating Differential Privacy "
        f"Guarantees.</p>\n<table>\n{rows}\n</table></main></body></html>\n"
    )


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        items = [f"{escape(str(k))}: {escape(str(v))}" for k, v in value.items()]
        return _items(items)
    if isinstance(value, list):
        return _items([escape(str(each)) for each in value])
    if isinstance(value, float):
        return f"{100 * value:.0f}%"
    return escape(str(value))


def _items(items: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"
