"""What a study is assumed to look like: how data would be drawn, and what is public about it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatest.core.errors import ParameterError
from privatest.core.validation import integer_at_least, number, one_of
from privatest.data.reading import schema_of
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema

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

    @property
    def size(self) -> float:
        """The effect as a positive number that grows with it."""
        return abs(math.log(self.effect)) if self.kind == "scale" else abs(self.effect)

    def with_size(self, size: float) -> Sampler:
        """Return the same study with an effect of this size, in the same direction."""
        if self.kind == "scale":
            return self.with_effect(math.exp(-size if self.effect < 1 else size))
        return self.with_effect(-size if self.effect < 0 else size)

    def largest_size(self) -> float:
        """Return the size of the largest effect within the bounds."""
        low, high = 0.0, 64.0
        for _ in range(30):
            middle = (low + high) / 2
            try:
                self.with_size(middle)
            except ParameterError:
                high = middle
            else:
                low = middle
        if low == 0:
            raise ParameterError(f"effect cannot be changed for a sampler of kind {self.kind}.")
        return low

    def arguments(self, membership: str = "public") -> dict[str, Any]:
        """Return the arguments that describe the data to a test."""
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


# Samplers of numbers: shifted, wider, of another shape, mixed, with heavy tails, with atoms.


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


# Data of a pilot, or public data, drawn again with replacement.


def resample(
    x: ArrayLike,
    y: ArrayLike | None = None,
    *,
    bounds: Any,
    effect: float = 0.0,
    question: str = "two-sample",
) -> Sampler:
    """Draw from rows that may be used freely: public data, or those of a pilot.

    Parameters
    ----------
    x : array
        Numbers, one row a person. It must not be the private data that the test is for: what is
        planned from it would depend on people, and nobody would have paid for that.
    y : array, optional
        The second group, or the other side of the same rows. Without it, the second group is
        drawn from ``x`` and shifted.
    bounds : (lower, upper), a pair for each column, or a pair of them for independence
        The public bounds.
    effect : float
        What is added to the second group, in the units of the data.
    question : {"two-sample", "paired", "independence"}
        For "paired" the two columns are of the same people: first minus second is the change.
    """
    one_of("question", question, ("two-sample", "paired", "independence"))
    effect = number("effect", effect)
    first = _rows("x", x)
    second = first if y is None else _rows("y", y)
    if question != "two-sample" and (y is None or len(first) != len(second)):
        raise ParameterError("y must have the rows of the same people as x.")
    sides = bounds if question == "independence" else (bounds, bounds)
    limits = (_limits(sides[0]), _limits(sides[1]))
    _check_effect(second + effect, limits[1])
    data = hashlib.sha256(first.tobytes() + second.tobytes()).hexdigest()[:16]
    return Sampler(
        "pilot",
        effect,
        question,
        bounds,
        partial(
            _again,
            first=first,
            second=second,
            effect=effect,
            paired=question != "two-sample",
            limits=limits,
        ),
        settings={"data": data, "bounds": repr(bounds)},
        columns=1 if first.ndim == 1 else first.shape[1],
        strength=abs(effect) if y is None else math.nan,
        noise_scale=math.nan,
        remake=partial(_remade, x=first, y=y, bounds=bounds, question=question),
    )


def _remade(effect: float, x: Any, y: Any, bounds: Any, question: str) -> Sampler:
    return resample(x, y, bounds=bounds, effect=effect, question=question)


def _rows(name: str, values: ArrayLike) -> Floats:
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim not in (1, 2) or len(rows) < 2 or not np.isfinite(rows).all():
        raise ParameterError(f"{name} must be at least two rows of finite numbers.")
    return rows


def _limits(bounds: Any) -> tuple[Floats, Floats]:
    schema = schema_of(bounds)
    columns = () if schema is None else schema.columns.values()
    pairs = [(c.lower, c.upper) for c in columns if isinstance(c, NumericColumn)]
    if not pairs:
        raise ParameterError("bounds must be given: a pair of numbers for each column, or one.")
    lower, upper = np.array(pairs).T
    return lower, upper


def _check_effect(second: Floats, limits: tuple[Floats, Floats]) -> None:
    rows = second.reshape(len(second), -1)
    if ((rows < limits[0]) | (rows > limits[1])).mean() > 0.02:
        raise ParameterError(
            "effect must keep values within the bounds: more than 2% would lie outside them."
        )


def _again(
    sizes: tuple[int, ...],
    rng: np.random.Generator,
    first: Floats,
    second: Floats,
    effect: float,
    paired: bool,
    limits: tuple[tuple[Floats, Floats], tuple[Floats, Floats]],
) -> tuple[Floats, Floats]:
    rows = rng.integers(len(first), size=sizes[0])
    others = rows if paired else rng.integers(len(second), size=sizes[1])
    x, y = first[rows], second[others] + effect
    return np.clip(x, *limits[0]), np.clip(y, *limits[1])


# Samplers of shares, categories, and of columns that depend on each other.


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
