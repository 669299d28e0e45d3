"""The contracts of docs/architecture.md, read off the source."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from privatest.core.results import declared_level
from privatest.display.citations import REFERENCES
from privatest.methods.descriptor import Method
from privatest.requests.catalogue import METHODS
from tests.unit.test_tools_guarantees import hypothesis_tests, proof_levels, spending
from tools import api_reference, cli_reference, walks
from tools.audit import stored as stored_audit
from tools.guarantees import rows as guarantee_rows

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "privatest"
PAPERS = ROOT / "papers" / "src" / "privatest_papers"
DOCS = ROOT / "docs"

# A package imports from its own row or the rows above it; inside a row nothing goes in circles.
LAYERS: list[tuple[str, ...]] = [
    ("core",),
    ("data",),
    ("numerics",),
    ("mechanisms",),
    ("methods",),
    ("synthetic",),
    ("accounting", "ledger", "requests", "curator"),
    ("audit", "display", "planning", "simulation"),
    ("client", "service"),
    ("cli", "datasets", "noise", "plots", "questions", "shares"),
]
ROW = {name: row for row, names in enumerate(LAYERS) for name in names}

SECRET_RANDOMNESS = ("opendp", "secrets")  # imported by core/noise.py and nobody else
# What a noise source draws, but for the secret order of rows (permutation).
DRAWS = ("below", "discrete_laplace", "discrete_laplaces", "gaussian", "laplace", "uniforms")
SIMULATORS = ("audit", "planning")  # may create SimulatedNoise
SLOW_TO_IMPORT = (
    "dp_accounting",
    "fastapi",
    "matplotlib",
    "opendp",
    "pandas",
    "polars",
    "scipy.optimize",
    "scipy.stats",
    "sqlalchemy",
)


# --- what the checks are made of ------------------------------------------------------------


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def papers_files() -> list[Path]:
    return sorted(PAPERS.rglob("*.py"))


def dotted_name(path: Path) -> str:
    """The name a file is imported by; a package's ``__init__`` keeps that last part."""
    home = SOURCE.parent if path.is_relative_to(SOURCE) else PAPERS.parent
    return ".".join(path.relative_to(home).with_suffix("").parts)


def component(name: str) -> str:
    """The entry of LAYERS that a dotted name belongs to: privatest.data.schema: data."""
    return name.split(".")[1]


@cache
def walked(source: str) -> list[ast.AST]:
    """All nodes of a source: parsed once, though many checks read it."""
    return list(ast.walk(ast.parse(source)))


def imported_names(name: str, source: str) -> Iterator[str]:
    """Every absolute dotted name that the module ``name`` imports, wherever the import stands.

    ``from a import b`` gives ``a.b``, since b may be a module.
    """
    for node in walked(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # One dot is the package that holds the module, each further dot its parent.
            parents = name.split(".")[: -node.level] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Call)
            and called(node) in {"import_module", "__import__"}
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield str(node.args[0].value)


def called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def layer_violations(name: str, source: str) -> list[str]:
    if name == "privatest.__init__":
        return []  # it gathers the public names, so it sees every row
    if component(name) not in ROW:
        return [f"{name} is in no row: add {component(name)!r} to LAYERS and docs/architecture.md"]
    row = ROW[component(name)]
    found = []
    for target in imported_names(name, source):
        if not within(target, "privatest"):
            continue
        if target == "privatest" or component(target) not in ROW:
            # A name of the package itself reaches every row behind our back.
            if row < len(LAYERS) - 1:
                found.append(f"{name} imports {target}, which is no module of LAYERS")
        elif ROW[component(target)] > row:
            found.append(f"{name} imports {target}, which is in a row below it")
    return found


def circles(edges: dict[str, set[str]]) -> list[str]:
    """Modules that import themselves through others, wherever the imports stand."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for target in edges.get(waiting.pop(), set()) - seen:
                seen.add(target)
                waiting.append(target)
        return seen

    return sorted(name for name in edges if name in reached(name))


def package_edges(files: dict[str, str]) -> dict[str, set[str]]:
    """Which package imports which."""
    edges: dict[str, set[str]] = {}
    for name, source in files.items():
        if name == "privatest.__init__":
            continue
        own = component(name)
        targets = {component(t) for t in imported_names(name, source) if t.startswith("privatest.")}
        edges.setdefault(own, set()).update((targets & ROW.keys()) - {own})
    return edges


def secret_imports(name: str, source: str) -> list[str]:
    if name == "privatest.core.noise":
        return []
    return [
        f"{name} imports {target}: ask privatest.core.noise for secret randomness"
        for target in imported_names(name, source)
        if any(within(target, package) for package in SECRET_RANDOMNESS)
    ]


def noise_draws(name: str, source: str) -> list[str]:
    """Noise that is drawn outside ``mechanisms``; ``rng`` and ``generator`` are public."""
    if name == "privatest.core.noise" or component(name) in ("mechanisms", *SIMULATORS):
        return []
    calls = [node.func for node in walked(source) if isinstance(node, ast.Call)]
    return [
        f"{name}:{node.lineno} draws noise: hand the value to privatest.mechanisms"
        for node in walked(source)
        if isinstance(node, ast.Attribute)
        and node.attr in DRAWS
        and (node in calls or node.attr != "gaussian")  # which is also a field of requests
        and not (isinstance(node.value, ast.Name) and node.value.id in ("rng", "generator"))
    ]


def simulated_noise(name: str, source: str) -> list[str]:
    if component(name) in SIMULATORS:
        return []
    names = {"SimulatedNoise"} | {
        alias.asname
        for node in walked(source)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name == "SimulatedNoise" and alias.asname
    }
    return [
        f"{name}:{node.lineno} creates SimulatedNoise"
        for node in walked(source)
        if isinstance(node, ast.Call) and called(node) in names
    ]


REGISTRY = re.compile(r"\b(?:pypi|pythonhosted|anaconda|conda)\.[a-z]{2,}\b", re.IGNORECASE)
ABSOLUTE_PATH = re.compile(r"(?<![\w.:/<)])/([\w.-]+)/[\w.-]+|\b[A-Z]:\\\w+")


def ties_to_a_machine(text: str, roots: set[str]) -> list[str]:
    """Package registries, and paths below a top folder that machines (or this one) have."""
    paths = [
        found[0] for found in ABSOLUTE_PATH.finditer(text) if found[1] is None or found[1] in roots
    ]
    return [*REGISTRY.findall(text), *paths]


def notes(docstring: str) -> str:
    """The Notes section of a numpydoc docstring."""
    found = re.search(r"^Notes\n-----\n(.*?)(?=^\w[\w ]*\n---|\Z)", docstring, re.M | re.S)
    return found[1] if found else ""


def nav_pages(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list):
        for item in nav:
            yield from nav_pages(item)
    elif isinstance(nav, dict):
        yield from nav_pages(list(nav.values()))


def named_steps(text: str) -> list[tuple[str, str]]:
    """File and name of each row of a table whose first column is a numbered step."""
    return re.findall(r"^\| \d+\. [^|]*\| `([^`]+)` \| `([^`]+)` \|$", text, re.M)


def missing_files(page: Path) -> list[str]:
    """Links of a page, and paths in its code quotes, that lead nowhere."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
    paths = re.findall(
        r"`((?:src|papers|tests|docs|tools|benchmarks)/[\w./-]+|\w+\.(?:md|toml))`", text
    )
    return [name for name in [*links, *paths] if not (page.parent / name).exists()]


def imports_of_papers(name: str, source: str) -> list[str]:
    """Imports of privatest-papers by privatest, which finds it by its entry point only."""
    return [
        f"{name} imports {target}: privatest works without its papers"
        for target in imported_names(name, source)
        if within(target, "privatest_papers")
    ]


def secure_noise(name: str, source: str) -> list[str]:
    """Ways to secure noise in the papers, whose methods take simulated noise only."""
    targets = {*imported_names(name, source)}
    wanted = {"SecureNoise", "noise_source"}
    found = {target.rsplit(".", 1)[-1] for target in targets} | {
        node.attr for node in walked(source) if isinstance(node, ast.Attribute)
    }
    return [f"{name} uses {each}: papers take simulated noise" for each in sorted(wanted & found)]


def violations(check, *, files: list[Path] | None = None) -> list[str]:
    return [
        problem
        for path in files or source_files()
        for problem in check(dotted_name(path), path.read_text(encoding="utf-8"))
    ]


# --- the checks can fail --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("privatest.core.errors", "from privatest.numerics.kernels import Gaussian"),
        ("privatest.core.errors", "import privatest.cli"),
        ("privatest.core.privacy", "from privatest import noise"),
        ("privatest.core.privacy", "from ..data import schema"),
        ("privatest.core.privacy", "from ..data.schema import Schema"),
        (
            "privatest.numerics.kernels",
            "def f():\n    from privatest.mechanisms.lattice import release",
        ),
        ("privatest.numerics.permutation", "from ..mechanisms.lattice import release"),
        ("privatest.numerics.__init__", "from ..methods.mmd import mmd_test"),
        (
            "privatest.core.noise",
            "if TYPE_CHECKING:\n    from privatest.methods.mmd import mmd_test",
        ),
        (
            "privatest.methods.mmd",
            "from importlib import import_module\nimport_module('privatest.cli')",
        ),
        ("privatest.methods.mmd", "import privatest"),
        ("privatest.methods.mmd", "from privatest import mmd_test"),
        ("privatest.brand_new", ""),
        ("privatest.brand_new.part", ""),
    ],
)
def test_layer_checker_sees(name, source):
    assert len(layer_violations(name, source)) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("privatest.core.privacy", "import math\nfrom privatest.core.errors import ParameterError"),
        (
            "privatest.numerics.permutation",
            "from .kernels import Gaussian\nfrom ..data import schema",
        ),
        ("privatest.numerics.permutation.__init__", "from .mmd import mmd"),
        ("privatest.methods.mmd", "from privatest.core.noise import NoiseSource"),
        ("privatest.cli.main", "import privatest\nfrom privatest import mmd_test"),
        ("privatest.__init__", "from privatest.methods.mmd import mmd_test"),
    ],
)
def test_layer_checker_lets_pass(name, source):
    assert layer_violations(name, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "import opendp.prelude as dp",
        "import numpy, secrets",
        "from opendp import measurements",
        "def f():\n    from secrets import token_bytes",
        "import importlib\nimportlib.import_module('opendp.measurements')",
    ],
)
def test_secret_import_checker_sees(source):
    assert len(secret_imports("privatest.mechanisms", source)) == 1
    assert secret_imports("privatest.core.noise", source) == []


@pytest.mark.parametrize(
    "source",
    [
        "noise.laplace(1.0, 2.0)",
        "question.noise.below(2)",
        "[source.gaussian(v, 1.0, -80) for v in values]",
        "draw = noise_source(noise).uniforms",
    ],
)
def test_noise_checker_sees(source):
    assert len(noise_draws("privatest.methods.mmd", source)) == 1
    assert noise_draws("privatest.mechanisms.additive", source) == []


@pytest.mark.parametrize("source", ["noise.permutation(9)", "rng.laplace(size=9)", "laplace(1.0)"])
def test_noise_checker_lets_pass(source):
    assert noise_draws("privatest.methods.mmd", source) == []


@pytest.mark.parametrize(
    "source",
    [
        "from privatest.noise import SimulatedNoise\nSimulatedNoise(1)",
        "from privatest import noise\nnoise.SimulatedNoise(1)",
        "from privatest.noise import SimulatedNoise as Quiet\nQuiet(seed=1)",
    ],
)
def test_simulated_noise_checker_sees(source):
    assert len(simulated_noise("privatest.methods.mmd", source)) == 1
    assert simulated_noise("privatest.planning", source) == []
    assert len(simulated_noise("privatest.plannings", source)) == 1


def test_simulated_noise_may_be_named_in_words_and_types():
    source = "def f(noise: SimulatedNoise) -> None:\n    'SimulatedNoise(seed)'"
    assert simulated_noise("privatest.methods.mmd", source) == []


@pytest.mark.parametrize(
    "text", ["see /home/me/data", "open('/srv/x.csv')", r"C:\data", "get it from PyPI" + ".org"]
)
def test_machine_checker_sees(text):
    assert ties_to_a_machine(text, {"home", "srv"})


@pytest.mark.parametrize("text", ["a/b/c", "c (1/n + 1/m)", "(N-1)/N/2", "https://x.y/home/z"])
def test_machine_checker_lets_pass(text):
    assert ties_to_a_machine(text, {"home", "srv", "N"}) == []


# --- layers and imports ---------------------------------------------------------------------


def test_the_source_is_found():
    assert {"core", "data", "mechanisms"} <= {component(dotted_name(p)) for p in source_files()}


def test_no_module_is_in_two_rows():
    assert len(ROW) == sum(map(len, LAYERS))


def test_layers():
    assert violations(layer_violations) == []


def test_no_packages_import_each_other():
    files = {dotted_name(path): path.read_text(encoding="utf-8") for path in source_files()}
    assert circles(package_edges(files)) == []
    planted = {
        "privatest.methods.a": "def f():\n    from privatest.curator import Curator",
        "privatest.curator.b": "import privatest.methods.a",
    }
    assert circles(package_edges(planted)) == ["curator", "methods"]


def test_only_noise_imports_secret_randomness():
    assert violations(secret_imports) == []
    # and the checker does see it where it is allowed
    text = (SOURCE / "core" / "noise.py").read_text(encoding="utf-8")
    assert secret_imports("privatest.elsewhere", text)


def test_only_mechanisms_draw_noise():
    assert violations(noise_draws) == []


def test_only_simulations_create_simulated_noise():
    assert violations(simulated_noise) == []


@pytest.mark.parametrize(
    "source",
    [
        "import privatest_papers",
        "def f():\n    from privatest_papers.raj import paper_statistic",
        "from importlib import import_module\nimport_module('privatest_papers.cli')",
    ],
)
def test_the_checker_of_papers_sees(source):
    assert len(imports_of_papers("privatest.cli", source)) == 1


def test_privatest_does_not_import_its_papers():
    assert papers_files()
    assert violations(imports_of_papers) == []


@pytest.mark.parametrize(
    "source",
    [
        "from privatest.core.noise import SecureNoise",
        "from privatest import noise\nnoise.SecureNoise()",
        "from privatest.core.noise import noise_source as source",
    ],
)
def test_the_checker_of_secure_noise_sees(source):
    assert len(secure_noise("privatest_papers.raj", source)) == 1


def test_papers_use_simulated_noise_only():
    assert violations(secure_noise, files=papers_files()) == []
    assert violations(secret_imports, files=papers_files()) == []


REPORT = f"""
import sys
loaded = [m for m in {SLOW_TO_IMPORT!r} if m in sys.modules]
sys.exit("imports " + ", ".join(loaded) if loaded else 0)
"""


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("import privatest", []),
        ("from privatest.cli import main\ntry:\n    main()\nexcept SystemExit: pass", ["--help"]),
    ],
    ids=["import", "help"],
)
def test_starts_quickly(code, arguments):
    command = [sys.executable, "-c", f"{code}\n{REPORT}", *arguments]
    seconds = []
    for _ in range(3):
        start = os.times()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        end = os.times()
        # processor time, which other tests running beside this one do not change much
        used = end.children_user - start.children_user
        seconds.append(used + end.children_system - start.children_system)
        assert done.returncode == 0, done.stderr
        assert ("Usage" in done.stdout) == bool(arguments)
    assert min(seconds) < 1


def test_public_names_are_found_where_type_checkers_find_them():
    package = importlib.import_module("privatest")
    for name in package.__all__:
        value = getattr(package, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            home = importlib.import_module(package._MODULES[name])
            assert inspect.unwrap(value) is inspect.unwrap(getattr(home, name))
    assert {*package.__all__} <= {*dir(package)}
    with pytest.raises(AttributeError, match="no attribute 'gone'"):
        _ = package.gone


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("plots.marginals", "plot_marginals"),
        ("plots.planning", "plot_power"),
        ("plots.style", "themed"),
        ("questions", "Request"),
        ("shares", "SharePlan"),
    ],
)
def test_documented_names_of_the_version_before_still_work(module, name):
    with pytest.warns(DeprecationWarning, match="use |import "):
        assert getattr(importlib.import_module(f"privatest.{module}"), name)


@pytest.mark.e2e
def test_the_slow_import_check_can_fail():
    command = [sys.executable, "-c", f"import scipy.stats\n{REPORT}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "scipy.stats" in done.stderr


# --- files ----------------------------------------------------------------------------------


def test_nothing_in_src_ties_to_a_machine():
    roots = {"home", "Users"} | {path.name for path in Path("/").iterdir()}
    found = {}
    for path in sorted([*SOURCE.rglob("*"), *PAPERS.rglob("*")]):
        if path.is_file() and path.suffix in {".py", ".toml", ".md", ".txt", ".csv", ".json"}:
            problems = ties_to_a_machine(path.read_text(encoding="utf-8"), roots)
            if problems:
                found[path.name] = problems
    assert found == {}


# --- tests ----------------------------------------------------------------------------------

# What is not a package of src: all public functions at once, and programs beside the package.
OTHER_SUBJECTS = {"public", "benchmarks", "scripts", "tools"}


def subject(name: str, subjects: set[str]) -> str:
    """The package that ``test_<package>[_<topic>].py`` is about, or nothing."""
    words = name.removeprefix("test_").removesuffix(".py").split("_")
    beginnings = {"_".join(words[: i + 1]) for i in range(len(words))}
    return next(iter(beginnings & subjects), "")


def test_unit_tests_are_named_after_their_package():
    subjects = ROW.keys() | OTHER_SUBJECTS
    files = {path.name for path in (ROOT / "tests" / "unit").glob("test_*.py")}
    assert {name for name in files if not subject(name, subjects)} == set()
    names_only = {"noise", "plots", "questions", "shares"}
    packages = ROW.keys() - {"cli", "datasets"} - names_only  # in tests/e2e; nothing of their own
    assert packages - {subject(name, subjects) for name in files} == set()
    assert subject("test_methods_ks.py", subjects) == "methods"
    assert subject("test_answers.py", subjects) == ""


def test_tests_named_in_the_documentation_exist():
    named = {
        path
        for page in DOCS.rglob("*.md")
        for path in re.findall(r"tests/[\w/]+(?:\.[a-z]+)?", page.read_text(encoding="utf-8"))
    }
    assert "tests/unit/test_accounting.py" in named
    assert {path for path in named if not (ROOT / path).exists()} == set()


# --- a new test is complete -----------------------------------------------------------------

# Files with a list of public functions: who must be listed, and where in the file.
LISTS = {
    "tests/unit/test_public_bounds.py": (
        {"bounds", "bounds_x"},
        "in SEVERAL or ONE, and in UNSEEDED if it needs no rng",
    ),
    "tests/unit/test_public_groups.py": ({"adjacency"}, "in SIZES if it refuses private groups"),
    "tests/unit/test_public_intervals.py": (
        {"noise"},
        "in ESTIMATING, or in WITHOUT if its result has no interval",
    ),
}
LIMITS = "benchmarks/level/limits.py"
GOLDEN = "tests/golden/results.json"


def incomplete_functions(functions: Mapping[str, Callable[..., Any]]) -> Iterator[str]:
    """What public functions that draw noise still lack: a line for each, with what to do."""
    guaranteed = {name for row in guarantee_rows() for name in row["functions"]}
    audited = {case["function"] for case in stored_audit().values()}
    tests, levels = hypothesis_tests(), proof_levels()
    files = {name: (ROOT / name).read_text(encoding="utf-8") for name in [*LISTS, LIMITS]}

    def listed(name: str, file: str) -> bool:
        return re.search(rf"\b{name}\b", files[file]) is not None

    for name, function in functions.items():
        parameters = {*inspect.signature(function).parameters}
        if name not in guaranteed:
            yield f"{name}: add it to `guarantees:` in the first lines of its page in docs/proofs"
        if name in tests and declared_level(function) is None:
            yield f"{name}: put @declare_level above its definition"
        if name in tests and name not in levels:
            yield f"{name}: state its level in the line **Level.** of its proof page"
        if name not in audited:
            yield f"{name}: run python -m tools.audit {name}, then make fix"
        for file, (wanted, where) in LISTS.items():
            if wanted & parameters and not listed(name, file):
                yield f"{name}: add it to {file}, {where}"
        if name in tests and not listed(name, LIMITS):
            yield (
                f"{name}: add a Case to {LIMITS} and run python -m benchmarks.level.limits, "
                "or say in WITHOUT why it has no classical counterpart"
            )


def incomplete_methods(methods: Mapping[str, Mapping[str, Method]]) -> Iterator[str]:
    """What the descriptors of a catalogue lack elsewhere."""
    golden = json.loads((ROOT / GOLDEN).read_text(encoding="utf-8"))
    pinned = {name.split(",")[0] for name in golden}
    for question, entries in methods.items():
        for name, entry in entries.items():
            for paper in entry.papers:
                if paper not in REFERENCES:
                    yield (
                        f"{name}: add {paper!r} to REFERENCES in "
                        "src/privatest/display/citations.py: reports fail without it"
                    )
            if f"{question}/{name}" not in pinned:
                yield f"{name}: run python -m tests.golden.test_golden, which writes {GOLDEN}"


def test_every_public_test_is_complete():
    package = importlib.import_module("privatest")
    functions = {name: getattr(package, name) for name in sorted(spending())}
    missing = [*incomplete_functions(functions), *incomplete_methods(METHODS)]
    assert not missing, "\n" + "\n".join(missing)


def test_the_checker_of_complete_tests_sees():
    def brand_new(*, adjacency: str, bounds: object, noise: object) -> None:
        """A function that is listed nowhere."""

    said = list(incomplete_functions({"brand_new": brand_new}))
    assert len(said) == 2 + len(LISTS)
    entry = dataclasses.replace(METHODS["two-sample"]["median"], papers=("unheard2000",))
    said = list(incomplete_methods({"two-sample": {"brand-new": entry}}))
    assert len(said) == 2
    assert "unheard2000" in said[0]
    assert GOLDEN in said[1]


# --- documentation --------------------------------------------------------------------------


def test_nav_lists_every_page_and_every_page_exists():
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = list(nav_pages(settings["nav"]))
    existing = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert sorted(listed) == sorted(existing)


def test_the_link_checker_sees(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("[a](gone.md#x) `src/gone.py` `GONE.md` [b](page.md) [c](https://x.y)", "utf-8")
    assert missing_files(page) == ["gone.md", "src/gone.py", "GONE.md"]


def test_files_named_in_root_pages_exist():
    pages = set(ROOT.glob("*.md")) - {ROOT / "CHANGELOG.md"}  # history may name what is gone
    assert {page.name: missing_files(page) for page in pages if missing_files(page)} == {}
    assert ROOT / "CONTRIBUTING.md" in pages


def test_contributing_follows_a_real_test():
    steps = named_steps((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert steps
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file, _ in steps}
    assert [(file, name) for file, name in steps if name not in texts[file]] == []


def test_the_version_is_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "src/privatest/__init__.py"
    papers = tomllib.loads((ROOT / "papers" / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in papers["project"]["dynamic"]
    assert papers["tool"]["hatch"]["version"]["path"] == "../src/privatest/__init__.py"
    assert "version" not in yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_make_builds_the_docs_strictly():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    builds = re.findall(r"^\t.*mkdocs build.*$", makefile, re.M)
    assert builds
    # with --quiet, mkdocs drops its warnings before --strict counts them, and passes
    assert all("--strict" in line and not re.search(r"--quiet|-q\b", line) for line in builds)


def test_architecture_page_names_every_module():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    names = {component(dotted_name(path)) for path in source_files()} - {"__init__", "__main__"}
    assert {name for name in names if f"`{name}`" not in page} == set()


def test_notes_are_found():
    docstring = "Do.\n\nNotes\n-----\n**Privacy** is kept.\n\nExamples\n--------\n**Sensitivity**"
    assert notes(docstring) == "**Privacy** is kept.\n\n"


# These take an epsilon, and no private data.
NO_DATA = {"budget", "optimise_frequencies", "optimise_locations", "plan_share"}


def test_every_public_name_has_a_docstring():
    package = importlib.import_module("privatest")
    public = {name: getattr(package, name) for name in package.__all__}
    written = {n: p for n, p in public.items() if inspect.isclass(p) or inspect.isfunction(p)}
    assert public.keys() - written.keys() == {"Adjacency"}  # a type, explained where it is used
    assert {name for name, part in written.items() if not part.__doc__} == set()


def test_what_reads_data_privately_states_its_sensitivity_and_privacy():
    package = importlib.import_module("privatest")
    names = {
        name
        for name in package.__all__
        if inspect.isfunction(part := getattr(package, name))
        and (name.endswith("_test") or "epsilon" in inspect.signature(part).parameters)
    }
    assert names >= NO_DATA
    missing = {
        (name, heading)
        for name in names - NO_DATA
        for heading in ("**Sensitivity**", "**Privacy**")
        if heading not in notes(inspect.getdoc(getattr(package, name)) or "")
    }
    assert missing == set()


def test_changelog_speaks_of_privacy():
    assert "\n### Privacy\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_readme_names(command):
    assert command in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.e2e
@pytest.mark.parametrize(
    "title", ["privatest two-sample", "privatest release", "a request to a curator"]
)
def test_walks_pay_before_they_read(title):
    steps = [name for _, name in walks.walk(title)]
    drawn = next(
        step
        for step in steps
        if step.startswith("SecureNoise.") and step.rpartition(".")[2] in DRAWS
    )
    places = [steps.index(s) for s in ("Ledger.reserve", "Place.read", drawn, "Ledger.commit")]
    assert places == sorted(places)


@pytest.mark.parametrize("columns", ["40", "200"])
def test_cli_reference_is_up_to_date(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    page = cli_reference.PAGE.read_text(encoding="utf-8")
    assert cli_reference.render() == page, "run: python -m tools.cli_reference"


@pytest.mark.parametrize(
    "page", [api_reference.INDEX, *sorted(api_reference.PAGES)], ids=lambda page: page.stem
)
def test_api_reference_is_up_to_date(page):
    written = api_reference.index() if page == api_reference.INDEX else api_reference.render(page)
    assert page.read_text(encoding="utf-8") == written, "run: python -m tools.api_reference"


def test_the_api_reference_has_every_public_name():
    pages = [page.read_text(encoding="utf-8") for page in api_reference.PAGES]
    listed = {
        name.rpartition(".")[2] for page in pages for name in api_reference.ENTRY.findall(page)
    }
    documented_whole = {"Adjacency", "Budget", "PermutationSensitivity"}  # with core.privacy
    errors = {
        name for name in importlib.import_module("privatest").__all__ if name.endswith("Error")
    }
    public = {*importlib.import_module("privatest").__all__}
    deprecated = {"speaking_features"}
    assert public - listed - documented_whole - errors == deprecated


def test_no_function_lives_in_a_module_of_its_own_name() -> None:
    """Documentation finds the module then, and shows the function twice."""
    package = importlib.import_module("privatest")
    public = [getattr(package, name) for name in package.__all__]
    functions = [inspect.unwrap(each) for each in public if inspect.isfunction(each)]
    homes = {each.__name__: each.__module__ for each in functions}
    assert [name for name, home in homes.items() if home.endswith(f".{name}")] == []
