"""The package on other systems, and in a shell: it imports, and the Tab key completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# What Windows has not; None makes an import fail, as there.
ELSEWHERE = """
import importlib, os, pkgutil, sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None
for name in ("fork", "getuid", "geteuid"):
    if hasattr(os, name):
        delattr(os, name)
import privatest
for module in pkgutil.walk_packages(privatest.__path__, "privatest."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def test_all_modules_import_on_a_system_that_is_not_posix():
    subprocess.run([sys.executable, "-c", ELSEWHERE], check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_tab_completes_commands_and_options(tmp_path):
    command = Path(sys.executable).with_name("privatest")
    asked = [
        f'"{command}" --install-completion',
        ". .bash_completions/privatest.sh",
        f'COMP_WORDS=(privatest two-s); COMP_CWORD=1; _privatest_completion "{command}"',
        'echo "${COMPREPLY[@]}"',
        f'COMP_WORDS=(privatest mean --col); COMP_CWORD=2; _privatest_completion "{command}"',
        'echo "${COMPREPLY[@]}"',
    ]
    # with the privatest under test, also where another one is installed
    source = str(ROOT / "src")
    variables = os.environ | {"HOME": str(tmp_path), "PYTHONPATH": source}
    done = subprocess.run(
        ["bash", "-c", "\n".join(asked)],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
    )
    printed = done.stdout
    assert "completion installed in" in printed
    assert printed.splitlines()[-2:] == ["two-sample", "--columns"]
