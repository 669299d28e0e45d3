"""One run of a case, watched: what met noise, what was asked of its source, and all that it said.

Messages, warnings, logs, files that were written and the error of a refused call are what leaves
besides the result.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privatest.audit.coupling import Coupling, coupled
from privatest.core.errors import PrivatestError
from privatest.core.noise import AuditHook, NoiseSource, SimulatedNoise

if TYPE_CHECKING:
    import pyarrow as pa

    from privatest.audit.cases import Case

__all__ = ["Seen", "document", "seen", "watched"]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.link", "os.symlink", "os.truncate"}


@dataclass(slots=True)
class Seen:
    """What a run shows to somebody who sees everything.

    Attributes
    ----------
    hook : AuditHook
        The values that noise was added to.
    asked : list of tuple
        What was asked of the noise source, in order, with its scales.
    result : object
        What came back, None after an error.
    said : list of str
        Messages, warnings, logs and files.
    failed : str
        The error, "" without.
    """

    hook: AuditHook = field(default_factory=AuditHook)
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    result: Any = None
    said: list[str] = field(default_factory=list)
    failed: str = ""


def seen(
    case: Case,
    table: pa.Table,
    records: NDArray[np.intp],
    seed: int,
    how: Coupling,
    given: list[Any] | None = None,
) -> Seen:
    """Run a case with simulated noise; secret orders follow the records."""
    found = Seen()
    records, groups = _stored(case, table, records, in_order=how == "sorted ranks")
    found.hook = AuditHook(given)
    with coupled(records, groups, seed, how) as found.asked, watched(found.said):
        try:
            found.result = case.run(table, SimulatedNoise(seed, audit=found.hook), rng=seed)
        except PrivatestError as error:
            found.failed = f"{type(error).__name__}: {error}"
    return found


def _stored(
    case: Case, table: pa.Table, records: NDArray[np.intp], *, in_order: bool
) -> tuple[NDArray[np.intp], tuple[NDArray[np.intp], ...]]:
    """Return records as a test has them: one group after the other, or sorted in each."""
    parts: tuple[NDArray[np.intp], ...] = (np.arange(len(records)), np.empty(0, np.intp))
    if case.private_groups or case.public_groups:
        group = "group" if case.private_groups else "arm"
        labels = np.array(table.column(group).to_pylist())
        known = case.schema.columns[group].categories  # type: ignore[union-attr]
        parts = tuple(np.flatnonzero(labels == label) for label in known)
    if in_order:
        name = case.columns[0]
        codes = case.schema.select([name]).encode(table.select([name]))[:, 0]
        # of equal values the older record is first, in both neighbours
        parts = tuple(part[np.lexsort((records[part], codes[part]))] for part in parts)
    groups = tuple(records[part] for part in parts)
    return np.concatenate(groups), groups


def attempt(case: Case, table: pa.Table, noise: NoiseSource, rng: int) -> Seen:
    """Run a case as it is, without a coupling."""
    found = Seen()
    with watched(found.said):
        try:
            found.result = case.run(table, noise, rng=rng)
        except PrivatestError as error:
            found.failed = f"{type(error).__name__}: {error}"
    return found


@contextlib.contextmanager
def watched(said: list[str]) -> Iterator[None]:
    """Collect all that a block says: printed, warned, logged or written to a file."""
    out, err, logs = io.StringIO(), io.StringIO(), io.StringIO()
    handler, root = logging.StreamHandler(logs), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        with (
            warnings.catch_warnings(record=True) as warned,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            _writing() as files,
        ):
            warnings.simplefilter("always")
            yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    said += [f"stdout: {out.getvalue()}"] if out.getvalue() else []
    said += [f"stderr: {err.getvalue()}"] if err.getvalue() else []
    said += [f"log: {logs.getvalue()}"] if logs.getvalue() else []
    said += [f"warning: {w.category.__name__}: {w.message}" for w in warned]
    said += [f"file: {name}" for name in files]


_written: list[list[str]] = []  # one list for each block that watches files


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _written:
        return
    name = str(arguments[0]) if arguments else ""
    opened = event == "open" and (arguments[2] or 0) & _WRITES
    if (opened or event in _CHANGES) and "__pycache__" not in name and name != os.devnull:
        _written[-1].append(name)


@contextlib.contextmanager
def _writing() -> Iterator[list[str]]:
    """Collect names of files that are written; hooks cannot be removed, so there is one."""
    if not getattr(_hook, "added", False):
        sys.addaudithook(_hook)
        _hook.added = True  # type: ignore[attr-defined]
    found: list[str] = []
    _written.append(found)
    try:
        yield found
    finally:
        _written.pop()


def document(result: Any) -> str:
    """Return all that a result says of itself, digit by digit."""
    facts = result.to_dict() if hasattr(result, "to_dict") else result
    if isinstance(facts, np.ndarray):
        facts = facts.tolist()
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return repr(facts)
