"""What is public of data sets, tests and budgets, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from privatest.curator import Curator
from privatest.curator.config import DatasetConfig
from privatest.data.categories import spelling
from privatest.data.schema import CategoricalColumn, Schema
from privatest.requests.catalogue import METHODS
from privatest.requests.request import PARTS

__all__ = ["columns_of", "describe_dataset", "describe_questions", "visible_datasets"]


def columns_of(schema: Schema) -> list[dict[str, Any]]:
    """Return the columns of a schema."""
    found: list[dict[str, Any]] = []
    for name, column in schema.columns.items():
        if isinstance(column, CategoricalColumn):
            words = [spelling(category) for category in column.categories]
            about: dict[str, Any] = {
                "type": "categorical",
                "categories": words,
                "membership": column.membership,
            }
        else:
            bounds = [column.lower, column.upper]
            about = {"type": "numeric", "bounds": bounds, "integer": column.integer}
        found.append({"name": name, **about})
    return found


def visible_datasets(curator: Curator, analyst: str, *, everything: bool) -> list[str]:
    """Return the names of the data sets that somebody may know of."""
    config = curator.config
    own = config.analysts[analyst].datasets if analyst in config.analysts else ()
    return [
        name
        for name in config.datasets
        if everything or (name in own and not curator.is_revoked(name, analyst))
    ]


def describe_dataset(curator: Curator, name: str, analyst: str) -> dict[str, Any]:
    """Return schema, policy and budgets of a data set, as they are for one person."""
    dataset = curator.config.datasets[name]
    reason = curator.not_ready(name)
    registration = curator.registration(name) if reason is None else None
    return {
        "name": name,
        "ready": reason is None,
        "reason": reason,
        "rows": None if registration is None else registration.rows,
        "rows_per_person": dataset.schema.rows_per_person,
        "columns": columns_of(dataset.schema),
        "partition": dataset.partition,
        "policy": _policy(dataset),
        "budget": None if registration is None else _budget(curator, name, analyst),
    }


def _policy(dataset: DatasetConfig) -> dict[str, Any]:
    policy, most = dataset.policy, dataset.policy.largest or dataset.budget
    return {
        "tests": sorted(f"{question}/{method}" for question, method in policy.tests),
        "largest_epsilon": float(most.epsilon),
        "largest_delta": float(most.delta),
        "largest_permutations": policy.permutations,
        "largest_points": policy.points,
        "composition": dataset.composition,
        "each": None if dataset.each is None else float(dataset.each.epsilon),
    }


def _budget(curator: Curator, name: str, analyst: str) -> dict[str, Any]:
    """Return the data set's budget, and a person's own.

    Which parts of the data others asked about is theirs to know, and the custodian's.
    """
    totals = curator.ledger.totals(name)
    own = totals.analysts.get(analyst)
    whole = totals.account.to_dict()
    del whole["parts"]
    return {
        "dataset": whole,
        "own": None if own is None else own.to_dict(),
        "composition": totals.composition,
    }


def describe_questions() -> dict[str, Any]:
    """Return what can be asked: the catalogue's words."""
    return {
        question: {
            "parts": list(PARTS[question]),
            "methods": {name: _method(entry) for name, entry in methods.items()},
        }
        for question, methods in METHODS.items()
    }


def _method(entry: Any) -> Mapping[str, Any]:
    return {
        "about": entry.about,
        "options": sorted(entry.options),
        "needed": list(entry.needed),
        "releases": list(entry.releases),
        "aliases": list(entry.aliases),
        "level": entry.level,
        "needs_delta": bool(entry.needs_delta),
        "public_groups": bool(entry.public_groups),
        "one_column": entry.one_column,
        "categorical": entry.categorical,
        "outcomes": entry.outcomes,
        "several": entry.several,
        "sized": entry.sized,
    }
