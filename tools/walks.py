"""Write the walks of docs/architecture.md: the functions that a request passes, from a real run.

Run ``python -m tools.walks``. It makes four requests about made-up rows, watches every call in
the package, and writes the lists into the page and the picture beside it. A test fails when
either is out of date.
"""

from __future__ import annotations

import importlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from html import escape
from operator import attrgetter
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "privatest"
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "figures" / "walks.svg"
START, END = "<!-- walks: written by `python -m tools.walks` -->", "<!-- end of walks -->"

Step = tuple[str, str]  # module without the package's name, function

# What a reviewer looks for in the picture: is it paid for before it is read?
LANDMARKS = {
    "Ledger.reserve": "reserve",
    "Place.read": "read",
    "SecureNoise.discrete_laplace": "noise",
    "SecureNoise.gaussian": "noise",
    "Ledger.commit": "commit",
}
# JSON is written, parameters are checked and results get their level everywhere: that is no step.
TOO_COMMON = ("core.documents", "core.levels", "core.validation")
_LEFT, _STEP, _ROW = 100, 16, 18  # of the picture

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


def walks() -> dict[str, list[Step]]:
    """Make the four requests; return which functions each passed."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for name, text in {
            "people.csv": PEOPLE,
            "people.toml": SCHEMA,
            "curator.toml": CURATOR,
        }.items():
            Path(name).write_text(text, encoding="utf-8")
        _command("ledger init people --epsilon 3 --delta 1e-5 --ledger own.db")
        return {
            "privatest two-sample": watched(
                lambda: _command(
                    "two-sample people.csv --group plan --schema people.toml --epsilon 1 "
                    "--dataset people --ledger own.db"
                )
            ),
            "mmd_test": watched(_library_call),
            "privatest release": watched(
                lambda: _command(
                    "release people.csv --columns visits --schema people.toml --epsilon 1 "
                    "--delta 1e-6 --points 10 --dataset people --ledger own.db -o out.parquet"
                )
            ),
            "A request to a curator": watched(_curator_request()),
        }


def _command(line: str) -> None:
    from privatest.cli import app  # noqa: PLC0415

    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = app(line.split(), standalone_mode=False)
    if code:
        raise RuntimeError(f"privatest {line} failed:\n{said.getvalue()}")


def _library_call() -> None:
    from privatest import mmd_test  # noqa: PLC0415

    mmd_test(list(range(30)), list(range(20, 50)), epsilon=1, bounds=(0, 80))


def _curator_request() -> Callable[[], object]:
    from privatest.curator import Curator  # noqa: PLC0415

    curator = Curator.open(Path("curator.toml"), create=True)
    curator.register("people")
    words = {"dataset": "people", "question": "two-sample", "method": "mmd"}
    asked = words | {"columns": ["visits"], "group": "plan", "epsilon": 1}
    return lambda: curator.run(asked, analyst="ada")


def watched(job: Callable[[], object]) -> list[Step]:
    """Return the functions by which a run enters another package, each once, in order.

    What happens inside a rehearsal is left out: the same steps follow on the real rows. The walk
    ends when the answer is recorded.
    """
    steps: dict[Step, None] = {}
    rehearsals: list[FrameType] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "return" and rehearsals and frame is rehearsals[-1]:
            rehearsals.pop()
        if event != "call" or (here := _module(frame)) is None:
            return
        if not rehearsals and _is_step(frame, here):
            steps.setdefault((here, frame.f_code.co_qualname))
        # whether released weights are fitted again depends on the noise
        if "rehears" in frame.f_code.co_name or frame.f_code.co_name == "nonnegative":
            rehearsals.append(frame)

    sys.setprofile(watch)
    try:
        job()
    finally:
        sys.setprofile(None)
    names = [name for _, name in steps]
    # what follows the commit prints the answer, and how depends on the noise
    return list(steps)[: names.index("Ledger.commit") + 1 if "Ledger.commit" in names else None]


def _is_step(frame: FrameType, module: str) -> bool:
    """Whether a public function was called from another package."""
    name, qualified = frame.f_code.co_name, frame.f_code.co_qualname
    if name.startswith("_") or "<" in qualified or module in TOO_COMMON:
        return False
    caller = frame.f_back
    while caller is not None and _module(caller) is None:
        caller = caller.f_back
    if caller is not None and _package(_module(caller)) == _package(module):
        return False
    owner = importlib.import_module(f"privatest.{module}")
    return not isinstance(attrgetter(qualified)(owner), property)


def _module(frame: FrameType) -> str | None:
    path = frame.f_code.co_filename
    if not path.startswith(f"{SOURCE}{os.sep}"):
        return None
    parts = Path(path).relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def _package(module: str | None) -> str:
    return "" if module is None else module.split(".")[0]


# --- the page and the picture -----------------------------------------------------------------


def render(found: dict[str, list[Step]]) -> str:
    """Return the page with its lists replaced."""
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    lists = [f"### {name}\n\n```text\n{_lines(steps)}\n```\n" for name, steps in found.items()]
    return f"{before}{START}\n\n" + "\n".join(lists) + f"\n{END}{after}"


def _lines(steps: list[Step]) -> str:
    width = max(len(module) for module, _ in steps)
    return "\n".join(f"{module:{width}}  {name}" for module, name in steps)


def packages() -> list[str]:
    """Return the packages in the order of the page's table of layers."""
    rows = re.findall(r"^\|\s*\d*\s*\|([^|]+)\|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def draw(found: dict[str, list[Step]]) -> str:
    """Return an SVG: one panel a walk, packages from top to bottom, steps from left to right."""
    width = _LEFT + max(len(steps) for steps in found.values()) * _STEP + 40
    parts, top = [], 0
    for title, steps in found.items():
        panel, height = _panel(title, steps, top, width)
        parts += panel
        top += height
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" '
    style = 'font-family="sans-serif" font-size="11">'
    ground = f'<rect width="{width}" height="{top}" fill="white"/>'
    return "\n".join([head + style, ground, *parts, "</svg>\n"])


def _panel(title: str, steps: list[Step], top: int, width: int) -> tuple[list[str], int]:
    used = {_package(module) for module, _ in steps}
    names = [name for name in packages() if name in used]
    base = top + 44
    parts = [f'<text x="{_LEFT}" y="{top + 16}" font-weight="bold">{escape(title)}</text>']
    for row, name in enumerate(names):
        y = base + row * _ROW
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{name}</text>')
        parts.append(f'<path d="M{_LEFT} {y}H{width - 10}" stroke="#ddd"/>')
    places = [
        (_LEFT + 8 + step * _STEP, base + names.index(_package(module)) * _ROW)
        for step, (module, _) in enumerate(steps)
    ]
    path = "L".join(f"{x} {y}" for x, y in places)
    parts.append(f'<path d="M{path}" fill="none" stroke="#9fa8da" stroke-width="1.5"/>')
    for (x, y), (module, name) in zip(places, steps, strict=True):
        mark = LANDMARKS.get(name)
        colour, label = ("#c62828" if mark else "#3f51b5"), escape(f"{module}.{name}")
        dot = f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"><title>{label}</title></circle>'
        parts.append(dot)
        if mark:
            halo = 'paint-order="stroke" stroke="white" stroke-width="3" text-anchor="middle"'
            parts.append(f'<text x="{x}" y="{y - 8}" fill="{colour}" {halo}>{mark}</text>')
    return parts, 44 + len(names) * _ROW + 14


def main() -> None:
    """Write both, or with ``--check`` only say whether they are up to date."""
    found = walks()
    written = {PAGE: render(found), PICTURE: draw(found)}
    if "--check" in sys.argv[1:]:
        old = [path.name for path, text in written.items() if path.read_text("utf-8") != text]
        sys.exit(f"{' and '.join(old)}: run python -m tools.walks" if old else 0)
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
