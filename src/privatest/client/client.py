"""The library's functions, answered by a curator elsewhere: columns are named, no rows are held."""

from __future__ import annotations

import html
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from inspect import Parameter
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from privatest.client.transport import Connection, Http, Transport, error_of
from privatest.core.errors import ParameterError, ServiceError
from privatest.core.validation import number, of_type, reject
from privatest.data.schema import CategoricalColumn, Column, NumericColumn, Schema, spelling
from privatest.requests.catalogue import METHODS, PARTS, Method
from privatest.requests.request import Request
from privatest.requests.results import Result, result_from_dict

_VARIABLE = "PRIVATEST_TOKEN"


def connect(url: str, token: str | None = None, *, timeout: float = 30.0) -> Client:
    """Reach the service of a curator, and ask it as one asks the library.

    Parameters
    ----------
    url : str
        The address of ``privatest serve``: ``https://HOST``, or ``http://`` on this machine.
    token : str, optional
        Who asks: what ``privatest curator token NAME`` showed. By default the environment
        variable ``PRIVATEST_TOKEN``, so that it stands in no notebook.
    timeout : float
        Seconds to wait for each answer of the service; a request itself may take longer.

    Returns
    -------
    Client
        With ``dataset(name)``, and the library's functions.

    Notes
    -----
    **Privacy** Rows stay with the curator; it charges each request, and what comes back is
    private already. A request that is sent twice, for a lost connection, is answered from the
    record and charged once; only if the first one failed after it was charged, the second is
    charged too.

    Examples
    --------
    >>> import privatest as pt
    >>> client = pt.connect("https://curator.example", "pt_secret")  # nothing is sent yet
    >>> "mmd_test" in dir(client)
    True
    """
    if not of_type(url, str):
        reject("url", "text: the address of a service", url)
    found = token if token is not None else os.environ.get(_VARIABLE)
    if not of_type(found, str) or not found:  # in this order: a frame is neither true nor false
        raise ParameterError(f"token must be given, or the environment variable {_VARIABLE}.")
    return Client(Http(url, found, number("timeout", timeout, above=0)))


class Client:
    """A curator, with the library's functions: ``client.ks_2samp(visits["age"], ...)``.

    Use :func:`connect`. Handles stand for data: ``client.dataset("visits")`` for a frame, and
    ``client.dataset("visits")["age"]`` for a column.

    Attributes
    ----------
    connection : Connection
        How it sends requests to the service.
    """

    __slots__ = ("connection",)

    def __init__(self, transport: Transport | Connection) -> None:
        if not isinstance(transport, Connection):
            transport = Connection(transport)
        self.connection = transport

    @property
    def talk(self) -> Connection:
        """Deprecated name of ``connection``."""
        return self.connection

    def me(self) -> dict[str, Any]:
        """Return whose token this is, and what it opens."""
        return self.connection.get("/me")

    def datasets(self) -> list[Dataset]:
        """Return the data sets that one may ask about."""
        return [Dataset(self, facts) for facts in self.connection.get("/datasets")["items"]]

    def dataset(self, name: str) -> Dataset:
        """Return a data set: its public facts, and the library's functions on it."""
        return Dataset(self, self.connection.get(f"/datasets/{quote(name, safe='')}"))

    def budget(self, name: str) -> RemoteBudget:
        """Return what is left of the budgets of a data set."""
        facts = self.connection.get(f"/datasets/{quote(name, safe='')}")["budget"]
        if facts is None:
            raise ParameterError(f"data set {name!r} is not registered, and has no budget yet.")
        return RemoteBudget(name, facts["own"], facts["dataset"])

    def price(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a request would cost; nothing is spent.

        ``dataset.request.mmd_test(...)`` makes the request of a call.
        """
        return self.connection.post("/price", request)

    def rehearse(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a request answers on made-up rows; nothing is spent."""
        try:
            return self.connection.post("/rehearse", request)
        except ServiceError as error:
            if error.status not in (404, 405):
                raise
        raise ServiceError("This service offers no rehearsal: it needs a newer privatest.")

    def submit(self, request: Mapping[str, Any]) -> Job:
        """Begin a request, and do not wait for it."""
        return Job.read(self.connection.post("/run", request), self.connection)

    def run(self, request: Mapping[str, Any]) -> Result:
        """Ask, and wait for the answer.

        Parameters
        ----------
        request : mapping
            What is asked, such as ``{"dataset": "visits", "question": "two-sample", ...}``.

        Raises
        ------
        ParameterError, PrivacyError, DataError, BudgetError
            If it is refused; nothing was spent.
        RequestFailed
            If it failed; the message says whether its budget is spent.
        ServiceError
            If the service cannot be reached, or does not know the token.
        """
        return self.submit(request).wait()

    def ask(self, request: Request) -> Result:
        """Send the request of a function call, and wait for the answer."""
        return self.run(request.to_dict())

    def jobs(self, last: int = 50) -> list[Job]:
        """Return one's requests, newest first."""
        found = self.connection.get(f"/jobs?last={int(last)}")["items"]
        return [Job.read(document, self.connection) for document in found]

    def job(self, number: str) -> Job:
        """Return a request by its number."""
        return Job.read(self.connection.get(f"/jobs/{quote(number, safe='')}"), self.connection)

    def __getattr__(self, name: str) -> Any:
        """Return a function of the library, asked of the curator."""
        if name.startswith("_") or name in Client.__slots__:
            raise AttributeError(name)
        return getattr(Functions(self.ask), name)

    def __dir__(self) -> Iterable[str]:
        """Return methods and functions."""
        return sorted({*object.__dir__(self), *function_names()})

    def __repr__(self) -> str:
        """Show the address, never the token."""
        return f"<client of {getattr(self.connection.transport, 'url', 'a curator')}>"


# --- data sets ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of a data set, instead of an array: ``visits["age"]``."""

    dataset: Dataset
    names: tuple[str, ...]

    def __repr__(self) -> str:
        """Show their names: their values are not here."""
        return f"<columns {', '.join(self.names)} of {self.dataset.name}>"


class Dataset:
    """A data set of a curator.

    Its methods are the library's functions, with names of columns instead of arrays:
    ``visits.mmd_test(["visits", "age"], group="plan", epsilon=0.5)``. It also stands for a frame
    itself: ``client.mmd_test(visits, columns=["visits"], group="plan", epsilon=0.5)``.

    Attributes
    ----------
    name : str
        Its name.
    facts : mapping
        What is public: columns, policy, rows, and whether it can be asked about.
    """

    __slots__ = ("_client", "facts", "name")

    def __init__(self, client: Client, facts: Mapping[str, Any]) -> None:
        self._client, self.facts = client, facts
        self.name: str = facts["name"]

    @property
    def schema(self) -> Schema:
        """Its columns with their bounds and categories, as the service describes them."""
        columns: dict[str, Column] = {}
        for each in self.facts["columns"]:
            if each["type"] == "numeric":
                low, high = each["bounds"]
                columns[each["name"]] = NumericColumn(low, high, each["integer"])
            else:
                categories = tuple(each["categories"])
                columns[each["name"]] = CategoricalColumn(categories, each["membership"])
        return Schema(columns, self.facts["rows_per_person"])

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [str(each["name"]) for each in self.facts["columns"]]

    @property
    def budget(self) -> RemoteBudget:
        """What is left of the budgets now."""
        return self._client.budget(self.name)

    @property
    def request(self) -> Functions:
        """The same functions, which return the request they would send: for ``client.price``."""
        return Functions(Request.to_dict, self)

    def __getitem__(self, names: str | list[str]) -> Columns:
        """Return columns, instead of an array."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        unknown = next((name for name in wanted if name not in self.columns), None)
        if unknown is not None or not wanted:
            raise KeyError(f"{unknown!r} is no column of {self.name}: {', '.join(self.columns)}.")
        return Columns(self, wanted)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function of the library, asked about this data set."""
        if name.startswith("_") or name in Dataset.__slots__:
            raise AttributeError(name)
        function: Callable[..., Any] = getattr(Functions(self._client.ask, self), name)
        return function

    def __dir__(self) -> Iterable[str]:
        """Return facts and functions."""
        return sorted({*object.__dir__(self), *function_names()})

    def __repr__(self) -> str:
        """Describe what is public."""
        facts = self.facts
        rows = "unknown" if facts["rows"] is None else f"{facts['rows']:,}"
        lines = [
            f"Data set {self.name}: {rows} rows, at most {facts['rows_per_person']} of a person"
        ]
        if not facts["ready"]:
            lines.append(f"  It cannot be asked about: {facts['reason']}")
        width = max(map(len, self.columns), default=0)
        for each in facts["columns"]:
            if each["type"] == "numeric":
                low, high = each["bounds"]
                words = f"{'integers' if each['integer'] else 'numbers'} from {low:g} to {high:g}"
            else:
                words = f"{', '.join(each['categories'])} ({each['membership']})"
            lines.append(f"  {each['name']:<{width}}  {words}")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class RemoteBudget:
    """Budgets of a data set: one's own, and the whole one, which all analysts share.

    Attributes
    ----------
    dataset : str
        Its name.
    own, whole : mapping or None
        ``epsilon``, ``delta``, ``spent``, ``left`` and ``used``, as the service writes them.
    """

    dataset: str
    own: Mapping[str, Any] | None
    whole: Mapping[str, Any] | None

    @property
    def left(self) -> dict[str, Decimal]:
        """The most that a request may cost, in the terms of the composition."""
        accounts = [account["left"] for account in (self.own, self.whole) if account is not None]
        names = dict.fromkeys(name for left in accounts for name in left)
        return {name: min(Decimal(str(a[name])) for a in accounts if name in a) for name in names}

    @property
    def spent(self) -> dict[str, Decimal]:
        """What was spent of one's own budget, or else of the whole."""
        account = self.own or self.whole or {"spent": {"epsilon": 0, "delta": 0}}
        return {name: Decimal(str(account["spent"][name])) for name in ("epsilon", "delta")}

    def _lines(self) -> Iterator[tuple[str, float, str]]:
        for name, account in (("yours", self.own), ("of all", self.whole)):
            if account is not None:
                sums = [
                    f"{key} {float(account['spent'][key]):g} of {float(account[key]):g}"
                    for key in ("epsilon", "delta")
                    if float(account[key])
                ]
                yield name, float(account["used"]), ", ".join(sums)

    def __str__(self) -> str:
        """Draw a bar for each budget."""
        lines = [f"Budget of {self.dataset}:"]
        for name, used, words in self._lines():
            full = round(24 * used)
            bar = "█" * full + "░" * (24 - full)
            lines.append(f"  {name:<6}  {bar}  {100 * used:5.1f}%  {words}")
        return "\n".join(lines)

    __repr__ = __str__  # notebooks print it

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th>{name}</th><td><progress value="{used:.4f}"></progress></td>'
            f"<td>{html.escape(words)}</td></tr>"
            for name, used, words in self._lines()
        )
        return f"<table><caption>Budget of {html.escape(self.dataset)}</caption>{rows}</table>"


# --- jobs -----------------------------------------------------------------------------------

_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.05, 2.0, 1.5  # seconds between two polls
_PATIENCE = 2.0  # seconds before a terminal shows progress


@dataclass(frozen=True, slots=True)
class Job:
    """A request that was sent, as it was when it was looked at.

    Attributes
    ----------
    id : str
        Its number.
    state : {"waiting", "running", "answered", "refused", "failed"}
        Its state.
    request : mapping
        What was asked.
    asked, ended : str or None
        When, in UTC.
    document : mapping or None
        The answer, or why there is none.
    """

    id: str
    state: str
    request: Mapping[str, Any]
    asked: str
    ended: str | None
    document: Mapping[str, Any] | None = field(repr=False)
    connection: Connection = field(repr=False, compare=False)

    @classmethod
    def read(cls, document: Mapping[str, Any], connection: Connection) -> Job:
        """Read the service's document of a job."""
        names = ("id", "state", "request", "asked", "ended", "document")
        return cls(**{name: document[name] for name in names}, connection=connection)

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self.state not in ("waiting", "running")

    @property
    def result(self) -> Result:
        """The library's own result; the library's own exception if there is none."""
        if not self.is_done:
            raise ServiceError(f"The job {self.id} is {self.state}: use wait().")
        document = self.document or {}
        if self.state != "answered":
            raise error_of(document)
        found = result_from_dict(document, Request.from_dict(self.request).budget)
        if found is None:
            raise ServiceError("The answer cannot be read: update privatest.")
        return found

    def look(self) -> Job:
        """Return the job as it is now."""
        return Job.read(self.connection.get(f"/jobs/{self.id}"), self.connection)

    def wait(self) -> Result:
        """Wait for its end, and return the result. Ctrl+C leaves it running."""
        job, pause, began = self, _FIRST_PAUSE, time.monotonic()
        try:
            while not job.is_done:
                _show_progress(job, time.monotonic() - began)
                self.connection.sleep(pause)
                pause = min(pause * _GROWTH, _LONGEST_PAUSE)
                job = job.look()
        except KeyboardInterrupt as error:
            words = f"The job goes on, and is paid for: client.job({self.id!r}).wait()"
            print(f"\n{words}", file=sys.stderr)
            error.add_note(words)
            raise
        except ServiceError as error:
            error.add_note(f"The job may go on: client.job({self.id!r}).wait()")
            raise
        finally:
            _show_progress(None, time.monotonic() - began)
        return job.result

    def __str__(self) -> str:
        """Return one line: when, what, its state."""
        about = "/".join(str(self.request.get(key, "")) for key in ("question", "method"))
        cost = f"epsilon {self.request.get('epsilon', '')}"
        dataset = self.request.get("dataset", "")
        return f"{self.id[:8]}  {self.asked}  {dataset}: {about}, {cost}: {self.state}"


def _show_progress(job: Job | None, seconds: float) -> None:
    """Show on a terminal that a job takes long; None wipes it out."""
    if seconds < _PATIENCE or not sys.stderr.isatty():
        return
    words = ""
    if job is not None:
        bar = "·" * (int(seconds) % 4)
        words = f"The curator's job {job.id[:8]} is {job.state}, {seconds:.0f} s {bar}"
    print(f"\r{words:<78}", end="\r" if job is None else "", file=sys.stderr, flush=True)


# --- from a call of a library's function to a request, derived from the catalogue -----------

# Which part of a request the data of a function is; x - y is the change from before to after.
_ROLES: Mapping[str, Mapping[str, str]] = {
    "two-sample": {"x": "columns", "samples": "columns"},
    "independence": {"x": "x", "y": "y", "z": "given"},
    "paired": {"x": "after", "y": "before"},
    "fit": {"x": "column", "cdf": "dist", "family": "family", "f_exp": "shares"},
    "mean": {"x": "columns"},
    "release": {"x": "columns"},
}
_GROUPED = ("group", "groups", "adjacency", "each_column")
_ALWAYS = ("epsilon", "delta", "alpha")
_REFUSED = {
    "rng": "the curator draws its own randomness",
    "noise": "the curator's noise is secret",
    "progress": "the curator shows no progress",
}


class Functions:
    """The library's functions by name; each call becomes a request that goes to ``answer``."""

    __slots__ = ("_answer", "_dataset")

    def __init__(self, answer: Callable[[Request], Any], dataset: Dataset | None = None) -> None:
        self._answer, self._dataset = answer, dataset

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return a function of the library, asked of the curator."""
        if name.startswith("_"):
            raise AttributeError(name)
        function = function_named(name)

        def call(*data: Any, **options: Any) -> Any:
            return self._answer(_request(function, self._dataset, data, options))

        call.__name__ = call.__qualname__ = name
        call.__doc__ = function.doc
        call.__signature__ = function.signature()  # type: ignore[attr-defined]
        return call

    def __dir__(self) -> Iterable[str]:
        """Return their names."""
        return sorted(function_names())


def _request(
    function: RemoteFunction,
    dataset: Dataset | None,
    data: tuple[Any, ...],
    options: Mapping[str, Any],
) -> Request:
    """Return the request of a call, in which handles stand for data."""
    handles = [each for each in (*data, *options.values()) if isinstance(each, Columns | Dataset)]
    about = [each.dataset if isinstance(each, Columns) else each for each in handles]
    known = {each.name: each for each in [*about, *([dataset] if dataset is not None else [])]}
    if len(known) != 1:
        raise ParameterError(
            "data must be columns of one data set of the curator: client.dataset(NAME), or "
            "client.dataset(NAME)[COLUMNS]."
        )
    (only,) = known.values()
    named = tuple(map(_column_names, data))
    if named[:1] == (None,) and "columns" in options:  # a frame, and which of its columns
        named = named[1:]
    given = {name: _column_names(value) for name, value in options.items()}
    for name in [name for name in given if name.startswith("bounds")]:
        _check_bounds(name, given.pop(name), only.schema)
    return function.request(only.name, named, given)


def _column_names(value: Any) -> Any:
    if isinstance(value, Columns):
        return list(value.names)
    return None if isinstance(value, Dataset) else value


def _check_bounds(name: str, bounds: Any, schema: Schema) -> None:
    """Accept bounds only if they are those of the curator's schema, which decides."""
    given = bounds.columns if isinstance(bounds, Schema) else bounds
    if bounds is None:
        return
    if not isinstance(given, Mapping):
        raise ParameterError(f"{name} must be those of the schema here: leave them out.")
    for column, described in given.items():
        known = schema.columns.get(column)
        if known is None or not _agree(known, described):
            raise ParameterError(
                f"{name} of {column!r} differ from those of the curator: leave {name} out, or pass "
                "the schema of the data set."
            )


def _agree(known: Column, given: Any) -> bool:
    if isinstance(known, NumericColumn):
        ends = (given.lower, given.upper) if isinstance(given, NumericColumn) else tuple(given)
        return ends == (known.lower, known.upper)
    if not isinstance(given, CategoricalColumn):
        return False
    return [*map(spelling, given.categories)] == [*map(spelling, known.categories)]


class CatalogueEntry(NamedTuple):
    """A method of the catalogue under its question and name."""

    question: str
    name: str
    method: Method


@dataclass(frozen=True, slots=True)
class RemoteFunction:
    """A public function, and the methods of the catalogue among which its parameters choose."""

    name: str
    entries: tuple[CatalogueEntry, ...]

    @property
    def library(self) -> inspect.Signature:
        """Its signature in the library."""
        return inspect.signature(self.entries[0].method.function)

    @property
    def questions(self) -> tuple[str, ...]:
        """The questions that it answers; the first is the usual one."""
        return tuple(dict.fromkeys(entry.question for entry in self.entries))

    @property
    def doc(self) -> str:
        """The library's docstring, and how columns are named here."""
        own = inspect.getdoc(self.entries[0].method.function) or ""
        summary, _, rest = own.partition("\n")
        here = "Asked of a curator: columns are named, and their bounds are those of the schema."
        return f"{summary}\n\n{here}\n{rest}" if rest else f"{summary}\n\n{here}"

    def signature(self, question: str | None = None) -> inspect.Signature:
        """Return its signature here: names of columns, and what a request can contain."""
        question = question or self.questions[0]
        methods = [entry.method for entry in self.entries if entry.question == question]
        own, roles = self.library.parameters, _ROLES[question]
        options = {name for method in methods for name in method.options.values()}
        positional = []
        for each in own.values():
            optional = each.name in options and each.kind is Parameter.POSITIONAL_OR_KEYWORD
            if each.name in roles or optional:
                # columns may be left out: the schema has all of them
                columns = roles.get(each.name) == "columns"
                name, default = ("columns", None) if columns else (each.name, each.default)
                kind = Parameter.POSITIONAL_OR_KEYWORD
                positional.append(Parameter(name, kind, default=default))
        if any(each.default is Parameter.empty for each in positional[1:]):
            positional[0] = positional[0].replace(default=Parameter.empty)
        named: dict[str, Any] = {part: None for part in _GROUPED if part in PARTS[question]}
        named |= {"group": Parameter.empty} if "group" in named else {}
        for name in [n for each in methods for n in (*each.preset, *each.options.values())]:
            if name not in named and name not in {each.name for each in positional}:
                named[name] = own[name].default if name in own else None
        named |= {name: own[name].default for name in _ALWAYS if name in own}
        named["where"] = None
        if len(self.questions) > 1:  # the question says which test, not a parameter
            named = {name: value for name, value in named.items() if name != "scheme"}
            named["pvalue"] = None
        only = [Parameter(name, Parameter.KEYWORD_ONLY, default=v) for name, v in named.items()]
        return inspect.Signature([*positional, *only])

    def request(self, dataset: str, data: tuple[Any, ...], options: Mapping[str, Any]) -> Request:
        """Return the request of a call, checked without its schema."""
        several = len(self.questions) > 1
        question = self.questions[0 if "group" in options or not several else 1]
        signature = self.signature(question)
        for name in options:
            if name in self.library.parameters and name not in signature.parameters:
                why = _REFUSED.get(name, "a request has no such word")
                raise ParameterError(f"{name} cannot be chosen here: {why}. Leave it out.")
        try:
            given = dict(signature.bind(*data, **options).arguments)
        except TypeError as error:  # in Python's own words, which name the function
            raise TypeError(f"{self.name}() {error}") from None
        entry = self._choose(question, given)
        names = {parameter: option for option, parameter in entry.method.options.items()}
        names = {**names, **_ROLES[question]}
        document: dict[str, Any] = {"dataset": dataset, "question": question, "method": entry.name}
        for name, value in given.items():
            key = names.get(name, name)
            document[key] = _request_value(key, value)
        if entry.method.part == "shares":
            document.setdefault("shares", "equal")
        return Request.from_dict({k: v for k, v in document.items() if v is not None})

    def _choose(self, question: str, given: dict[str, Any]) -> CatalogueEntry:
        """Return the method that the arguments mean, and remove those that only choose it."""
        found = [entry for entry in self.entries if entry.question == question]
        first = found[0].method
        for name in [n for n in first.preset if n not in first.options.values()]:
            wanted = given.pop(name, None)
            known = [entry.method.preset[name] for entry in found]
            if wanted is None and name in self.library.parameters and len(set(known)) > 1:
                wanted = self.library.parameters[name].default
            if wanted is not None and wanted not in known:
                words = ", ".join(map(repr, dict.fromkeys(known)))
                raise ParameterError(f"{name} must be one of {words} here.")
            if wanted is not None:
                found = [entry for entry in found if entry.method.preset[name] == wanted]
        return found[0]


@cache
def _functions() -> Mapping[str, RemoteFunction]:
    found: dict[str, list[CatalogueEntry]] = {}
    for question, methods in METHODS.items():
        for name, method in methods.items():
            function = method.function.__name__
            found.setdefault(function, []).append(CatalogueEntry(question, name, method))
    return {name: RemoteFunction(name, tuple(entries)) for name, entries in found.items()}


def function_names() -> Iterable[str]:
    """Return the names of all functions that can be asked of a curator."""
    return _functions().keys()


def function_named(name: str) -> RemoteFunction:
    """Return the function of this name; AttributeError if there is none."""
    try:
        return _functions()[name]
    except KeyError:
        known = ", ".join(sorted(_functions()))
        raise AttributeError(f"a curator has no {name!r}; it has {known}.") from None


# --- arguments as the plain values of a request ---------------------------------------------


def _request_value(key: str, value: Any) -> Any:
    """Return an argument as the value of a request's key."""
    if value is None:
        return None
    if key in ("columns", "x", "y", "given"):
        return [value] if isinstance(value, str) else [*map(str, value)]
    if key in ("column", "before", "after"):
        if isinstance(value, list | tuple) and len(value) == 1:
            return value[0]
        if not isinstance(value, str):
            raise ParameterError(f"{key} must be the name of one column.")
        return value
    if key == "groups":
        return [spelling(_plain(key, each)) for each in value]
    if key == "shares" and not isinstance(value, str):
        return _shares(value)
    if key == "dist" and not isinstance(value, str):
        raise ParameterError('cdf must be text here, such as "norm(40, 10)".')
    return _plain(key, value)


def _plain(name: str, value: Any) -> Any:
    """Return text, numbers and lists of them; other values cannot be sent."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(name, item) for key, item in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(name, item) for item in value]
    if value is not None and type(value) not in (str, int, float, bool):
        raise ParameterError(f"{name} must be text, numbers, or true and false: it is sent.")
    return value


def _shares(value: Any) -> str:
    """Return expected shares as a request writes them."""
    if not isinstance(value, Mapping):
        raise ParameterError("f_exp must be a mapping of categories to shares here, or left out.")
    named = {spelling(_plain("f_exp", key)): float(share) for key, share in value.items()}
    if any("," in key for key in named):
        raise ParameterError("f_exp: a category with a comma cannot be named in a request.")
    return ",".join(f"{key}={share!r}" for key, share in named.items())
