"""What is asked: a frozen, public description that can be written as JSON and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.core.validation import number
from privatest.questions.catalogue import METHODS, Method, find

__all__ = ["PARTS", "Request"]

# Which columns play which part, for each question.
PARTS: Mapping[str, tuple[str, ...]] = {
    "two-sample": ("columns", "group", "groups", "membership", "adjacency"),
    "independence": ("x", "y"),
    "paired": ("before", "after"),
    "fit": ("column", "dist", "family"),
    "mean": ("columns",),
    "release": ("columns",),
}
_ALPHA = 0.05
_LISTS = ("columns", "groups", "x", "y")


@dataclass(frozen=True, slots=True)
class Request:
    """A question about data.

    Attributes
    ----------
    question : {"two-sample", "independence", "paired", "fit", "mean", "release"}
        What is to be found out.
    method : str
        How it is answered.
    budget : Budget
        What it may cost.
    alpha : float or None
        Level of the decision, or of the intervals; None for a method without.
    parts : mapping
        Which columns play which part.
    options : mapping
        What the method takes besides.
    """

    question: str
    method: str
    budget: Budget
    alpha: float | None = None
    parts: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what the method does not have; drop what was not given."""
        _, entry = find(self.question, self.method)
        if entry.level:
            alpha = _ALPHA if self.alpha is None else self.alpha
            object.__setattr__(self, "alpha", number("alpha", alpha, above=0, below=1))
        elif self.alpha is not None:
            raise ParameterError(f"alpha does not go with the question {self.question}.")
        if entry.needs_delta and not self.budget.delta:
            raise ParameterError(f"delta must be above 0: {entry.needs_delta}.")
        parts = _given(self.parts)
        for name in parts:
            if name not in PARTS[self.question]:
                raise ParameterError(f"{name} does not go with the question {self.question}.")
        options = _given(self.options)
        for name in options:
            if name not in entry.options:
                raise ParameterError(f"{name} does not go with method {self.method}.")
        for name in entry.needed:
            if name not in options:
                raise ParameterError(f"method {self.method} needs {name}.").with_flags(
                    f"Pass --{name}."
                )
        if options.get("release", entry.releases[0]) not in entry.releases:
            raise ParameterError(
                f"release must be {' or '.join(entry.releases)} for method {self.method}."
            )
        object.__setattr__(self, "parts", MappingProxyType(parts))
        object.__setattr__(self, "options", MappingProxyType(options))

    @property
    def entry(self) -> Method:
        """The catalogue's entry."""
        return METHODS[self.question][self.method]

    @property
    def gaussian(self) -> bool:
        """Whether the answer is one analytic Gaussian mechanism at this budget.

        A statistic of the same method has Laplace noise, which costs more when composed.
        """
        return self.entry.gaussian and bool(self.budget.delta) and not self.statistic_only

    @property
    def statistic_only(self) -> bool:
        """Whether a method that can release moments releases only its statistic.

        Moments need delta; without it, and where nobody says, there is a statistic.
        """
        usual = "moments" if self.budget.delta else "statistic"
        may = "statistic" in self.entry.releases
        return may and self.options.get("release", usual) == "statistic"

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Request:
        """Read a flat document such as ``{"question": "two-sample", "method": "mmd", ...}``."""
        if not isinstance(document, Mapping):
            raise ParameterError("request must be a table of names and values.")
        rest = {str(name): value for name, value in document.items()}
        question, method = rest.pop("question", None), rest.pop("method", None)
        if "epsilon" not in rest:
            raise ParameterError("epsilon must be given: what may the answer cost?")
        budget = Budget(rest.pop("epsilon"), rest.pop("delta", 0))
        method, entry = find(question, method)
        parts = {name: rest.pop(name) for name in PARTS[str(question)] if name in rest}
        alpha = rest.pop("alpha", None)
        options = {name: rest.pop(name) for name in entry.options if name in rest}
        if rest:
            known = (*PARTS[str(question)], *entry.options)
            raise ParameterError(
                f"unknown key {next(iter(rest))!r}; a {question} request with method {method} "
                f"has: {', '.join(known)}."
            )
        return cls(str(question), method, budget, alpha, parts, options)

    def to_dict(self) -> dict[str, Any]:
        """Return the flat document; :meth:`from_dict` reads it back."""
        head: dict[str, Any] = {"question": self.question, "method": self.method}
        head |= {} if self.alpha is None else {"alpha": self.alpha}
        cost = {"epsilon": _plain(self.budget.epsilon), "delta": _plain(self.budget.delta)}
        rest = {name: _plain(value) for name, value in {**self.parts, **self.options}.items()}
        return head | cost | rest


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in values.items() if value is not None}
    for name in _LISTS:
        if name in kept:
            if isinstance(kept[name], str) or not isinstance(kept[name], (list, tuple)):
                raise ParameterError(f"{name} must be a list of names.")
            kept[name] = tuple(map(str, kept[name]))
    return kept


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
