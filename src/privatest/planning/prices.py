"""What privacy costs in people: the size that a test needs, over epsilon, and without noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.results import Released
from privatest.core.validation import number
from privatest.planning.sizes import sample_size
from privatest.simulation.sampler import Sampler

__all__ = ["Prices", "price_of_privacy"]

_EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True, eq=False)
class Prices(Released):
    """People that a test needs at several epsilons.

    Attributes
    ----------
    question, test, kind : str
        The question, the method, and what is assumed to differ.
    effect, target, alpha : float
        Effect, wanted power and level.
    membership : {"public", "private"}
        Whether groups are public.
    points : tuple of (float, float)
        Epsilon, and people in each group or in all.
    without_noise : int or None
        People that the same test needs without noise.
    source : str
        Tables with their date, or simulation.
    """

    question: str
    test: str
    kind: str
    effect: float
    target: float
    alpha: float
    membership: str
    points: tuple[tuple[float, float], ...]
    without_noise: int | None
    source: str

    @property
    def sentence(self) -> str:
        """What was asked, in words."""
        what = self.kind.replace("_", " ")
        return f"People to see a {what} of {self.effect:.3g} with power {self.target:g}"

    def __str__(self) -> str:
        """Print people by epsilon, and how many times those without noise."""
        lines = [f"{self.sentence}, {self.test}:"]
        for epsilon, people in self.points:
            times = "" if not self.without_noise else f"  {people / self.without_noise:.1f} times"
            lines.append(f"  epsilon {epsilon:<5g} {people:>10,.0f}{times}")
        if self.without_noise is not None:
            lines.append(f"  without noise {self.without_noise:>8,}")
        lines.append(f"From {self.source}; no data was read, and no budget spent.")
        return "\n".join(lines)


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
