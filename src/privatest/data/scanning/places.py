"""Which files a path, a folder, a pattern or an address means, and whether they stay the same."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from privatest.core.errors import DataError, ParameterError
from privatest.core.validation import printable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ENDINGS", "File", "ending_of", "files_at", "is_pattern"]

TEXT_ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
ENDINGS = (*TEXT_ENDINGS, ".parquet", ".arrow", ".ipc", ".feather", ".npy")
_PATTERN = re.compile(r"[*?\[]")
_QUERY = re.compile(r"\?[\w.-]+=.*$")
_NOTHING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was when it was opened.

    Attributes
    ----------
    path, size, time
        Where it is, its bytes, and when it was last written, in nanoseconds.
    number, among : int
        Which of how many files it is.
    keys : tuple of (str, str or None)
        Columns that folders stand for: "arm=treated/part.parquet" has arm.
    system : pyarrow.fs.FileSystem
        What opens it.
    """

    path: str
    size: int
    time: int
    number: int = 1
    among: int = 1
    keys: tuple[tuple[str, str | None], ...] = ()
    system: Any = field(default=None, compare=False)

    @property
    def label(self) -> str:
        """The file's name, without its folders: those may hold values."""
        name = printable(PurePosixPath(self.path).name)
        return name if self.among == 1 else f"{name} (file {self.number} of {self.among})"

    @property
    def local(self) -> bool:
        """Whether it is on a disk of this machine."""
        return bool(self.system.type_name == "local")

    def open(self) -> pa.NativeFile:
        """Open it for reading anywhere; refuse it if it changed."""
        self.check()
        return self.system.open_input_file(self.path)

    def open_stream(self) -> pa.NativeFile:
        """Open it for reading from its beginning, decompressed; refuse it if it changed."""
        self.check()
        compression = "gzip" if self.path.lower().endswith(".gz") else None
        return self.system.open_input_stream(self.path, compression=compression)

    def check(self) -> None:
        """Refuse a file that is gone or was written to."""
        found = self.system.get_file_info(self.path)
        if not found.is_file:
            raise DataError(f"{self.label} is no longer there.")
        if (found.size, found.mtime_ns or 0) != (self.size, self.time):
            raise DataError(
                f"{self.label} changed since it was opened; nothing may write to data while it is "
                "read."
            )


def ending_of(path: str) -> str:
    """Return the ending that says how a file is read, or nothing."""
    found = [end for end in ENDINGS if path.lower().endswith(end)]
    return max(found, key=len, default="")


def is_pattern(text: str) -> bool:
    """Whether a path has wildcards."""
    return _PATTERN.search(text) is not None


def files_at(place: str | os.PathLike[str], filesystem: Any = None) -> list[File]:
    """Return the files of a path, a folder or a pattern, sorted by their paths.

    Hidden files, and those that begin with an underscore, are left out of folders.

    Raises
    ------
    DataError
        If there is none, or they are of different kinds.
    """
    text = os.fspath(place)
    system, path = _system(text, filesystem)
    name = printable(PurePosixPath(path).name)
    found = _info(system, path)
    if found.is_file:
        infos, base = [found], str(PurePosixPath(path).parent)
    elif found.type.name == "Directory":
        infos, base = _listed(system, path), path
    elif is_pattern(path):
        base, wanted = _fixed_part(path), path.split("/")
        infos = [info for info in _listed(system, base) if _fits(info.path.split("/"), wanted)]
    else:
        raise DataError(f"{name} does not exist.")
    files = _numbered(sorted(infos, key=lambda info: info.path), system, base)
    if not files and is_pattern(path):
        raise DataError(f"no file fits the pattern {printable(text)}.")
    if not files:
        raise DataError(f"{name} has no file that ends in one of {', '.join(ENDINGS)}.")
    kinds = {_kind(file.path) for file in files}
    if len(kinds) > 1:
        raise DataError(
            f"{name} has files of different kinds ({', '.join(sorted(kinds))}); name one kind, "
            "such as 'folder/*.parquet'."
        )
    return files


def _kind(path: str) -> str:
    end = ending_of(path)
    return ".arrow" if end in (".ipc", ".feather") else end


def _system(text: str, filesystem: Any) -> tuple[Any, str]:
    """Return what opens the files, and the path in it."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import fs  # noqa: PLC0415

    if filesystem is not None:
        if not isinstance(filesystem, fs.FileSystem):
            filesystem = fs.PyFileSystem(fs.FSSpecHandler(filesystem))
        return filesystem, text
    if "://" not in text:
        return fs.LocalFileSystem(), os.path.abspath(os.path.expanduser(text)).replace(os.sep, "/")
    try:
        scheme, _, address = text.partition("://")
        rest, query = _parted(address)
        system, base = fs.FileSystem.from_uri(f"{scheme}://{_fixed_part(rest)}{query}")
    except (pa.ArrowException, ValueError, OSError):  # its message may hold a password
        raise ParameterError(
            "data has an address that Arrow cannot open; pass filesystem= for others than s3://, "
            "gs://, hdfs:// and file://."
        ) from None
    return system, base + rest[len(_fixed_part(rest)) :]


def _parted(address: str) -> tuple[str, str]:
    """Part an address from its query, such as "?region=eu-west-1": that is not a pattern."""
    found = _QUERY.search(address)
    return (address, "") if found is None else (address[: found.start()], found.group())


def _fixed_part(path: str) -> str:
    """Return the folder of a pattern that has no wildcards, or the whole path."""
    if not is_pattern(path):
        return path
    fixed = []
    for part in path.split("/"):
        if is_pattern(part):
            break
        fixed.append(part)
    return "/".join(fixed) or "/"


def _fits(parts: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether a path has the form of a pattern: "**" stands for any folders, "*" for one."""
    if not wanted or not parts:
        return not wanted and not parts
    if wanted[0] == "**":
        return _fits(parts, wanted[1:]) or _fits(parts[1:], wanted)
    return fnmatchcase(parts[0], wanted[0]) and _fits(parts[1:], wanted[1:])


def _info(system: Any, path: str) -> Any:
    try:
        return system.get_file_info(path)
    except OSError:
        raise DataError(f"{printable(PurePosixPath(path).name)} cannot be reached.") from None


def _listed(system: Any, base: str) -> list[Any]:
    from pyarrow import fs  # noqa: PLC0415

    try:
        infos = system.get_file_info(fs.FileSelector(base, recursive=True, allow_not_found=True))
    except OSError:
        raise DataError(f"{printable(PurePosixPath(base).name)} cannot be listed.") from None
    skip = len(base.rstrip("/")) + 1
    return [
        info
        for info in infos
        if info.is_file
        and ending_of(info.path)
        and not any(part[:1] in "._" for part in info.path[skip:].split("/"))
    ]


def _numbered(infos: Iterable[Any], system: Any, base: str) -> list[File]:
    found = list(infos)
    for info in found:
        name = printable(PurePosixPath(info.path).name)
        if not ending_of(info.path):
            raise DataError(f"{name} must end in one of {', '.join(ENDINGS)}.")
        if info.size == 0:
            raise DataError(f"{name} is empty.")
    skip = len(base.rstrip("/")) + 1
    return [
        File(
            *(info.path, info.size, info.mtime_ns or 0, number, len(found)),
            keys=_keys(info.path[skip:].split("/")[:-1]),
            system=system,
        )
        for number, info in enumerate(found, 1)
    ]


def _keys(folders: Iterable[str]) -> tuple[tuple[str, str | None], ...]:
    """Read columns from folders such as "arm=treated"."""
    pairs = (folder.partition("=") for folder in folders)
    return tuple(
        (unquote(name), None if value == _NOTHING else unquote(value))
        for name, sign, value in pairs
        if sign and name
    )
