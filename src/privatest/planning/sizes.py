"""Power, sample size, detectable effect and epsilon: one curve, read in four directions."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from privatest.core.errors import ParameterError
from privatest.planning.answers import Plan
from privatest.planning.search import find, solve
from privatest.planning.study import NO_NOISE, Study, largest, refuse_none, sized
from privatest.simulation.running import Power
from privatest.simulation.sampler import Sampler, Sizes, sizes_of

__all__ = ["detectable_effect", "epsilon_needed", "expected_power", "sample_size"]

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
