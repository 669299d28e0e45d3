"""From a call of a library's function to a request: one mapping, derived from the catalogue.

Whatever the catalogue has can be called by the name of its function, with that function's own
parameters; data is named by columns.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import Parameter
from typing import Any

from privatest.client.values import translated
from privatest.core.errors import ParameterError
from privatest.requests.catalogue import METHODS, Method
from privatest.requests.request import PARTS, Request

__all__ = ["Function", "function_named", "function_names"]

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
_CURATORS = {
    "rng": "the curator draws its own randomness",
    "noise": "the curator's noise is secret",
    "progress": "the curator shows no progress",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A method of the catalogue, with where it stands."""

    question: str
    name: str
    method: Method


@dataclass(frozen=True, slots=True)
class Function:
    """A public function, as requests to a curator.

    Attributes
    ----------
    name : str
        Its name in the library.
    entries : tuple of Entry
        The methods that it answers for; its parameters choose one.
    """

    name: str
    entries: tuple[Entry, ...]

    @property
    def library(self) -> inspect.Signature:
        """Its signature in the library."""
        return inspect.signature(self.entries[0].method.load())

    @property
    def questions(self) -> tuple[str, ...]:
        """What it answers; the first is the usual one."""
        return tuple(dict.fromkeys(entry.question for entry in self.entries))

    @property
    def doc(self) -> str:
        """What it does, and how it is asked here."""
        own = inspect.getdoc(self.entries[0].method.load()) or ""
        summary, _, rest = own.partition("\n")
        here = "Asked of a curator: columns are named, and their bounds are those of the schema."
        return f"{summary}\n\n{here}\n{rest}" if rest else f"{summary}\n\n{here}"

    def signature(self, question: str | None = None) -> inspect.Signature:
        """Return its signature here: names of columns, and what a request can say."""
        question = question or self.questions[0]
        entries = [entry for entry in self.entries if entry.question == question]
        own, roles = self.library.parameters, _ROLES[question]
        methods = [each.method for each in entries]
        options = {name for method in methods for name in method.options.values()}
        data = [own[name] for name in own if name in roles or _stands_before(own[name], options)]
        positional = [_positional(each, roles.get(each.name)) for each in data]
        if any(each.default is Parameter.empty for each in positional[1:]):
            positional[0] = positional[0].replace(default=Parameter.empty)
        named: dict[str, Any] = {"group": Parameter.empty} if "group" in PARTS[question] else {}
        named |= dict.fromkeys([part for part in _GROUPED[1:] if part in PARTS[question]])
        chosen = [
            n for each in entries for n in (*each.method.preset, *each.method.options.values())
        ]
        for name in dict.fromkeys(chosen):
            if name not in {each.name for each in positional}:
                named[name] = own[name].default if name in own else None
        named |= {name: own[name].default for name in _ALWAYS if name in own}
        named["where"] = None
        if len(self.questions) > 1:  # the question says which test, not a parameter
            named = {name: value for name, value in named.items() if name != "scheme"}
            named["pvalue"] = None
        only = [Parameter(name, Parameter.KEYWORD_ONLY, default=v) for name, v in named.items()]
        return inspect.Signature([*positional, *only])

    def request(self, dataset: str, data: tuple[Any, ...], options: Mapping[str, Any]) -> Request:
        """Return the request that a call is, checked as far as it can be without its schema."""
        several = len(self.questions) > 1
        question = self.questions[0 if "group" in options or not several else 1]
        signature = self.signature(question)
        self._refuse(signature, options)
        try:
            given = dict(signature.bind(*data, **options).arguments)
        except TypeError as error:  # in Python's own words, which name the function
            raise TypeError(f"{self.name}() {error}") from None
        entry, given = self._choose(question, given)
        names = {parameter: option for option, parameter in entry.method.options.items()}
        names = {**names, **_ROLES[question]}
        document: dict[str, Any] = {"dataset": dataset, "question": question, "method": entry.name}
        for name, value in given.items():
            asked = names.get(name, name)
            document[asked] = translated(asked, value)
        if entry.method.part == "shares":
            document.setdefault("shares", "equal")
        return Request.from_dict({k: v for k, v in document.items() if v is not None})

    def _refuse(self, signature: inspect.Signature, options: Mapping[str, Any]) -> None:
        """Say why parameters that the library has are not here."""
        for name in options:
            if name in self.library.parameters and name not in signature.parameters:
                why = _CURATORS.get(name, "a request has no such word")
                raise ParameterError(f"{name} cannot be chosen here: {why}. Leave it out.")

    def _choose(self, question: str, given: dict[str, Any]) -> tuple[Entry, dict[str, Any]]:
        """Return the method that the call means, and the arguments that are left."""
        found = [entry for entry in self.entries if entry.question == question]
        for name in [
            n for n in found[0].method.preset if n not in found[0].method.options.values()
        ]:
            wanted = given.pop(name, None)
            known = [entry.method.preset[name] for entry in found]
            if wanted is None and name in self.library.parameters and len(set(known)) > 1:
                wanted = self.library.parameters[name].default
            if wanted is not None and wanted not in known:
                words = ", ".join(map(repr, dict.fromkeys(known)))
                raise ParameterError(f"{name} must be one of {words} here.")
            if wanted is not None:
                found = [entry for entry in found if entry.method.preset[name] == wanted]
        return found[0], given


def _stands_before(parameter: Parameter, options: set[str]) -> bool:
    """Whether it is an option that may be given without its name, as the library's."""
    return parameter.name in options and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD


def _positional(parameter: Parameter, role: str | None) -> Parameter:
    """Return what stands for data: columns may be left out where a schema has all of them."""
    name = "columns" if role == "columns" else parameter.name
    default = None if role == "columns" else parameter.default
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default)


@cache
def _functions() -> Mapping[str, Function]:
    found: dict[str, list[Entry]] = {}
    for question, methods in METHODS.items():
        for name, method in methods.items():
            function = method.function.rpartition(".")[2]
            found.setdefault(function, []).append(Entry(question, name, method))
    return {name: Function(name, tuple(entries)) for name, entries in found.items()}


def function_names() -> Iterable[str]:
    """Return the names of all functions that can be asked of a curator."""
    return _functions().keys()


def function_named(name: str) -> Function:
    """Return the function of this name; AttributeError if there is none."""
    try:
        return _functions()[name]
    except KeyError:
        known = ", ".join(sorted(_functions()))
        raise AttributeError(f"a curator has no {name!r}; it has {known}.") from None
