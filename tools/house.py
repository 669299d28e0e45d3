"""Measure the source: files, lines, modules, circular imports, long signatures.

Run ``python -m tools.house [SOURCE]``. Lines of code are those of statements: no docstrings, no
comments, no blank lines. To compare with an older state, check it out elsewhere and pass its
``src/privatest``.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import tokenize
from collections.abc import Iterator
from pathlib import Path

OWN = Path(__file__).resolve().parent.parent / "src" / "privatest"
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_NO_CODE |= {tokenize.ENCODING, tokenize.ENDMARKER}


def measure(source: Path) -> dict[str, object]:
    """Return the figures of one source tree."""
    files = {path: path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in files.items()}
    code = {path: len(_code_lines(text, trees[path])) for path, text in files.items()}
    longest = max(files, key=lambda path: files[path].count("\n"))
    root = [path.stem for path in source.glob("*.py") if path.stem != "__init__"]
    signatures = sorted(_signatures(trees, source), reverse=True)
    return {
        "files": len(files),
        "lines": sum(text.count("\n") for text in files.values()),
        "lines of code": sum(code.values()),
        "modules in the root": len(root),
        "longest file": f"{files[longest].count(chr(10))} ({longest.relative_to(source)})",
        "packages that import each other": len(_circles(trees, source)),
        "longest parameter lists": [f"{name}: {count}" for count, name in signatures[:8]],
    }


def _code_lines(text: str, tree: ast.Module) -> set[int]:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                lines.difference_update(range(first.lineno, (first.end_lineno or 0) + 1))
    return lines


def _signatures(trees: dict[Path, ast.Module], source: Path) -> Iterator[tuple[int, str]]:
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                arguments = node.args
                count = len(arguments.posonlyargs) + len(arguments.args)
                count += len(arguments.kwonlyargs)
                yield count, f"{path.relative_to(source).with_suffix('')}.{node.name}"


def _circles(trees: dict[Path, ast.Module], source: Path) -> set[frozenset[str]]:
    """Return the pairs of packages (or root modules) that import each other, anywhere."""
    uses: set[tuple[str, str]] = set()
    for path, tree in trees.items():
        own = path.relative_to(source).with_suffix("").parts[0]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("privatest."):
                uses.add((own, (node.module or "").split(".")[1]))
    return {frozenset(pair) for pair in uses if pair[0] != pair[1] and pair[::-1] in uses}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description="Measure a source tree of privatest.")
    parser.add_argument("source", nargs="?", type=Path, default=OWN)
    print(json.dumps(measure(parser.parse_args().source), indent=1))


if __name__ == "__main__":
    main()
