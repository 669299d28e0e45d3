"""Neighbours that differ by more than a row: a person has two, or somebody is in each group.

Both rows are moved so that numbers move as far as they can: two of one group the same way, one of
each group in opposite ways. Now and then the second is left where it was.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from privatest.audit.neighbours import Pair, kept

if TYPE_CHECKING:
    from privatest.audit.cases import Case

__all__ = ["with_more"]

_SELDOM = 4  # of so many pairs one leaves the second row where it was


def with_more(pair: Pair, case: Case) -> Pair:
    """Return the pair with a second row replaced, if the neighbours of a case are such.

    It follows from the pair, so that a search can climb by the first row alone.
    """
    if case.replaces == "a row":
        return pair
    apart = case.replaces == "a row of each group"
    own = kept(pair.rows[pair.place], case.schema)
    places = [
        place
        for place, row in enumerate(pair.rows)
        if place != pair.place and (kept(row, case.schema) != own) == apart
    ]
    if not places:
        return replace(pair, more=())
    place, rows = places[pair.seed % len(places)], [dict(row) for row in pair.rows]
    before, after = rows[pair.place], pair.other
    if apart:
        before, after = after, before
    stays = kept(rows[place], case.schema)
    if pair.seed % _SELDOM:
        rows[place] = before | stays
    return replace(pair, rows=rows, more=((place, after | stays),))
