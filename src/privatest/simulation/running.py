"""How often a test rejects, measured on imagined studies."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from privatest.core.errors import ParameterError
from privatest.core.noise import SimulatedNoise
from privatest.core.privacy import Budget
from privatest.core.results import Released
from privatest.core.validation import integer_at_least, number
from privatest.simulation.keeping import Kept
from privatest.simulation.named_tests import name_of, ready, takes
from privatest.simulation.sampler import Sampler, Sizes, sizes_of

__all__ = ["Power", "clopper_pearson", "power", "run_all", "run_seeds"]

_BLOCK = 25  # runs that are done, and kept, at once
_LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Power(Released):
    """How often a test rejected in simulated studies. It says nothing about any real data.

    Attributes
    ----------
    rate : float
        Share of runs that rejected.
    low, high : float
        Clopper–Pearson interval of the power, at level .95.
    rejections, runs : int
        What the rate is made of.
    test, assumed : str
        Which test, and what was assumed of the data.
    sizes : tuple of int
        People in each group, or in all.
    epsilon, delta, alpha : float
        Budget and level.
    membership : {"public", "private"}
        Whether groups are public.
    seed : int
        From which everything follows.
    seeds : tuple of int
        Those of the single runs.
    """

    rate: float
    low: float
    high: float
    rejections: int
    runs: int
    test: str
    assumed: str
    sizes: tuple[int, ...]
    epsilon: float
    delta: float
    alpha: float
    membership: str
    seed: int
    seeds: tuple[int, ...]

    @property
    def simulated(self) -> bool:
        """True: noise and data are made up, from a seed."""
        return True

    def __str__(self) -> str:
        """Say the rate, its interval and what was assumed."""
        people = " and ".join(f"{size:,}" for size in self.sizes)
        return (
            f"{self.test} rejects in {self.rate:.1%} of {self.runs:,} simulated studies "
            f"(95% interval {self.low:.1%} to {self.high:.1%}): {self.assumed}, n = {people}, "
            f"epsilon = {self.epsilon:g}, alpha = {self.alpha:g}.\n"
            "Simulated data and noise: this costs no budget, and says nothing about anybody."
        )


def power(
    test: str | Callable[..., Any],
    sampler: Sampler,
    *,
    n: Sizes,
    epsilon: float,
    delta: float = 0.0,
    alpha: float = 0.05,
    membership: str = "public",
    runs: int = 400,
    seed: int = 0,
    workers: int = 1,
    progress: bool | Callable[[int, int], object] = False,
    cache: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Power:
    """Return how often a private test rejects, if the data were as the sampler draws it.

    Parameters
    ----------
    test : str or callable
        A method of the sampler's question by its name on the command line, or a function such
        as :func:`privatest.mannwhitneyu`.
    sampler : Sampler
        What is assumed of the data.
    n : int or (int, int)
        People in each of two groups, or in all.
    epsilon, delta, alpha : float
        Budget and level of the test.
    membership : {"public", "private"}
        Of two groups: whether everybody may know who is in which.
    runs : int
        How many studies are simulated.
    seed : int
        Data, public randomness and simulated noise follow from it.
    workers : int
        Processes. The answer does not depend on it.
    progress : bool or callable
        True shows a bar; a function is told how many runs are done, of how many.
    cache : path, optional
        A file of JSON lines that keeps finished runs: what was interrupted goes on there.
    **options
        Passed to the test.

    Notes
    -----
    **Privacy** No private computation: data is made up, and noise is simulated from a seed, so
    that nothing here may be published as private. It reads nobody's data and costs no budget.

    Examples
    --------
    >>> from privatest.simulation import power, shift
    >>> power("mann-whitney", shift(1.0), n=100, epsilon=1, runs=50).rate > 0.9
    True
    """
    budget = Budget(epsilon, delta)
    alpha = number("alpha", alpha, above=0, below=1)
    runs, seed = integer_at_least("runs", runs, 1), integer_at_least("seed", seed, 0)
    workers = integer_at_least("workers", workers, 1)
    if not isinstance(sampler, Sampler):
        raise ParameterError("sampler must be a Sampler, such as shift(0.3).")
    sizes = sizes_of(n, sampler.question)
    call = ready(test, sampler, membership, options)
    name = name_of(test, sampler.question)
    epsilon, delta = float(budget.epsilon), float(budget.delta)
    settings = {"epsilon": epsilon, "delta": delta, "alpha": alpha}
    about = {"test": name, "sizes": list(sizes), "membership": membership, "seed": seed}
    about |= settings | {"options": {key: repr(value) for key, value in sorted(options.items())}}
    seeds = run_seeds(seed, runs)
    kept = Kept.open(cache, about | {"sampler": sampler.described()})
    one = partial(_block, call=call, sampler=sampler, n=n, settings=settings)
    with _watched(progress, runs) as told:
        rejected = run_all(one, seeds, kept, workers, told)
    rejections = sum(rejected)
    low, high = clopper_pearson(rejections, runs)
    return Power(
        rejections / runs,
        low,
        high,
        rejections,
        runs,
        name,
        str(sampler),
        sizes,
        **settings,
        membership=membership,
        seed=seed,
        seeds=seeds,
    )


def run_seeds(seed: int, runs: int) -> tuple[int, ...]:
    """Return the seeds of single runs; more runs keep those of fewer."""
    state = np.random.SeedSequence(seed).generate_state(runs, np.uint64)
    return tuple(int(each) for each in state >> np.uint64(1))


def _block(
    seeds: tuple[int, ...],
    call: Callable[..., Any],
    sampler: Sampler,
    n: Sizes,
    settings: dict[str, float],
) -> list[bool]:
    """Run some studies; each depends on its own seed only."""
    found = []
    public = takes(getattr(call, "func", call), "rng")
    for seed in seeds:
        data = sampler.draw(n, np.random.default_rng([seed, 0]))
        more = {"rng": np.random.default_rng([seed, 1])} if public else {}
        result = call(*data, **settings, **more, noise=SimulatedNoise(seed))
        found.append(bool(result.reject))
    return found


def run_all(
    one: Callable[[tuple[int, ...]], list[Any]],
    seeds: tuple[int, ...],
    kept: Kept,
    workers: int,
    told: Callable[[int], object],
) -> list[Any]:
    """Run what is not kept yet, in blocks of seeds, and keep it; tell how many are done."""
    blocks = {start: seeds[start : start + _BLOCK] for start in range(0, len(seeds), _BLOCK)}
    found = {start: kept.find(start, len(block)) for start, block in blocks.items()}
    waiting = [start for start, known in found.items() if known is None]
    done = sum(len(known) for known in found.values() if known is not None)
    told(done)
    for start, answers in zip(
        waiting, _mapped(one, [blocks[s] for s in waiting], workers), strict=True
    ):
        kept.keep(start, answers)
        found[start] = answers
        done += len(answers)
        told(done)
    return [answer for start in blocks for answer in found[start] or ()]


def _mapped(
    one: Callable[[tuple[int, ...]], list[Any]], blocks: list[tuple[int, ...]], workers: int
) -> Iterator[list[Any]]:
    if workers == 1 or len(blocks) < 2:
        yield from map(one, blocks)
        return
    try:
        pickle.dumps(one)
    except (pickle.PicklingError, AttributeError, TypeError):
        raise ParameterError(
            "workers must be 1 for a test or a sampler that is not a function of a module: other "
            "processes cannot be given it."
        ) from None
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 -- half a plan needs none

    with ProcessPoolExecutor(min(workers, len(blocks)), initializer=_one_thread) as pool:
        yield from pool.map(one, blocks)


def _one_thread() -> None:
    """Leave the other processors to the other processes, whose threads would wait for these."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415

    threadpool_limits(1, user_api="blas")


@contextmanager
def _watched(
    progress: bool | Callable[[int, int], object], runs: int
) -> Iterator[Callable[[int], object]]:
    """Give what is told how many runs are done: it tells a function, or shows a bar."""
    if callable(progress):
        yield lambda done: progress(done, runs)
    elif not progress:
        yield lambda _: None
    else:
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import Progress  # noqa: PLC0415

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("Simulating studies", total=runs)
            yield lambda done: bar.update(task, completed=done)


def clopper_pearson(successes: int, runs: int) -> tuple[float, float]:
    """Return the exact interval of a rate, at level .95."""
    from scipy.special import betaincinv  # noqa: PLC0415

    tail = (1 - _LEVEL) / 2
    low = 0.0 if successes == 0 else betaincinv(successes, runs - successes + 1, tail)
    high = 1.0 if successes == runs else betaincinv(successes + 1, runs - successes, 1 - tail)
    return float(low), float(high)
