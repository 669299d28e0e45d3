"""What an experiment of a paper is: settings, methods, and the numbers that were published.

An entry is data and functions; :mod:`privatest_papers.running` runs them all in one way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["Arm", "By", "Experiment", "Measure", "Plain", "Point", "Study"]

Plain = Mapping[str, Any]
By = Literal["paper", "ours"]
Measure = Literal["power", "level", "distance"]
# (what is drawn, what the tests are given at each point, seed): a value of each method at each
# point; None where a method cannot be run there
Study = Callable[[Plain, Sequence[Plain], int], Sequence[Sequence[float | None]]]


@dataclass(frozen=True, slots=True)
class Point:
    """One place of a figure, or one cell of a table.

    Parameters
    ----------
    panel : str
        The part of the figure that it stands in.
    x : float
        Its place there.
    study : mapping
        What data is drawn. Points with equal studies share their data.
    settings : mapping
        What only the tests are given, epsilon above all.
    published : mapping
        Values that the paper gives, by method.
    """

    panel: str
    x: float
    study: Plain
    settings: Plain
    published: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arm:
    """Methods that are run together, because they share most of their work.

    Parameters
    ----------
    names : tuple of str
        What they are called, in the order of their values.
    by : {"paper", "ours"}
        Whose they are.
    run : callable
        One simulated study; a function of a module, so that other processes can be given it.
    share : float
        Of the runs that are asked for: less for what takes long.
    """

    names: tuple[str, ...]
    by: By
    run: Study
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Experiment:
    """A figure or a table that can be run again.

    Parameters
    ----------
    name : str
        On the command line.
    paper, figure : str
        Where it stands.
    title : str
        What is compared, in a few words.
    says : str
        What the picture shows, for its page.
    differs : str
        Where ours differ from the paper's, and why.
    proofs : tuple of str
        Pages of docs/proofs that show it.
    measure : {"power", "level", "distance"}
        What is drawn. For a distance less is better.
    axis : str
        What x is.
    points, arms
        Where, and which methods.
    runs : int
        As many as in the paper.
    log : bool
        Whether x is drawn on a logarithmic axis.
    alpha : float
        Level of the tests.
    columns : int
        Panels in a row.
    no_yardstick : tuple of str
        Methods that reject too often, or are not private: ours is not measured by them.
    """

    name: str
    paper: str
    figure: str
    title: str
    says: str
    differs: str
    proofs: tuple[str, ...]
    measure: Measure
    axis: str
    points: tuple[Point, ...]
    arms: tuple[Arm, ...]
    runs: int
    log: bool = False
    alpha: float = 0.05
    columns: int = 3
    no_yardstick: tuple[str, ...] = ()

    @property
    def panels(self) -> list[str]:
        """The parts of the figure, in order."""
        return list(dict.fromkeys(point.panel for point in self.points))

    @property
    def methods(self) -> dict[str, By]:
        """All methods, and whose they are."""
        return {name: arm.by for arm in self.arms for name in arm.names}
