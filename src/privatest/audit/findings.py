"""What an audit reports: one finding for each attack, and what they say together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ATTACKS", "Audited", "Finding"]

ATTACKS: Mapping[str, str] = {
    "sensitivity": "numbers move further than declared before they meet noise",
    "replay": "with the same noise neighbours take different paths, or something unpaid leaves",
    "exact": "the laws of the noise, on these numbers, lose more than epsilon",
    "draws": "the mechanisms' own secret noise, on these numbers, loses more than epsilon",
    "runs": "whole runs with secret noise lose more than epsilon",
    "floats": "values that are no ordinary numbers, or low-order bits, tell neighbours apart",
    "outputs": "a planted value is in a result, a message, a pickle or a file",
    "time": "time or memory depend grossly on values, where they are promised not to",
    "level": "a true null hypothesis is rejected too often",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What one attack found.

    Attributes
    ----------
    attack : str
        Which one.
    holds : bool
        Whether it found nothing against the claim.
    told : str
        In words.
    numbers : mapping
        In numbers.
    """

    attack: str
    holds: bool = True
    told: str = ""
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"holds": self.holds, "told": self.told, **self.numbers}


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit of one case found.

    Attributes
    ----------
    case, function : str
        The test, which groups it was asked about, and its public function.
    epsilon, delta : float
        What it claims.
    findings : tuple of Finding
        One for each attack that was run.
    """

    case: str
    function: str
    epsilon: float
    delta: float
    findings: tuple[Finding, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing was found against the claim."""
        return all(finding.holds for finding in self.findings)

    @property
    def caught_by(self) -> tuple[str, ...]:
        """Which attacks found something."""
        return tuple(finding.attack for finding in self.findings if not finding.holds)

    def number(self, name: str, attack: str = "") -> Any:
        """Return a number of an attack, None if it was not run; of any if none is named."""
        own = [f for f in self.findings if name in f.numbers and attack in ("", f.attack)]
        return own[0].numbers[name] if own else None

    @property
    def epsilon_at_least(self) -> float:
        """The largest lower bound on epsilon from draws of secret noise."""
        found = [f.numbers["epsilon_at_least"] for f in self.findings if f.attack in _DICE]
        return float(max(found, default=0.0))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "test": self.case,
            "function": self.function,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "holds": self.holds,
            "caught_by": list(self.caught_by),
            "attacks": {finding.attack: finding.to_dict() for finding in self.findings},
        }


_DICE = ("draws", "runs")
