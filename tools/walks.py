"""Watch real runs: the functions and files that a request enters, in order.

Run ``python -m tools.walks`` for a table of how many, and ``python -m tools.walks TITLE`` for the
steps of one run as JSON. Each run is in a process of its own: what another one has cached would not
be seen again.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
PEOPLE = "visits,plan\n" + "".join(f"{i},{'basic' if i % 2 else 'plus'}\n" for i in range(60))
SCHEMA = """\
[columns.visits]
type = "numeric"
bounds = [0, 80]

[columns.plan]
type = "categorical"
categories = ["basic", "plus"]
"""
CURATOR = """\
ledger = "curator.db"

[datasets.people]
source = "people.csv"
schema = "people.toml"
epsilon = 3

[analysts.ada]
datasets = ["people"]
"""


def _command(line: str) -> None:
    from privatest.cli import app  # noqa: PLC0415

    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = app(line.split(), standalone_mode=False)
    if code:
        raise RuntimeError(f"privatest {line} failed:\n{said.getvalue()}")


def _two_sample() -> Callable[[], object]:
    _command("ledger init people --epsilon 3 --delta 1e-5 --ledger own.db")
    return lambda: _command(
        "two-sample people.csv --group plan --schema people.toml --epsilon 1 "
        "--dataset people --ledger own.db"
    )


def _release() -> Callable[[], object]:
    _command("ledger init people --epsilon 3 --delta 1e-5 --ledger own.db")
    return lambda: _command(
        "release people.csv --columns visits --schema people.toml --epsilon 1 --delta 1e-6 "
        "--points 10 --dataset people --ledger own.db -o out.parquet"
    )


def _curator() -> Callable[[], object]:
    from privatest.curator import Curator  # noqa: PLC0415

    curator = Curator.open(Path("curator.toml"), create=True)
    curator.register("people")
    words = {"dataset": "people", "question": "two-sample", "method": "mmd"}
    request = words | {"columns": ["visits"], "group": "plan", "epsilon": 1}
    return lambda: curator.run(request, analyst="ada")


def _library(name: str) -> Callable[[], object]:
    import privatest  # noqa: PLC0415

    function = getattr(privatest, name)
    bounds = {"bounds": (0, 80)} if name == "mmd_test" else {}
    return lambda: function(list(range(30)), list(range(20, 50)), epsilon=1, **bounds)


WALKS: dict[str, Callable[[], Callable[[], object]]] = {
    "privatest two-sample": _two_sample,
    "privatest release": _release,
    "a request to a curator": _curator,
    "mannwhitneyu": lambda: _library("mannwhitneyu"),
    "mmd_test": lambda: _library("mmd_test"),
}


def watched(job: Callable[[], object], source: Path) -> list[tuple[str, str]]:
    """Return the functions that a run enters below ``source``: file and name, each once, in order.

    What happens inside a rehearsal is left out: the same steps follow on the real rows.
    """
    steps: dict[tuple[str, str], None] = {}
    rehearsals: list[FrameType] = []
    root = f"{source}{os.sep}"

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "return" and rehearsals and frame is rehearsals[-1]:
            rehearsals.pop()
        if event != "call" or not frame.f_code.co_filename.startswith(root):
            return
        name = frame.f_code.co_qualname
        function = frame.f_code.co_flags & inspect.CO_OPTIMIZED  # not the body of a class
        if function and not rehearsals and not name.endswith(">"):
            steps.setdefault((frame.f_code.co_filename.removeprefix(root), name))
        if "rehears" in frame.f_code.co_name:
            rehearsals.append(frame)

    sys.setprofile(watch)
    try:
        job()
    finally:
        sys.setprofile(None)
    return list(steps)


def walk(title: str) -> list[tuple[str, str]]:
    """Return the steps of one run, made in a process of its own."""
    command = [sys.executable, "-m", "tools.walks", title]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [(file, name) for file, name in json.loads(done.stdout)]


def counts(steps: list[tuple[str, str]]) -> str:
    """Return how many functions and files there are."""
    return f"{len(steps)} functions in {len({file for file, _ in steps})} files"


def main() -> None:
    """Print a table, or the steps of one run."""
    if len(sys.argv) == 1:
        for title in WALKS:
            print(f"{title:24} {counts(walk(title))}")
        return
    import privatest  # noqa: PLC0415

    source = Path(privatest.__file__).parent
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, text in {
            "people.csv": PEOPLE,
            "people.toml": SCHEMA,
            "curator.toml": CURATOR,
        }.items():
            Path(name).write_text(text, encoding="utf-8")
        job = WALKS[sys.argv[1]]()
        print(json.dumps(watched(job, source)))


if __name__ == "__main__":
    main()
