"""What a study is assumed to look like: how data would be drawn, and what is public about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.validation import integer_at_least, one_of
from privatest.data.bounds import schema_of
from privatest.data.schema import NumericColumn

__all__ = ["QUESTIONS", "Sampler", "Sizes", "sizes_of"]

QUESTIONS = ("two-sample", "independence", "paired", "fit")
Sizes = int | tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sampler:
    """Data that people might have, if an assumed effect were true.

    Attributes
    ----------
    kind : str
        What differs, or depends.
    effect : float
        How much, in the units of the kind.
    question : {"two-sample", "independence", "paired", "fit"}
        Which question the data is for.
    bounds : object
        The public bounds or schema; for independence one for each side.
    drawing : callable
        From sizes and a generator to the test's positional arguments.
    settings : mapping
        All that decides what is drawn, as plain values.
    columns : int
        Number of columns of a sample, or of a side.
    strength : float
        The effect on a scale where 0 is none.
    noise_scale : float
        How wide the bounds are, in eighths of a standard deviation over: 1 is 8 of them.
    remake : callable or None
        From another effect to its sampler.
    """

    kind: str
    effect: float
    question: str
    bounds: Any
    drawing: Callable[[tuple[int, ...], np.random.Generator], tuple[Any, ...]]
    settings: Mapping[str, Any] = field(default_factory=dict)
    columns: int = 1
    strength: float = 0.0
    noise_scale: float = 1.0
    remake: Callable[[float], Sampler] | None = None

    def __post_init__(self) -> None:
        """Refuse a question that no test of the simulation answers."""
        one_of("question", self.question, QUESTIONS)

    def draw(self, n: Sizes, rng: np.random.Generator) -> tuple[Any, ...]:
        """Return the data of one imagined study with ``n`` people, in each group if there are two.

        Raises ParameterError if it leaves the bounds.
        """
        drawn = self.drawing(sizes_of(n, self.question), rng)
        if self.question != "fit":
            self._check(drawn)
        return drawn

    def with_effect(self, effect: float) -> Sampler:
        """Return the same study with another effect."""
        if self.remake is None:
            raise ParameterError(
                f"effect must be that of a sampler that can change it; {self.kind} cannot."
            )
        return self.remake(effect)

    def arguments(self, membership: str = "public") -> dict[str, Any]:
        """Return what a test is told about the data."""
        if self.question == "independence":
            return {"bounds_x": self.bounds[0], "bounds_y": self.bounds[1]}
        if self.question == "two-sample":
            adjacency = "one" if membership == "public" else "row"
            return {"bounds": self.bounds, "adjacency": adjacency}
        return {"bounds": self.bounds}

    def described(self) -> dict[str, Any]:
        """Return what is drawn, as plain values: two that are equal draw the same."""
        return {
            "kind": self.kind,
            "effect": self.effect,
            "question": self.question,
            **self.settings,
        }

    def __str__(self) -> str:
        """Name the kind and the effect."""
        return f"{self.kind.replace('_', ' ')} of {self.effect:g}"

    def _check(self, drawn: tuple[Any, ...]) -> None:
        sides = self.bounds if self.question == "independence" else [self.bounds] * len(drawn)
        for values, bounds in zip(drawn, sides, strict=True):
            if bounds is None or not isinstance(values, np.ndarray):
                continue  # categories are checked by the test itself
            schema = schema_of(bounds)
            rows = values.reshape(len(values), -1)
            assert schema is not None
            columns = list(schema.columns.values())
            columns = columns * rows.shape[1] if len(columns) == 1 else columns
            for column, own in zip(columns, rows.T, strict=True):
                inside = not isinstance(column, NumericColumn) or (
                    own.min() >= column.lower and own.max() <= column.upper
                )
                if not inside:
                    raise ParameterError(
                        f"sampler must stay within its bounds: {self.kind} drew values outside. "
                        "Widen bounds, or clip what is drawn as the data would be."
                    )


def sizes_of(n: object, question: str) -> tuple[int, ...]:
    """Return the sizes of the groups, or of the one sample."""
    if question != "two-sample":
        return (integer_at_least("n", n, 1),)
    if isinstance(n, (tuple, list)):
        if len(n) != 2:
            raise ParameterError("n must be a number of people in each group, or two of them.")
        return integer_at_least("n", n[0], 1), integer_at_least("n", n[1], 1)
    size = integer_at_least("n", n, 1)
    return size, size
