"""Programs that the tests use are installed, waited for, or done without for a stated reason."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCK = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)"
# Fails with a message as often as the file says, and keeps what it was asked.
APT_GET = """\
#!/bin/sh
echo "$@" >>{folder}/asked
left=$(cat {folder}/left)
test "$left" = 0 && exit 0
echo $((left - 1)) >{folder}/left
echo "{message}" >&2
exit 100
"""


@pytest.fixture
def run(tmp_path):
    """Run the script where everybody is root and apt-get fails so many times."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "date", "sleep", "tail", "sed", "cat"):
        (programs / name).symlink_to(str(shutil.which(name)))

    def program(name, text):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    def run(*, failures=0, message=LOCK, user=0, apt=True, wait=30, ci=""):
        program("id", f"#!/bin/sh\necho {user}\n")
        (tmp_path / "left").write_text(str(failures))
        if apt:
            program("apt-get", APT_GET.format(folder=tmp_path, message=message))
        return subprocess.run(
            [programs / "sh", ROOT / "scripts" / "install_packages.sh", "Chromium", "a", "b"],
            env={"PATH": str(programs), "PACKAGES_WAIT": str(wait)} | ({"CI": ci} if ci else {}),
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_packages_are_installed(run, tmp_path):
    done = run()
    assert (done.returncode, done.stderr) == (0, "")
    update, install = (tmp_path / "asked").read_text().splitlines()
    assert update.startswith("update")
    assert install.startswith("install")
    assert install.endswith(" a b")
    assert "DPkg::Lock::Timeout=30" in install


def test_a_lock_is_waited_for(run, tmp_path):
    done = run(failures=2, ci="true")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "left").read_text().strip() == "0"


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"failures": 99, "wait": 1}, "another package manager is at work"),
        ({"failures": 1, "message": "E: Unable to locate package a"}, "Unable to locate package"),
        ({"user": 1000}, "only root can install packages"),
        ({"apt": False}, "there is no apt-get"),
    ],
)
def test_it_is_done_without_but_not_in_ci(run, case, reason):
    start = time.monotonic()
    done = run(**case)
    assert time.monotonic() - start < 20
    assert done.returncode == 0
    assert done.stderr.startswith("Chromium cannot be installed: ")
    assert reason in done.stderr
    assert "Its tests will be skipped." in done.stderr
    failed = run(**case, ci="true")
    assert failed.returncode == 1
    assert reason in failed.stderr


def test_every_program_is_installed_this_way():
    """One recipe: nobody else calls the package manager."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "apt-get" not in text
    for target in ("postgresql", "chromium", "r"):
        command = ["make", "--dry-run", target]
        environment = os.environ | {"MAKEFLAGS": ""}  # the tests may have been started by make
        plan = subprocess.check_output(command, cwd=ROOT, text=True, env=environment)
        assert "scripts/install_packages.sh" in plan
