"""Where rows of the data may be that a synthetic row stands for.

A synthetic row stands for people near it. How far a function varies there bounds what the
release cannot tell. Everything here is public or released.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.data.schema import NumericColumn, Schema
from privatest.synthetic.answers import Floats, Jumps

_EVEN = 1024  # places spread over the box
_AROUND = 5  # places around each synthetic row
_ALONG = 128  # even places that are moved to a number of the question
_STEP = 1e-6  # just beside such a number, in units of the box
_APART = 10.0  # distance of two categories: further than any numbers are
_BLOCK = 512
_MOST_NEIGHBOURS = 8
_ALL_CORNERS = 6  # numeric columns; of more some corners are looked at
_KINDS = 32  # combinations of categories


def probe_places(
    rows: Floats,
    domain: Domain,
    schema: Schema | None,
    bandwidth: float,
    jumps: Jumps,
) -> Floats:
    """Return places around the rows, over the box, at its bounds and at the jumps."""
    rng = np.random.default_rng(0)  # public, and the same at every question
    numeric = domain.numeric
    around = np.repeat(rows, _AROUND, axis=0)
    shape = (len(around), len(numeric))
    around[:, numeric] += rng.uniform(-bandwidth / 3, bandwidth / 3, size=shape)
    found = [rows, around]
    if domain.bounded:
        even = domain.points(_EVEN)
        found.append(even)
        base = np.vstack([rows, even[:_ALONG]])
        for index in numeric:
            for number in _numbers(index, schema, jumps):
                moved = base.copy()
                moved[:, index] = number
                found.append(moved)
        found.append(_corners(rows, domain, rng))
    places = np.vstack(found)
    if domain.bounded:
        places[:, numeric] = np.clip(places[:, numeric], 0.0, 1.0)
    if schema is not None:
        box = schema.box
        for index in numeric:
            if box.whole[index]:
                places[:, index] = np.rint(places[:, index] * box.width[index]) / box.width[index]
    return np.unique(places, axis=0)


def _corners(rows: Floats, domain: Domain, rng: np.random.Generator) -> Floats:
    """Return corners of the box, where a linear function is furthest from all rows."""
    numeric, categorical = domain.numeric, domain.categorical
    if len(numeric) <= _ALL_CORNERS:
        patterns = np.array([*product((0.0, 1.0), repeat=len(numeric))])
    else:
        patterns = rng.integers(2, size=(1 << _ALL_CORNERS, len(numeric))).astype(np.float64)
        patterns[:2] = [[0.0], [1.0]]
    kinds = np.unique(rows[:, categorical], axis=0)[:_KINDS] if categorical else np.zeros((1, 0))
    corners = np.zeros((len(kinds), len(patterns), domain.dimension))
    corners[:, :, numeric] = patterns
    corners[:, :, categorical] = kinds[:, None, :]
    return corners.reshape(-1, domain.dimension)


def _numbers(index: int, schema: Schema | None, jumps: Jumps) -> list[float]:
    """Return the bounds of a column and its jumps, encoded, each with both its sides."""
    found = [0.0, 1.0]
    if schema is None:
        return found
    name = list(schema.columns)[index]
    column = schema.columns[name]
    assert isinstance(column, NumericColumn)
    width = column.upper - column.lower
    for mark in jumps.get(name, ()):
        place = (mark - column.lower) / width
        step = 1 / width if column.integer else _STEP
        found += [place - step, place, place + step]
    return [place for place in found if 0 <= place <= 1]


def leaders(rows: Floats, domain: Domain, spacing: float) -> tuple[Floats, NDArray[np.intp]]:
    """Return rows that are ``spacing`` apart, and for each row its leader.

    Rows that are closer stand for the same people: the release cannot tell them apart.
    """
    scaled = _scaled(rows, domain)
    chosen: list[int] = []
    left = np.full(len(rows), np.inf)
    owner = np.zeros(len(rows), dtype=np.intp)
    while left.max() >= spacing:
        new = 0 if not chosen else int(np.argmax(left))  # the furthest from all others
        away = np.sqrt(((scaled - scaled[new]) ** 2).sum(axis=1))
        owner[away < left] = len(chosen)
        left = np.minimum(left, away)
        chosen.append(new)
    return rows[chosen], owner


def nearest(places: Floats, rows: Floats, domain: Domain) -> NDArray[np.intp]:
    """Find for each place the rows around it: one more than there are numeric columns."""
    count = min(len(domain.numeric) + 1, _MOST_NEIGHBOURS, len(rows))
    scaled, goals = _scaled(places, domain), _scaled(rows, domain)
    squares = np.einsum("ij,ij->i", goals, goals)
    owners = np.empty((len(places), count), dtype=np.intp)
    for start in range(0, len(places), _BLOCK):
        block = scaled[start : start + _BLOCK]
        far = squares - 2 * block @ goals.T
        owners[start : start + _BLOCK] = np.argpartition(far, count - 1, axis=1)[:, :count]
    return owners


def _scaled(rows: Floats, domain: Domain) -> Floats:
    scale = np.where(np.array(domain.levels) > 0, _APART, 1.0)
    scaled: Floats = rows * scale
    return scaled
