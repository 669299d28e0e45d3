"""Which tests of the catalogue fit some columns, and which effects the tables have for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from privatest.core.errors import ParameterError, PrivatestError
from privatest.core.privacy import Amount, Budget
from privatest.core.text import quiet
from privatest.core.validation import integer_at_least, number, one_of
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.planning import samplers
from privatest.planning import samplers as samplers_tables
from privatest.planning.plans import Choice, Recommendation
from privatest.planning.samplers import QUESTIONS, Sampler, sizes_of
from privatest.planning.simulation import MEMBERSHIPS
from privatest.planning.simulation import power as simulated_power
from privatest.planning.studies import solve
from privatest.planning.tables import LEVEL, Curve, kinds_of, tables_source, tabulated
from privatest.requests.catalogue import METHODS, Method

_TYPES = ("numeric", "binary", "categorical")


def column_types(columns: object) -> list[str]:
    """Return the types of columns, however they are described."""
    if isinstance(columns, Mapping):
        columns = Schema.from_bounds(columns)
    if isinstance(columns, Schema):
        return [_type(column) for column in columns.columns.values()]
    if isinstance(columns, str):
        columns = [columns]
    if isinstance(columns, Sequence):
        return [one_of("columns", each, _TYPES) for each in columns]
    return ["numeric"] * integer_at_least("columns", columns, 1)


def kinds_for(question: str, types: Sequence[str]) -> list[str]:
    """Return the kinds of effects that the tables have for such columns, the usual one first."""
    kinds = {*types}
    if question == "two-sample" and kinds == {"binary"} and len(types) == 1:
        return ["proportions"]
    if kinds == {"categorical"} or (question == "independence" and "categorical" in kinds):
        single = len(types) <= (2 if question == "independence" else 1)
        return ["tables"] if single and "numeric" not in kinds else []
    if "categorical" in kinds or "binary" in kinds:
        return []
    width = len(types) if question == "two-sample" else 1
    usual = ["shift", "dependence"]
    found = [k for k in kinds_of(question, width) if k not in ("proportions", "tables")]
    return sorted(found, key=lambda kind: kind not in usual)


def sampler_of(question: str, kind: str, effect: float, columns: int = 1) -> Sampler:
    """Return the sampler of a kind, as the tables have it."""
    one_of("kind", kind, _MAKERS)
    return _MAKERS[kind](effect, question, columns)


def _plain(name: str) -> Callable[[float, str, int], Sampler]:
    maker = getattr(samplers, name)
    return lambda effect, question, columns: maker(effect, question=question, columns=columns)


_MAKERS: Mapping[str, Callable[[float, str, int], Sampler]] = {
    **{name: _plain(name) for name in ("shift", "scale", "shape", "mixture", "heavy_tails")},
    "atoms": lambda effect, *_: samplers.atoms(effect),
    "proportions": lambda effect, *_: samplers_tables.proportions(effect),
    "tables": lambda effect, question, _: samplers_tables.tables(effect, question=question),
    "dependence": lambda effect, *_: samplers_tables.dependence(effect),
    "curve": lambda effect, *_: samplers_tables.dependence(effect, form="curve"),
}


def _type(column: object) -> str:
    if isinstance(column, CategoricalColumn):
        return "binary" if len(column.categories) == 2 else "categorical"
    if isinstance(column, NumericColumn) and column.integer:
        return "binary" if (column.lower, column.upper) == (0, 1) else "numeric"
    return "numeric"


def fitting_methods(
    question: str, types: Sequence[str], membership: str, delta: float
) -> tuple[dict[str, Method], dict[str, str]]:
    """Part the methods of a question into those that fit and why the others do not."""
    fitting, excluded = {}, {}
    for name, entry in METHODS[question].items():
        why = _why_not(question, entry, types, membership, delta)
        if why:
            excluded[name] = why
        else:
            fitting[name] = entry
    return fitting, excluded


def _why_not(
    question: str, entry: Method, types: Sequence[str], membership: str, delta: float
) -> str:
    sides = 2 if question in ("independence", "paired") else 1
    numeric = all(each == "numeric" for each in types)
    if membership == "private" and entry.public_groups:
        return f"needs public membership: {entry.public_groups}"
    if entry.needed:
        return f"needs {', '.join(entry.needed)}"
    if entry.needs_delta and not delta:
        return "needs delta above 0"
    if entry.one_column and (not numeric or len(types) > sides):
        return "takes one numeric column"
    if entry.outcomes and [*types] != ["binary"]:
        return "takes one column of successes and failures"
    if entry.categorical and "numeric" in types:
        return "takes categorical columns"
    if entry.preset.get("distance") == "total-variation" and "numeric" in types:
        return "takes categorical columns"
    if (
        entry.preset.get("distance")
        and entry.preset["distance"] != "total-variation"
        and not numeric
    ):
        return "takes numeric columns"
    if entry.function.startswith("methods.means.") and not numeric:
        return "takes numeric columns"
    if entry.preset.get("distance") in ("wasserstein", "kolmogorov") and len(types) > 1:
        return "takes one numeric column"
    if question == "independence" and entry.part:
        return "needs columns that are given"
    return ""


# Which test: those of the catalogue that fit, ranked by the power to expect.


ANYTHING = "anything"
_TARGET = 0.8
_MOST = 10**9
# what bounds and shares allow
_MOST_STRENGTH = {"shift": 1.8, "heavy_tails": 2.5, "scale": 0.5, "atoms": 0.5, "tables": 0.5} | {
    "proportions": 0.57
}
_TRIED = 4  # tests that are simulated for a refined ranking
_WORDS = {
    "proportions": "a difference of shares",
    "tables": "other shares of categories",
    "dependence": "a trend",
    "curve": "a curve",
}


def recommend(
    question: str,
    sizes: int | Sequence[int],
    columns: int | str | Sequence[str] | Schema | Mapping[str, Any] = 1,
    *,
    epsilon: float,
    membership: str = "public",
    delta: float = 0.0,
    alpha: float = 0.05,
    looking_for: str | None = None,
    effect: float | None = None,
    refine: bool = False,
    runs: int = 200,
    seed: int = 0,
    workers: int = 1,
    progress: bool | Callable[[int, int], object] = False,
) -> Recommendation:
    """Rank the tests that fit a question, with the power to expect of each.

    Parameters
    ----------
    question : {"two-sample", "independence", "paired", "fit"}
        What is asked.
    sizes : int or sequence of int
        People in each group, or in all. Private groups have no public sizes: pass halves of
        the total.
    columns : int, str, list of str or Schema
        How many numeric columns; or the types of the columns, of "numeric", "binary" and
        "categorical"; or their schema. For independence, of both sides.
    epsilon, delta, alpha : float
        Budget and level.
    membership : {"public", "private"}
        Of two groups: whether everybody may know who is in which.
    looking_for : str, optional
        The kind of effect, as far as the tables have it: of one numeric column "shift", "scale",
        "shape" or "heavy_tails"; of several "shift"; of two sides "dependence" or "curve"; of
        categories "proportions" or "tables"; or "anything", the mean over kinds. By default the
        usual one of the question. Others are simulated by :func:`expected_power`, test by test.
    effect : float, optional
        How large it is. By default as large as the best test sees with power .8.
    refine : bool
        Whether the first of the ranking are simulated too.
    runs, seed, workers, progress
        Of that simulation, for each test.

    Returns
    -------
    Recommendation
        ``choices`` with reasons; ``best`` is the first.

    Notes
    -----
    **Privacy** Public facts only: no data is read, and no budget is spent. Choosing a test after
    seeing its result, or that of another, is not covered: choose before.

    Examples
    --------
    >>> from privatest.planning import recommend
    >>> ranking = recommend("two-sample", 180, epsilon=1, membership="private")
    >>> ranking.best.power > 0.7
    True
    """
    one_of("question", question, QUESTIONS)
    one_of("membership", membership, MEMBERSHIPS)
    budget = Budget(epsilon, delta)
    number("alpha", alpha, above=0, below=1)
    pair = tuple(sizes) if isinstance(sizes, Sequence) else sizes
    people = sizes_of(pair[0] if isinstance(pair, tuple) and len(pair) == 1 else pair, question)
    types = column_types(columns)
    known = kinds_for(question, types)
    kind = one_of("looking_for", looking_for or (known or [ANYTHING])[0], [*known, ANYTHING])
    own = "public" if question != "two-sample" else membership
    width = len(types) if question == "two-sample" else 1
    fitting, excluded = fitting_methods(question, types, own, float(budget.delta))
    kinds = [each for each in known if each in ("shift", "scale", "shape", "dependence", "curve")]
    asked = (kinds or known[:1]) if kind == ANYTHING else [kind]
    cost = float(budget.epsilon)
    rated = [_rated(question, each, width, own, fitting, people, cost, effect) for each in asked]
    size = rated[0][1] if len(rated) == 1 else None
    choices = [
        _choice(
            name, fitting[name], [found.get(name) for found, _ in rated], asked, people, cost, size
        )
        for name in fitting
    ]
    choices.sort(key=lambda choice: (choice.power is None, -(choice.power or 0.0)))
    if not choices:
        raise ParameterError("columns have no test in the catalogue for this question.")
    source = tables_source(people, cost)
    if not math.isclose(alpha, LEVEL):
        source += f" for level {LEVEL:g} (at {alpha:g} power is another; simulate it with refine)"
    if refine and size is not None:
        sampler = sampler_of(question, kind, size, width)
        settings: dict[str, Any] = {
            "epsilon": cost,
            "delta": float(budget.delta),
            "alpha": alpha,
            "runs": runs,
        }
        settings |= {"seed": seed, "workers": workers, "progress": progress}
        choices = _refined(choices, sampler, people, own, settings)
        source = f"simulation, {runs} runs a test; the rest from {source}"
    return Recommendation(
        question,
        own,
        people,
        cost,
        float(budget.delta),
        alpha,
        kind,
        None if size is None else sampler_of(question, kind, size, width).effect,
        tuple(choices),
        excluded,
        source,
    )


Rated = tuple[dict[str, tuple[Curve, float]], float]


def _rated(
    question: str,
    kind: str,
    columns: int,
    membership: str,
    fitting: Mapping[str, Method],
    people: tuple[int, ...],
    epsilon: float,
    effect: float | None,
) -> Rated:
    """Return curve and power of each method that the tables have, and the effect."""
    found = tabulated(question, kind, columns, membership)
    curves = {name: curve for name, curve in found.items() if name in fitting}
    most = _MOST_STRENGTH.get(kind, 0.97)
    if effect is None:
        seen = [_seen(curve, people, epsilon, most) for curve in curves.values()]
        effect = _effect(kind, min(seen, default=most))
    strength = sampler_of(question, kind, effect, columns).strength
    return {
        name: (curve, curve.power(strength, people, epsilon)) for name, curve in curves.items()
    }, effect


def _seen(curve: Curve, people: tuple[int, ...], epsilon: float, most: float) -> float:
    """Return the strength that is seen with power .8, or the largest."""
    found = solve(lambda own: curve.power(own, people, epsilon), _TARGET, most / 1e4, most)
    return most if found is None else found


def _effect(kind: str, strength: float) -> float:
    if kind == "scale":
        return math.exp(strength)
    return strength / math.sqrt(1 + strength**2) if kind == "proportions" else strength


def _choice(
    name: str,
    entry: Method,
    rated: Sequence[tuple[Curve, float] | None],
    kinds: Sequence[str],
    people: tuple[int, ...],
    epsilon: float,
    effect: float | None,
) -> Choice:
    function = entry.function.rpartition(".")[2]
    known = [each for each in rated if each is not None]
    if len(known) < len(rated) or not known:
        return Choice(name, function, None, None, None, "fits, but the tables do not have it")
    power = sum(own for _, own in known) / len(known)
    unseen = [kind for kind, (curve, _) in zip(kinds, known, strict=True) if not curve.weights]
    if len(unseen) == len(kinds):
        words = _WORDS.get(kinds[0], f"a {kinds[0].replace('_', ' ')}")
        return Choice(name, function, power, None, None, f"does not see {words}")
    curve = next(curve for curve, _ in known if curve.weights)
    ratio = curve.noise_ratio(people, epsilon)
    reason = f"noise {ratio:.2g} times sampling error"
    needed = free = None
    if effect is not None:
        strength = _strength(kinds[0], effect)
        needed, free = (_people(curve, strength, len(people), own) for own in (epsilon, 1e3))
        if needed is not None and free is not None:
            each = "in each group" if len(people) == 2 else "in all"
            reason += f"; power .8 takes {needed:,} people {each}, {free:,} without noise"
    if unseen:
        reason += f"; does not see {', '.join(unseen)}"
    return Choice(name, function, power, needed, free, f"{reason}{_about(entry)}")


def _about(entry: Method) -> str:
    return f" ({entry.about})" if entry.about else ""


def _strength(kind: str, effect: float) -> float:
    if kind == "scale":
        return abs(math.log(effect))
    return abs(effect) / math.sqrt(1 - effect**2) if kind == "proportions" else abs(effect)


def _people(curve: Curve, strength: float, groups: int, epsilon: float) -> int | None:
    def at(n: float) -> float:
        return curve.power(strength, (math.ceil(n),) * groups, epsilon)

    found = solve(at, _TARGET, 2.0, _MOST) if strength else None
    return None if found is None else math.ceil(found)


def _refined(
    choices: list[Choice],
    sampler: Sampler,
    people: tuple[int, ...],
    membership: str,
    settings: dict[str, Any],
) -> list[Choice]:
    """Simulate the first few, and rank them by that."""
    n: Any = people if len(people) == 2 else people[0]
    first = []
    for choice in choices[:_TRIED]:
        found = simulated_power(choice.method, sampler, n=n, membership=membership, **settings)
        words = f"simulated {found.low:.2f} to {found.high:.2f}; {choice.reason}"
        people_, free = choice.people, choice.without_noise
        first.append(Choice(choice.method, choice.function, found.rate, people_, free, words))
    first.sort(key=lambda choice: -(choice.power or 0.0))
    return first + choices[_TRIED:]


# One sentence before anything is spent: another test would see far more, at these public sizes.


_FAR = 0.25  # by so much more often a test should reject before it is named
_hints_WORDS = {
    "proportions": "a difference of shares",
    "tables": "other shares",
    "dependence": "a trend",
}


def better_test(
    question: str,
    method: str,
    sizes: Sequence[int],
    columns: Sequence[str],
    *,
    epsilon: Amount,
    delta: Amount = 0,
    membership: str = "public",
) -> str:
    """Return a sentence on a test that is expected to be far better, or nothing.

    Parameters
    ----------
    question, method : str
        What is about to be asked.
    sizes : sequence of int
        Public sizes; halves of the total where groups are private.
    columns : sequence of str
        Types of the columns, as of :func:`privatest.planning.recommend`.
    epsilon, delta, membership
        As there.

    Notes
    -----
    **Privacy** It is given public numbers only, before data is read: it cannot depend on people.
    """
    if quiet() or len(sizes) > 2:
        return ""
    people = sizes[0] if len(sizes) == 1 else tuple(sizes)
    try:
        ranking = recommend(
            question,
            people,
            columns,
            membership=membership,
            epsilon=float(epsilon),
            delta=float(delta),
        )
    except PrivatestError:
        return ""  # nothing to say is no reason to stop
    own = next((c.power for c in ranking.choices if c.method == method), None)
    best = ranking.best
    if own is None or best.power is None or best.power < own + _FAR:
        return ""
    kind = ranking.looking_for
    words = _hints_WORDS.get(kind, f"a {kind.replace('_', ' ')}")
    size = "" if ranking.effect is None else f" of {ranking.effect:.2g}"
    private = " --membership private" if membership == "private" else ""
    return (
        f"note: to see {words}{size} at these sizes, --method {best.method} is expected to have "
        f"power {best.power:.2f} where {method} has {own:.2f}. `privatest plan recommend{private}` "
        "says more; this was known before any data was read."
    )
