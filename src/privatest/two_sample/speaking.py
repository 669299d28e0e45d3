"""Which features speak: released differences, the clearest first. Post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privatest.core.errors import ParameterError
from privatest.core.estimate_text import places_of
from privatest.core.results import Outcome

__all__ = ["SpeakingFeature", "speaking_features"]


@dataclass(frozen=True, slots=True)
class SpeakingFeature:
    """One location (or wave) and the private difference seen there.

    Attributes
    ----------
    place : tuple
        The location, in the data's own units; for waves "cos" or "sin" and the frequency, in
        radians per range of a column.
    difference : float
        Private mean of x minus that of y there: of kernel values, cosines or sines.
    noise : float
        Standard deviation of the privacy noise in it.
    error : float
        Standard deviation of noise and sampling together.
    """

    place: tuple[Any, ...]
    difference: float
    noise: float
    error: float

    @property
    def clarity(self) -> float:
        """|difference| in standard errors."""
        return abs(self.difference) / self.error


def speaking_features(outcome: Outcome) -> list[SpeakingFeature]:
    """Return the locations of a test with released moments, the clearest difference first.

    Parameters
    ----------
    outcome : Outcome
        Of :func:`me_test` or :func:`scf_test` with ``release="moments"``.

    Notes
    -----
    **Privacy** Post-processing of what was released: it costs nothing. Looking for the largest
    of many differences is no test of its own; the outcome's p-value is.

    Examples
    --------
    >>> import numpy as np
    >>> from privatest.two_sample.embedding import me_test
    >>> x, y = np.full(5000, 0.2), np.full(5000, 0.8)
    >>> found = me_test(x, y, locations=[0.0, 0.5], bounds=(0, 1), epsilon=1, delta=1e-6)
    >>> speaking_features(found)[0].place
    (0.0,)
    """
    if "difference" not in outcome.estimates:
        raise ParameterError("outcome must come from an embedding test with release='moments'.")
    estimates, places = outcome.estimates, places_of(outcome.parameters)
    features = [
        SpeakingFeature(place, float(difference), float(noise), float(error))
        for place, difference, noise, error in zip(
            places,
            estimates["difference"],
            estimates["noise"],
            estimates["error"],
            strict=True,
        )
    ]
    return sorted(features, key=lambda feature: -feature.clarity)
