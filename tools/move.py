"""Merge modules into one file, and rewrite what names them everywhere.

Run ``python tools/move.py TARGET SOURCE...`` with names below ``privatest``: for example
``python tools/move.py ledger.state ledger.chain ledger.accounts``. TARGET may be one of the
sources. A source that is a package stands for its ``__init__``, which may only import: those who
import from it then import from TARGET. Sources are put in an order in which each comes after those
it imports at module level; otherwise they stay in the order given.

What is done: imports are collected at the top, imports among the sources vanish (aliases are
resolved), docstrings of modules become comments, ``__all__`` goes, private names defined twice
are renamed (printed: give them better names), and in Python files, documentation and configuration
every import, dotted name and path of a source is rewritten. ``ruff`` sorts imports and formats.
What cannot be decided is printed at the end as CHECK.

Several moves at once: ``python tools/move.py --map FILE`` with lines ``target: source source``.
Another tree: ``--root DIR``.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import textwrap
import tokenize
from pathlib import Path
from typing import Any

TEXTS = (".py", ".pyi", ".md", ".toml", ".yml", ".yaml", ".cfg", ".R", ".sh", ".html", ".ipynb")
SKIPPED = {".git", ".venv", "site", "build", "node_modules", ".mypy_cache", ".ruff_cache", "demo"}
TYPING = "TYPE_CHECKING"


class Source:
    """One module that is moved."""

    def __init__(self, root: Path, name: str) -> None:
        self.name = name
        self.dotted = f"privatest.{name}"
        base = root / "src" / "privatest" / Path(*name.split("."))
        self.package = base.is_dir()
        self.path = base / "__init__.py" if self.package else base.with_suffix(".py")
        self.text = self.path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text)

    def defined(self) -> set[str]:
        """Names that the module defines itself, at its top level."""
        names: set[str] = set()
        for node in self.tree.body:
            names |= _bound(node)
        return names - {"__all__"}


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
    if isinstance(node, (ast.AnnAssign, ast.AugAssign)) and isinstance(node.target, ast.Name):
        return {node.target.id}
    if isinstance(node, (ast.If, ast.Try, ast.For, ast.With)) and not _is_typing(node):
        return {
            name
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.stmt)
            for name in _bound(child)
        }
    return set()


def _definition(source: Source, name: str) -> str:
    return next(ast.unparse(node) for node in source.tree.body if name in _bound(node))


def _is_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == TYPING


def rename(text: str, names: dict[str, str]) -> str:
    """Rename variables (not attributes, not keywords of calls) in Python source."""
    if not names:
        return text
    lines = text.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    edits: list[tuple[int, int, int, str]] = []
    depth = 0
    solid = [t for t in tokens if t.type not in (tokenize.NL, tokenize.COMMENT)]
    for i, token in enumerate(solid):
        if token.type == tokenize.OP:
            depth += token.string in "([{"
            depth -= token.string in ")]}"
        elif token.type == tokenize.NAME and token.string in names:
            before = solid[i - 1].string if i else ""
            after = solid[i + 1].string if i + 1 < len(solid) else ""
            if before == "." or (depth and after == "=" and before in ("(", ",")):
                continue
            edits.append((token.start[0], token.start[1], token.end[1], names[token.string]))
        elif token.type == tokenize.STRING and "f" in re.match(r"\w*", token.string)[0].lower():  # type: ignore[index]
            new = re.sub(
                r"\{[^{}]*\}",
                lambda m: re.sub(
                    r"(?<![\w.'\"])[A-Za-z_]\w*", lambda n: names.get(n[0], n[0]), m[0]
                ),
                token.string,
            )
            if new != token.string and token.start[0] == token.end[0]:
                edits.append((token.start[0], token.start[1], token.end[1], new))
    for row, start, end, new in sorted(edits, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:start] + new + line[end:]
    return "".join(lines)


def _drop(text: str, nodes: list[ast.stmt], tree: ast.AST) -> str:
    """Remove statements; a block that would be empty gets ``pass``."""
    lines = text.splitlines(keepends=True)
    gone = {id(node) for node in nodes}
    for parent in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            block: Any = getattr(parent, field, None)
            inside = isinstance(block, list) and bool(block) and not isinstance(parent, ast.Module)
            if inside and all(id(child) in gone for child in block):
                for child in block:
                    for row in range(child.lineno, (child.end_lineno or child.lineno) + 1):
                        lines[row - 1] = ""
                lines[block[0].lineno - 1] = " " * block[0].col_offset + "pass\n"
                gone -= {id(child) for child in block}
    for node in nodes:
        if id(node) in gone:
            for row in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines[row - 1] = ""
    return "".join(lines)


def _wrapped(words: str) -> list[str]:
    """Return lines of at most 98 characters; a paragraph with a longer one is filled again."""
    found = []
    for part in words.split("\n\n"):
        lines = part.splitlines()
        found += [*(textwrap.wrap(part, 98) if max(map(len, lines)) > 98 else lines), ""]
    return found[:-1]


class Move:
    """One target and the modules that become it."""

    def __init__(self, root: Path, target: str, sources: list[str]) -> None:
        self.root, self.target = root, target
        self.dotted = f"privatest.{target}"
        self.sources = [Source(root, name) for name in sources]
        self.by_dotted = {source.dotted: source for source in self.sources}
        self.renamed: dict[str, dict[str, str]] = {s.dotted: {} for s in self.sources}
        self.notes: list[str] = []
        base = root / "src" / "privatest" / Path(*target.split("."))
        self.path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        self.same: dict[str, set[str]] = {s.dotted: set() for s in self.sources}
        owners: dict[str, Source] = {}
        taken = {name for source in self.sources for name in self._imported(source)}
        for source in self.sources:
            for name in sorted(source.defined()):
                if name in owners and _definition(owners[name], name) == _definition(source, name):
                    self.same[source.dotted].add(name)
                elif name in owners or name in taken:
                    stem = source.name.split(".")[-1]
                    new = f"_{stem}{name if name.startswith('_') else '_' + name}"
                    if not name.startswith("_"):
                        new = new.lstrip("_")
                    self.renamed[source.dotted][name] = new
                    other = owners[name].name if name in owners else "an import"
                    self.notes.append(f"{source.name}.{name} is now {new}: {other} has {name} too")
                else:
                    owners[name] = source
        self.owners = owners

    def _imported(self, source: Source) -> set[str]:
        """Names that a source imports at module level, from elsewhere."""
        return {
            alias.asname or alias.name
            for node in ast.walk(source.tree)
            if isinstance(node, ast.ImportFrom) and not (source.package and not source.defined())
            for alias in node.names
            if node.module not in self.by_dotted
            and f"{node.module}.{alias.name}" not in self.by_dotted
        }

    def origin(self, module: str, name: str) -> tuple[str, str] | None:
        """Return from where a source imports a name that others take from it."""
        source = self.by_dotted.get(module)
        for node in ast.walk(source.tree) if source else ():
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        if node.module in self.by_dotted:
                            return self.origin(node.module, alias.name)
                        return node.module, alias.name
        return None

    def resolve(self, module: str, name: str) -> tuple[Source, str] | None:
        """Return where a name imported from a source is defined, and its new name."""
        source = self.by_dotted.get(module)
        seen = set()
        while source is not None and source.dotted not in seen:
            seen.add(source.dotted)
            if name in source.defined():
                return source, self.renamed[source.dotted].get(name, name)
            following = None
            for node in ast.walk(source.tree):
                if isinstance(node, ast.ImportFrom):
                    for alias in node.names:
                        if (alias.asname or alias.name) == name and node.module in self.by_dotted:
                            following, name = self.by_dotted[node.module], alias.name
            source = following
        return None

    def ordered(self) -> list[Source]:
        """Sources, each after those it needs at module level."""
        done: list[Source] = []
        busy: set[str] = set()

        def visit(source: Source) -> None:
            if source in done:
                return
            if source.dotted in busy:
                self.notes.append(f"{source.name} is part of a circle of imports")
                return
            busy.add(source.dotted)
            for node in source.tree.body:
                if isinstance(node, ast.ImportFrom) and node.module in self.by_dotted:
                    visit(self.by_dotted[node.module])
                if isinstance(node, ast.ImportFrom) and node.module:
                    for alias in node.names:
                        inner = self.by_dotted.get(f"{node.module}.{alias.name}")
                        if inner is not None:
                            visit(inner)
            done.append(source)

        for source in self.sources:
            visit(source)
        return done

    def merge(self) -> str:
        """Return the text of the target."""
        imports: dict[str, str] = {}  # bound name -> statement
        typing_only: dict[str, str] = {}
        parts: list[str] = []
        doc = None
        for source in self.ordered():
            body, own = self._body(source, imports, typing_only)
            words = ast.get_docstring(source.tree, clean=True)
            if doc is None and words and not source.package:
                doc = words
            elif words and body.strip():
                body = (
                    "\n".join("# " + line if line else "#" for line in _wrapped(words))
                    + "\n\n"
                    + body
                )
            if body.strip():
                parts.append(body.strip("\n"))
            del own
        defined = set(self.owners) | {n for r in self.renamed.values() for n in r.values()}
        for name in sorted(defined & imports.keys()):
            self.notes.append(f"CHECK {name}: defined here and imported: {imports[name]}")
        head = [
            f'"""{doc or "Merged."}\n"""' if doc and "\n" in doc else f'"""{doc or "Merged."}"""'
        ]
        head.append("from __future__ import annotations")
        head.append("\n".join(dict.fromkeys(imports.values())))
        rest = {name: line for name, line in typing_only.items() if name not in imports}
        if rest:
            if TYPING not in imports:
                head.append(f"from typing import {TYPING}")
            head.append(
                f"if {TYPING}:\n" + "\n".join("    " + x for x in dict.fromkeys(rest.values()))
            )
        return "\n\n".join([*head, *parts]) + "\n"

    def _add(
        self, table: dict[str, str], node: ast.Import | ast.ImportFrom, source: Source
    ) -> None:
        for alias in node.names:
            bound = alias.asname or alias.name.split(".")[0]
            as_ = f" as {alias.asname}" if alias.asname else ""
            if isinstance(node, ast.ImportFrom):
                line = f"from {node.module} import {alias.name}{as_}"
            else:
                line = f"import {alias.name}{as_}"
                bound = alias.asname or alias.name
            if table.get(bound, line) != line:
                self.notes.append(
                    f"CHECK {source.name}: {bound} means two things: {table[bound]} / {line}"
                )
                bound += "#" + source.name
            table[bound] = line

    def _body(
        self, source: Source, imports: dict[str, str], typing_only: dict[str, str]
    ) -> tuple[str, dict[str, str]]:
        names = dict(self.renamed[source.dotted])
        modules: dict[str, str] = {}
        dropped: list[ast.stmt] = [
            node for node in source.tree.body if _bound(node) & self.same[source.dotted]
        ]
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ImportFrom) and node.module in self.by_dotted:
                kept = []
                for alias in node.names:
                    bound = alias.asname or alias.name
                    where = self.resolve(node.module, alias.name)
                    inner = f"{node.module}.{alias.name}"
                    if where is None and inner not in self.by_dotted:
                        known = self.origin(node.module, alias.name)
                        if known is None:
                            kept.append(alias)
                            self.notes.append(
                                f"CHECK {source.name} imports {alias.name} from {node.module}"
                            )
                        else:
                            line = ast.parse(f"from {known[0]} import {known[1]} as {bound}").body[
                                0
                            ]
                            if known[1] == bound:
                                line.names[0].asname = None  # type: ignore[attr-defined]
                            self._add(imports, line, source)  # type: ignore[arg-type]
                    elif where is not None and where[1] != bound:
                        names[bound] = where[1]
                    if inner in self.by_dotted:
                        modules[bound] = inner
                if not kept:
                    dropped.append(node)
            elif isinstance(node, ast.ImportFrom) and node.module:
                inside = [a for a in node.names if f"{node.module}.{a.name}" in self.by_dotted]
                for alias in inside:
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if inside and len(inside) == len(node.names):
                    dropped.append(node)
                elif inside:
                    self.notes.append(f"CHECK {source.name}: modules and names in one import")
        passes_on = source.package and not source.defined()
        for node in source.tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                if (
                    node not in dropped
                    and not passes_on
                    and not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
                ):
                    self._add(imports, node, source)
                if node not in dropped:
                    dropped.append(node)
            elif _is_typing(node):
                rest = []
                for child in node.body:  # type: ignore[attr-defined]
                    if isinstance(child, (ast.Import, ast.ImportFrom)):
                        if child not in dropped:
                            self._add(typing_only, child, source)
                    else:
                        rest.append(child)
                if rest:
                    self.notes.append(f"CHECK {source.name}: more than imports under TYPE_CHECKING")
                dropped = [d for d in dropped if d not in node.body]  # type: ignore[attr-defined]
                dropped.append(node)
            elif (isinstance(node, ast.Assign) and _bound(node) == {"__all__"}) or (
                isinstance(node, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets)
            ):
                dropped.append(node)
        first = source.tree.body[0] if source.tree.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            dropped.append(first)
        text = rename(_drop(source.text, dropped, source.tree), names)
        for bound, module in modules.items():
            table = self.renamed[module]
            text = re.sub(rf"(?<![\w.]){bound}\.(\w+)", lambda m, t=table: t.get(m[1], m[1]), text)  # type: ignore[misc]
        return text, names


def rewrite_python(text: str, moves: list[Move], own: str) -> str:
    """Rewrite imports of moved modules in one Python file."""
    owner = {dotted: move for move in moves for dotted in move.by_dotted}
    if not any(dotted.split(".")[-1] in text for dotted in owner):
        return text
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    edits: list[tuple[int, int, str]] = []
    attributes: dict[str, dict[str, str]] = {}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
            continue
        out: dict[str, list[str]] = {}
        changed = False
        for alias in node.names:
            as_ = f" as {alias.asname}" if alias.asname else ""
            inner = f"{node.module}.{alias.name}"
            if inner in owner and inner not in (own,):
                move = owner[inner]
                parent, _, last = move.dotted.rpartition(".")
                bound = alias.asname or alias.name
                as_ = "" if bound == last else f" as {bound}"
                out.setdefault(parent, []).append(f"{last}{as_}")
                attributes.setdefault(bound, {}).update(move.renamed[inner])
                changed = True
            elif node.module in owner:
                move = owner[node.module]
                where = move.resolve(node.module, alias.name)
                new = alias.name if where is None else where[1]
                if where is None and move.by_dotted[node.module].package:
                    moved = _through_package(move, node.module, alias.name, owner)
                    if moved:
                        module, new = moved
                        out.setdefault(module, []).append(
                            f"{new}{as_ if as_ or new == alias.name else f' as {alias.name}'}"
                        )
                        changed = True
                        continue
                if new != alias.name and not alias.asname:
                    as_ = f" as {alias.name}"
                out.setdefault(move.dotted, []).append(f"{new}{as_}")
                changed = True
            else:
                out.setdefault(node.module, []).append(f"{alias.name}{as_}")
        if changed:
            indent = " " * node.col_offset
            comment = ""
            last_line = lines[(node.end_lineno or node.lineno) - 1]
            found = re.search(r"#.*$", last_line[node.end_col_offset or 0 :]) or re.search(
                r"#.*$", lines[node.lineno - 1]
            )
            if found:
                comment = "  " + found[0].rstrip()
            new_lines = [
                f"{indent}from {module} import {', '.join(names)}{comment}\n"
                for module, names in out.items()
            ]
            edits.append((node.lineno, node.end_lineno or node.lineno, "".join(new_lines)))
    for start, end, new in sorted(edits, reverse=True):
        lines[start - 1 : end] = [new]
    text = "".join(lines)
    for bound, table in attributes.items():
        for old, new in table.items():
            text = re.sub(rf"\b{bound}\.{old}\b", f"{bound}.{new}", text)
    return text


def _through_package(
    move: Move, package: str, name: str, owner: dict[str, Move]
) -> tuple[str, str] | None:
    """Follow a name that a package only passes on."""
    source = move.by_dotted[package]
    for node in source.tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    if node.module in owner:
                        where = owner[node.module].resolve(node.module, alias.name)
                        return owner[node.module].dotted, where[1] if where else alias.name
                    return node.module, alias.name
    return None


def rewrite_text(text: str, moves: list[Move]) -> str:
    """Rewrite dotted names and paths of moved modules, longest first."""
    pairs = sorted(
        ((source, move) for move in moves for source in move.sources),
        key=lambda pair: -len(pair[0].name),
    )
    for source, move in pairs:
        if source.dotted == move.dotted or source.name.split(".")[-1] not in text:
            continue
        new_path = move.target.replace(".", "/") + ".py"
        old_path = source.name.replace(".", "/") + ("/__init__.py" if source.package else ".py")
        for old, new in move.renamed[source.dotted].items():
            text = re.sub(rf"\b{re.escape(source.dotted)}\.{old}\b", f"{move.dotted}.{new}", text)
        inner = "" if not source.package else r"(?!\.[a-z_]+\.|/)"
        text = re.sub(rf"\b{re.escape(source.dotted)}\b(?!\.py){inner}", move.dotted, text)
        text = re.sub(rf"(?<![\w/]){re.escape(old_path)}\b", new_path, text)
        text = text.replace(f"src/privatest/{old_path}", f"src/privatest/{new_path}")
        if not source.package and "." in source.name:
            text = re.sub(
                rf"(?<=[\"'`]){re.escape(source.name)}(?=\.[A-Za-z_]\w*[\"'`])", move.target, text
            )
    return text


def files_of(root: Path) -> list[Path]:
    """Return every text file that may name a module."""
    return [
        path
        for path in sorted(root.rglob("*"))
        if path.suffix in TEXTS
        and path.is_file()
        and not SKIPPED & set(path.relative_to(root).parts)
        and path.name not in ("move.py", "CHANGELOG.md")
    ]


def apply(root: Path, plan: dict[str, list[str]]) -> None:
    """Do all moves of a plan at once."""
    moves = [Move(root, target, sources) for target, sources in plan.items()]
    merged = {move.path: move.merge() for move in moves}
    gone = {source.path for move in moves for source in move.sources}
    for path in gone:
        path.unlink()
    for path, text in merged.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        marker = path.parent / "__init__.py"
        if path != marker and not marker.exists():
            marker.write_text(f'"""{path.parent.name.capitalize()}."""\n', encoding="utf-8")
        path.write_text(text, encoding="utf-8")
    changed = list(merged)
    for path in files_of(root):
        text = path.read_text(encoding="utf-8")
        own = (
            "privatest." + ".".join(path.relative_to(root / "src/privatest").with_suffix("").parts)
            if path.is_relative_to(root / "src/privatest")
            else ""
        )
        new = rewrite_python(text, moves, own) if path.suffix in (".py", ".pyi") else text
        new = rewrite_text(new, moves)
        if new != text:
            path.write_text(new, encoding="utf-8")
            changed.append(path)
    for folder in {path.parent for path in gone}:
        left = [p for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"]
        if folder.exists() and all(
            p.name == "__init__.py" and not p.read_text().count("import") for p in left
        ):
            for p in left:
                p.unlink()
        elif folder.exists() and left and not (folder / "__init__.py").exists():
            (folder / "__init__.py").write_text(f'"""{folder.name.capitalize()}."""\n')
    python = sorted({str(path) for path in changed if path.suffix == ".py" and path.exists()})
    ruff = [str(Path(sys.executable).with_name("ruff"))]
    targets = [str(path) for path in merged]
    subprocess.run(
        [*ruff, "check", "-q", "--fix", "--exit-zero", "--select", "I,F401", *targets],
        cwd=root,
        check=False,
    )
    subprocess.run(
        [*ruff, "check", "-q", "--fix", "--exit-zero", "--select", "I", *python],
        cwd=root,
        check=False,
    )
    subprocess.run([*ruff, "format", "-q", *python], cwd=root, check=False)
    for move in moves:
        for note in dict.fromkeys(move.notes):
            print(f"{move.target}: {note}")


def main() -> None:
    """Read the plan from the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("target", nargs="?")
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--map", type=Path)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    given = parser.parse_args()
    plan: dict[str, list[str]] = {}
    if given.map:
        for line in given.map.read_text(encoding="utf-8").splitlines():
            if line.strip() and not line.startswith("#"):
                target, _, sources = line.partition(":")
                plan[target.strip()] = sources.split()
    else:
        plan[given.target] = given.sources
    apply(given.root, plan)


if __name__ == "__main__":
    main()
