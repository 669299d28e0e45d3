"""Measure the house: what one person has to carry.

Run ``python -m tools.house [SOURCE]``, or with ``--walks`` to count the functions and files that
real requests enter too (of this tree only). Lines of code are those of statements: no docstrings,
no comments, no blank lines. To compare with an older state, check it out elsewhere and pass its
``src/privatest``.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tools.walks import WALKS, counts, walk

OWN = Path(__file__).resolve().parent.parent / "src" / "privatest"
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_NO_CODE |= {tokenize.ENCODING, tokenize.ENDMARKER}


def measure(source: Path) -> dict[str, object]:
    """Return the figures of one source tree."""
    files = {path: path.read_text(encoding="utf-8") for path in sorted(source.rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in files.items()}
    nodes = {path: [*ast.walk(tree)] for path, tree in trees.items()}
    longest = max(files, key=lambda path: files[path].count("\n"))
    classes = Counter(
        node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)
    )
    public = [*files, *source.rglob("*.pyi")]
    signatures = sorted(_signatures(nodes, source), reverse=True)
    return {
        "files": len(files),
        "packages": len({path.parent for path in files}),
        "lines": sum(text.count("\n") for text in files.values()),
        "lines of code": sum(len(_code_lines(files[path], trees[path])) for path in files),
        "longest file": f"{files[longest].count(chr(10))} ({longest.relative_to(source)})",
        "packages that import each other": len(_circles(nodes, source)),
        "class names defined twice": sorted(name for name, times in classes.items() if times > 1),
        "files that name mannwhitneyu": sum(
            re.search(r"\bmannwhitneyu\b", path.read_text(encoding="utf-8")) is not None
            for path in public
        ),
        "context variables": sum(len(re.findall(r"ContextVar\(", text)) for text in files.values()),
        "imports in functions": sum(_hidden_imports(tree) for tree in trees.values()),
        "longest parameter lists": [f"{name}: {count}" for count, name in signatures[:5]],
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


def _hidden_imports(tree: ast.Module) -> int:
    return sum(
        isinstance(inner, (ast.Import, ast.ImportFrom))
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for inner in node.body
    )


def _signatures(nodes: dict[Path, list[ast.AST]], source: Path) -> Iterator[tuple[int, str]]:
    for path, found in nodes.items():
        for node in found:
            if isinstance(node, ast.FunctionDef):
                arguments = node.args
                count = len(arguments.posonlyargs) + len(arguments.args)
                count += len(arguments.kwonlyargs)
                yield count, f"{path.relative_to(source).with_suffix('')}.{node.name}"


def _circles(nodes: dict[Path, list[ast.AST]], source: Path) -> set[frozenset[str]]:
    """Return the pairs of packages (or root modules) that import each other, anywhere."""
    uses: set[tuple[str, str]] = set()
    for path, found in nodes.items():
        own = path.relative_to(source).with_suffix("").parts[0]
        for node in found:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("privatest."):
                uses.add((own, (node.module or "").split(".")[1]))
    return {frozenset(pair) for pair in uses if pair[0] != pair[1] and pair[::-1] in uses}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description="Measure a source tree of privatest.")
    parser.add_argument("source", nargs="?", type=Path, default=OWN)
    parser.add_argument("--walks", action="store_true", help="count what real requests enter")
    given = parser.parse_args()
    found = measure(given.source)
    if given.walks:
        found["walks"] = {title: counts(walk(title)) for title in WALKS}
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
