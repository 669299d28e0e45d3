"""``curator.toml``: which data sets there are, what they may give away, and to whom.

``read_config`` finds every mistake in the file, with its line.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from privatest.core.errors import ParameterError, PrivatestError
from privatest.core.privacy import Budget
from privatest.core.validation import integer_at_least, one_of, reject
from privatest.curator.contents import covered, identity
from privatest.data.engines import EngineConfig
from privatest.data.files import is_pattern
from privatest.data.reading import Place
from privatest.data.schema import CategoricalColumn, Schema
from privatest.ledger.state import COMPOSITIONS
from privatest.requests.catalogue import METHODS

PERIODS = ("weekly", "monthly", "quarterly", "yearly")
Renewal = str | int
_FIRST = date(2000, 1, 3)  # a Monday, from which days are counted
ALL_TESTS = frozenset((question, name) for question, names in METHODS.items() for name in names)
USUAL_TESTS = frozenset((q, m) for q, m in ALL_TESTS if not METHODS[q][m].caution)
MOST_PERMUTATIONS = 9999
MOST_POINTS = 500  # as many as a release has where nobody says
MOST_WORK = 50_000_000_000  # seconds, or a few minutes for HSIC with estimator "u"


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be asked of a data set.

    Attributes
    ----------
    tests : set of (question, method)
        Which tests are offered.
    largest : Budget or None
        The most that one request may cost; None is as much as the data set has.
    permutations : int
        The most permutations: they cost the custodian's time.
    points : int
        The most rows of a release: they cost time, and space in the ledger.
    work : int
        The most kernel values, times permutations, of a test: a request is rehearsed before it
        is paid for, so that its time is not limited by a budget.
    """

    tests: frozenset[tuple[str, str]] = USUAL_TESTS
    largest: Budget | None = None
    permutations: int = MOST_PERMUTATIONS
    points: int = MOST_POINTS
    work: int = MOST_WORK


@dataclass(frozen=True, slots=True)
class DatasetConfig:
    """A data set as its custodian describes it.

    Attributes
    ----------
    name : str
        What requests call it.
    source : Path or str
        The file with the rows, a folder or a pattern; or the address of a database.
    schema : Schema
        The public description of its columns.
    budget : Budget
        What all answers together may cost, for ever.
    composition : {"basic", "tight", "equal"}
        How costs add up.
    each : Budget or None
        With "equal", what every request costs.
    partition : str or None
        The public column whose parts hold different people.
    policy : Policy
        What may be asked.
    table : str or None
        The table of a database.
    workers : EngineConfig or None
        Who reads the rows, if the custodian says so.
    renew : str, int or None
        When the budget may be renewed: a period, or a number of days; None is never.
    """

    name: str
    source: Path | str
    schema: Schema
    budget: Budget
    composition: str = "basic"
    each: Budget | None = None
    partition: str | None = None
    policy: Policy = Policy()
    table: str | None = None
    workers: EngineConfig | None = None
    renew: Renewal | None = None

    @property
    def place(self) -> Place:
        """Where the rows are; opened anew each time."""
        return Place(str(self.source), self.table, workers=self.workers)


@dataclass(frozen=True, slots=True)
class AnalystConfig:
    """Somebody who may ask.

    Attributes
    ----------
    name : str
        What they are called.
    datasets : tuple of str
        What they may ask about.
    budget : Budget or None
        The most that their answers may cost on each of them; None is the data set's own.
    subject : str
        What the issuer of their sign-in calls them.
    revoked : bool
        Whether they may not ask any more, nor see what they were answered.
    """

    name: str
    datasets: tuple[str, ...]
    budget: Budget | None = None
    subject: str = ""
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class ServiceConfig:
    """How the curator is served.

    Attributes
    ----------
    database : str
        File or address of what the service keeps: tokens and jobs.
    url : str
        The address that people type.
    issuer : str or None
        The OpenID Connect issuer that people sign in at; None: with tokens only.
    client_id : str
        What the issuer calls this service.
    client_secret : Path or None
        The file that holds the issuer's secret for this service.
    claim : str
        The claim that names a person: ``sub``, which an issuer never gives to another.
    custodians, auditors : tuple of str
        Who else may sign in, by that claim.
    workers : int
        How many requests are answered at once.
    requests_per_minute : int
        How many requests one person may make in a minute.
    open_history : bool
        Whether analysts see each other's requests.
    open_metrics : bool
        Whether metrics are shown without a token.
    open_facts : bool
        Whether the deployment facts of data sets are shown without a token.
    """

    database: str
    url: str = "http://127.0.0.1:8000"
    issuer: str | None = None
    client_id: str = "privatest"
    client_secret: Path | None = None
    claim: str = "sub"
    custodians: tuple[str, ...] = ()
    auditors: tuple[str, ...] = ()
    workers: int = 2
    requests_per_minute: int = 120
    open_history: bool = False
    open_metrics: bool = False
    open_facts: bool = False

    @property
    def is_secure(self) -> bool:
        """Whether people reach it through TLS."""
        return urlsplit(self.url).scheme == "https"

    @property
    def host(self) -> str:
        """The host name of the address."""
        return urlsplit(self.url).hostname or ""


@dataclass(frozen=True, slots=True)
class CuratorConfig:
    """All that a curator knows from its custodian.

    Attributes
    ----------
    path : Path
        Where it was read.
    ledger : str
        File or address of the ledger.
    log : Path
        The custodian's log.
    state : Path
        What was registered, so that data is validated once.
    service : ServiceConfig
        How it is served to others.
    datasets, analysts : mapping
        By their names.
    """

    path: Path
    ledger: str
    log: Path
    state: Path
    service: ServiceConfig
    datasets: Mapping[str, DatasetConfig] = field(default_factory=dict)
    analysts: Mapping[str, AnalystConfig] = field(default_factory=dict)

    @property
    def times(self) -> Path:
        """Response times that the custodian measured, beside the state file."""
        return self.state.with_name(f"{self.path.stem}.times.json")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> CuratorConfig:
        """Read the file; ParameterError with the first mistake and its line."""
        config, problems = read_config(path)
        if config is None or problems:
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            raise ParameterError(
                f"{Path(path).name}, {problems[0]}{more} Run privatest curator check."
            )
        return config


# What `privatest curator init` writes, to be changed by hand.
EXAMPLE = """\
# A curator answers questions about data that the asker may not see, within a budget that
# cannot be overspent. Paths are relative to this file. Check it: privatest curator check

ledger = "ledger.db"            # or postgresql://user@host/database
log = "curator.log"             # what failed and where, without data; for the custodian only

[datasets.visits]
source = "visits.csv"           # a file, a folder, a pattern, or a database with table = NAME
schema = "visits.toml"          # public description of the columns: privatest schema visits.csv
epsilon = 3                     # what all answers together may cost, for ever
delta = 1e-6                    # 0 allows only tests without delta
composition = "basic"           # costs are added up; "tight" is cheaper for many small requests
# engine = "local"              # who reads large data; "dask" with scheduler = "tcp://host:8786"
# threads = 4                   # of the local engine
# partition = "region"          # a public column whose parts hold different people: requests
                                # about different parts are then charged side by side

[datasets.visits.policy]
tests = ["two-sample", "independence/hsic", "fit"]  # a question, or a question and its method
largest_epsilon = 0.5           # the most that one request may cost
largest_delta = 1e-7
largest_permutations = 9999     # they cost your time
largest_points = 500            # rows of a release: they cost time, and space in the ledger

[analysts.ada]
datasets = ["visits"]
epsilon = 1                     # her share of each of them; leave it out for no limit of her own
delta = 5e-7

# [service]                     # privatest serve: see the how-to "serve"
# url = "https://tests.example.org"
"""


# --- renewal of budgets: periods depend on the calendar alone -------------------------------------


def checked_renewal(value: object) -> Renewal:
    """Return a rule: the name of a period, or a number of days."""
    if isinstance(value, str):
        if value not in PERIODS:
            reject("renew", f"one of {', '.join(PERIODS)}, or a number of days", value)
        return value
    return integer_at_least("renew", value, 1)


def period_start(rule: Renewal, today: date) -> date:
    """Return the first day of the period that a day is in."""
    if rule == "yearly":
        return today.replace(month=1, day=1)
    if rule == "quarterly":
        return today.replace(month=today.month - (today.month - 1) % 3, day=1)
    if rule == "monthly":
        return today.replace(day=1)
    days = 7 if isinstance(rule, str) else rule
    return today - timedelta((today - _FIRST).days % days)


# --- lines of a TOML file -------------------------------------------------------------------------

Key = tuple[str, ...]


def lines_of_keys(text: str, document: Mapping[str, Any]) -> dict[Key, int]:
    """Return the line, from 1, of each table header and key that begins a line.

    Parameters
    ----------
    text : str
        TOML.
    document : mapping
        What it says: a line inside a text or a list may only look like a key.
    """
    found: dict[Key, int] = {}
    table: Key = ()
    inside = False  # a text of several lines
    for number, line in enumerate(text.split("\n"), start=1):
        opens = (line.count('"""') + line.count("'''")) % 2 == 1
        inside, skip = inside ^ opens, inside
        if skip:
            continue
        if (header := _header(line)) is not None and _exists(document, header):
            table = header
            found.setdefault(header, number)
            continue
        key = next((k for k in _keys(line) if _exists(document, table + k)), None)
        if key is not None:
            for depth in range(1, len(key) + 1):  # a.b = 1 names a, too
                found.setdefault(table + key[:depth], number)
    for key, number in list(found.items()):  # [a.b] makes a, where nothing else does
        for depth in range(1, len(key)):
            found.setdefault(key[:depth], number)
    return found


def line_of(lines: Mapping[Key, int], key: Key) -> int:
    """Return the line of a key, or of the nearest table around it; 1 if there is none."""
    while key and key not in lines:
        key = key[:-1]
    return lines.get(key, 1)


def syntax_error_line(text: str) -> int:
    """Return the first line with which the text is no longer TOML."""
    # tomllib has the line in its message only, and says "end of document" for the last one
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        words = str(error).partition("(at line ")[2].partition(",")[0]
        return int(words) if words.isdigit() else max(1, len(text.splitlines()))
    except ValueError:  # an integer of thousands of digits
        pass
    return 1


def _header(line: str) -> Key | None:
    """Read ``[a.b]``; None if it is no header."""
    if not line.lstrip().startswith("["):
        return None
    return _path(line)


def _keys(line: str) -> Iterator[Key]:
    """Read what stands before each = of a line: a quoted key may hold one itself."""
    position = line.find("=")
    while position >= 0:
        key = _path(f"{line[:position]}= 0")
        if key is not None:
            yield key
        position = line.find("=", position + 1)


def _path(text: str) -> Key | None:
    """Return the one key that a line of TOML makes."""
    try:
        inner: Any = tomllib.loads(text)
    except ValueError:
        return None
    path = []
    while isinstance(inner, (dict, list)) and inner:
        if isinstance(inner, list):
            inner = inner[0]
            continue
        name, inner = next(iter(inner.items()))
        path.append(name)
    return tuple(path) or None


def _exists(document: Mapping[str, Any], key: Key) -> bool:
    inner: Any = document
    for name in key:
        if not isinstance(inner, Mapping) or name not in inner:
            return False
        inner = inner[name]
    return True


# --- reading the file -----------------------------------------------------------------------------

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
_SERVICE_COUNTS = {"workers": 2, "requests_per_minute": 120}
_SERVICE_TEXTS = ("database", "url", "issuer", "client_id", "client_secret", "claim")
_SERVICE_FLAGS = ("open_history", "open_metrics", "open_facts")
_SERVICE_LISTS = ("custodians", "auditors")
_SERVICE = (*_SERVICE_TEXTS, *_SERVICE_COUNTS, *_SERVICE_FLAGS, *_SERVICE_LISTS)
_LONGEST_NAME = 200
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake, and the line of the file that it is on."""

    line: int
    message: str

    def __str__(self) -> str:
        """Write one line."""
        return f"line {self.line}: {self.message}"


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
        values = tomllib.loads(text, parse_float=Decimal)  # 0.1 is one tenth
    except ValueError as error:
        words = str(error).partition(" (at ")[0]
        return None, [Problem(syntax_error_line(text), f"this is not TOML: {words}.")]
    document = _Document(file.absolute(), values, lines_of_keys(text, values))
    config = _read_curator(document)
    problems = dict.fromkeys(document.problems)  # the same may be met twice
    return config, sorted(problems, key=lambda problem: problem.line)


@dataclass(slots=True)
class _Document:
    """A file that is being read, and what is wrong with it."""

    file: Path
    values: Mapping[str, Any]
    lines: Mapping[Key, int]
    problems: list[Problem] = field(default_factory=list)

    def section(self, *key: str, known: Iterable[str] | None = None) -> _Section:
        """Return a table, empty if it is missing; note keys that are not ``known``."""
        found: Any = self.values
        for name in key:
            found = found.get(name, {}) if isinstance(found, dict) else {}
        section = _Section(self, key, found if isinstance(found, dict) else {})
        if not isinstance(found, dict):
            section.note("", f"{'.'.join(key)} must be a table: [{'.'.join(key)}].")
        elif known is not None:
            for name in found.keys() - set(known):
                section.note(name, f"unknown key {name!r}; known are {', '.join(known)}.")
        return section

    def path(self, value: str) -> Path:
        """Return a path; a relative one begins where the file is."""
        return self.file.parent / Path(value).expanduser()


@dataclass(frozen=True, slots=True)
class _Section:
    """A table of the file. Methods note what is wrong with a key instead of raising."""

    document: _Document
    key: Key
    values: Mapping[str, Any]

    def note(self, name: str, message: str) -> None:
        """Add a mistake on the line of a key, or on that of the table."""
        key = (*self.key, name) if name else self.key
        self.document.problems.append(Problem(line_of(self.document.lines, key), message))

    def attempt(self, name: str, make: Callable[[], T], prefix: str = "") -> T | None:
        """Make something; if that fails, it is the key's mistake."""
        try:
            return make()
        except PrivatestError as error:
            self.note(name, f"{prefix}{error}")
            return None

    def text(self, name: str, default: str | None = None) -> str:
        """Return a value that is text and not empty; "" after a mistake."""
        value = self.values.get(name, default)
        if isinstance(value, str) and value:
            return value
        wanted = "must be given, as text" if value is None else "must be text"
        self.note(name, f"{name} {wanted}.")
        return ""

    def budget(self, prefix: str = "") -> Budget | None:
        """Return a budget from epsilon and delta; the mistake is on the line of the wrong one."""
        epsilon, delta, values = f"{prefix}epsilon", f"{prefix}delta", self.values
        if epsilon not in values:
            if delta in values:
                self.note(delta, f"{delta} needs {epsilon} beside it.")
            return None
        first = self.attempt(epsilon, lambda: Budget(values[epsilon]), prefix)
        second = self.attempt(delta, lambda: Budget(1, values.get(delta, 0)), prefix)
        return None if first is None or second is None else Budget(first.epsilon, second.delta)

    def count(self, name: str, default: int) -> Any:
        """Return a positive integer."""
        value = self.values.get(name, default)
        self.attempt(name, partial(integer_at_least, name, value, 1))
        return value

    def flag(self, name: str) -> bool:
        """Return true or false; false by default."""
        value = self.values.get(name, False)
        if not isinstance(value, bool):
            self.note(name, f"{name} must be true or false.")
        return value is True

    def names(self, name: str, example: str, default: object = ()) -> tuple[str, ...]:
        """Return a list of names."""
        names = self.values.get(name, default)
        listed = isinstance(names, (list, tuple)) and all(isinstance(each, str) for each in names)
        if not listed:
            self.note(name, f'{name} must be a list of names, such as ["{example}"].')
        return tuple(names) if listed else ()

    def check_name(self) -> None:
        """Refuse the table's own name if it cannot be printed."""
        if not 0 < len(self.key[-1].strip()) <= _LONGEST_NAME or not self.key[-1].isprintable():
            self.note("", f"a name must have 1 to {_LONGEST_NAME} printable characters.")


def _read_curator(document: _Document) -> CuratorConfig:
    top, stem = document.section(known=_TOP), document.file.stem
    ledger = top.text("ledger", "ledger.db")
    datasets = {
        name: dataset
        for name in document.section("datasets").values
        if (dataset := _read_dataset(document, name)) is not None
    }
    _refuse_shared_sources(document, datasets)
    if not top.values.get("datasets"):
        top.note("", "there is no data set: write a table [datasets.NAME].")
    analysts = {name: _read_analyst(document, name) for name in document.section("analysts").values}
    log, state = (
        document.path(top.text(name, f"{stem}.{ending}"))
        for name, ending in (("log", "log"), ("state", "state.json"))
    )
    for name, place in (("log", log), ("state", state)):
        if not place.parent.is_dir():
            top.note(name, f"{name} must be in a folder that exists.")
    ledger = ledger if "://" in ledger else str(document.path(ledger))
    service = _read_service(document.section("service", known=_SERVICE))
    return CuratorConfig(document.file, ledger, log, state, service, datasets, analysts)


def _read_dataset(document: _Document, name: str) -> DatasetConfig | None:
    before = len(document.problems)
    section = document.section("datasets", name, known=_DATASET)
    values = section.values
    if len(document.problems) > before and not values:
        return None  # it is no table
    section.check_name()
    source, table = _read_source(section)
    given = {key: values[key] for key in ("engine", "threads", "scheduler") if key in values}
    workers = section.attempt(next(iter(given)), lambda: EngineConfig(**given)) if given else None
    schema = None
    if path := section.text("schema"):
        schema = section.attempt("schema", lambda: Schema.from_toml(document.path(path)))
    budget = section.budget()
    if not {"epsilon", "delta"} & values.keys():
        section.note("", "epsilon must be given: what may all answers together cost?")
    composition, each = _read_composition(section, budget)
    partition = _read_partition(section, schema) if "partition" in values else None
    policy = _read_policy(document.section("datasets", name, "policy", known=_POLICY), budget)
    renew = None
    if "renew" in values:
        renew = section.attempt("renew", partial(checked_renewal, values["renew"]))
    if len(document.problems) > before or schema is None or budget is None:
        return None
    settings = (composition, each, partition, policy, table, workers, renew)
    return DatasetConfig(name, source, schema, budget, *settings)


def _read_source(section: _Section) -> tuple[Path | str, str | None]:
    """Return where the rows are, and the table of a database."""
    text = section.text("source")
    table = section.text("table") if "table" in section.values else None
    if not Place(text).is_database:
        if table is not None:
            section.note("table", "table goes with the address of a database as source.")
        if "://" in text:
            return text, None
        path = section.document.path(text)
        if text and not path.exists() and not is_pattern(text):
            section.note("source", f"there is no file {path.name!r} here.")
        return path, None
    if table is None:
        section.note("source", "table must be given: what is read of the database.")
    head, _, local = text.partition("sqlite:///")
    return (text if head or not local else f"sqlite:///{section.document.path(local)}"), table


def _refuse_shared_sources(document: _Document, datasets: Mapping[str, DatasetConfig]) -> None:
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
        document.section("datasets", name).note(
            "source",
            f"source {what} of data set {first!r} too: two budgets for the same people "
            "add up. Leave one of them out.",
        )


def _read_composition(section: _Section, budget: Budget | None) -> tuple[str, Budget | None]:
    value = section.values.get("composition", "basic")
    one = partial(one_of, "composition", value, COMPOSITIONS)
    if section.attempt("composition", one) is None:
        return "basic", None
    if value == "tight" and budget is not None and not budget.delta:
        section.note("composition", 'composition "tight" needs a delta above 0.')
    each = section.budget("each_")
    if value == "equal" and "each_epsilon" not in section.values:
        section.note(
            "composition", 'composition "equal" needs each_epsilon, the cost of every request.'
        )
    elif value != "equal" and each is not None:
        section.note("each_epsilon", 'each_epsilon goes with composition "equal" only.')
    return value, each


def _read_partition(section: _Section, schema: Schema | None) -> str | None:
    value = section.text("partition")
    if schema is None or not value:
        return None
    column = schema.columns.get(value)
    if not isinstance(column, CategoricalColumn) or column.membership != "public":
        section.note(
            "partition",
            "partition must be a categorical column whose schema says "
            'membership = "public": otherwise a person could change their part.',
        )
    elif schema.rows_per_person > 1:
        section.note(
            "partition",
            "partition needs rows_per_person = 1: a person with rows in two parts would be "
            "charged for one of them only.",
        )
    return value


def _read_policy(section: _Section, budget: Budget | None) -> Policy:
    most = [section.count(name, default) for name, default in _MOST.items()]
    allowed = _read_tests(section) if "tests" in section.values else USUAL_TESTS
    largest = section.budget("largest_")
    if largest is not None and budget is not None and "largest_delta" not in section.values:
        largest = Budget(largest.epsilon, budget.delta)
    return Policy(allowed, largest, *most)


def _read_tests(section: _Section) -> frozenset[tuple[str, str]]:
    """Read ["two-sample", "fit/family"]: the tests of a question, or one.

    A question stands for its only method, or for those without a caution.
    """
    value = section.values["tests"]
    if not isinstance(value, list) or not value:
        section.note("tests", 'tests must be a list such as ["two-sample", "fit/family"].')
        return frozenset()
    tests: set[tuple[str, str]] = set()
    for item in value:
        question, _, method = str(item).partition("/")
        named = method or len(METHODS.get(question, ())) == 1
        among = ALL_TESTS if named else USUAL_TESTS
        matching = {t for t in among if t[0] == question and method in ("", t[1])}
        if not matching:
            known = ", ".join(METHODS.get(question, METHODS))
            section.note("tests", f"unknown test {str(item)!r}; known are {known}.")
        tests |= matching
    return frozenset(tests)


def _read_analyst(document: _Document, name: str) -> AnalystConfig:
    section = document.section("analysts", name, known=_ANALYST)
    section.check_name()
    listed = section.names("datasets", "visits", default=None)
    known = document.section("datasets").values
    for item in listed:
        if item not in known:
            section.note("datasets", f"unknown data set {item!r}; known are {', '.join(known)}.")
    budget = section.budget()
    tight = [
        item
        for item in listed
        if document.section("datasets", item).values.get("composition") == "tight"
    ]
    if tight and budget is not None and not budget.delta:
        section.note("", f'delta must be given: {tight[0]!r} has composition "tight".')
    revoked = section.flag("revoked")
    subject = section.text("subject") if "subject" in section.values else name
    return AnalystConfig(name, listed, budget, subject, revoked)


def _read_service(section: _Section) -> ServiceConfig:
    values = section.values
    texts: dict[str, Any] = {n: section.text(n) for n in _SERVICE_TEXTS if n in values}
    others: dict[str, Any] = {n: section.count(n, usual) for n, usual in _SERVICE_COUNTS.items()}
    others |= {name: section.flag(name) for name in _SERVICE_FLAGS}
    others |= {name: section.names(name, "carol") for name in _SERVICE_LISTS}
    for name in ("url", "issuer"):
        if name in texts:
            section.attempt(name, partial(_check_url, name, texts[name]))
    if "issuer" in texts and "client_secret" not in texts:
        section.note("issuer", "issuer needs client_secret, a file that holds it.")
    secret = texts.pop("client_secret", None)
    database = texts.pop("database", "service.db")
    path = section.document.path
    return ServiceConfig(
        database=database if "://" in database else str(path(database)),
        client_secret=None if secret is None else path(secret),
        **texts,
        **others,
    )


def _check_url(name: str, url: str) -> None:
    """Refuse an address that others could read along with."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ParameterError(f"{name} must be an address such as https://tests.example.org.")
    if parts.scheme == "http" and parts.hostname not in _LOCAL_HOSTS:
        raise ParameterError(f"{name} must begin with https:// (http:// is for this machine only).")
