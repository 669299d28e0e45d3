"""What is left of a curator's budgets, for somebody who asks."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

__all__ = ["RemoteBudget"]

_WIDTH = 24


@dataclass(frozen=True, slots=True)
class RemoteBudget:
    """Budgets of a data set: one's own, and the whole one, which all analysts share.

    Attributes
    ----------
    dataset : str
        Its name.
    own, whole : mapping or None
        ``epsilon``, ``delta``, ``spent``, ``left`` and ``used``, as the service writes them.
    """

    dataset: str
    own: Mapping[str, Any] | None
    whole: Mapping[str, Any] | None

    @property
    def left(self) -> dict[str, Decimal]:
        """What a request may cost at most, by the names of the sums that decide."""
        accounts = [account["left"] for account in (self.own, self.whole) if account is not None]
        names = dict.fromkeys(name for left in accounts for name in left)
        return {name: min(Decimal(str(a[name])) for a in accounts if name in a) for name in names}

    @property
    def spent(self) -> dict[str, Decimal]:
        """What was spent of one's own budget, or else of the whole."""
        account = self.own or self.whole or {"spent": {"epsilon": 0, "delta": 0}}
        return {name: Decimal(str(account["spent"][name])) for name in ("epsilon", "delta")}

    def _lines(self) -> list[tuple[str, float, str]]:
        named = (("yours", self.own), ("of all", self.whole))
        return [(name, float(a["used"]), _spent(a)) for name, a in named if a is not None]

    def __str__(self) -> str:
        """Draw a bar for each budget."""
        lines = [f"Budget of {self.dataset}:"]
        for name, used, words in self._lines():
            full = round(_WIDTH * used)
            bar = "█" * full + "░" * (_WIDTH - full)
            lines.append(f"  {name:<6}  {bar}  {100 * used:5.1f}%  {words}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Show the same: notebooks print it."""
        return str(self)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><th>{name}</th><td><progress value="{used:.4f}"></progress></td>'
            f"<td>{html.escape(words)}</td></tr>"
            for name, used, words in self._lines()
        )
        return f"<table><caption>Budget of {html.escape(self.dataset)}</caption>{rows}</table>"


def _spent(account: Mapping[str, Any]) -> str:
    words = []
    for name in ("epsilon", "delta"):
        spent, total = (float(values[name]) for values in (account["spent"], account))
        if total:
            words.append(f"{name} {spent:g} of {total:g}")
    return ", ".join(words)
