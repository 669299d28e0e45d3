"""Where an embedding test looks: public locations, frequencies and bandwidths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError
from privatest.core.validation import public_generator, reject
from privatest.data.domain import Domain
from privatest.data.samples import Sample, encode_like
from privatest.data.schema import Schema
from privatest.kernels.embedding import (
    Embedding,
    MeanEmbedding,
    mean_embedding,
    smooth_characteristic,
)
from privatest.kernels.kernels import Kernel, KernelFamily, kernel_grid

__all__ = [
    "ChosenFrequencies",
    "ChosenLocations",
    "PrivateChoice",
    "characteristic_features",
    "in_own_units",
    "location_features",
    "public_kernel",
    "unpacked_frequencies",
    "unpacked_locations",
]

_MOST_FEATURES = 500  # the second moment of more would be lost in noise


class ChosenLocations(NamedTuple):
    """Public locations in the data's own units, and a bandwidth as a share of the bounds."""

    locations: NDArray[np.float64]
    bandwidth: float
    criterion: float


class ChosenFrequencies(NamedTuple):
    """Public frequencies, in radians per unit of the data."""

    frequencies: NDArray[np.float64]
    criterion: float


@dataclass(frozen=True, slots=True, eq=False)
class PrivateChoice:
    """Sets of public locations, of which the private data chooses one for :func:`me_test`.

    A fifth of the rows, in secret order, chooses by report-noisy-max; the others test. So the
    cost stays the same, and the choice is part of the result.

    Attributes
    ----------
    candidates : sequence
        At least two, each as ``locations`` of :func:`me_test`.
    """

    candidates: Sequence[Any]

    def __post_init__(self) -> None:
        """Check that there is a choice."""
        if not isinstance(self.candidates, (list, tuple)) or len(self.candidates) < 2:
            reject("candidates", "a list of at least two sets of locations", self.candidates)


def public_kernel(family: KernelFamily, bandwidth: float | None, domain: Domain) -> Kernel:
    """Return the kernel; by default half of the box's diameter wide."""
    if bandwidth is None:
        if not domain.bounded:
            raise ParameterError(
                "bandwidth must be given when bounds are not: choosing it from the data would "
                "leak it."
            )
        diameter = domain.dimension if family == "laplace" else math.sqrt(domain.dimension)
        bandwidth = diameter / 2
    (kernel,) = kernel_grid(family, bandwidth, domain)
    return kernel


def unpacked_locations(
    locations: Any, family: str, bandwidth: float | None
) -> tuple[Any, float | None]:
    """Return locations and bandwidth; locations that were optimised have one of their own."""
    if not isinstance(locations, ChosenLocations):
        return locations, bandwidth
    if bandwidth is not None or family != "gaussian":
        raise ParameterError(
            "kernel and bandwidth must be left out: they come with the chosen locations."
        )
    return locations.locations, locations.bandwidth


def unpacked_frequencies(frequencies: Any) -> Any:
    """Return frequencies as an array if they were optimised, else as they were given."""
    chosen = isinstance(frequencies, ChosenFrequencies)
    return frequencies.frequencies if chosen else frequencies


def location_features(
    locations: Any, sample: Sample, family: KernelFamily, bandwidth: float | None
) -> MeanEmbedding:
    """Build the mean embedding at public ``locations``: see :func:`me_test`."""
    if isinstance(locations, PrivateChoice):
        raise ParameterError("locations must not be a PrivateChoice here: only me_test takes one.")
    locations, bandwidth = unpacked_locations(locations, family, bandwidth)
    domain = sample.domain
    kernel = public_kernel(family, bandwidth, domain)
    if isinstance(locations, Integral) and not isinstance(locations, bool):
        _check_count("locations", int(locations))
        return mean_embedding(kernel, domain.points(int(locations)), domain)
    try:
        rows = encode_like(locations, sample, "locations").rows
    except DataError as error:  # they are no data, but a public parameter
        raise ParameterError(str(error)) from None
    _check_count("locations", len(rows))
    return mean_embedding(kernel, np.array(rows), domain)


def characteristic_features(frequencies: Any, sample: Sample, bandwidth: float | None) -> Embedding:
    """Build the smooth characteristic function at public ``frequencies``.

    Given ones are in radians per unit of the data; a number draws as many from the spectrum of
    a Gaussian kernel of half the box's diameter, the same in every run.
    """
    domain = sample.domain
    if isinstance(frequencies, Integral) and not isinstance(frequencies, bool):
        count = int(frequencies)
        _check_count("frequencies", 2 * count)
        width = math.sqrt(domain.dimension) / 2  # exp(-t²/w²) is the cf of N(0, 2/w²)
        drawn = public_generator(0).normal(size=(count, domain.dimension)) * math.sqrt(2) / width
        return smooth_characteristic(drawn, bandwidth, domain)
    waves = np.asarray(unpacked_frequencies(frequencies))
    if waves.ndim == 1 and domain.dimension == 1:
        waves = waves[:, None]
    shaped = waves.ndim == 2 and waves.shape[1] == domain.dimension
    if not shaped or waves.dtype.kind not in "iuf" or not np.isfinite(waves).all():
        reject("frequencies", "an integer, or one finite number for each column in each row", waves)
    _check_count("frequencies", 2 * len(waves))
    widths = 1.0 if sample.schema is None else sample.box.width  # radians per unit of the box
    return smooth_characteristic(waves * widths, bandwidth, domain)


def in_own_units(rows: NDArray[np.float64], schema: Schema | None) -> list[list[Any]]:
    """Write encoded public rows in the data's own units."""
    if schema is None:
        return [[float(value) for value in row] for row in rows]
    columns = schema.decode(rows, integers=False).values()
    return [list(row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _check_count(name: str, count: int) -> None:
    if not 1 <= count <= _MOST_FEATURES:
        raise ParameterError(f"{name} must give between 1 and {_MOST_FEATURES} features.")
