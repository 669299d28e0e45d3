"""Plant one mistake at a time in a copy of the project, and see which test turns red.

    python scripts/mutate.py                 all of scripts/mutations.toml
    python scripts/mutate.py --only NAME     some of them (may be given several times)
    python scripts/mutate.py --list          what there is

Only tests of the gate (`make test`) are run: a mistake that only a nightly test catches survives.
The copy lies in a temporary folder; the project itself is never touched. What is found goes to
scripts/mutations.json and docs/mutations.md. The exit code is 1 if a mutation survives.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
MUTATIONS = ROOT / "scripts" / "mutations.toml"
RESULTS = ROOT / "scripts" / "mutations.json"
PAGE = ROOT / "docs" / "mutations.md"
# It checks that each `old` is in the source, so it is red for every mutation.
OWN_TEST = "tests/unit/test_scripts_mutate.py"
SURVIVED = ""
TREES = ("src/privatest", "papers/src/privatest_papers")  # where mistakes are planted
GATE = "not nightly"  # the tests of `make test`
NONE_CHOSEN = 5  # pytest's exit code where every named test is nightly


@dataclass(frozen=True, slots=True)
class Mutation:
    """A piece of the source, what takes its place, and the tests that are tried first."""

    name: str
    breaks: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Short name of the change itself: a stored result is of this change or stale."""
        return hashlib.sha256(f"{self.old}\0{self.new}".encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a mutation. ``caught_by`` is empty if it survived."""

    digest: str
    file: str
    caught_by: str
    seconds: float


def load(path: Path = MUTATIONS) -> list[Mutation]:
    found = tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]
    mutations = [Mutation(**each | {"tests": tuple(each["tests"])}) for each in found]
    names = [mutation.name for mutation in mutations]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise SystemExit(f"{path.name}: the same name twice: {', '.join(sorted(repeated))}.")
    return mutations


def sources(root: Path = ROOT) -> dict[Path, str]:
    files = [file for tree in TREES for file in sorted((root / tree).rglob("*.py"))]
    return {file: file.read_text(encoding="utf-8") for file in files}


def place(mutation: Mutation, texts: dict[Path, str]) -> Path:
    """Return the one file that holds the piece; anything else is an error of the list."""
    counts = {file: text.count(mutation.old) for file, text in texts.items()}
    found = [file for file, count in counts.items() if count]
    if sum(counts.values()) != 1:
        where = ", ".join(file.name for file in found) or "no file"
        raise SystemExit(
            f"mutation {mutation.name!r}: its old text must be in the source once; it is there "
            f"{sum(counts.values())} times ({where}). Has the code changed? See {MUTATIONS.name}."
        )
    return found[0]


def mutated(mutation: Mutation, source: str) -> str:
    """Return the source with its mistake, which must be one of meaning and not of grammar."""
    changed = source.replace(mutation.old, mutation.new)
    if ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source)):
        raise SystemExit(f"mutation {mutation.name!r} changes nothing.")
    return changed


def copy_project(target: Path) -> None:
    """Copy what git knows and what it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():  # and not deleted
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def import_paths(folder: Path) -> list[str]:
    """Return the folders from which Python imports both distributions of a copy."""
    return [str((folder / tree).parent) for tree in TREES]


def first_failure(folder: Path, tests: Iterable[str], workers: int) -> str:
    """Run tests of the gate in a copy until one is red; return its name, or nothing."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "-rfE"]
    command += ["-p", "no:cacheprovider", f"--deselect={OWN_TEST}", f"-n{workers}"]
    command += ["-m", GATE, *tests]
    path = os.pathsep.join([*import_paths(folder), str(folder)])
    settings = os.environ | {"PYTHONPATH": path}
    run = subprocess.run(
        command, cwd=folder, env=settings, capture_output=True, text=True, check=False
    )
    if run.returncode in (0, NONE_CHOSEN):
        return SURVIVED
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", run.stdout, re.M)
    if run.returncode not in (1, 2) or found is None:  # 2: a test file cannot be imported
        raise SystemExit(f"pytest could not run:\n{run.stdout[-2000:]}{run.stderr[-2000:]}")
    return found[1]


def check_copy(folder: Path) -> None:
    """Refuse to go on if tests of the copy would run the code of somewhere else."""
    settings = os.environ | {"PYTHONPATH": os.pathsep.join(import_paths(folder))}
    for package in (Path(tree).name for tree in TREES):
        command = [sys.executable, "-c", f"import {package}; print({package}.__file__)"]
        run = subprocess.run(
            command, cwd=folder, env=settings, capture_output=True, text=True, check=False
        )
        if not Path(run.stdout.strip()).is_relative_to(folder):
            raise SystemExit(f"the copy is not what Python imports: {run.stdout}{run.stderr}")


def try_mutation(mutation: Mutation, folder: Path, stamp: int, quick: bool, workers: int) -> Result:
    start = time.monotonic()
    texts = sources(folder)
    file = place(mutation, texts)
    source = texts[file]
    try:
        file.write_text(mutated(mutation, source), encoding="utf-8")
        os.utime(file, (stamp, stamp))  # compiled files go by the second: never the same twice
        caught = first_failure(folder, mutation.tests, 0)
        if caught == SURVIVED and not quick:
            caught = first_failure(folder, (), workers)
    finally:
        file.write_text(source, encoding="utf-8")
        os.utime(file, (stamp + 1, stamp + 1))
    seconds = round(time.monotonic() - start, 1)
    return Result(mutation.digest, str(file.relative_to(folder)), caught, seconds)


def try_all(mutations: Sequence[Mutation], quick: bool, workers: int) -> dict[str, Result]:
    results: dict[str, Result] = {}
    listed = load()
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        tempfile.TemporaryDirectory() as temporary,
        Progress(*columns, TimeElapsedColumn(), console=console) as progress,
    ):
        folder = Path(temporary).resolve()
        copy_project(folder)
        check_copy(folder)
        task = progress.add_task("", total=len(mutations))
        for index, mutation in enumerate(mutations):
            progress.update(task, description=mutation.name)
            found = try_mutation(mutation, folder, 10**9 + 2 * index, quick, workers)
            results[mutation.name] = found
            save(listed, results)  # a long run may be stopped
            if found.caught_by == SURVIVED:
                progress.console.print(f"SURVIVED: {mutation.name}", highlight=False)
            progress.advance(task)
    return results


def stored() -> dict[str, Result]:
    if not RESULTS.exists():
        return {}
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {name: Result(**values) for name, values in found.items()}


def known(mutations: Iterable[Mutation], results: dict[str, Result]) -> dict[str, Result]:
    """Return the results that are of the present list, in its order."""
    return {
        mutation.name: results[mutation.name]
        for mutation in mutations
        if mutation.name in results and results[mutation.name].digest == mutation.digest
    }


def page(mutations: Sequence[Mutation], results: dict[str, Result]) -> str:
    """Return the page of the documentation."""
    lines = [
        "# Mutations and the tests that catch them",
        "",
        "A test suite that passes says little until it is known to fail. `make mutate` plants",
        f"{len(mutations)} mistakes that a careless change could make, one at a time, in a copy of",
        "the project. The table names the first test of `make test` that fails for each; nightly",
        "tests are not run. A new mechanism brings mutations of its own: add them to",
        "`scripts/mutations.toml`.",
        "",
        "| what is broken | where | caught by |",
        "|---|---|---|",
    ]
    for mutation in mutations:
        found = results.get(mutation.name)
        where = "" if found is None else f"`{found.file.removeprefix('src/privatest/')}`"
        test = "not tried yet" if found is None else "**nothing**"
        if found is not None and found.caught_by:
            test = f"`{short(found.caught_by)}`"
        lines.append(f"| {mutation.breaks} (`{mutation.name}`) | {where} | {test} |")
    return "\n".join(lines) + "\n"


def short(test: str) -> str:
    """Return the name of a test without the values of its parameters."""
    return test.removeprefix("tests/").split("[")[0]


def save(mutations: Sequence[Mutation], results: dict[str, Result]) -> None:
    kept = known(mutations, stored() | results)
    values = {name: asdict(result) for name, result in kept.items()}
    RESULTS.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(mutations, kept), encoding="utf-8")


def show(results: dict[str, Result]) -> None:
    table = Table("mutation", "file", "caught by", "seconds")
    for name, found in results.items():
        caught = short(found.caught_by) if found.caught_by else "[bold red]nothing[/]"
        table.add_row(name, found.file.removeprefix("src/privatest/"), caught, f"{found.seconds}")
    Console().print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="show the mutations, run nothing")
    parser.add_argument("--only", action="append", metavar="NAME", help="try this one; repeatable")
    parser.add_argument("--missing", action="store_true", help="try those without a stored result")
    parser.add_argument("--quick", action="store_true", help="never fall back to the whole gate")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    parser.add_argument("-n", type=int, default=2, metavar="N", help="processes of a whole gate")
    options = parser.parse_args(arguments)
    mutations = load()
    chosen = mutations
    if options.only:
        unknown = set(options.only) - {mutation.name for mutation in mutations}
        if unknown:
            parser.error(f"no such mutation: {', '.join(sorted(unknown))}; see --list")
        chosen = [mutation for mutation in mutations if mutation.name in options.only]
    if options.missing:
        caught = {n for n, found in known(mutations, stored()).items() if found.caught_by}
        chosen = [mutation for mutation in chosen if mutation.name not in caught]
    texts = sources()
    files = {mutation.name: place(mutation, texts) for mutation in chosen}  # or an error, at once
    if options.list:
        for mutation in chosen:
            file = files[mutation.name].relative_to(ROOT)
            print(f"{mutation.name}: {mutation.breaks} ({file})")
        return 0
    results = try_all(chosen, options.quick, options.n)
    if options.json:
        print(json.dumps({name: asdict(found) for name, found in results.items()}, indent=1))
    else:
        show(results)
    return int(any(found.caught_by == SURVIVED for found in results.values()))


if __name__ == "__main__":
    sys.exit(main())
