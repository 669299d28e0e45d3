"""Samplers of numbers: shifted, wider, of another shape, mixed, with heavy tails, with atoms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import integer_at_least, number, one_of
from privatest.simulation.sampler import Sampler

__all__ = ["Sampler", "atoms", "custom", "heavy_tails", "mixture", "scale", "shape", "shift"]

Floats = NDArray[np.float64]
Pair = tuple[float, float]
Change = Callable[[Floats, np.random.Generator], Floats]
_MOST_OUTSIDE = 0.02  # of the changed values; those outside are clipped, as data is
_PEAK = 0.9  # of the two peaks of shape, in standard deviations


def _t3(rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    return rng.standard_t(3, size=size)


# How values are drawn without an effect, the usual bounds, the centre of a change of scale.
_BASES: Mapping[str, tuple[Callable[..., Floats], Pair, float]] = {
    "normal": (lambda rng, size: rng.normal(size=size), (-4, 4), 0),
    "heavy": (_t3, (-8, 8), 0),
    "skewed": (lambda rng, size: rng.exponential(size=size), (0, 8), 0),
    "logistic": (lambda rng, size: rng.logistic(0, 0.5513, size=size), (-4, 4), 0),
    "uniform": (lambda rng, size: rng.uniform(-1.732, 1.732, size=size), (-4, 4), 0),
}


def shift(
    effect: float,
    *,
    columns: int = 1,
    shifted: int | None = None,
    base: str = "normal",
    bounds: Pair | None = None,
    question: str = "two-sample",
) -> Sampler:
    """Values that are larger by ``effect`` standard deviations in the second group.

    Parameters
    ----------
    effect : float
        The shift, in standard deviations (Cohen's d).
    columns, shifted : int
        How many columns there are, and how many of them are shifted: all by default.
    base : {"normal", "heavy", "skewed", "logistic", "uniform"}
        The law of the first group.
    bounds : (float, float), optional
        Public bounds in standard deviations; ±4 by default, ±8 with heavy tails.
    question : {"two-sample", "paired", "fit"}
        Of two groups, of the change of the same people, or of one sample against the law.
    """
    effect = number("effect", effect)
    count = integer_at_least("columns", columns, 1) if shifted is None else shifted
    return _numeric(
        "shift" if base != "heavy" else "heavy_tails",
        effect,
        partial(_shifted, by=effect, count=count),
        partial(
            shift, columns=columns, shifted=shifted, base=base, bounds=bounds, question=question
        ),
        columns=columns,
        base=base,
        bounds=bounds,
        question=question,
        strength=abs(effect),
        more={"shifted": count} if count != columns else {},
    )


def heavy_tails(
    effect: float,
    *,
    columns: int = 1,
    bounds: Pair | None = None,
    question: str = "two-sample",
) -> Sampler:
    """Values with heavy tails (Student's t with 3 degrees of freedom), shifted by ``effect``."""
    return shift(effect, columns=columns, base="heavy", bounds=bounds, question=question)


def scale(
    effect: float,
    *,
    columns: int = 1,
    base: str = "normal",
    bounds: Pair | None = None,
    question: str = "two-sample",
) -> Sampler:
    """Values that spread ``effect`` times as wide in the second group."""
    effect = number("effect", effect, above=0)
    return _numeric(
        "scale",
        effect,
        partial(_scaled, factor=effect, centre=_BASES[_base(base)][2]),
        partial(scale, columns=columns, base=base, bounds=bounds, question=question),
        columns=columns,
        base=base,
        bounds=bounds,
        question=question,
        strength=abs(math.log(effect)),
    )


def shape(
    effect: float,
    *,
    columns: int = 1,
    bounds: Pair | None = None,
    question: str = "two-sample",
) -> Sampler:
    """Values of which a share ``effect`` has two peaks, with the same mean and variance."""
    effect = _share(effect)
    return _numeric(
        "shape",
        effect,
        partial(_two_peaks, share=effect),
        partial(shape, columns=columns, bounds=bounds, question=question),
        columns=columns,
        bounds=bounds,
        question=question,
        strength=effect,
    )


def mixture(
    effect: float,
    *,
    by: float = 1.5,
    columns: int = 1,
    bounds: Pair | None = None,
    question: str = "two-sample",
) -> Sampler:
    """Values of which a share ``effect`` is shifted ``by`` standard deviations: responders."""
    effect, by = _share(effect), number("by", by)
    return _numeric(
        "mixture",
        effect,
        partial(_responding, share=effect, by=by),
        partial(mixture, by=by, columns=columns, bounds=bounds, question=question),
        columns=columns,
        bounds=bounds,
        question=question,
        strength=effect,
        more={"by": by} if by != 1.5 else {},
    )


def atoms(
    effect: float, *, share: float = 0.5, bounds: Pair = (0, 8), question: str = "two-sample"
) -> Sampler:
    """Values that are often exactly 0, such as visits: fewer zeros by ``effect``.

    Parameters
    ----------
    effect : float
        By how much the share of zeros is smaller in the second group.
    share : float
        Of zeros in the first group; the other values are exponential.
    bounds, question
        As of :func:`shift`.
    """
    effect = number("effect", effect)
    share = number("share", share, above=0, below=1)
    if not 0 <= share - effect <= 1:
        raise ParameterError(
            f"effect must leave a share of zeros from 0 to 1: it is {share:g} without it."
        )
    return Sampler(
        "atoms",
        effect,
        one_of("question", question, ("two-sample",)),
        bounds,
        partial(_with_atoms, share=share, by=effect, bounds=bounds),
        settings={"share": share, "bounds": list(bounds)},
        strength=abs(effect),
        noise_scale=1.0 if share == 0.5 and bounds == (0, 8) else math.nan,
        remake=partial(atoms, share=share, bounds=bounds, question=question),
    )


def custom(
    drawing: Callable[..., tuple[Any, ...]],
    *,
    bounds: Any,
    question: str = "two-sample",
    effect: float = math.nan,
    columns: int = 1,
) -> Sampler:
    """Draw data by a function of your own.

    Parameters
    ----------
    drawing : callable
        From the sizes (a tuple) and a NumPy generator to a tuple of samples, or of sides. A
        function of a module, so that other processes can call it.
    bounds : (lower, upper), Schema, or a pair of them for independence
        What is public about the data. Values outside are refused.
    question, effect, columns
        What the data is for, and what a report calls its effect.
    """
    if not callable(drawing):
        raise ParameterError("drawing must be a function of sizes and a generator.")
    name = f"{getattr(drawing, '__module__', '')}.{getattr(drawing, '__qualname__', '')}"
    return Sampler(
        "custom",
        0.0 if math.isnan(effect) else effect,
        question,
        bounds,
        drawing,
        settings={"drawing": name},
        columns=columns,
        noise_scale=math.nan,
    )


def _numeric(
    kind: str,
    effect: float,
    change: Change,
    remake: Callable[[float], Sampler],
    *,
    columns: int,
    question: str,
    strength: float,
    base: str = "normal",
    bounds: Pair | None = None,
    more: Mapping[str, Any] | None = None,
) -> Sampler:
    columns = integer_at_least("columns", columns, 1)
    one_of("question", question, ("two-sample", "paired", "fit"))
    usual = _BASES[_base(base)][1]
    low, high = usual if bounds is None else bounds
    ends = (number("bounds", low), number("bounds", high))
    tried = change(_BASES[base][0](np.random.default_rng(0), (20_000, columns)), _fixed())
    outside = float(np.mean((tried < ends[0]) | (tried > ends[1])))
    if not ends[0] < ends[1] or outside > _MOST_OUTSIDE:
        raise ParameterError(
            f"effect must keep values within the bounds {ends[0]:g} to {ends[1]:g}: with "
            f"{effect:g}, {outside:.0%} of them would lie outside. Widen bounds, or ask for less."
        )
    usually = base == "heavy" and bounds is None
    wide = (ends[1] - ends[0]) / 8 if base == "normal" else 1.0 if usually else math.nan
    return Sampler(
        kind,
        effect,
        question,
        ends,
        partial(_drawn, base=base, columns=columns, change=change, bounds=ends, question=question),
        settings={"base": base, "columns": columns, "bounds": list(ends), **(more or {})},
        columns=columns,
        strength=strength,
        noise_scale=math.nan if more else wide,
        remake=remake,
    )


def _drawn(
    sizes: tuple[int, ...],
    rng: np.random.Generator,
    base: str,
    columns: int,
    change: Change,
    bounds: Pair,
    question: str,
) -> tuple[Any, ...]:
    law = _BASES[base][0]
    first, last = sizes[0], sizes[-1]
    changed = np.clip(change(law(rng, (last, columns)), rng), *bounds)
    changed = changed[:, 0] if columns == 1 else changed
    if question == "fit":
        return changed, "norm(0, 1)"
    if question == "paired":  # the change of the same people, against none
        return changed, np.zeros_like(changed)
    x = np.clip(law(rng, (first, columns)), *bounds)
    return (x[:, 0] if columns == 1 else x), changed


def _shifted(values: Floats, rng: np.random.Generator, by: float, count: int) -> Floats:
    del rng
    values[:, :count] += by
    return values


def _scaled(values: Floats, rng: np.random.Generator, factor: float, centre: float) -> Floats:
    del rng
    return centre + factor * (values - centre)


def _two_peaks(values: Floats, rng: np.random.Generator, share: float) -> Floats:
    chosen = rng.random(len(values)) < share
    signs = rng.choice((-1.0, 1.0), size=(int(chosen.sum()), 1))
    values[chosen] = _PEAK * signs + math.sqrt(1 - _PEAK**2) * values[chosen]
    return values


def _responding(values: Floats, rng: np.random.Generator, share: float, by: float) -> Floats:
    values[rng.random(len(values)) < share] += by
    return values


def _with_atoms(
    sizes: tuple[int, ...], rng: np.random.Generator, share: float, by: float, bounds: Pair
) -> tuple[Floats, Floats]:
    drawn = []
    for size, zeros in zip(sizes, (share, share - by), strict=True):
        values = np.clip(rng.exponential(size=size), *bounds)
        drawn.append(np.where(rng.random(size) < zeros, 0.0, values))
    return drawn[0], drawn[1]


def _base(base: str) -> str:
    return one_of("base", base, _BASES)


def _share(effect: float) -> float:
    share = number("effect", effect, at_least=0)
    if share > 1:
        raise ParameterError("effect must be a share, from 0 to 1.")
    return share


def _fixed() -> np.random.Generator:
    return np.random.default_rng(1)
