"""What somebody asks of data, as public words, and how it is answered.

The command line and the curator speak this one language: a request is checked against the
public schema, and what comes back is everything that can be done before data is touched.

Modules are loaded when they are needed: ``privatest --help`` only looks at the catalogue.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from privatest.questions.catalogue import METHODS, Method, Question

if TYPE_CHECKING:
    from privatest.questions.preparing import prepare
    from privatest.questions.rehearsal import rehearse
    from privatest.questions.request import Prepared, Request
    from privatest.questions.results import Result, result_from_dict

__all__ = [
    "METHODS",
    "Method",
    "Prepared",
    "Question",
    "Request",
    "Result",
    "prepare",
    "rehearse",
    "result_from_dict",
]

_HOMES = {
    "prepare": "preparing",
    "rehearse": "rehearsal",
    "Prepared": "request",
    "Request": "request",
    "Result": "results",
    "result_from_dict": "results",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
