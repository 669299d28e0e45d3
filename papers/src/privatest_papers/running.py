"""Run an experiment: in parallel, from seeds, and from where it was interrupted."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from privatest.core.validation import integer_at_least
from privatest.planning.simulation import RunCache, run_all, run_seeds
from privatest_papers.experiment import Arm, Experiment, Plain, Point, Study
from privatest_papers.results import Row, Rows

__all__ = ["QUICK", "run_experiment"]

QUICK = 4  # runs that show that everything works, and no more
_FEWEST = 2


def run_experiment(
    experiment: Experiment,
    *,
    runs: int | None = None,
    methods: Sequence[str] = (),
    seed: int = 0,
    workers: int = 1,
    cache: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Rows:
    """Run the methods of an experiment at all its points.

    Parameters
    ----------
    experiment : Experiment
        Of :func:`privatest_papers.entries.experiment`.
    runs : int, optional
        Simulated studies at each point; as many as in the paper by default.
    methods : sequence of str
        Some of its methods; all by default.
    seed : int
        Data, public randomness and simulated noise follow from it.
    workers : int
        Processes. The answer does not depend on it.
    cache : path, optional
        A file of JSON lines that keeps finished studies: what was interrupted goes on there,
        and more runs use those of fewer.
    progress : callable, optional
        Is told how many studies are done, of how many.

    Notes
    -----
    **Privacy** None: data is made up or public, and noise is simulated.
    """
    wanted = integer_at_least("runs", experiment.runs if runs is None else runs, 1)
    chosen = [a for a in experiment.arms if not methods or set(methods) & set(a.names)]
    jobs = [(arm, points) for arm in chosen for points in _studies(experiment.points)]
    total = sum(_runs(arm, wanted) for arm, _ in jobs)
    rows: list[Row] = []
    done = 0

    def told(more: int) -> None:
        if progress is not None:
            progress(done + more, total)

    for arm, points in jobs:
        count = _runs(arm, wanted)
        about = {
            "experiment": experiment.name,
            "methods": list(arm.names),
            "study": dict(points[0].study),
            "settings": [dict(point.settings) for point in points],
            "seed": seed,
        }
        one = partial(
            _block,
            run=arm.run,
            study=dict(points[0].study),
            settings=tuple(dict(point.settings) for point in points),
        )
        found = run_all(one, run_seeds(seed, count), RunCache.open(cache, about), workers, told)
        rows += _rows(arm, points, found)
        done += count
    return Rows(experiment.name, tuple(rows))


def _runs(arm: Arm, wanted: int) -> int:
    return wanted if wanted <= _FEWEST else max(_FEWEST, math.ceil(arm.share * wanted))


def _studies(points: Sequence[Point]) -> Iterator[list[Point]]:
    """Gather the points whose data are the same."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(json.dumps(dict(point.study), sort_keys=True), []).append(point)
    yield from groups.values()


def _block(
    seeds: tuple[int, ...], run: Study, study: Plain, settings: tuple[Plain, ...]
) -> list[list[list[float | None]]]:
    """Run some studies; each depends on its own seed only."""
    return [
        [[None if v is None else float(v) for v in values] for values in run(study, settings, seed)]
        for seed in seeds
    ]


def _rows(
    arm: Arm, points: Sequence[Point], found: Sequence[Sequence[Sequence[float | None]]]
) -> Iterator[Row]:
    for place, name in enumerate(arm.names):
        for column, point in enumerate(points):
            values = [study[place][column] for study in found]
            known = [value for value in values if value is not None]
            if known:
                squares = math.fsum(value * value for value in known)
                yield Row(point.panel, point.x, name, arm.by, len(known), math.fsum(known), squares)
