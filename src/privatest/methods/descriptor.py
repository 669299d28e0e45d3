"""The descriptor of a method: what others must know about it, declared beside its function.

The last statement of a method file is ``DESCRIPTORS``, a tuple of :class:`Method`. A descriptor
holds what a person has to declare. What the signature of the function says is derived from it:
options are opt-in marks on parameters, so that no analyst can set what nobody has offered.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    from privatest.core.privacy import Budget
    from privatest.data.schema import Schema

T = TypeVar("T")
Question = Literal["two-sample", "independence", "paired", "fit", "mean", "release"]
QUESTIONS: tuple[str, ...] = get_args(Question)

# Phrases that descriptors share.
SMOOTHED = "by a private permutation test with a smoothed p-value"
EXACT = "its p-value is exact, noise included"
FROM_MOMENTS = "from noisy moments, with intervals that count the noise"
NEEDS_SIZES = "its noise and its statistic need the group sizes"

# Null hypotheses of tests of association, by alternative.
INDEPENDENCE: Mapping[str, str] = {
    "two-sided": "the two columns are independent",
    "greater": "the two columns are independent or fall together",
    "less": "the two columns are independent or rise together",
}


@dataclass(frozen=True, slots=True)
class Option:
    """Mark a parameter that front ends may offer.

    Attributes
    ----------
    name : str
        Its name in requests and on the command line; by default that of the parameter.
    """

    name: str = ""


Offered = Annotated[T, Option()]
"""A parameter that front ends offer under its own name."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Method:
    """A method that answers a question.

    Attributes
    ----------
    name : str
        In requests and on the command line.
    question : str
        The question that it answers; "" for a function that front ends do not offer.
    function : callable
        The public function.
    about : str
        What it tests or estimates, in a few words for a list of methods.
    aliases : tuple of str
        Other names, such as SciPy's.
    part : str
        The part of a request that selects this method where none is named, or "".
    preset : mapping
        Arguments of this name, where several names share a function; an option may replace one.
    without : tuple of str
        Marked parameters that this name does not offer.
    public_groups : str
        Why group sizes must be public, or "".
    columns : str
        Which columns it takes: "one numeric", "one binary" or "one categorical" (on each side if
        there are two); "" for any.
    unbounded : bool
        Whether its columns need no description: ranks and signs do not depend on bounds.
    gaussian : bool
        Whether with delta > 0 it is one Gaussian mechanism, for tighter composition.
    caution : str
        Why its running time may depend on values, so that a curator offers it on request only.
    plan : callable, optional
        From schema, rows, budget, method and options to the measurements that a release makes.
    work : callable, optional
        From the schema and the number of rows to about how many numbers it looks at.
    also : tuple of str
        Method ids of other functions that are the same method.
    sentence : str
        What was done, for a methods section, without a full stop.
    papers : tuple of str
        Keys of the bibliography.
    """

    name: str
    question: Question | Literal[""]
    function: Callable[..., Any]
    sentence: str
    papers: tuple[str, ...]
    also: tuple[str, ...] = ()
    about: str = ""
    aliases: tuple[str, ...] = ()
    part: str = ""
    preset: Mapping[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    public_groups: str = ""
    columns: Literal["", "one numeric", "one binary", "one categorical"] = ""
    unbounded: bool = False
    gaussian: bool = False
    caution: str = ""
    plan: Callable[..., Any] | None = None
    work: Callable[..., int] | None = None

    @property
    def method_id(self) -> str:
        """Return the method id of its results."""
        chosen = (self.preset.get(name) for name in ("distance", "method", "statistic"))
        return "/".join([self.function.__name__, *(str(each) for each in chosen if each)])

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.function).parameters

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(inspect.unwrap(self.function), include_extras=True)

    @cached_property
    def options(self) -> Mapping[str, str]:
        """Return the parameters that front ends offer, by public name.

        One that sets a parameter of each side of the rows (``kernel_x``, ``kernel_y``) stands for
        itself.
        """
        marked: dict[str, str] = {}
        for parameter in self._parameters:
            for mark in _metadata(self._hints.get(parameter)):
                if isinstance(mark, Option):
                    name = mark.name or parameter
                    marked[name] = name if name in marked else parameter
        return {name: each for name, each in marked.items() if each not in self.without}

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """Return the options without a default."""
        return tuple(
            name
            for name, parameter in self.options.items()
            if parameter in self._parameters
            and parameter not in self.preset
            and self._parameters[parameter].default is inspect.Parameter.empty
        )

    @cached_property
    def releases(self) -> tuple[str, ...]:
        """Return what the option ``release`` may be, the usual one first."""
        return _literals(self._hints.get("release")) or ("pvalue", "decision")

    @property
    def one_column(self) -> bool:
        """Return whether it takes one numeric column only, or one on each side."""
        return self.columns == "one numeric"

    @property
    def outcomes(self) -> bool:
        """Return whether it takes one column of successes and failures."""
        return self.columns == "one binary"

    @property
    def categorical(self) -> bool:
        """Return whether it takes one categorical column, on each side if there are two."""
        return self.columns == "one categorical"

    @property
    def level(self) -> bool:
        """Return whether it has a level ``alpha``."""
        return "alpha" in self._parameters

    @property
    def needs_delta(self) -> bool:
        """Return whether delta must be above 0: the parameter has no default."""
        return self._parameters["delta"].default is inspect.Parameter.empty

    @property
    def steps(self) -> bool:
        """Return whether it reports progress."""
        return "progress" in self._parameters

    @property
    def several(self) -> bool:
        """Return whether it compares more than two groups too."""
        kinds = {parameter.kind for parameter in self._parameters.values()}
        return inspect.Parameter.VAR_POSITIONAL in kinds

    @property
    def drawn(self) -> bool:
        """Return whether its result can be plotted; a decision alone cannot."""
        from privatest.core.results import Decision  # noqa: PLC0415

        return "release" in self._parameters or self._hints["return"] is not Decision

    @property
    def sized(self) -> bool:
        """Return whether by default it releases as many rows as the data have."""
        return self.plan is not None

    def planned_rounds(
        self, schema: Schema, rows: int, budget: Budget, options: Mapping[str, Any]
    ) -> Any:
        """Return the measurements that a release would make, if they can be planned."""
        if self.plan is None:
            return []
        return self.plan(schema, rows, budget, self.preset["method"], options)

    def count_work(self, schema: Schema, rows: int) -> int:
        """Return about how many numbers it looks at; 0 if unknown."""
        return 0 if self.work is None else int(self.work(schema, rows))


def _metadata(hint: Any) -> tuple[Any, ...]:
    return get_args(hint)[1:] if get_origin(hint) is Annotated else ()


def _literals(hint: Any) -> tuple[str, ...]:
    """Return the strings of a Literal, also inside a union or a mark."""
    if get_origin(hint) is Literal:
        return get_args(hint)
    return tuple(text for part in get_args(hint) for text in _literals(part))
