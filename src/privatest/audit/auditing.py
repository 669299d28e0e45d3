"""An audit of a test: its neighbours, their paths, their numbers, their outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from privatest.audit.cases import Case, cases
from privatest.audit.distinguishing import Distinguished, distinguish
from privatest.audit.replay import Worst, search
from privatest.core.validation import integer_at_least, number

__all__ = ["Audited", "audit"]


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit of one case found.

    Attributes
    ----------
    case : str
        The test, and which groups it was asked about.
    epsilon, delta : float
        What it claims.
    worst : Worst
        The neighbours whose numbers moved furthest before noise.
    distinguished : Distinguished
        What their outputs tell.
    """

    case: str
    epsilon: float
    delta: float
    worst: Worst
    distinguished: Distinguished

    @property
    def holds(self) -> bool:
        """Whether nothing was found against the claim."""
        return self.worst.holds and self.distinguished.epsilon <= self.epsilon

    @property
    def caught_by(self) -> str:
        """Which attack found something, "" if none did."""
        if self.worst.path:
            return "record and replay"
        if not self.worst.holds:
            return "sensitivity"
        return "" if self.holds else "distinguishing"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "test": self.case,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "holds": self.holds,
            "caught_by": self.caught_by,
            "pairs": self.worst.pairs,
            "worst_ratio": self.worst.ratio,
            "mechanism": self.worst.mechanism,
            "path": self.worst.path,
            "runs": self.distinguished.runs,
            "epsilon_at_least": self.distinguished.epsilon,
            "event": self.distinguished.event,
        }


def audit(
    test: str,
    *,
    epsilon: float = 1.0,
    pairs: int = 60,
    runs: int = 2000,
    seed: int = 1,
    progress: Callable[[str], None] | None = None,
) -> list[Audited]:
    """Attack a test of the catalogue with made-up people, and say what was found.

    Parameters
    ----------
    test : str
        Question and method, such as ``"two-sample/mmd"``; ``privatest.audit.NAMES`` lists them.
    epsilon : float
        What it shall spend.
    pairs : int
        Pairs of neighbours whose numbers before noise are compared.
    runs : int
        Runs with secret noise on each of the worst neighbours; 0 leaves them out.
    seed : int
        Of the search for neighbours. Noise of the runs cannot be seeded.
    progress : callable, optional
        Is told which case is attacked.

    Returns
    -------
    list of Audited
        One for each way to ask: private and public groups, for example.

    Notes
    -----
    **Privacy**: no private data is used; rows are made up. An audit can find a violation; that it
    finds none is no proof. The proofs are in docs/proofs.

    Examples
    --------
    >>> from privatest.audit import audit
    >>> found = audit("paired/sign", pairs=12, runs=0)
    >>> [each.holds for each in found]
    [True]
    """
    number("epsilon", epsilon, above=0)
    integer_at_least("pairs", pairs, 1)
    integer_at_least("runs", runs, 0)
    return [_audited(case, pairs, runs, seed, progress) for case in cases(test, epsilon)]


def _audited(
    case: Case, pairs: int, runs: int, seed: int, progress: Callable[[str], None] | None
) -> Audited:
    if progress is not None:
        progress(case.name)
    epsilon, delta = case.budget.as_floats
    worst, told = search(case, pairs=pairs, seed=seed), Distinguished()
    if runs and worst.pair is not None:
        told = distinguish(case, worst.pair, runs=runs, delta=delta, most=epsilon)
    return Audited(case.name, epsilon, delta, worst, told)
