"""Means of functions over the private rows, with bars that hold for whatever data there was.

The release measured the means of some functions (Coefficients). A question's function f is split
in a combination u of those and a rest r = f - u: the mean of u was measured and has noise of
known size; the mean of r is taken from the synthetic rows, and can be wrong by how far r varies
around each row. Of several splits the one with the shortest bar is used.
Proof: docs/proofs/synthetic.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privatest.data.domain import Domain
from privatest.data.schema import Schema
from privatest.kernels.kernels import Kernel
from privatest.synthetic.answering.probes import leaders, nearest, probe_places
from privatest.synthetic.answers import (
    Columns,
    Floats,
    Function,
    Jumps,
    MeanEstimates,
    MeanSource,
    Weighting,
    honest_error,
    is_noise,
    row_count,
)
from privatest.synthetic.embedding.coefficients import Coefficients

_WEIGHTS = (0.0, 0.1, 0.5, 2.0, 10.0, 100.0, 1e3, 1e4)  # of the rest, in choosing a split
_RESOLVED = 0.25  # of a bandwidth: closer rows are not told apart
_LEAST = 1e-7  # weight of a synthetic row that counts
_EVEN_MASS = 0.1  # of the law by which functions are approximated
_LONGER = 1.1  # a bar that holds may be this much longer than a bound


class Engine(MeanSource):
    """Estimates means from measured coefficients and non-negative weights of synthetic rows."""

    def __init__(
        self,
        rows: Floats,
        fitted: Weighting,
        measured: Coefficients,
        kernel: Kernel,
        domain: Domain,
        schema: Schema | None,
        names: Sequence[str],
    ) -> None:
        used = fitted.weights > _LEAST
        total = float(fitted.weights[used].sum())
        self._rows, self.weights = rows[used], fitted.weights[used] / total
        self._draws = fitted.draws[used] / total
        self._measured, self._kernel, self._domain, self._schema = measured, kernel, domain, schema
        self._names = tuple(names)
        self.columns = self._decoded(self._rows)
        spacing = _RESOLVED * kernel.bandwidth
        self._leaders, self._leader = leaders(self._rows, domain, spacing)
        self._at_rows = self._functions(self._rows)
        self._gap = measured.values / measured.sigma - self.weights @ self._at_rows
        self._known: dict[str, _Surroundings] = {}

    finest = "this release says nothing about conditions finer than its points"

    def means(
        self, function: Function | Sequence[Function], jumps: Jumps | None = None
    ) -> MeanEstimates:
        """Estimate the means of a function's columns (rows × functions, or one per row).

        Parameters
        ----------
        function : callable, or several
            Maps columns to one number, or several, for each row.
        jumps : mapping of str to numbers, optional
            Where the function may jump, by column.
        """
        around = self._surroundings(jumps or {})
        at_rows, at_places = (_matrix(function, each.columns) for each in (self, around))
        spread = np.sqrt(np.maximum(self.weights @ (at_rows - self.weights @ at_rows) ** 2, 0.0))
        centred = at_places - around.law @ at_places
        pull = around.turned.T @ (around.law[:, None] * centred)
        candidates = [self._candidate(around, at_rows, at_places, pull, w) for w in _WEIGHTS]
        errors = np.array([honest_error(each.noise, each.unseen) for each in candidates])
        held = np.array([is_noise(each.noise, each.unseen) for each in candidates])
        shortest = errors.min(axis=0)
        bars = np.where(held, errors, np.inf)
        chosen = np.where(
            bars.min(axis=0) <= _LONGER * shortest, bars.argmin(axis=0), errors.argmin(axis=0)
        )
        places = np.arange(at_rows.shape[1])
        noise = np.array([each.noise for each in candidates])[chosen, places]
        unseen = np.array([each.unseen for each in candidates])[chosen, places]
        turned = np.array([each.turned for each in candidates])[chosen, :, places].T
        directions = around.vectors @ turned
        plain = self.weights @ at_rows
        values = plain + self._gap @ directions
        return MeanEstimates(
            values, errors[chosen, places], noise, unseen, directions, spread, plain
        )

    def _candidate(
        self, around: _Surroundings, at_rows: Floats, at_places: Floats, pull: Floats, weight: float
    ) -> _Split:
        """Split by a ridge regression: |u|² + weight · variance of the rest."""
        turned = pull * (weight / (weight * around.spectrum + 1))[:, None]
        rest_rows = at_rows - around.at_rows @ turned
        rest_places = at_places - around.turned @ turned
        ends = (np.maximum, np.minimum)
        high, low = (
            end.reduceat(rest_places[around.place], around.starts, axis=0)[self._leader]
            for end in ends
        )
        most = np.maximum(high - rest_rows, rest_rows - low).clip(0)
        level = rest_rows - self.weights @ rest_rows
        moved = level.T @ self._draws
        left = (moved**2).mean(axis=1) if moved.size else np.zeros(len(moved))
        size = np.einsum("ij,ij->j", turned, turned)
        return _Split(turned, np.sqrt(size + left), around.strain * (self.weights @ most))

    def _surroundings(self, jumps: Jumps) -> _Surroundings:
        key = repr(sorted((name, sorted(set(numbers))) for name, numbers in jumps.items()))
        if key not in self._known:
            self._known[key] = self._look(jumps)
        return self._known[key]

    def _look(self, jumps: Jumps) -> _Surroundings:
        places = probe_places(self._rows, self._domain, self._schema, self._kernel.bandwidth, jumps)
        owners = nearest(places, self._leaders, self._domain)
        counts = np.bincount(owners.ravel(), minlength=len(self._leaders))
        masses = np.bincount(self._leader, self.weights, minlength=len(counts))
        law = (masses / np.maximum(counts, 1))[owners].sum(axis=1)
        law = (1 - _EVEN_MASS) * law / law.sum() + _EVEN_MASS / len(places)
        functions = self._functions(places)
        centre = law @ functions
        centred = functions - centre
        spectrum, vectors = np.linalg.eigh(centred.T @ (law[:, None] * centred))
        order = np.argsort(owners.ravel(), kind="stable")
        starts = np.searchsorted(owners.ravel()[order], np.arange(len(counts)))
        return _Surroundings(
            columns=self._decoded(places),
            law=law,
            turned=centred @ vectors,
            at_rows=(self._at_rows - centre) @ vectors,
            spectrum=np.maximum(spectrum, 0.0),
            vectors=vectors,
            place=order // owners.shape[1],
            starts=starts,
            strain=self._strain(functions, owners),
        )

    def _strain(self, functions: Floats, owners: NDArray[np.intp]) -> float:
        """Return by how much the rows' surroundings are too small for what was measured.

        If everybody is near a row that stands for them, the measured means are no further from
        the rows' own than functions vary there, apart from noise.
        """
        furthest = np.zeros(len(self._leaders))
        centres = self._functions(self._leaders)
        # squares of distances from products: differences would be a copy of all for each owner
        sizes, own = (np.einsum("ij,ij->i", each, each) for each in (functions, centres))
        products = functions @ centres.T
        for owner in owners.T:
            away = sizes + own[owner] - 2 * products[np.arange(len(owner)), owner]
            np.maximum.at(furthest, owner, np.maximum(away, 0.0))
        possible = float(self.weights @ np.sqrt(furthest[self._leader]))
        beyond_noise = float(self._gap @ self._gap) - 2 * len(self._gap)
        return max(1.0, math.sqrt(max(beyond_noise, 0.0)) / max(possible, 1e-12))

    def _functions(self, rows: Floats) -> Floats:
        found = self._measured.functions(rows, self._kernel, self._domain)
        return found / self._measured.sigma

    def _decoded(self, rows: Floats) -> Columns:
        if self._schema is None:
            return dict(zip(self._names, rows.T, strict=True))
        return self._schema.decode(rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Surroundings:
    """Probes of a question, and what does not depend on its function."""

    columns: Columns
    law: Floats  # by which functions are approximated
    turned: Floats  # the measured functions at the probes, centred, in their eigenbasis
    at_rows: Floats  # the same at the synthetic rows
    spectrum: Floats
    vectors: Floats
    place: NDArray[np.intp]  # probes that a leader may stand for, leader after leader
    starts: NDArray[np.intp]
    strain: float


@dataclass(frozen=True, slots=True, eq=False)
class _Split:
    turned: Floats
    noise: Floats
    unseen: Floats


def _matrix(function: Function | Sequence[Function], columns: Columns) -> Floats:
    if not callable(function):
        return np.hstack([_matrix(each, columns) for each in function])
    length = row_count(columns)
    values = np.asarray(function(columns), dtype=np.float64)
    if values.ndim < 2:
        values = np.broadcast_to(values, (length,))[:, None]
    if len(values) != length or not np.isfinite(values).all():
        raise ValueError("a function must give finite numbers for each row.")
    return values
