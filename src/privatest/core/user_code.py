"""Run a user's function on private rows without revealing why it failed.

Errors and warnings are outputs that were not paid for. They become one exception with a fixed
message, and the caller decides what a failure counts as.
"""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from privatest.core.errors import PrivatestError

T = TypeVar("T")

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGBREAK")  # not all systems have all


class UserCodeError(PrivatestError):
    """A user's function failed on private rows; the reason is withheld."""


def run_user_code(call: Callable[[], T], *, refuse_warnings: bool = False, message: str = "") -> T:
    """Return what ``call()`` returns, or raise UserCodeError without a cause or a context.

    ``call`` should convert the result as well: attributes of a user's object are the user's code.

    Parameters
    ----------
    call : callable
        Without arguments.
    refuse_warnings : bool
        Whether a warning is a failure. Warnings are never shown, even if the function changes
        their filters; NumPy's floating-point errors are never reported.
    message : str
        The message of the error, the same whatever went wrong.

    Notes
    -----
    **Privacy**: SystemExit, KeyboardInterrupt and the like are failures too if the function raises
    them. An exception from the handler of a signal (Ctrl-C raises KeyboardInterrupt) stops the
    program: it is raised again, without the function's frames and errors. A function that sends
    itself a signal stops the program too, and that is visible.
    """
    stopped: BaseException | None = None
    shown: list[warnings.WarningMessage] = []
    with _raised_by_signals() as raised:
        try:
            # entering forgets which warnings were shown before: no call changes the next one
            with warnings.catch_warnings(record=True) as shown, np.errstate(all="ignore"):
                warnings.simplefilter("always")
                value = call()
            if not (refuse_warnings and shown):
                return value
        except BaseException as error:
            stopped = error if any(error is own for own in raised) else None
    shown.clear()
    # outside of the handlers, so that the context of what is raised holds nothing of the function
    if stopped is not None:
        stopped.__cause__ = stopped.__context__ = None
        raise stopped.with_traceback(None)
    raise UserCodeError(message)


@contextmanager
def _raised_by_signals() -> Iterator[list[BaseException]]:
    """Collect the exceptions of signal handlers in a block; only the main thread runs them."""
    raised: list[BaseException] = []
    usual: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
        usual = {n: signal.getsignal(n) for n in numbers if callable(signal.getsignal(n))}

    def handle(number: int, frame: Any) -> None:
        try:
            usual[number](number, frame)
        except BaseException as error:
            raised.append(error)
            raise

    try:
        for number in usual:
            signal.signal(number, handle)
        yield raised
    finally:
        for number, handler in usual.items():
            if signal.getsignal(number) is handle:  # and not what the function has set
                signal.signal(number, handler)
