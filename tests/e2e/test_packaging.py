"""What is published: it installs without extras, has its files, and completes by the Tab key."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "privatest"
PAPERS = ROOT / "papers" / "src" / "privatest_papers"
NO_INDEX = ("No matching distribution", "Could not find a version", "Failed to establish")
BIN = "Scripts" if os.name == "nt" else "bin"

# What Windows has not; None makes an import fail, as there.
ELSEWHERE = """
import importlib, os, pkgutil, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "getuid", "geteuid"):
    if hasattr(os, name):
        delattr(os, name)
import privatest, privatest_papers
for package in (privatest, privatest_papers):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""


def attempt(
    *command: str | Path, folder: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program with its own packages, not with those of whoever runs the tests."""
    return subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


def run(*command: str | Path, folder: Path, **variables: str) -> str:
    """Run a program, and return what it prints; skip where packages cannot be had."""
    done = attempt(*command, folder=folder, **variables)
    told = done.stdout + done.stderr
    if done.returncode and any(words in told for words in NO_INDEX) and not os.environ.get("CI"):
        pytest.skip("there is no package index here")
    assert done.returncode == 0, told
    return done.stdout


def contents(package: Path) -> set[str]:
    """The files that a wheel of the package must have."""
    files = (path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(package.parent).as_posix() for path in files}


def packed(wheel: Path) -> set[str]:
    """The files of a wheel, but for its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


@pytest.mark.slow
def test_wheel_works_without_extras(tmp_path):
    # the wheel is built from the sdist, so both are tried
    build = ("-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT)
    run(sys.executable, *build, folder=tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    assert packed(wheel) == contents(PACKAGE)

    run(sys.executable, "-m", "venv", "--without-pip", "clean", folder=tmp_path)
    programs = tmp_path / "clean" / BIN
    install = ("-m", "pip", "--python", programs / "python", "install", "-q", "--no-compile", wheel)
    run(sys.executable, *install, folder=tmp_path)
    assert "site-packages" in run(
        programs / "python", "-c", "import privatest; print(privatest.__file__)", folder=tmp_path
    )
    privatest = programs / "privatest"
    assert run(privatest, "--version", folder=tmp_path).startswith("privatest ")
    assert "two-sample" in run(privatest, "--help", folder=tmp_path)
    told = attempt(privatest, "reproduce", "list", folder=tmp_path)
    assert told.returncode == 2
    assert "pip install ./papers" in told.stderr
    answer = json.loads(run(privatest, "demo", "--json", "--epsilon", "1", folder=tmp_path))
    assert answer["epsilon"] == 1

    build_papers = (*build[:3], "--wheel", "--outdir", tmp_path, ROOT / "papers")
    run(sys.executable, *build_papers, folder=tmp_path)
    (papers,) = tmp_path.glob("privatest_papers*.whl")
    assert packed(papers) == contents(PAPERS)
    run(sys.executable, *install[:-1], "--no-deps", papers, folder=tmp_path)
    assert "reproduce" in run(privatest, "--help", folder=tmp_path)
    assert "kim-schrab-2" in run(privatest, "reproduce", "list", folder=tmp_path)


def test_all_modules_import_on_a_system_that_is_not_posix():
    subprocess.run([sys.executable, "-c", ELSEWHERE], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_tab_completes_commands_options_and_names(tmp_path):
    command = Path(sys.executable).with_name("privatest")
    asked = [f'"{command}" --install-completion', ". .bash_completions/privatest.sh"]
    for line in ("two-s", "mean --col", "paired a.csv --method wil", "reproduce show raj-4"):
        words = f"COMP_WORDS=(privatest {line}); COMP_CWORD={len(line.split())}"
        asked += [f'{words}; _privatest_completion "{command}"', 'echo "${COMPREPLY[@]}"']
    # with the privatest under test, also where another one is installed
    source = os.pathsep.join([str(ROOT / "src"), str(PAPERS.parent)])
    printed = run(
        "bash", "-c", "\n".join(asked), folder=tmp_path, HOME=str(tmp_path), PYTHONPATH=source
    )
    assert "completion installed in" in printed
    assert printed.splitlines()[-4:] == ["two-sample", "--columns", "wilcoxon", "raj-4"]
