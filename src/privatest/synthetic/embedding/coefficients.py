"""Noisy coordinates of the data's mean embedding, kept with a release: what was measured.

Each coordinate is the mean over private rows of a public function, plus Gaussian noise of known
standard deviation. Estimates and their error bars are computed from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError
from privatest.core.results import read_only
from privatest.data.domain import Domain
from privatest.kernels.fourier import angles, cos_sin
from privatest.kernels.kernels import Kernel, gram
from privatest.synthetic.embedding.subspace import Subspace

__all__ = ["Coefficients", "of_subspace"]

_MOST = 400  # pivots that are kept, the first ones
_JITTER = 1e-13  # a pivot's squared distance to the span of others is at least 1e-10

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Means of public functions of a row, with Gaussian noise.

    Attributes
    ----------
    kind : {"kernel", "fourier"}
        The functions: an orthonormal basis of the span of k(p, .) at the places p, in their
        order; or a_j (cos, sin)(w_j . x) for the places w_j.
    places : ndarray
        Encoded public points, or frequencies; one per row.
    amplitudes : ndarray
        The a_j; empty for a kernel.
    values : ndarray
        The noisy means.
    sigma : float
        Standard deviation of the noise of each.
    """

    kind: Literal["kernel", "fourier"]
    places: Floats
    amplitudes: Floats
    values: Floats
    sigma: float
    _inverses: dict[tuple[Kernel, Domain], Floats] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Refuse parts that do not fit, and freeze them."""
        for name in ("places", "amplitudes", "values"):
            array = np.asarray(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, read_only(array))
        each = 1 if self.kind == "kernel" else 2
        if self.kind not in ("kernel", "fourier") or self.values.shape != (
            each * len(self.places),
        ):
            raise DataError("coefficients do not fit their places.")

    def functions(self, rows: Floats, kernel: Kernel, domain: Domain) -> Floats:
        """Return the functions at encoded rows: rows × coefficients."""
        if self.kind == "fourier":
            cosine, sine = cos_sin(angles(rows, self.places.T))
            return np.hstack([cosine * self.amplitudes, sine * self.amplitudes])
        found: Floats = gram(kernel, rows, self.places, domain) @ self._inverse(kernel, domain).T
        return found

    def _inverse(self, kernel: Kernel, domain: Domain) -> Floats:
        """Return the inverse of the triangle T with T T' = the places' Gram matrix; once."""
        key = (kernel, domain)
        if key not in self._inverses:
            own = gram(kernel, self.places, self.places, domain)
            triangle = np.linalg.cholesky(own + _JITTER * np.eye(len(own)))
            # not scipy's solver for triangles: its import takes longer than this
            self._inverses[key] = np.linalg.inv(triangle)
        return self._inverses[key]


def of_subspace(space: Subspace, noisy: Floats, sigma: float) -> Coefficients:
    """Keep what Algorithm 1 measured; coordinates of the first pivots do not need the others."""
    places = space.points[space.pivots[:_MOST]]
    return Coefficients("kernel", places, np.empty(0), noisy[:_MOST], sigma)
