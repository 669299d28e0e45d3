"""Power, sample size, detectable effect and epsilon of a study: by tables or by simulation."""

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
from privatest.planning.tables import PowerCurve, curve_of, effective, tables_source

NO_NOISE = 1e3  # epsilon at which noise no longer matters
_EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
_LARGEST_EPSILON = 50.0
_MOST_PEOPLE = 10**9  # by tables
_MOST_SIMULATED = 50_000
_CURVE_STEPS = tuple(1.25**step for step in range(-8, 7))  # of a drawn curve, around the answer
_ROUNDS = (0.5, 1.0)  # shares of the runs: the first to come near, the last to be sure
_BRACKET_STEP = 1.5  # from one value to the next, until the target is between two
Measure = Callable[[float, int, int], Power]  # from a value, runs and a round


# --- where a power curve reaches a target ---------------------------------------------------


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


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A value, the power there, and all measured points; no value if none has the power."""

    value: float | None
    last: Power
    measured: tuple[tuple[float, Power], ...]

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """Values and powers, in order."""
        return tuple((value, power.rate) for value, power in self._ordered)

    @property
    def band(self) -> tuple[tuple[float, float], ...]:
        """The interval of the power at each point."""
        return tuple((power.low, power.high) for _, power in self._ordered)

    @property
    def _ordered(self) -> list[tuple[float, Power]]:
        return sorted(self.measured, key=lambda each: (each[0], each[1].rate))


def search(
    measure: Measure, target: float, start: float, low: float, high: float, runs: int
) -> SearchResult:
    """Return where a test has the wanted power: a bracket by few runs, then more near it.

    The power is taken to be a probit curve in the logarithm of the value, which it nearly is
    close to the target.
    """
    measured: list[tuple[float, Power]] = []

    def look(value: float, runs: int) -> Power:
        power = measure(value, runs, len(measured))
        measured.append((float(value), power))
        return power

    value, few = min(max(start, low), high), max(runs // 8, 20)
    for _ in range(40):  # until the target is between two values
        rates = [(at, power.rejections / power.runs) for at, power in measured]
        below = max((at for at, rate in rates if rate < target), default=0.0)
        above = min((at for at, rate in rates if rate >= target), default=math.inf)
        if (below and math.isfinite(above)) or below >= high or above <= low:
            break
        if measured:
            value = min(_BRACKET_STEP * below, high) if below else max(above / _BRACKET_STEP, low)
        last = look(value, few)
    if below >= high:
        last = look(high, runs)
        if last.rate < target:
            return SearchResult(None, last, tuple(measured))
    for share in _ROUNDS:
        value = min(max(_crossing(measured, target), low), high)
        last = look(value, max(math.ceil(share * runs), few))
    value = min(max(_crossing(measured, target), low), high)
    return SearchResult(value, last, tuple(measured))


def _crossing(measured: Sequence[tuple[float, Power]], target: float) -> float:
    """Return where a probit curve through the points crosses the target."""
    from scipy.optimize import minimize  # noqa: PLC0415
    from scipy.special import ndtr, ndtri  # noqa: PLC0415

    points = [(value, power.rejections, power.runs) for value, power in measured]
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


# --- what is assumed of a study -------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlannedStudy:
    """A test, an assumed effect, a budget, and how power is simulated."""

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
    def of(cls, test: Any, effect: Any, epsilon: float, **settings: Any) -> PlannedStudy:
        """Check the assumptions; settings that are not of the study are options of the test."""
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
    def tables(self) -> PowerCurve | None:
        """The table's curve; where it may not be used, a simulation begins with it."""
        return curve_of(self.name, self.effect, self.membership, alpha=self.alpha, delta=self.delta)

    @property
    def curve(self) -> PowerCurve | None:
        """The table's curve, where it may be used."""
        return None if self.refine or self.options else self.tables

    def target(self, power: object) -> float:
        """Return the wanted power, which must be above the level."""
        wanted = number("power", power, above=0, below=1)
        if wanted <= self.alpha:
            raise ParameterError(
                f"power must be above alpha, {self.alpha:g}: so often a test rejects without any "
                "effect."
            )
        return wanted

    def check_effect(self) -> None:
        """Refuse an effect of 0, which no number of people can show."""
        if self.effect.strength == 0:
            raise ParameterError("effect must not be 0: nothing could be seen, with any n.")

    def tabulated(self, effect: Sampler, sizes: Sequence[int], epsilon: float) -> float:
        """Return the power by the tables."""
        curve = self.tables
        assert curve is not None
        own = effective(self.name, effect, epsilon)
        return curve.power(effect.strength, sizes, epsilon if own is None else own)

    def simulate(self, effect: Sampler, n: Sizes, epsilon: float, runs: int, step: int) -> Power:
        """Simulate studies; each round has another seed."""
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

    def people(self, target: float, epsilon: float) -> tuple[int | None, SearchResult | None]:
        """Return how many people the target takes, and what was simulated for it."""
        start, words = 100.0, self.effect.kind.replace("_", " ")
        if self.tables is not None:

            def table(n: float) -> float:
                people = math.ceil(n)
                two = self.effect.question == "two-sample"
                return self.tabulated(self.effect, (people, people) if two else (people,), epsilon)

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
            return self.simulate(self.effect, math.ceil(value), epsilon, runs, step)

        found = search(measure, target, start, 4.0, _MOST_SIMULATED, self.runs)
        if found.value is not None:
            return math.ceil(found.value), found
        if epsilon == NO_NOISE:
            return None, found
        raise ParameterError(
            f"power {target:g} was not reached with {_MOST_SIMULATED:,} people: it is "
            f"{found.last.rate:.2f} there. The test may not see a {words}, or epsilon is too "
            "small: privatest.planning.recommend ranks the tests that fit."
        )

    def plan(
        self,
        wanted: str,
        sizes: tuple[int, ...],
        *,
        found: SearchResult | None = None,
        power: float | None = None,
        **more: Any,
    ) -> Plan:
        """Return the answer with its curve, its source and the noise."""
        curve, tables = self.curve, self.tables
        ratio = None
        if tables is not None and tables.weights:
            own = effective(self.name, self.effect, self.epsilon)
            ratio = None if own is None else tables.noise_ratio(sizes, own)
        source = "simulation"
        points: tuple[tuple[float, float], ...] = ()
        if curve is not None:
            source = tables_source(sizes, self.epsilon)
            points = self._drawn_curve(wanted, sizes)
            if wanted != "epsilon":
                quiet = replace(self, epsilon=NO_NOISE)
                more |= {"curve_without_noise": quiet._drawn_curve(wanted, sizes)}
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

    def _drawn_curve(self, wanted: str, sizes: tuple[int, ...]) -> tuple[tuple[float, float], ...]:
        """Return the curve around the answer, within the bounds."""
        points = []
        for step in _CURVE_STEPS:
            if wanted in ("n", "power"):
                own = tuple(max(2, round(size * step)) for size in sizes)
                points.append((float(own[0]), self.tabulated(self.effect, own, self.epsilon)))
            elif wanted == "epsilon":
                value = self.epsilon * step
                points.append((value, self.tabulated(self.effect, sizes, value)))
            else:
                other = self.effect.with_size(
                    min(self.effect.size * step, self.effect.largest_size())
                )
                points.append((other.effect, self.tabulated(other, sizes, self.epsilon)))
        return tuple(dict.fromkeys(points))


# --- the public functions -------------------------------------------------------------------


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
    study = PlannedStudy.of(test, effect, epsilon, **settings)
    sizes = sizes_of(n, effect.question)
    curve = study.curve
    if curve is not None:
        return study.plan("power", sizes, power=study.tabulated(effect, sizes, study.epsilon))
    found = study.simulate(effect, n, study.epsilon, study.runs, 0)
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
    study = PlannedStudy.of(test, effect, epsilon, cache=cache, **settings, **options)
    target = study.target(power)
    study.check_effect()
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
    study = PlannedStudy.of(test, effect, epsilon, **settings)
    target, sizes = study.target(power), sizes_of(n, effect.question)
    most = effect.largest_size()

    def measure(value: float, runs: int, step: int) -> Power:
        return study.simulate(effect.with_size(value), n, study.epsilon, runs, step)

    found = None
    if study.curve is not None:
        value = solve(
            lambda own: study.tabulated(effect.with_size(own), sizes, study.epsilon),
            target,
            most / 1e4,
            most,
        )
        best = study.tabulated(effect.with_size(most), sizes, study.epsilon)
    else:
        found = search(measure, target, most / 8, most / 1e3, most, study.runs)
        value, best = found.value, found.last.rate
    if value is None:
        words, largest = effect.kind.replace("_", " "), effect.with_size(most).effect
        raise ParameterError(
            f"power {target:g} cannot be reached: the largest {words} that "
            f"the bounds allow, {largest:.3g}, has power {best:.2f} at this n "
            "and epsilon. Ask for more people, a larger epsilon, or another test."
        )
    return replace(study, effect=effect.with_size(value)).plan(
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
    study = PlannedStudy.of(test, effect, 1.0, **settings)
    target, sizes = study.target(power), sizes_of(n, effect.question)
    study.check_effect()
    found = None
    if study.curve is not None:
        own = partial(study.tabulated, effect, sizes)
        value, best = solve(own, target, 1e-4, _LARGEST_EPSILON), own(NO_NOISE)
    else:

        def measure(value: float, runs: int, step: int) -> Power:
            return study.simulate(effect, n, value, runs, step)

        found = search(measure, target, 1.0, 1e-3, _LARGEST_EPSILON, study.runs)
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
