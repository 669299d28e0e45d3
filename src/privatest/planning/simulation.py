"""Power by simulation: how often a test rejects in studies with made-up data."""

from __future__ import annotations

import inspect
import json
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from privatest.core.documents import fingerprint
from privatest.core.errors import ParameterError
from privatest.core.noise import SimulatedNoise
from privatest.core.privacy import Budget
from privatest.core.results import ReleasedFacts
from privatest.core.validation import integer_at_least, number, one_of
from privatest.planning.samplers import Sampler, Sizes, sizes_of
from privatest.requests.catalogue import METHODS, Method, find

MEMBERSHIPS = ("public", "private")
_BLOCK = 25  # runs that are done, and stored, at once
_LEVEL = 0.95


@dataclass(slots=True)
class RunCache:
    """Finished runs in a file of JSON lines, so that an interrupted simulation continues.

    Only made-up data is ever in such a file: whether a test rejected, or a list of numbers.
    """

    path: Path | None
    key: str
    blocks: dict[int, list[Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: str | os.PathLike[str] | None, about: Mapping[str, Any]) -> RunCache:
        """Read the blocks of the simulation that ``about`` describes in full."""
        if path is None:
            return cls(None, "")
        if "<" in json.dumps(about):  # <lambda>, <locals>: another function may have this name
            raise ParameterError(
                "cache must be None for a test or a sampler that is not a function of a module: "
                "nothing tells it from others."
            )
        try:
            version = metadata.version("privatest")  # another one may test otherwise
        except metadata.PackageNotFoundError:
            version = "unknown"
        file = Path(path)
        try:
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        except (OSError, UnicodeDecodeError):
            raise ParameterError("cache must be a file of JSON lines that can be read.") from None
        cache = cls(file, fingerprint({**about, "version": version})[:16])
        for line in lines:
            try:
                entry = json.loads(line)
                if entry["key"] == cache.key:
                    cache.blocks[int(entry["first"])] = list(entry["found"])
            except (ValueError, KeyError, TypeError):
                continue  # a line that was cut short by an interruption
        return cache

    def find(self, first: int, count: int) -> list[Any] | None:
        """Return a stored block of runs."""
        known = self.blocks.get(first, [])
        return known[:count] if len(known) >= count else None

    def add(self, first: int, found: list[Any]) -> None:
        """Write a block; a line at a time, so that nothing is lost but the last one."""
        if self.path is None:
            return
        self.blocks[first] = found
        line = json.dumps({"key": self.key, "first": first, "found": found})
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{line}\n")
        except OSError as error:
            raise ParameterError(f"cache cannot be written: {error.strerror}.") from None


# --- a test by its name in the catalogue, or as a function ----------------------------------


def name_of(test: str | Callable[..., Any], question: str) -> str:
    """Return the catalogue's name of a test, or the function's own if it is not in there."""
    if isinstance(test, str):
        return find(question, test)[0]
    function: Any = test
    given: dict[str, Any] = {}
    if isinstance(test, partial):
        function, given = test.func, dict(test.keywords)
    function = inspect.unwrap(function)  # what a budget wraps is the same test
    known = inspect.signature(function).parameters
    for name, entry in METHODS[question].items():
        if inspect.unwrap(entry.function) is function and {*given} <= {*entry.preset}:
            values = {key: given.get(key, known[key].default) for key in entry.preset}
            if values == entry.preset:  # arguments and defaults are what the entry passes
                return name
    module = getattr(function, "__module__", "")
    name = getattr(function, "__qualname__", "")
    words = ", ".join(f"{key}={value!r}" for key, value in sorted(given.items()))
    return f"{module}.{name}" + (f"({words})" if words else "")


def check(
    test: str | Callable[..., Any], sampler: Sampler, membership: str, options: Mapping[str, Any]
) -> Method | None:
    """Refuse a test that such data does not fit; return the entry of one that is named."""
    one_of("membership", membership, MEMBERSHIPS)
    if callable(test):
        return None
    if not isinstance(test, str):
        raise ParameterError("test must be the name of a method, or a function of privatest.")
    name, entry = find(sampler.question, test)
    why = ""
    if membership == "private" and entry.public_groups:
        why = f"needs public membership: {entry.public_groups}"
    elif entry.one_column and sampler.columns > 1:
        why = "takes one numeric column"
    elif entry.needed:
        why = f"needs {', '.join(entry.needed)}"
    if why and not (entry.needed and {*entry.needed} <= {*options}):
        raise ParameterError(f"method {name} {why}.")
    return entry


def ready(
    test: str | Callable[..., Any], sampler: Sampler, membership: str, options: Mapping[str, Any]
) -> Callable[..., Any]:
    """Return a function of the samples, the budget and randomness."""
    entry = check(test, sampler, membership, options)
    given = dict(sampler.arguments(membership))
    if entry is not None:
        function = entry.function
        named = {entry.options.get(key, key): value for key, value in options.items()}
        given |= dict(entry.preset) | named
    else:
        assert callable(test)
        function, given = test, given | dict(options)
    known = inspect.signature(function).parameters
    if all(each.kind is not inspect.Parameter.VAR_KEYWORD for each in known.values()):
        unknown = {"bounds", "bounds_x", "bounds_y", "adjacency"} - known.keys()
        given = {name: value for name, value in given.items() if name not in unknown}
    return partial(function, **given)


def takes(function: Callable[..., Any], name: str) -> bool:
    """Return whether a function has a parameter of this name."""
    return name in inspect.signature(function).parameters


# --- how often a test rejects ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Power(ReleasedFacts):
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
    cached = RunCache.open(cache, about | {"sampler": sampler.described()})
    one = partial(_block, call=call, sampler=sampler, n=n, settings=settings)
    with _watched(progress, runs) as told:
        rejected = run_all(one, seeds, cached, workers, told)
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
    cache: RunCache,
    workers: int,
    told: Callable[[int], object],
) -> list[Any]:
    """Run what is not in the cache, in blocks of seeds, and add it; tell how many are done."""
    blocks = {start: seeds[start : start + _BLOCK] for start in range(0, len(seeds), _BLOCK)}
    found = {start: cache.find(start, len(block)) for start, block in blocks.items()}
    waiting = [start for start, known in found.items() if known is None]
    done = sum(len(known) for known in found.values() if known is not None)
    told(done)
    for start, answers in zip(
        waiting, _mapped(one, [blocks[s] for s in waiting], workers), strict=True
    ):
        cache.add(start, answers)
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
