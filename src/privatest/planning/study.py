"""What is assumed of a study, and its power by the tables or by simulation."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.core.validation import integer_at_least, number, one_of
from privatest.planning.answers import Plan
from privatest.planning.curves import Curve
from privatest.planning.search import Found, find, solve
from privatest.planning.tables import curve_of, effective, tables_source
from privatest.simulation.named_tests import MEMBERSHIPS, check, name_of
from privatest.simulation.running import Power
from privatest.simulation.running import power as simulated_power
from privatest.simulation.sampler import Sampler, Sizes

__all__ = ["NO_NOISE", "Study", "largest", "refuse_none", "sized"]

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
