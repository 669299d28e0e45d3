"""What was run again beside what was published, and ours beside the paper's best."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from privatest_papers.experiment import By, Experiment
from privatest_papers.results import Row, Rows

__all__ = ["Against", "Published", "against_best", "against_published"]


@dataclass(frozen=True, slots=True)
class Published:
    """A published value, and the same method run again.

    Parameters
    ----------
    panel, x, method
        Where, and what.
    value, found : float
        Of the paper, and now.
    error : float
        Standard error of their difference.
    """

    panel: str
    x: float
    method: str
    value: float
    found: float
    error: float

    @property
    def errors(self) -> float:
        """How many standard errors they differ by."""
        return abs(self.found - self.value) / self.error if self.error else math.inf

    @property
    def share(self) -> float:
        """How far they differ, of the published value."""
        return abs(self.found / self.value - 1)


@dataclass(frozen=True, slots=True)
class Against:
    """Our best method at a point, and the paper's best.

    Parameters
    ----------
    panel, x
        Where.
    ours, paper : Row
        What was found.
    gain : float
        Power that ours has more, or the share by which its distance is less.
    error : float
        Its standard error.
    """

    panel: str
    x: float
    ours: Row
    paper: Row
    gain: float
    error: float

    @property
    def worse(self) -> bool:
        """Whether ours is behind by more than two standard errors."""
        return self.gain < -2 * self.error


def against_published(experiment: Experiment, rows: Rows) -> list[Published]:
    """Compare all published values whose methods were run again.

    The error of a published rate is that of as many runs as the paper has. A published distance
    is one release, and its error that of one: what single runs scatter by.
    """
    found = []
    for point in experiment.points:
        for method, value in point.published.items():
            row = _at(rows.at(point.panel, method), point.x)
            if row is None:
                continue
            if experiment.measure == "distance":
                error = row.error * math.sqrt(row.runs + 1)
            else:
                # the pooled rate, so that rates of 0 and 1 have an error too
                runs = experiment.runs
                rate = (row.total + value * runs + 0.5) / (row.runs + runs + 1)
                error = math.sqrt(rate * (1 - rate) * (1 / row.runs + 1 / runs))
            found.append(Published(point.panel, point.x, method, value, row.mean, error))
    return found


def against_best(experiment: Experiment, rows: Rows) -> list[Against]:
    """Compare our best method with the paper's best at every point where both were run.

    Methods without their level, or without privacy, are no yardstick and are left out.
    """
    if experiment.measure == "level":
        return []
    found = []
    for point in experiment.points:
        here = [row for row in rows.rows if row.panel == point.panel and _same(row.x, point.x)]
        ours, paper = (_best(experiment, here, by) for by in ("ours", "paper"))
        if ours is None or paper is None:
            continue
        gain, error = ours.mean - paper.mean, math.hypot(ours.error, paper.error)
        if experiment.measure == "distance":
            gain, error = -gain / paper.mean, error / paper.mean
        found.append(Against(point.panel, point.x, ours, paper, gain, error))
    return found


def _best(experiment: Experiment, rows: Iterable[Row], by: By) -> Row | None:
    own = [r for r in rows if r.by == by and r.method not in experiment.no_yardstick]
    sign = -1 if experiment.measure == "distance" else 1
    return max(own, key=lambda row: sign * row.mean, default=None)


def _at(rows: Iterable[Row], x: float) -> Row | None:
    return next((row for row in rows if _same(row.x, x)), None)


def _same(first: float, second: float) -> bool:
    return math.isclose(first, second, rel_tol=1e-9)
