"""One sentence before anything is spent: another test would see far more, at these public sizes."""

from __future__ import annotations

from collections.abc import Sequence

from privatest.core.chance import quiet
from privatest.core.errors import PrivatestError
from privatest.core.privacy import Amount
from privatest.planning.recommending import recommend

__all__ = ["better_test"]

_FAR = 0.25  # by so much more often a test should reject before it is named
_WORDS = {
    "proportions": "a difference of shares",
    "tables": "other shares",
    "dependence": "a trend",
}


def better_test(
    question: str,
    method: str,
    sizes: Sequence[int],
    columns: Sequence[str],
    *,
    epsilon: Amount,
    delta: Amount = 0,
    membership: str = "public",
) -> str:
    """Return a sentence on a test that is expected to be far better, or nothing.

    Parameters
    ----------
    question, method : str
        What is about to be asked.
    sizes : sequence of int
        Public sizes; halves of the total where groups are private.
    columns : sequence of str
        Types of the columns, as of :func:`privatest.planning.recommend`.
    epsilon, delta, membership
        As there.

    Notes
    -----
    **Privacy** It is given public numbers only, before data is read: it cannot depend on people.
    """
    if quiet() or len(sizes) > 2:
        return ""
    people = sizes[0] if len(sizes) == 1 else tuple(sizes)
    try:
        ranking = recommend(
            question,
            people,
            columns,
            membership=membership,
            epsilon=float(epsilon),
            delta=float(delta),
        )
    except PrivatestError:
        return ""  # nothing to say is no reason to stop
    own = next((c.power for c in ranking.choices if c.method == method), None)
    best = ranking.best
    if own is None or best.power is None or best.power < own + _FAR:
        return ""
    kind = ranking.looking_for
    words = _WORDS.get(kind, f"a {kind.replace('_', ' ')}")
    size = "" if ranking.effect is None else f" of {ranking.effect:.2g}"
    private = " --membership private" if membership == "private" else ""
    return (
        f"note: to see {words}{size} at these sizes, --method {best.method} is expected to have "
        f"power {best.power:.2f} where {method} has {own:.2f}. `privatest plan recommend{private}` "
        "says more; this was known before any data was read."
    )
