"""What the embedding tests ask of their data, and the features' sums over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatest.core.errors import DataError, ParameterError, PrivacyError
from privatest.core.noise import NoiseSource, noise_source
from privatest.core.privacy import ADJACENCIES, Adjacency, Amount, Budget
from privatest.core.validation import number, one_of, reject
from privatest.data.domain import Domain
from privatest.data.encoding import EncodedSamples, described, encode_samples
from privatest.kernels.embedding import BLOCK, Embedding, feature_blocks
from privatest.statistics.moments import Moments, moments
from privatest.two_sample.common import check_sizes

__all__ = ["Question", "difference_blocks", "pair_moments", "read_question", "sample_moments"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)  # a repr would show data
class Question:
    """Two encoded samples, what is to be hidden, and what may be spent."""

    samples: EncodedSamples
    budget: Budget
    alpha: float
    adjacency: Adjacency
    paired: bool
    noise: NoiseSource
    bounds: Any

    @property
    def domain(self) -> Domain:
        """The public domain."""
        return self.samples.domain

    @property
    def sizes(self) -> dict[str, int]:
        """Public sizes."""
        if self.paired:
            return {"n": len(self.samples.x)}
        return {"n": len(self.samples.x), "m": len(self.samples.y)}

    @property
    def steps(self) -> int:
        """Replacements of one row (or pair) that lead from neighbour to neighbour."""
        each = 2 if self.adjacency == "both" else 1
        return each * self.samples.rows_per_person


def read_question(
    x: Any,
    y: Any,
    *,
    bounds: Any,
    budget: tuple[Amount, Amount],
    alpha: float,
    adjacency: Adjacency,
    paired: bool,
    noise: NoiseSource | None,
) -> Question:
    """Check what all embedding tests share."""
    spend = Budget(*budget)
    alpha = number("alpha", alpha, above=0, below=1)
    one_of("adjacency", adjacency, ADJACENCIES)
    if not isinstance(paired, bool):
        reject("paired", "True or False", paired)
    if adjacency == "row":
        raise PrivacyError(
            "adjacency='row' is not offered by embedding tests: their labels and noise depend on "
            "the group sizes, which must be public. Use mmd_test, or declare the groups public."
        )
    if paired and adjacency == "both":
        raise ParameterError("adjacency='both' is what paired=True hides; leave adjacency out.")
    source = noise_source(noise)
    bounds = described(bounds, x, y)
    samples = encode_samples(x, y, bounds)
    check_sizes(samples, adjacency)
    if paired and len(samples.x) != len(samples.y):
        raise DataError("x and y must have the same number of rows: row i of x belongs to y's.")
    return Question(samples, spend, alpha, adjacency, paired, source, bounds)


def sample_moments(question: Question, embedding: Embedding) -> tuple[Moments, Moments]:
    """Mean and second moment of each sample's features, in one pass."""
    samples, size = question.samples, embedding.dimension
    return (
        moments(feature_blocks(embedding, samples.x), size),
        moments(feature_blocks(embedding, samples.y), size),
    )


def difference_blocks(question: Question, embedding: Embedding) -> Iterator[NDArray[np.float64]]:
    """Features of x minus those of y, for paired rows."""
    samples = question.samples
    for start in range(0, len(samples.x), BLOCK):
        part = slice(start, start + BLOCK)
        yield embedding(samples.x[part]) - embedding(samples.y[part])


def pair_moments(question: Question, embedding: Embedding) -> Moments:
    """Mean and second moment of the differences of paired rows."""
    return moments(difference_blocks(question, embedding), embedding.dimension)
