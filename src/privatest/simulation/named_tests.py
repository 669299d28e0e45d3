"""A test, by its name in the catalogue or as a function, ready to be run on simulated data."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.validation import one_of
from privatest.requests.catalogue import METHODS, Method, find
from privatest.simulation.sampler import Sampler

__all__ = ["MEMBERSHIPS", "check", "fits", "name_of", "ready", "takes"]

MEMBERSHIPS = ("public", "private")


def name_of(test: str | Callable[..., Any], question: str) -> str:
    """Return the catalogue's name of a test, or that of a function that it does not have."""
    if isinstance(test, str):
        return find(question, test)[0]
    function, given = _plain(test)
    function = inspect.unwrap(function)  # what a budget wraps is the same test
    for name, entry in METHODS[question].items():
        if inspect.unwrap(entry.load()) is function and _same(function, given, entry.preset):
            return name
    module = getattr(function, "__module__", "")
    name = getattr(function, "__qualname__", "")
    words = ", ".join(f"{key}={value!r}" for key, value in sorted(given.items()))
    return f"{module}.{name}" + (f"({words})" if words else "")


def fits(entry: Method, sampler: Sampler, membership: str) -> str:
    """Return why a test of the catalogue cannot be used on such data, or nothing."""
    if membership == "private" and entry.public_groups:
        return f"needs public membership: {entry.public_groups}"
    if entry.one_column and sampler.columns > 1:
        return "takes one numeric column"
    if entry.needed:
        return f"needs {', '.join(entry.needed)}"
    return ""


def check(
    test: str | Callable[..., Any], sampler: Sampler, membership: str, options: Mapping[str, Any]
) -> Method | None:
    """Refuse a test that such data does not fit; return the entry of one that is named."""
    one_of("membership", membership, MEMBERSHIPS)
    if callable(test):
        return None
    if not isinstance(test, str):
        raise ParameterError("test must be the name of a method, or a function of privatest.")
    name, entry = find(sampler.question, test)
    why = fits(entry, sampler, membership)
    if why and not (entry.needed and {*entry.needed} <= {*options}):
        raise ParameterError(f"method {name} {why}.")
    return entry


def ready(
    test: str | Callable[..., Any], sampler: Sampler, membership: str, options: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return a function of the samples, the budget and randomness."""
    entry = check(test, sampler, membership, options)
    given = dict(sampler.arguments(membership))
    if entry is not None:
        function = entry.load()
        named = {entry.options.get(key, key): value for key, value in options.items()}
        given |= dict(entry.preset) | named
    else:
        assert callable(test)
        function, given = test, given | dict(options)
    return functools.partial(function, **_accepted(function, given))


def _plain(test: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    if isinstance(test, functools.partial):
        return test.func, dict(test.keywords)
    return test, {}


def _same(
    function: Callable[..., Any], given: Mapping[str, Any], preset: Mapping[str, Any]
) -> bool:
    """Return whether what is given, and defaults, are what a catalogue's entry passes."""
    known = inspect.signature(function).parameters
    return {*given} <= {*preset} and all(
        given.get(name, known[name].default) == value for name, value in preset.items()
    )


def _accepted(function: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """Drop what is told about the data to a function that does not ask for it."""
    known = inspect.signature(function).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in known.values()):
        return given
    offered = ("bounds", "bounds_x", "bounds_y", "adjacency")
    return {name: value for name, value in given.items() if name in known or name not in offered}


def takes(function: Callable[..., Any], name: str) -> bool:
    """Return whether a function has a parameter of this name."""
    return name in inspect.signature(function).parameters
