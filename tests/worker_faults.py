"""A fork server whose workers do what the level of a request says: a script for tests."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from typing import Any

import numpy as np

from privatest.curator import curator
from privatest.curator import worker_process as worker
from privatest.curator.curator import answer_from_rows

KILLED, CRASHED, HUNGRY, SLOW, RAISES, DIES_EARLY = 0.011, 0.012, 0.013, 0.014, 0.015, 0.016

if __name__ == "__main__":
    rehearse = curator.Curator._rehearse

    def faulty(prepared: Any, *rest: Any) -> Any:
        fault = prepared.request.alpha
        if fault == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == CRASHED:
            ctypes.string_at(0)
        if fault == HUNGRY:
            np.empty(8 << 30, dtype=np.uint8)  # 8 GiB, never touched
        if fault == SLOW:
            time.sleep(40)
        if fault == RAISES:
            raise ValueError("734629 is in the first row")
        return answer_from_rows(prepared, *rest)

    def dying(self: Any, case: Any, place: Any) -> None:
        if case.prepared.request.alpha == DIES_EARLY:
            os.kill(os.getpid(), signal.SIGKILL)
        rehearse(self, case, place)

    vars(curator)["answer_from_rows"] = faulty
    curator.Curator._rehearse = dying  # type: ignore[method-assign, assignment]
    worker.main()
