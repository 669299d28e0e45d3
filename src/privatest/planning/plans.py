"""What planning answers: numbers that follow from public assumptions, and where they are from."""

from __future__ import annotations

from dataclasses import dataclass

from privatest.core.results import ReleasedFacts

_KINDS = {
    "heavy_tails": "shift (heavy tails)",
    "scale": "factor of spread",
    "mixture": "share of responders",
    "shape": "share of two peaks",
    "atoms": "difference of zeros",
    "proportions": "difference of shares",
    "tables": "difference of categories",
    "dependence": "correlation",
    "curve": "correlation with a square",
    "pilot": "shift of the pilot",
}
_GROUP = {True: "in each group", False: "in all"}
_MEMBERSHIP = {
    "public": "groups are taken to be public: everybody may know who is in which",
    "private": "groups are taken to be private: nobody may know who is in which",
}


def _effect(kind: str, effect: float) -> str:
    return f"a {_KINDS.get(kind, kind.replace('_', ' '))} of {effect:.3g}"


@dataclass(frozen=True, slots=True, eq=False)
class Plan(ReleasedFacts):
    """One answer about a study that has not begun.

    Attributes
    ----------
    wanted : {"power", "n", "effect", "epsilon"}
        What was asked for; it has its value below.
    question, test, kind : str
        The question, the method, and what is assumed to differ.
    n : tuple of int
        People in each group, or in all.
    effect, epsilon, delta, alpha : float
        Effect, budget and level.
    membership : {"public", "private"}
        Whether groups are public.
    power : float
        Expected power with these.
    low, high : float or None
        Its 95% interval, where it was simulated.
    target : float or None
        The power that was asked for.
    without_noise : int or None
        People that the same test needs for the target without noise: what privacy costs.
    noise_ratio : float or None
        Noise over sampling error, at this size and budget.
    source : str
        Tables with their date, or simulation with its runs.
    curve : tuple of (float, float)
        Points of the curve of what was asked for against power.
    curve_without_noise : tuple of (float, float)
        The same without noise, from the tables; empty where they have none.
    band : tuple of (float, float)
        Where each point of a simulated curve was counted: its 95% interval.
    """

    wanted: str
    question: str
    test: str
    kind: str
    n: tuple[int, ...]
    effect: float
    epsilon: float
    delta: float
    alpha: float
    membership: str
    power: float
    low: float | None = None
    high: float | None = None
    target: float | None = None
    without_noise: int | None = None
    noise_ratio: float | None = None
    source: str = ""
    curve: tuple[tuple[float, float], ...] = ()
    curve_without_noise: tuple[tuple[float, float], ...] = ()
    band: tuple[tuple[float, float], ...] = ()

    @property
    def price(self) -> float | None:
        """How many times the people that the test needs without noise; None if not asked."""
        if self.without_noise is None or self.wanted != "n":
            return None
        return self.n[0] / self.without_noise

    @property
    def sentence(self) -> str:
        """The answer in words."""
        people = " and ".join(f"{size:,}" for size in dict.fromkeys(self.n))
        where = _GROUP[self.question == "two-sample" and len(set(self.n)) == 1]
        about = _effect(self.kind, self.effect)
        budget, size = f"epsilon {self.epsilon:.3g}", f"n = {people} {where}"
        if self.wanted == "n":
            return (
                f"{self.test} needs {people} people {where} to see {about} at {budget} "
                f"with power {self.target:g}."
            )
        if self.wanted == "effect":
            return f"{self.test} sees {about} with power {self.target:g}: {size}, {budget}."
        if self.wanted == "epsilon":
            return f"{self.test} needs {budget} to see {about} with power {self.target:g}: {size}."
        return (
            f"{self.test} sees {about} with power {self.power:.2f}: n = {people} {where}, {budget}."
        )

    def __str__(self) -> str:
        """Print the answer, the price of privacy and the source."""
        lines = [self.sentence]
        if self.question == "two-sample":
            lines.append(f"  {_MEMBERSHIP[self.membership]}.")
        if self.low is not None and self.high is not None:
            lines.append(
                f"  simulated power near there: {self.power:.2f} [{self.low:.2f}, {self.high:.2f}]"
            )
        if self.price is not None:
            lines.append(
                f"  price of privacy: the same test without noise needs {self.without_noise:,}; "
                f"this is {self.price:.1f} times as many."
            )
        elif self.without_noise is not None:
            lines.append(
                f"  without noise the same test needs {self.without_noise:,} people for this."
            )
        if self.noise_ratio is not None:
            lines.append(f"  the noise is {self.noise_ratio:.2g} times sampling error.")
        lines.append(f"  from {self.source}; no data was read, and no budget spent.")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, eq=False)
class Choice(ReleasedFacts):
    """A test that fits, and what to expect of it.

    Attributes
    ----------
    method : str
        Its name on the command line.
    function : str
        Its name in Python.
    power : float or None
        Expected power; None where no table has it.
    people : int or None
        How many it needs, in each group or in all, for power .8.
    without_noise : int or None
        How many it would need without noise.
    reason : str
        Why it stands where it stands.
    """

    method: str
    function: str
    power: float | None
    people: int | None
    without_noise: int | None
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Recommendation(ReleasedFacts):
    """The tests of a question that fit, the most powerful first.

    Attributes
    ----------
    question, membership : str
        What is asked, and whether groups are public.
    sizes : tuple of int
        Public sizes.
    epsilon, delta, alpha : float
        Budget and level.
    looking_for : str
        The kind of effect that powers are for.
    effect : float or None
        How large it is taken to be; None for several kinds at once.
    choices : tuple of Choice
        The ranking. The first is recommended.
    excluded : mapping of str to str
        Methods of the question that do not fit, and why.
    source : str
        Where the powers are from.
    """

    question: str
    membership: str
    sizes: tuple[int, ...]
    epsilon: float
    delta: float
    alpha: float
    looking_for: str
    effect: float | None
    choices: tuple[Choice, ...]
    excluded: dict[str, str]
    source: str

    @property
    def best(self) -> Choice:
        """The first of the ranking."""
        return self.choices[0]

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return found | {
            "sizes": list(self.sizes),
            "choices": [choice.to_dict() for choice in self.choices],
            "excluded": dict(self.excluded),
        }

    def __str__(self) -> str:
        """Print the ranking with reasons."""
        people = " and ".join(f"{size:,}" for size in self.sizes)
        what = self.looking_for if self.effect is None else _effect(self.looking_for, self.effect)
        lines = [f"To find {what} with n = {people} at epsilon {self.epsilon:g}:"]
        if self.question == "two-sample":
            lines.append(f"{_MEMBERSHIP[self.membership].capitalize()}.")
        known = [choice for choice in self.choices if choice.power is not None]
        for place, choice in enumerate(known, 1):
            lines.append(f"  {place:>2}. {choice.method:<13} {choice.power:.2f}  {choice.reason}")
        others = [choice.method for choice in self.choices if choice.power is None]
        if others:
            lines.append(f"Tests that fit too, but are not in the tables: {', '.join(others)}.")
        lines.append(f"From {self.source}; no data was read, and no budget spent.")
        return "\n".join(lines)


# What privacy costs in people: the size that a test needs, over epsilon, and without noise.


@dataclass(frozen=True, slots=True, eq=False)
class Prices(ReleasedFacts):
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
