"""Methods that can be requested by name, collected from the descriptors of method files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from importlib import import_module

from privatest.core.errors import ParameterError
from privatest.core.validation import one_of, reject
from privatest.methods.descriptor import QUESTIONS, Method, Question

__all__ = [
    "METHODS",
    "PARTS",
    "QUESTIONS",
    "Method",
    "Question",
    "default_method",
    "described",
    "find",
    "methods_where",
]

# Which columns play which part, and how groups are formed, by question.
PARTS: Mapping[str, tuple[str, ...]] = {
    "two-sample": ("columns", "group", "groups", "membership", "adjacency", "each_column"),
    "independence": ("x", "y", "given"),
    "paired": ("before", "after"),
    "fit": ("column", "dist", "family", "shares"),
    "mean": ("columns",),
    "release": ("columns",),
}

# The modules with methods of each question, imported when it is asked. Those of "" have functions
# that front ends do not offer.
_MODULES: Mapping[str, str] = {
    "two-sample": "mmd ipm ks ranks quantiles embedding means proportions anova subsample",
    "independence": "hsic correlation regression tables conditional subsample",
    "paired": "signs means",
    "fit": "ks fit_families tables",
    "mean": "means proportions quantiles",
    "release": "synthetic.releases",
    "": "custom conditional shares synthetic.testing",
}


def modules(question: str) -> list[str]:
    """Return the full names of the modules with methods of a question."""
    names = _MODULES[question].split()
    return [f"privatest.{n}" if "." in n else f"privatest.methods.{n}" for n in names]


@cache
def _methods(question: str) -> dict[str, Method]:
    descriptors = (each for name in modules(question) for each in import_module(name).DESCRIPTORS)
    return {each.name: each for each in descriptors if each.question == question}


class _Catalogue(Mapping[str, Mapping[str, Method]]):
    """Methods by question and name."""

    def __getitem__(self, question: str) -> Mapping[str, Method]:
        if question not in QUESTIONS:
            raise KeyError(question)
        return _methods(question)

    def __iter__(self) -> Iterator[str]:
        return iter(QUESTIONS)

    def __len__(self) -> int:
        return len(QUESTIONS)


METHODS = _Catalogue()


def described(method_id: str) -> Method | None:
    """Return the descriptor of a method id, or of its function; None for an unknown one."""
    known: dict[str, Method] = {}
    for question in _MODULES:
        for method in _methods(question).values():
            for each in (method.method_id, *method.also, method.function.__name__):
                known.setdefault(each, method)
    return known.get(method_id) or known.get(method_id.partition("/")[0])


def default_method(question: str) -> str:
    """Return the method that a command uses by default: the first one."""
    return next(iter(METHODS[question]))


def methods_where(question: str, holds: Callable[[Method], object]) -> str:
    """Return the names of the methods for which something holds, in words."""
    *names, last = [name for name, entry in METHODS[question].items() if holds(entry)]
    return " or ".join([", ".join(names), last] if names else [last])


def find(question: object, method: object, parts: Collection[str] = ()) -> tuple[str, Method]:
    """Return the method's name and its entry, or raise an error that lists the methods.

    The method may be None where a part of the request selects one, or where only one method is
    selected by no part.
    """
    if question is None:
        raise ParameterError("question", f"must be given, one of {', '.join(QUESTIONS)}")
    known = METHODS[one_of("question", question, QUESTIONS)]
    if method is None:
        selected = [name for name, entry in known.items() if entry.part in {*parts} - {""}]
        selected = selected or [name for name, entry in known.items() if not entry.part]
        method = selected[0] if len(selected) == 1 else None
    if method is None:
        raise ParameterError("method", f"must be given, one of {', '.join(known)}")
    for name, entry in known.items():
        # a document may hold a list here, which has no hash
        if method == name or method in entry.aliases:
            return name, entry
    others = [name for name, entries in METHODS.items() if method in list(entries)]
    where = f" ({method} belongs to question {', '.join(others)})" if others else ""
    reject("method", f"one of {', '.join(known)}{where}", method, remedy={"method": ""})
