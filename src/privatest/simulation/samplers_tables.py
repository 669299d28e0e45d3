"""Samplers of shares, categories, and of columns that depend on each other."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.validation import integer_at_least, number, one_of
from privatest.data.schema import CategoricalColumn, Schema
from privatest.simulation.sampler import Sampler

__all__ = ["dependence", "proportions", "tables"]

_FORMS = ("linear", "curve")


def dependence(
    effect: float, *, form: str = "linear", bounds: tuple[float, float] = (-4, 4)
) -> Sampler:
    """Two columns that depend on each other.

    Parameters
    ----------
    effect : float
        Their correlation; with form "curve", that of y with the square of x.
    form : {"linear", "curve"}
        A line, or a parabola that no correlation sees.
    bounds : (float, float)
        Public bounds of both columns, in standard deviations.
    """
    effect = number("effect", effect, above=-1, below=1)
    low, high = number("bounds", bounds[0]), number("bounds", bounds[1])
    if low > -3 or high < 3:
        raise ParameterError("bounds must reach 3 standard deviations to each side, at least.")
    one_of("form", form, _FORMS)
    return Sampler(
        "dependence" if form == "linear" else "curve",
        effect,
        "independence",
        ((low, high), (low, high)),
        partial(_depending, rho=effect, form=form, low=low, high=high),
        settings={"form": form, "bounds": [low, high]},
        strength=abs(effect),
        noise_scale=(high - low) / 8,
        remake=partial(dependence, form=form, bounds=bounds),
    )


def proportions(effect: float, *, share: float = 0.5) -> Sampler:
    """Successes, as 0 and 1: a share in the first group, and ``effect`` more in the second."""
    share = number("share", share, above=0, below=1)
    effect = number("effect", effect)
    second = share + effect
    if not 0 <= second <= 1:
        raise ParameterError(
            f"effect must leave a share from 0 to 1 in the second group; it would be {second:g}."
        )
    middle = share + effect / 2
    deviation = math.sqrt(max(middle * (1 - middle), 1e-6))
    return Sampler(
        "proportions",
        effect,
        "two-sample",
        (0, 1),
        partial(_successes, shares=(share, second)),
        settings={"share": share},
        strength=0.5 * abs(effect) / deviation,
        noise_scale=0.5 / deviation,
        remake=partial(proportions, share=share),
    )


def tables(effect: float, *, categories: int = 4, question: str = "two-sample") -> Sampler:
    """Categories whose shares differ, or two categorical columns that depend on each other.

    Parameters
    ----------
    effect : float
        Half the sum of absolute differences of shares: between the groups, or between the
        table of two columns and that of independent ones. At most .5.
    categories : int
        How many there are, on each side; equally frequent without the effect.
    question : {"two-sample", "independence"}
        Of two groups, or of two columns.
    """
    effect = number("effect", effect, at_least=0)
    categories = integer_at_least("categories", categories, 2)
    one_of("question", question, ("two-sample", "independence"))
    half = (categories // 2) / categories
    most = half if question == "two-sample" else 2 * half**2
    if effect > most:
        raise ParameterError(
            f"effect must be at most {most:g}: a share would be negative with more."
        )
    labels = tuple(f"c{place}" for place in range(categories))
    schema = Schema({"category": CategoricalColumn(labels)})
    two = question == "two-sample"
    return Sampler(
        "tables",
        effect,
        question,
        schema if two else (schema, schema),
        partial(_categories if two else _related, effect=effect, labels=labels),
        settings={"categories": categories},
        strength=effect,
        noise_scale=1.0 if categories == 4 else math.nan,
        remake=partial(tables, categories=categories, question=question),
    )


def _depending(
    sizes: tuple[int, ...],
    rng: np.random.Generator,
    rho: float,
    form: str,
    low: float,
    high: float,
) -> tuple[Any, ...]:
    x, rest = rng.normal(size=(2, sizes[0]))
    signal = x if form == "linear" else (x**2 - 1) / math.sqrt(2)
    y = rho * signal + math.sqrt(1 - rho**2) * rest
    return np.clip(x, low, high), np.clip(y, low, high)


def _successes(
    sizes: tuple[int, ...], rng: np.random.Generator, shares: tuple[float, float]
) -> tuple[Any, ...]:
    return tuple(
        (rng.random(size) < share).astype(np.float64)
        for size, share in zip(sizes, shares, strict=True)
    )


def _pattern(count: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return what is added to equal shares: half up, half down, 1 in all on each side."""
    half = count // 2
    pattern = np.zeros(count)
    pattern[:half], pattern[count - half :] = 1 / half, -1 / half
    return pattern


def _categories(
    sizes: tuple[int, ...], rng: np.random.Generator, effect: float, labels: tuple[str, ...]
) -> tuple[Any, ...]:
    count, names = len(labels), np.array(labels)
    equal = np.full(count, 1 / count)
    changed = equal + effect * _pattern(count)
    return tuple(
        {"category": names[rng.choice(count, size=size, p=shares)]}
        for size, shares in zip(sizes, (equal, changed), strict=True)
    )


def _related(
    sizes: tuple[int, ...], rng: np.random.Generator, effect: float, labels: tuple[str, ...]
) -> tuple[Any, ...]:
    count, names = len(labels), np.array(labels)
    lean = effect * np.outer(_pattern(count), _pattern(count)) / 2
    table = np.maximum(np.full((count, count), 1 / count**2) + lean, 0)
    cells = rng.choice(count**2, size=sizes[0], p=(table / table.sum()).ravel())
    return {"category": names[cells // count]}, {"category": names[cells % count]}
