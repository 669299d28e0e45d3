"""Read ``curator.toml``, and find every mistake in it together with its line."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from privatest.core.errors import PrivatestError
from privatest.core.privacy import Budget
from privatest.core.validation import integer_at_least, one_of
from privatest.curator.config import (
    ALL_TESTS,
    MOST_PERMUTATIONS,
    MOST_POINTS,
    MOST_WORK,
    USUAL_TESTS,
    AnalystConfig,
    CuratorConfig,
    DatasetConfig,
    Policy,
    Problem,
)
from privatest.curator.contents import identity
from privatest.curator.overlaps import covered
from privatest.curator.periods import checked_renewal
from privatest.curator.service_config import read_service
from privatest.curator.toml_lines import Key, line_of, lines_of_keys, syntax_error_line
from privatest.data.engines import Workers
from privatest.data.files import is_pattern
from privatest.data.reading import Place
from privatest.data.schema import CategoricalColumn, Schema
from privatest.ledger.state import COMPOSITIONS
from privatest.requests.catalogue import METHODS

__all__ = ["read_config"]

T = TypeVar("T")

_TOP = ("ledger", "log", "state", "datasets", "analysts", "service")
_DATASET = (
    *("source", "schema", "epsilon", "delta", "composition", "each_epsilon", "each_delta"),
    *("partition", "policy", "table", "engine", "scheduler", "threads", "renew"),
)
_MOST = {
    "largest_permutations": MOST_PERMUTATIONS,
    "largest_points": MOST_POINTS,
    "largest_work": MOST_WORK,
}
_POLICY = ("tests", "largest_epsilon", "largest_delta", *_MOST)
_ANALYST = ("datasets", "epsilon", "delta", "subject", "revoked")
_LONGEST_NAME = 200


def read_config(path: str | os.PathLike[str]) -> tuple[CuratorConfig | None, list[Problem]]:
    """Return the configuration and its mistakes, in the order of their lines.

    The configuration is None where the file cannot be read at all, and must not be used where
    there are mistakes.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "it is not text in UTF-8")
        return None, [Problem(1, f"{file.name} cannot be read: {reason}.")]
    try:
        document = tomllib.loads(text, parse_float=Decimal)  # 0.1 is one tenth
    except ValueError as error:
        words = str(error).partition(" (at ")[0]
        return None, [Problem(syntax_error_line(text), f"this is not TOML: {words}.")]
    reader = _Reader(file.absolute(), document, lines_of_keys(text, document))
    config = reader.config()
    found = dict.fromkeys(reader.problems)  # the same may be met twice
    return config, sorted(found, key=lambda problem: problem.line)


@dataclass(slots=True)
class _Reader:
    """Reads tables, and notes what is wrong with them instead of stopping."""

    file: Path
    document: Mapping[str, Any]
    lines: Mapping[Key, int]
    problems: list[Problem] = field(default_factory=list)

    def note(self, key: Key, message: str) -> None:
        self.problems.append(Problem(line_of(self.lines, key), message))

    def trying(self, key: Key, make: Callable[[], T], prefix: str = "") -> T | None:
        """Make something; what is wrong with it is the key's mistake."""
        try:
            return make()
        except PrivatestError as error:
            self.note(key, f"{prefix}{error}")
            return None

    def table(self, key: Key, known: Iterable[str] | None) -> Mapping[str, Any]:
        """Return a table; its keys must be known."""
        found: Any = self.document
        for name in key:
            found = found.get(name, {}) if isinstance(found, dict) else {}
        if not isinstance(found, dict):
            self.note(key, f"{'.'.join(key)} must be a table: [{'.'.join(key)}].")
            return {}
        if known is not None:
            for name in found.keys() - set(known):
                self.note((*key, name), f"unknown key {name!r}; known are {', '.join(known)}.")
        return found

    def text(self, key: Key, values: Mapping[str, Any], *, default: str | None = None) -> str:
        """Return a value that is text and not empty; "" after a mistake."""
        value = values.get(key[-1], default)
        if isinstance(value, str) and value:
            return value
        wanted = "must be given, as text" if value is None else "must be text"
        self.note(key, f"{key[-1]} {wanted}.")
        return ""

    def budget(self, key: Key, values: Mapping[str, Any], prefix: str = "") -> Budget | None:
        """Return a budget from epsilon and delta; the mistake is on the line of the wrong one."""
        epsilon, delta = f"{prefix}epsilon", f"{prefix}delta"
        if epsilon not in values:
            if delta in values:
                self.note((*key, delta), f"{delta} needs {epsilon} beside it.")
            return None
        first = self.trying((*key, epsilon), lambda: Budget(values[epsilon]), prefix)
        second = self.trying((*key, delta), lambda: Budget(1, values.get(delta, 0)), prefix)
        return None if first is None or second is None else Budget(first.epsilon, second.delta)

    def path(self, value: str) -> Path:
        """Return a path; a relative one begins where the file is."""
        return self.file.parent / Path(value).expanduser()

    def config(self) -> CuratorConfig:
        top = self.table((), _TOP)
        ledger = self.text(("ledger",), top, default="ledger.db")
        stem = self.file.stem
        datasets = {
            name: dataset
            for name in self.table(("datasets",), None)
            if (dataset := self.dataset(name)) is not None
        }
        self.sources(datasets)
        if not top.get("datasets"):
            self.note((), "there is no data set: write a table [datasets.NAME].")
        analysts = {name: self.analyst(name) for name in self.table(("analysts",), None)}
        log, state = (
            self.path(self.text((name,), top, default=f"{stem}.{ending}"))
            for name, ending in (("log", "log"), ("state", "state.json"))
        )
        for name, place in (("log", log), ("state", state)):
            if not place.parent.is_dir():
                self.note((name,), f"{name} must be in a folder that exists.")
        ledger = ledger if "://" in ledger else str(self.path(ledger))
        service = read_service(self)
        return CuratorConfig(self.file, ledger, log, state, service, datasets, analysts)

    def dataset(self, name: str) -> DatasetConfig | None:
        key = ("datasets", name)
        before = len(self.problems)
        values = self.table(key, _DATASET)
        if len(self.problems) > before and not values:
            return None  # it is no table
        self.name(key)
        source, table = self.source(key, values)
        workers = self.workers(key, values)
        schema = self.schema(key, values)
        budget = self.budget(key, values)
        if not {"epsilon", "delta"} & values.keys():
            self.note(key, "epsilon must be given: what may all answers together cost?")
        composition, each = self.composition(key, values, budget)
        partition = self.partition(key, values, schema)
        policy = self.policy(key, budget)
        renew = None
        if "renew" in values:
            renew = self.trying((*key, "renew"), partial(checked_renewal, values["renew"]))
        if len(self.problems) > before or schema is None or budget is None:
            return None
        settings = (composition, each, partition, policy, table, workers, renew)
        return DatasetConfig(name, source, schema, budget, *settings)

    def source(self, key: Key, values: Mapping[str, Any]) -> tuple[Path | str, str | None]:
        """Return where the rows are, and the table of a database."""
        place, text = (*key, "source"), self.text((*key, "source"), values)
        table = self.text((*key, "table"), values) if "table" in values else None
        if not Place(text).is_database:
            if table is not None:
                self.note((*key, "table"), "table goes with the address of a database as source.")
            if "://" in text:
                return text, None
            found = self.path(text)
            if text and not found.exists() and not is_pattern(text):
                self.note(place, f"there is no file {found.name!r} here.")
            return found, None
        if table is None:
            self.note(place, "table must be given: what is read of the database.")
        head, _, path = text.partition("sqlite:///")
        return (text if head or not path else f"sqlite:///{self.path(path)}"), table

    def workers(self, key: Key, values: Mapping[str, Any]) -> Workers | None:
        """Return who reads the rows, if that is said."""
        given = {
            name: values[name] for name in ("engine", "threads", "scheduler") if name in values
        }
        if not given:
            return None
        return self.trying((*key, next(iter(given))), lambda: Workers(**given))

    def sources(self, datasets: Mapping[str, DatasetConfig]) -> None:
        """Refuse two data sets that share a file or a table: two budgets would add up."""
        seen: dict[object, str] = {}
        for name, dataset in datasets.items():
            has = covered(dataset)
            first = next((seen[each] for each in has if each in seen), None)
            seen |= dict.fromkeys(has - seen.keys(), name)
            if first is None:
                continue
            same = identity(dataset) == identity(datasets[first])
            what = "is that" if same else "shares files with that"
            self.note(
                ("datasets", name, "source"),
                f"source {what} of data set {first!r} too: two budgets for the same people "
                "add up. Leave one of them out.",
            )

    def name(self, key: Key) -> None:
        if not 0 < len(key[-1].strip()) <= _LONGEST_NAME or not key[-1].isprintable():
            self.note(key, f"a name must have 1 to {_LONGEST_NAME} printable characters.")

    def schema(self, key: Key, values: Mapping[str, Any]) -> Schema | None:
        value = self.text((*key, "schema"), values)
        if not value:
            return None
        return self.trying((*key, "schema"), lambda: Schema.from_toml(self.path(value)))

    def composition(
        self, key: Key, values: Mapping[str, Any], budget: Budget | None
    ) -> tuple[str, Budget | None]:
        place = (*key, "composition")
        value = values.get("composition", "basic")
        if self.trying(place, lambda: one_of("composition", value, COMPOSITIONS)) is None:
            return "basic", None
        if value == "tight" and budget is not None and not budget.delta:
            self.note(place, 'composition "tight" needs a delta above 0.')
        each = self.budget(key, values, "each_")
        if value == "equal" and "each_epsilon" not in values:
            self.note(place, 'composition "equal" needs each_epsilon, the cost of every request.')
        elif value != "equal" and each is not None:
            self.note((*key, "each_epsilon"), 'each_epsilon goes with composition "equal" only.')
        return value, each

    def partition(self, key: Key, values: Mapping[str, Any], schema: Schema | None) -> str | None:
        if "partition" not in values:
            return None
        place = (*key, "partition")
        value = self.text(place, values)
        if schema is None or not value:
            return None
        column = schema.columns.get(value)
        if not isinstance(column, CategoricalColumn) or column.membership != "public":
            self.note(
                place,
                "partition must be a categorical column whose schema says "
                'membership = "public": otherwise a person could change their part.',
            )
        elif schema.rows_per_person > 1:
            self.note(
                place,
                "partition needs rows_per_person = 1: a person with rows in two parts would be "
                "charged for one of them only.",
            )
        return value

    def policy(self, key: Key, budget: Budget | None) -> Policy:
        place = (*key, "policy")
        values = self.table(place, _POLICY)
        most = {name: values.get(name, usual) for name, usual in _MOST.items()}
        for name, value in most.items():
            self.trying((*place, name), partial(integer_at_least, name, value, 1))
        tests = values.get("tests")
        allowed = USUAL_TESTS if tests is None else self.tests((*place, "tests"), tests)
        largest = self.budget(place, values, "largest_")
        if largest is not None and budget is not None and "largest_delta" not in values:
            largest = Budget(largest.epsilon, budget.delta)
        return Policy(allowed, largest, *most.values())

    def tests(self, key: Key, value: object) -> frozenset[tuple[str, str]]:
        """Read ["two-sample", "fit/family"]: the tests of a question, or one.

        A question stands for its only method, or for those without a caution.
        """
        if not isinstance(value, list) or not value:
            self.note(key, 'tests must be a list such as ["two-sample", "fit/family"].')
            return frozenset()
        found: set[tuple[str, str]] = set()
        for item in value:
            question, _, method = str(item).partition("/")
            named = method or len(METHODS.get(question, ())) == 1
            among = ALL_TESTS if named else USUAL_TESTS
            matching = {t for t in among if t[0] == question and method in ("", t[1])}
            if not matching:
                words = METHODS.get(question, METHODS)
                self.note(key, f"unknown test {str(item)!r}; known are {', '.join(words)}.")
            found |= matching
        return frozenset(found)

    def analyst(self, name: str) -> AnalystConfig:
        key = ("analysts", name)
        values = self.table(key, _ANALYST)
        self.name(key)
        listed = values.get("datasets")
        place = (*key, "datasets")
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            self.note(place, 'datasets must be a list of names, such as ["visits"].')
            listed = []
        known = self.table(("datasets",), None)
        for item in listed:
            if item not in known:
                self.note(place, f"unknown data set {item!r}; known are {', '.join(known)}.")
        budget = self.budget(key, values)
        tight = [
            d for d in listed if self.table(("datasets", d), None).get("composition") == "tight"
        ]
        if tight and budget is not None and not budget.delta:
            self.note(key, f'delta must be given: {tight[0]!r} has composition "tight".')
        revoked = values.get("revoked", False)
        if not isinstance(revoked, bool):
            self.note((*key, "revoked"), "revoked must be true or false.")
        subject = self.text((*key, "subject"), values) if "subject" in values else name
        return AnalystConfig(name, tuple(listed), budget, subject, revoked is True)
