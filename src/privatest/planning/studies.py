"""The size, effect or epsilon that has a wanted power, found by simulating few studies."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.core.validation import integer_at_least, number, one_of
from privatest.planning.plans import Plan, Prices
from privatest.planning.samplers import Sampler, Sizes, sizes_of
from privatest.planning.simulation import MEMBERSHIPS, Power, check, name_of
from privatest.planning.simulation import power as simulated_power
from privatest.planning.tables import Curve, curve_of, effective, tables_source

Measure = Callable[[float, int, int], Power]  # from a value, runs and a round
_ROUNDS = (0.5, 1.0)  # shares of the runs: the first to come near, the last to be sure
_EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
_STEP = 1.5  # from one value to the next, until the target is between two


@dataclass(frozen=True, slots=True)
class Found:
    """A value, what was measured there, and all points; ``value`` is None if none has the power."""

    value: float | None
    last: Power
    seen: tuple[tuple[float, Power], ...]

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """Values and powers, in order."""
        return tuple((value, found.rate) for value, found in self._ordered)

    @property
    def band(self) -> tuple[tuple[float, float], ...]:
        """The interval of the power at each point."""
        return tuple((found.low, found.high) for _, found in self._ordered)

    @property
    def _ordered(self) -> list[tuple[float, Power]]:
        return sorted(self.seen, key=lambda each: (each[0], each[1].rate))


def solve(power: Callable[[float], float], target: float, low: float, high: float) -> float | None:
    """Return the least value between two at which an increasing curve has the power."""
    if power(high) < target:
        return None
    if power(low) >= target:
        return low
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if power(middle) >= target else (middle, high)
        if high / low < 1 + 1e-6:
            break
    return high


def find(
    measure: Measure, target: float, start: float, low: float, high: float, runs: int
) -> Found:
    """Return where a test has the wanted power: a bracket by few runs, then more near it.

    Power is taken to be a probit curve in the logarithm of the value, which it is nearly where it
    is not far from the target.
    """
    points: list[tuple[float, int, int]] = []
    seen: list[tuple[float, Power]] = []

    def look(value: float, runs: int) -> Power:
        found = measure(value, runs, len(points))
        seen.append((float(value), found))
        points.append((value, found.rejections, found.runs))
        return found

    value, few = min(max(start, low), high), max(runs // 8, 20)
    for _ in range(40):  # until the target is between two values
        rates = [(at, hits / count) for at, hits, count in points]
        below = max((at for at, rate in rates if rate < target), default=0.0)
        above = min((at for at, rate in rates if rate >= target), default=math.inf)
        if (below and math.isfinite(above)) or below >= high or above <= low:
            break
        if points:
            value = min(_STEP * below, high) if below else max(above / _STEP, low)
        last = look(value, few)
    if below >= high:
        best = look(high, runs)
        if best.rate < target:
            return Found(None, best, tuple(seen))
    for share in _ROUNDS:
        value = min(max(_crossing(points, target), low), high)
        last = look(value, max(math.ceil(share * runs), few))
    value = min(max(_crossing(points, target), low), high)
    return Found(value, last, tuple(seen))


def _crossing(points: list[tuple[float, int, int]], target: float) -> float:
    """Return where a probit curve through the points crosses the target."""
    from scipy.optimize import minimize  # noqa: PLC0415
    from scipy.special import ndtr, ndtri  # noqa: PLC0415

    values, hits, counts = np.array(points, dtype=np.float64).T
    logs = np.log(values)
    # points near the target decide: the curve is no straight line far from it
    rates = (hits + 0.5) / (counts + 1)
    weights = np.exp(-0.5 * ((ndtri(rates) - ndtri(target)) / 1.2) ** 2)
    middle = float(np.average(logs, weights=weights))

    def loss(line: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        power = np.clip(ndtr(line[0] + np.exp(line[1]) * (logs - middle)), 1e-6, 1 - 1e-6)
        own = weights * (hits * np.log(power) + (counts - hits) * np.log(1 - power))
        return 0.5 * float((line[1] - 0.5) / 0.5) ** 2 - float(own.sum())

    wanted = float(ndtri(target))
    level, slope = minimize(loss, np.array([wanted, 0.5]), method="Nelder-Mead").x
    step = (wanted - float(level)) / math.exp(slope)
    return math.exp(middle + min(max(step, -1.5), 1.5))


# What is assumed of a study, and its power by the tables or by simulation.


NO_NOISE = 1e3
_MOST_PEOPLE = 10**9  # of tables
_MOST_SIMULATED = 50_000
_STEPS = tuple(1.25**step for step in range(-8, 7))  # of a drawn curve, around the answer


@dataclass(frozen=True, slots=True)
class Study:
    """What is the same in all four directions."""

    test: str | Callable[..., Any]
    name: str
    effect: Sampler
    epsilon: float
    delta: float = 0.0
    alpha: float = 0.05
    membership: str = "public"
    refine: bool = False
    runs: int = 300
    seed: int = 0
    workers: int = 1
    progress: bool | Callable[[int, int], object] = False
    cache: str | os.PathLike[str] | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, test: Any, effect: Any, epsilon: float, **settings: Any) -> Study:
        """Check what is assumed."""
        if not isinstance(effect, Sampler):
            raise ParameterError(
                "effect must be a sampler, such as privatest.simulation.shift(0.3)."
            )
        own = {name: settings.pop(name) for name in [*settings] if name in cls.__slots__}
        own.pop("options", None)
        budget = Budget(epsilon, own.pop("delta", 0.0))
        number("alpha", own.get("alpha", 0.05), above=0, below=1)
        one_of("membership", own.get("membership", "public"), MEMBERSHIPS)
        integer_at_least("runs", own.get("runs", 300), 1)
        check(test, effect, own.get("membership", "public"), settings)
        name = name_of(test, effect.question)
        cost = (float(budget.epsilon), float(budget.delta))
        return cls(test, name, effect, *cost, **own, options=settings)

    @property
    def curve(self) -> Curve | None:
        """The table's curve, where it may be used."""
        if self.refine or self.options:
            return None
        return self.tables

    @property
    def tables(self) -> Curve | None:
        """The table's curve, as a beginning of a simulation too."""
        return curve_of(self.name, self.effect, self.membership, alpha=self.alpha, delta=self.delta)

    def target(self, power: object) -> float:
        """Return the wanted power."""
        wanted = number("power", power, above=0, below=1)
        if wanted <= self.alpha:
            raise ParameterError(
                f"power must be above alpha, {self.alpha:g}: so often a test rejects without any "
                "effect."
            )
        return wanted

    def tabulated(self, effect: Sampler, sizes: Sequence[int], epsilon: float) -> float:
        """Return the power by the tables."""
        curve = self.tables
        assert curve is not None
        own = effective(self.name, effect, epsilon)
        return curve.power(effect.strength, sizes, epsilon if own is None else own)

    def simulated(self, runs: int) -> Callable[[Sampler, Sizes, float, int], Power]:
        """Return a function that simulates studies; each round has another seed."""

        def measure(effect: Sampler, n: Sizes, epsilon: float, step: int) -> Power:
            return simulated_power(
                self.test,
                effect,
                n=n,
                epsilon=epsilon,
                delta=self.delta,
                alpha=self.alpha,
                membership=self.membership,
                runs=runs,
                seed=self.seed + step,
                workers=self.workers,
                progress=self.progress,
                cache=self.cache,
                **self.options,
            )

        return measure

    def people(self, target: float, epsilon: float) -> tuple[int | None, Found | None]:
        """Return how many people the target takes, and what was simulated for it."""
        curve = self.tables
        start, words = 100.0, self.effect.kind.replace("_", " ")
        if curve is not None:
            table = partial(self._at, epsilon)
            solved = solve(table, target, 2.0, _MOST_PEOPLE)
            # without noise the tables will do, even where the rest is simulated
            if self.curve is not None or (epsilon == NO_NOISE and not self.options and solved):
                if solved is None and self.curve is not None and self.curve.weights:
                    raise ParameterError(
                        f"power {target:g} would take more than {_MOST_PEOPLE:,} people: the "
                        "effect or epsilon is too small. Ask for a larger one."
                    )
                if solved is None:
                    raise ParameterError(
                        f"power {target:g} cannot be reached: {self.name} does not see a {words}; "
                        f"its power is {table(_MOST_PEOPLE):.2f} at any n. "
                        "privatest.planning.recommend names tests that do."
                    )
                return math.ceil(solved), None
            start = solved or start

        def measure(value: float, runs: int, step: int) -> Power:
            return self.simulated(runs)(self.effect, math.ceil(value), epsilon, step)

        found = find(measure, target, start, 4.0, _MOST_SIMULATED, self.runs)
        if found.value is None:
            if epsilon == NO_NOISE:
                return None, found
            raise ParameterError(
                f"power {target:g} was not reached with {_MOST_SIMULATED:,} people: it is "
                f"{found.last.rate:.2f} there. The test may not see a {words}, or epsilon is too "
                "small: privatest.planning.recommend ranks the tests that fit."
            )
        return math.ceil(found.value), found

    def _at(self, epsilon: float, n: float) -> float:
        people = math.ceil(n)
        sizes = (people, people) if self.effect.question == "two-sample" else (people,)
        return self.tabulated(self.effect, sizes, epsilon)

    def plan(
        self,
        wanted: str,
        sizes: tuple[int, ...],
        *,
        found: Found | None = None,
        power: float | None = None,
        **more: Any,
    ) -> Plan:
        """Put an answer together."""
        curve = self.tables
        ratio = None
        if curve is not None and curve.weights:
            own = effective(self.name, self.effect, self.epsilon)
            ratio = None if own is None else curve.noise_ratio(sizes, own)
        source = tables_source(sizes, self.epsilon) if self.curve is not None else "simulation"
        points: tuple[tuple[float, float], ...] = ()
        if self.curve is not None:
            points = self._drawn(wanted, sizes)
            if wanted != "epsilon":
                bare = replace(self, epsilon=NO_NOISE)._drawn(wanted, sizes)
                more |= {"curve_without_noise": bare}
            power = self.tabulated(self.effect, sizes, self.epsilon) if power is None else power
        elif found is not None:
            source = f"simulation, {self.runs} runs in the last round"
            points, power = found.points, found.last.rate
            more |= {"low": found.last.low, "high": found.last.high, "band": found.band}
        assert power is not None
        return Plan(
            wanted,
            self.effect.question,
            self.name,
            self.effect.kind,
            sizes,
            self.effect.effect,
            self.epsilon,
            self.delta,
            self.alpha,
            self.membership,
            power,
            noise_ratio=ratio,
            source=source,
            curve=points,
            **more,
        )

    def _drawn(self, wanted: str, sizes: tuple[int, ...]) -> tuple[tuple[float, float], ...]:
        """Return the curve around the answer, as far as the bounds allow."""
        points = []
        for step in _STEPS:
            if wanted in ("n", "power"):
                own = tuple(max(2, round(size * step)) for size in sizes)
                points.append((float(own[0]), self.tabulated(self.effect, own, self.epsilon)))
            elif wanted == "epsilon":
                value = self.epsilon * step
                points.append((value, self.tabulated(self.effect, sizes, value)))
            else:
                value = min(size_of(self.effect) * step, largest(self.effect))
                other = sized(self.effect, value)
                points.append((other.effect, self.tabulated(other, sizes, self.epsilon)))
        return tuple(dict.fromkeys(points))


def refuse_none(effect: Sampler) -> None:
    """Refuse an effect of 0, which no number of people can show."""
    if effect.strength == 0:
        raise ParameterError("effect must not be 0: nothing could be seen, with any n.")


def size_of(effect: Sampler) -> float:
    """Return the effect as a positive number that grows with it."""
    return abs(math.log(effect.effect)) if effect.kind == "scale" else abs(effect.effect)


def sized(effect: Sampler, size: float) -> Sampler:
    """Return the same kind and direction, of another size."""
    if effect.kind == "scale":
        return effect.with_effect(math.exp(-size if effect.effect < 1 else size))
    return effect.with_effect(-size if effect.effect < 0 else size)


def largest(effect: Sampler) -> float:
    """Return the largest effect that the sampler takes: within its bounds."""
    low, high = 0.0, 64.0
    for _ in range(30):
        middle = (low + high) / 2
        try:
            sized(effect, middle)
        except ParameterError:
            high = middle
        else:
            low = middle
    if low == 0:
        raise ParameterError(f"effect cannot be changed for a sampler of kind {effect.kind}.")
    return low


# Power, sample size, detectable effect and epsilon: one curve, read in four directions.


_LARGEST_EPSILON = 50.0


def expected_power(
    test: str | Callable[..., Any], effect: Sampler, *, n: Sizes, epsilon: float, **settings: Any
) -> Plan:
    """Return the power of a test at a size: from the tables where they have it.

    Parameters
    ----------
    test : str or callable
        A method by its name on the command line, or a function of privatest.
    effect : Sampler
        What is assumed of the data, such as ``privatest.simulation.shift(0.3)``.
    n : int or (int, int)
        People in each group, or in all.
    epsilon : float
        Budget of the test.
    **settings
        ``delta``, ``alpha``, ``membership``, ``refine``, ``runs``, ``seed``, ``workers``,
        ``progress``, ``cache`` and options of the test, as of :func:`sample_size`.

    Notes
    -----
    **Privacy** Public assumptions only: no data is read, and no budget is spent.

    Examples
    --------
    >>> from privatest.planning import expected_power
    >>> from privatest.simulation import shift
    >>> expected_power("mann-whitney", shift(0.3), n=180, epsilon=1).power > 0.6
    True
    """
    study = Study.of(test, effect, epsilon, **settings)
    sizes = sizes_of(n, effect.question)
    curve = study.curve
    if curve is not None:
        return study.plan("power", sizes, power=study.tabulated(effect, sizes, study.epsilon))
    found = study.simulated(study.runs)(effect, n, study.epsilon, 0)
    return study.plan("power", sizes, power=found.rate, low=found.low, high=found.high)


def sample_size(
    test: str | Callable[..., Any],
    effect: Sampler,
    power: float = 0.8,
    *,
    epsilon: float,
    delta: float = 0.0,
    alpha: float = 0.05,
    membership: str = "public",
    refine: bool = False,
    runs: int = 300,
    seed: int = 0,
    workers: int = 1,
    progress: bool | Callable[[int, int], object] = False,
    cache: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Plan:
    """Return how many people a test needs to see an effect.

    Parameters
    ----------
    test : str or callable
        A method by its name on the command line, or a function of privatest.
    effect : Sampler
        What is assumed of the data, such as ``privatest.simulation.shift(0.3)``.
    power : float
        How often the test should reject, if that is true.
    epsilon, delta, alpha : float
        Budget and level of the test.
    membership : {"public", "private"}
        Of two groups: whether everybody may know who is in which.
    refine : bool
        Whether to simulate even where the tables have an answer.
    runs, seed, workers, progress, cache
        Of the simulation, as of :func:`privatest.simulation.power`; ``runs`` of the last
        of its rounds.
    **options
        Passed to the test; the tables are for a test without options.

    Returns
    -------
    Plan
        With ``n`` in each group, or in all; and ``without_noise``, what the same test would
        need without noise.

    Notes
    -----
    **Privacy** Public assumptions only: no data is read, and no budget is spent.

    Examples
    --------
    >>> from privatest.planning import sample_size
    >>> from privatest.simulation import shift
    >>> plan = sample_size("mann-whitney", shift(0.5), epsilon=1)
    >>> 50 < plan.n[0] < 150
    True
    """
    settings = {"delta": delta, "alpha": alpha, "membership": membership, "refine": refine}
    settings |= {"runs": runs, "seed": seed, "workers": workers, "progress": progress}
    study = Study.of(test, effect, epsilon, cache=cache, **settings, **options)
    target = study.target(power)
    refuse_none(effect)
    n, found = study.people(target, study.epsilon)
    free = study.people(target, NO_NOISE)[0]
    assert n is not None
    sizes = sizes_of(n, effect.question)
    return study.plan("n", sizes, target=target, without_noise=free, found=found)


def detectable_effect(
    test: str | Callable[..., Any],
    effect: Sampler,
    power: float = 0.8,
    *,
    n: Sizes,
    epsilon: float,
    **settings: Any,
) -> Plan:
    """Return the smallest effect that a test sees with the wanted power at a size.

    Parameters
    ----------
    test : str or callable
        A method by its name on the command line, or a function of privatest.
    effect : Sampler
        The kind of effect; its size only says in which direction.
    power, epsilon
        As of :func:`sample_size`.
    n : int or (int, int)
        People in each group, or in all.
    **settings
        As of :func:`expected_power`.

    Notes
    -----
    **Privacy** Public assumptions only: no data is read, and no budget is spent.
    """
    study = Study.of(test, effect, epsilon, **settings)
    target, sizes = study.target(power), sizes_of(n, effect.question)
    most = largest(effect)

    def measure(value: float, runs: int, step: int) -> Power:
        return study.simulated(runs)(sized(effect, value), n, study.epsilon, step)

    found = None
    if study.curve is not None:
        value = solve(
            lambda own: study.tabulated(sized(effect, own), sizes, study.epsilon),
            target,
            most / 1e4,
            most,
        )
        best = study.tabulated(sized(effect, most), sizes, study.epsilon)
    else:
        found = find(measure, target, most / 8, most / 1e3, most, study.runs)
        value, best = found.value, found.last.rate
    if value is None:
        raise ParameterError(
            f"power {target:g} cannot be reached: the largest {effect.kind.replace('_', ' ')} that "
            f"the bounds allow, {sized(effect, most).effect:.3g}, has power {best:.2f} at this n "
            "and epsilon. Ask for more people, a larger epsilon, or another test."
        )
    return replace(study, effect=sized(effect, value)).plan(
        "effect", sizes, target=target, found=found
    )


def epsilon_needed(
    test: str | Callable[..., Any],
    effect: Sampler,
    power: float = 0.8,
    *,
    n: Sizes,
    **settings: Any,
) -> Plan:
    """Return the smallest epsilon at which a test sees an effect with the wanted power.

    Parameters
    ----------
    test, effect, power
        As of :func:`sample_size`.
    n : int or (int, int)
        People in each group, or in all.
    **settings
        As of :func:`expected_power`.

    Notes
    -----
    **Privacy** Public assumptions only: no data is read, and no budget is spent.
    """
    study = Study.of(test, effect, 1.0, **settings)
    target, sizes = study.target(power), sizes_of(n, effect.question)
    refuse_none(effect)
    found = None
    if study.curve is not None:
        own = partial(study.tabulated, effect, sizes)
        value, best = solve(own, target, 1e-4, _LARGEST_EPSILON), own(NO_NOISE)
    else:

        def measure(value: float, runs: int, step: int) -> Power:
            return study.simulated(runs)(effect, n, value, step)

        found = find(measure, target, 1.0, 1e-3, _LARGEST_EPSILON, study.runs)
        value, best = found.value, found.last.rate
    if value is None:
        raise ParameterError(
            f"power {target:g} cannot be reached at this n by any epsilon: without noise the same "
            f"test has power {best:.2f}, because of sampling error alone. Ask for more people."
        )
    return replace(study, epsilon=value).plan("epsilon", sizes, target=target, found=found)


def price_of_privacy(
    test: str | Callable[..., Any],
    effect: Sampler,
    power: float = 0.8,
    *,
    epsilons: Sequence[float] = _EPSILONS,
    **settings: Any,
) -> Prices:
    """Return how many people a test needs at several epsilons, and without noise.

    Parameters
    ----------
    test, effect, power
        As of :func:`sample_size`.
    epsilons : sequence of float
        Where to ask. One at which no size reaches the power is left out.
    **settings
        As of :func:`sample_size`; the tables answer at once where they have the test.

    Notes
    -----
    **Privacy** Public assumptions only: no data is read, and no budget is spent.

    Examples
    --------
    >>> from privatest.simulation import shift
    >>> prices = price_of_privacy("mann-whitney", shift(0.5), epsilons=(0.5, 1, 2))
    >>> people = [each for _, each in prices.points]
    >>> people == sorted(people, reverse=True)
    True
    """
    plans, last = [], ParameterError("epsilons must not be empty.")
    for epsilon in sorted(number("epsilons", each, above=0) for each in epsilons):
        try:
            plans.append(sample_size(test, effect, power, epsilon=epsilon, **settings))
        except ParameterError as error:
            last = error
    if not plans:
        raise last
    one = plans[-1]
    return Prices(
        one.question,
        one.test,
        one.kind,
        one.effect,
        power,
        one.alpha,
        one.membership,
        tuple((plan.epsilon, float(plan.n[0])) for plan in plans),
        one.without_noise,
        one.source,
    )
