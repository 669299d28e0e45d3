"""Buy locations: choose among public candidates on one part of the rows, test on the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from privatest.core.errors import DataError, PrivacyError
from privatest.data.encoding import EncodedSamples
from privatest.kernels.embedding import Embedding
from privatest.two_sample.embedding_outcome import resolved_scale, straight_statistic
from privatest.two_sample.embedding_samples import Question

__all__ = ["select_privately"]

_PART = 5  # one row in five chooses
_CONDITION = 2.0


def select_privately(question: Question, candidates: Sequence[Embedding]) -> tuple[int, Question]:
    """Return the chosen candidate's index and the rows that did not choose.

    Notes
    -----
    **Sensitivity** S of each candidate moves by at most its scale's sensitivity.

    **Privacy** Report-noisy-max with Laplace noise of scale 2 Delta/epsilon on each S: the index,
    and nothing else, is epsilon-private. Rows are first put into a secret random order, so which
    part a row is in does not depend on the data. A row is seen by the choice or by the test,
    never by both: together they cost the larger of the two budgets, not the sum. That needs one
    row per person; a pair is one row.
    """
    if question.steps > 1:
        raise PrivacyError(
            "select='private' needs one row per person and adjacency='one': a person with rows in "
            "both parts would be seen twice."
        )
    choosing, testing = _split(question)
    scales = [resolved_scale(choosing, embedding, None, _CONDITION) for embedding in candidates]
    values, widest = [], 0.0
    for embedding, scale in zip(candidates, scales, strict=True):
        value, _, error, _ = straight_statistic(choosing, embedding, scale)
        values.append(value)
        widest = max(widest, (scale.sensitivity + 2 * error) * (1 + 1e-12))
    noise_scale = 2 * widest / question.budget.pure_epsilon * (1 + 1e-12)
    noisy = [question.noise.laplace(value, noise_scale) for value in values]
    return noisy.index(max(noisy)), testing


def _split(question: Question) -> tuple[Question, Question]:
    """Cut rows in a secret order; pairs stay together."""
    x, y = question.samples.x, question.samples.y
    first_x, first_y = len(x) // _PART, len(y) // _PART
    if min(first_x, first_y) < 2:
        raise DataError(f"select='private' needs at least {2 * _PART} rows in each sample.")
    order_x = question.noise.permutation(len(x))
    order_y = order_x if question.paired else question.noise.permutation(len(y))

    def part(rows_x: slice, rows_y: slice) -> Question:
        samples = question.samples
        return replace(
            question,
            samples=EncodedSamples(
                x[order_x[rows_x]],
                y[order_y[rows_y]],
                samples.domain,
                samples.unit,
                samples.rows_per_person,
            ),
        )

    return (
        part(slice(first_x), slice(first_y)),
        part(slice(first_x, None), slice(first_y, None)),
    )
