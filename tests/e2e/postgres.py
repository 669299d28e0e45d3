"""A real PostgreSQL of the tests' own: made in a temporary directory, reached by a socket."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


def binaries() -> Path | None:
    """The folder of initdb and pg_ctl; distributions keep them off the PATH."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent  # it may be a link
    folders = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(folders, key=lambda path: int(path.parts[-3]), default=None)
    return newest and newest.parent


@dataclass(frozen=True)
class Server:
    """A running server."""

    folder: Path
    binaries: Path

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of PostgreSQL's programs, which refuse to work for root."""
        become = []
        if os.geteuid() == 0:
            become = ["runuser", "-u", "postgres", "--"]
        return subprocess.run(
            [*become, str(self.binaries / program), *arguments],
            check=True,
            text=True,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server would keep a pipe open
            timeout=60,
        )

    def start(self) -> None:
        data, log = str(self.folder / "data"), str(self.folder / "log")
        options = f"-k {self.folder} -c listen_addresses= -c max_connections=120"
        self.run("pg_ctl", "-D", data, "-l", log, "-w", "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def database(self, name: str) -> str:
        """Make an empty database and return its address."""
        self.run("createdb", "-h", str(self.folder), "-U", "postgres", name)
        return f"postgresql://postgres@/{name}?host={self.folder}"


def _missing() -> str | None:
    if binaries() is None:
        return "PostgreSQL is not installed (Debian: apt-get install postgresql)"
    if os.geteuid() == 0:
        if shutil.which("runuser") is None:
            return "PostgreSQL does not run as root, and there is no runuser"
        if "postgres" not in {user.pw_name for user in pwd.getpwall()}:
            return "PostgreSQL does not run as root, and there is no user postgres"
    return None


@contextmanager
def server() -> Iterator[Server]:
    """Start a server and take it away afterwards."""
    found = binaries()
    assert found is not None
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: a socket's path has 107 bytes at most
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        made = Server(folder, found)
        made.run("initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-N")
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def server_or_skip() -> Iterator[Server]:
    """Skip with the reason where there is no PostgreSQL; where CI is set, fail."""
    reason = _missing()
    if reason is not None:
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with server() as running:
        yield running
