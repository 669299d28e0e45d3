"""Which test to use: those that fit the columns, ranked by the power to expect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from privatest.core.errors import ParameterError, PrivatestError
from privatest.core.privacy import Amount, Budget
from privatest.core.text import quiet
from privatest.core.validation import integer_at_least, number, one_of
from privatest.data.schema import CategoricalColumn, NumericColumn, Schema
from privatest.planning import samplers
from privatest.planning.plans import Choice, Recommendation
from privatest.planning.samplers import QUESTIONS, Sampler, sizes_of
from privatest.planning.simulation import MEMBERSHIPS
from privatest.planning.simulation import power as simulated_power
from privatest.planning.studies import solve
from privatest.planning.tables import LEVEL, PowerCurve, kinds_of, tables_source, tabulated
from privatest.requests.catalogue import METHODS, Method

ANYTHING = "anything"
_TARGET = 0.8
_MOST = 10**9
_MOST_STRENGTH = {  # within bounds, and between shares of 0 and 1
    "shift": 1.8,
    "heavy_tails": 2.5,
    "scale": 0.5,
    "atoms": 0.5,
    "tables": 0.5,
    "proportions": 0.57,
}
_SIMULATED = 4  # tests that are simulated for a refined ranking
_MUCH_BETTER = 0.25  # by so much more often a test must reject before a hint names it
_EFFECT_WORDS = {
    "proportions": "a difference of shares",
    "tables": "other shares of categories",
    "dependence": "a trend",
    "curve": "a curve",
}
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
    "proportions": lambda effect, *_: samplers.proportions(effect),
    "tables": lambda effect, question, _: samplers.tables(effect, question=question),
    "dependence": lambda effect, *_: samplers.dependence(effect),
    "curve": lambda effect, *_: samplers.dependence(effect, form="curve"),
}


def _type(column: object) -> str:
    if isinstance(column, CategoricalColumn):
        return "binary" if len(column.categories) == 2 else "categorical"
    if isinstance(column, NumericColumn) and column.integer:
        return "binary" if (column.lower, column.upper) == (0, 1) else "numeric"
    return "numeric"


def _misfit(
    question: str, entry: Method, types: Sequence[str], membership: str, delta: float
) -> str:
    """Return why a method does not fit such columns and groups, or nothing."""
    sides = 2 if question in ("independence", "paired") else 1
    numeric = all(each == "numeric" for each in types)
    distance = entry.preset.get("distance")
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
    if (entry.categorical or distance == "total-variation") and "numeric" in types:
        return "takes categorical columns"
    needs_numbers = distance not in (None, "total-variation")
    if (needs_numbers or entry.function.__module__ == "privatest.methods.means") and not numeric:
        return "takes numeric columns"
    if distance in ("wasserstein", "kolmogorov") and len(types) > 1:
        return "takes one numeric column"
    if question == "independence" and entry.part:
        return "needs columns that are given"
    return ""


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
    cost, delta = float(budget.epsilon), float(budget.delta)
    number("alpha", alpha, above=0, below=1)
    pair = tuple(sizes) if isinstance(sizes, Sequence) else sizes
    people = sizes_of(pair[0] if isinstance(pair, tuple) and len(pair) == 1 else pair, question)
    types = column_types(columns)
    known = kinds_for(question, types)
    kind = one_of("looking_for", looking_for or (known or [ANYTHING])[0], [*known, ANYTHING])
    own = "public" if question != "two-sample" else membership
    width = len(types) if question == "two-sample" else 1
    methods = METHODS[question]
    reasons = {name: _misfit(question, methods[name], types, own, delta) for name in methods}
    fitting = {name: entry for name, entry in methods.items() if not reasons[name]}
    if not fitting:
        raise ParameterError("columns have no test in the catalogue for this question.")
    kinds = [each for each in known if each in ("shift", "scale", "shape", "dependence", "curve")]
    wanted = (kinds or known[:1]) if kind == ANYTHING else [kind]
    if len(wanted) == 1:  # also where the tables have one kind only
        kind = wanted[0]
    rated = [_rate(question, each, width, own, fitting, people, cost, effect) for each in wanted]
    sampler = rated[0].sampler if len(rated) == 1 else None
    choices = [_choice(name, fitting[name], rated, people, cost) for name in fitting]
    choices.sort(key=lambda choice: (choice.power is None, -(choice.power or 0.0)))
    source = tables_source(people, cost)
    if not math.isclose(alpha, LEVEL):
        source += f" for level {LEVEL:g} (at {alpha:g} power is another; simulate it with refine)"
    if refine and sampler is not None:
        n: Any = people if len(people) == 2 else people[0]
        settings: dict[str, Any] = {"n": n, "epsilon": cost, "delta": delta, "alpha": alpha}
        settings |= {"runs": runs, "seed": seed, "workers": workers, "progress": progress}
        choices = _refined(choices, sampler, membership=own, **settings)
        source = f"simulation, {runs} runs a test; the rest from {source}"
    return Recommendation(
        question,
        own,
        people,
        cost,
        delta,
        alpha,
        kind,
        None if sampler is None else sampler.effect,
        tuple(choices),
        {name: reason for name, reason in reasons.items() if reason},
        source,
    )


@dataclass(frozen=True, slots=True)
class KindPower:
    """One kind of effect, and the curve and power that the tables have for each method."""

    sampler: Sampler
    methods: Mapping[str, tuple[PowerCurve, float]]


def _rate(
    question: str,
    kind: str,
    columns: int,
    membership: str,
    fitting: Mapping[str, Method],
    people: tuple[int, ...],
    epsilon: float,
    effect: float | None,
) -> KindPower:
    """Return the power against an effect, by default as large as the best test sees."""
    found = tabulated(question, kind, columns, membership)
    curves = {name: curve for name, curve in found.items() if name in fitting}
    if effect is None:
        most = _MOST_STRENGTH.get(kind, 0.97)
        strengths = [
            solve(partial(curve.power, sizes=people, epsilon=epsilon), _TARGET, most / 1e4, most)
            for curve in curves.values()
        ]
        effect = min((each for each in strengths if each is not None), default=most)
        if kind == "scale":
            effect = math.exp(effect)
        elif kind == "proportions":
            effect /= math.sqrt(1 + effect**2)
    sampler = sampler_of(question, kind, effect, columns)
    powers = {name: c.power(sampler.strength, people, epsilon) for name, c in curves.items()}
    return KindPower(sampler, {name: (curves[name], power) for name, power in powers.items()})


def _choice(
    name: str,
    entry: Method,
    rated: Sequence[KindPower],
    people: tuple[int, ...],
    epsilon: float,
) -> Choice:
    function = entry.function.__name__
    known = [(each.sampler.kind, *each.methods[name]) for each in rated if name in each.methods]
    if not known or len(known) < len(rated):
        return Choice(name, function, None, None, None, "fits, but the tables do not have it")
    power = sum(own for *_, own in known) / len(known)
    unseen = [kind for kind, curve, _ in known if not curve.weights]
    if len(unseen) == len(known):
        return Choice(name, function, power, None, None, f"does not see {_words(unseen[0])}")
    curve = next(curve for _, curve, _ in known if curve.weights)
    reason = f"noise {curve.noise_ratio(people, epsilon):.2g} times sampling error"
    needed = free = None
    if len(rated) == 1:
        strength = rated[0].sampler.strength
        needed, free = (_people(curve, strength, len(people), own) for own in (epsilon, 1e3))
        if needed is not None and free is not None:
            each = "in each group" if len(people) == 2 else "in all"
            reason += f"; power .8 takes {needed:,} people {each}, {free:,} without noise"
    if unseen:
        reason += f"; does not see {', '.join(unseen)}"
    if entry.about:
        reason += f" ({entry.about})"
    return Choice(name, function, power, needed, free, reason)


def _words(kind: str) -> str:
    return _EFFECT_WORDS.get(kind, f"a {kind.replace('_', ' ')}")


def _people(curve: PowerCurve, strength: float, groups: int, epsilon: float) -> int | None:
    """Return how many people the target power takes, in each group or in all."""

    def at(n: float) -> float:
        return curve.power(strength, (math.ceil(n),) * groups, epsilon)

    found = solve(at, _TARGET, 2.0, _MOST) if strength else None
    return None if found is None else math.ceil(found)


def _refined(choices: list[Choice], sampler: Sampler, **settings: Any) -> list[Choice]:
    """Simulate the first few, and rank them by that."""
    first = []
    for choice in choices[:_SIMULATED]:
        found = simulated_power(choice.method, sampler, **settings)
        reason = f"simulated {found.low:.2f} to {found.high:.2f}; {choice.reason}"
        first.append(replace(choice, power=found.rate, reason=reason))
    first.sort(key=lambda choice: -(choice.power or 0.0))
    return first + choices[_SIMULATED:]


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
    if own is None or best.power is None or best.power < own + _MUCH_BETTER:
        return ""
    words = "other shares" if ranking.looking_for == "tables" else _words(ranking.looking_for)
    size = "" if ranking.effect is None else f" of {ranking.effect:.2g}"
    private = " --membership private" if membership == "private" else ""
    return (
        f"note: to see {words}{size} at these sizes, --method {best.method} is expected to have "
        f"power {best.power:.2f} where {method} has {own:.2f}. `privatest plan recommend{private}` "
        "says more; this was known before any data was read."
    )
