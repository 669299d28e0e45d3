"""What is said of a failure: to the analyst one fixed sentence, to the custodian where it was.

The message of an exception and the local variables of its frames may hold data. Neither is
written anywhere: only the exception's type, and files, lines and functions.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from privatest.core.errors import PrivatestError

__all__ = ["RequestFailed", "log_failure"]

_MOST_CAUSES = 8


class RequestFailed(PrivatestError):
    """A request did not end well. The message is fixed, whatever happened, but for an id."""

    def __init__(self, number: str, *, spent: bool) -> None:
        self.id = number
        self.spent = spent
        words = "its budget is spent" if spent else "nothing was spent"
        super().__init__(
            f"The request failed, and nothing was released; {words}. "
            f"The custodian finds the reason by its id, {number}."
        )


def log_failure(log: Path, number: str, error: BaseException, **facts: str) -> None:
    """Append one line to the custodian's log.

    Parameters
    ----------
    log : Path
        The file; it is made for its owner alone.
    number : str
        What the analyst was told.
    error : exception
        What happened.
    **facts : str
        Public words: the data set, the analyst, what was spent.
    """
    time = datetime.now(UTC).isoformat(timespec="seconds")
    words = [time, f"id={number}", *(f"{name}={value!r}" for name, value in facts.items())]
    line = " ".join([*words, " caused by ".join(_described(error))]) + "\n"
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode())  # one write, so that lines of processes do not mix
    finally:
        os.close(descriptor)


def _described(error: BaseException | None) -> Iterator[str]:
    for _ in range(_MOST_CAUSES):
        if error is None:
            return
        frames = traceback.extract_tb(error.__traceback__, limit=-20)
        places = [f"{Path(f.filename).name}:{f.lineno}:{f.name}" for f in frames]
        yield f"{type(error).__name__} at {' > '.join(places) or 'no place'}"
        error = error.__cause__ or error.__context__
