"""What all two-sample tests share: sizes, and which of them are public."""

from __future__ import annotations

from privatest.core.errors import DataError
from privatest.core.privacy import Adjacency
from privatest.data.samples import TwoSamples

__all__ = ["NULL_HYPOTHESIS", "check_sizes", "public_sizes", "shown_sizes"]

NULL_HYPOTHESIS = "the two samples come from the same distribution"


def check_sizes(samples: TwoSamples, adjacency: Adjacency) -> None:
    """Refuse samples that are too small, by public sizes only: a private group may be empty."""
    n, m = len(samples.x), len(samples.y)
    if adjacency == "row":
        if n + m < 4:
            raise DataError("the two groups must have at least 4 rows together.")
    elif min(n, m) < 2:
        raise DataError("each sample must have at least 2 rows.")


def public_sizes(samples: TwoSamples, adjacency: Adjacency) -> tuple[int, int]:
    """Return the sample sizes; for private groups the halves of their total."""
    n, m = len(samples.x), len(samples.y)
    return ((n + m) // 2, (n + m) - (n + m) // 2) if adjacency == "row" else (n, m)


def shown_sizes(samples: TwoSamples, adjacency: Adjacency) -> dict[str, int]:
    """Return the sizes that a result may show."""
    n, m = len(samples.x), len(samples.y)
    return {"N": n + m} if adjacency == "row" else {"n": n, "m": m}
