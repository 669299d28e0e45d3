"""The list of mutations fits the source, and the harness tells caught from survived."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import mutate
from scripts.mutate import OWN_TEST, ROOT, Mutation, Result

MUTATIONS = mutate.load()
SOURCES = mutate.sources()
NAMED = pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)


def is_there(test: str) -> bool:
    """Whether there is such a file, or such a function in its file."""
    file, _, name = test.split("[", maxsplit=1)[0].partition("::")
    if file.startswith("src/") or not name:
        return (ROOT / file).exists()
    return f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")


@NAMED
def test_each_is_in_the_source_once(mutation):
    source = SOURCES[mutate.place(mutation, SOURCES)]
    assert mutate.mutated(mutation, source) != source


@NAMED
def test_each_names_tests_that_exist(mutation):
    assert mutation.tests
    for test in mutation.tests:
        assert is_there(test), test


def test_there_are_enough_in_all_packages():
    files = [mutate.place(mutation, SOURCES) for mutation in MUTATIONS]
    own = ROOT / "src" / "privatest"
    packages = {
        Path(file.relative_to(own).parts[0]).stem for file in files if file.is_relative_to(own)
    }
    needed = {"core", "data", "numerics", "mechanisms", "accounting", "ledger"}
    needed |= {"curator", "methods", "synthetic"}
    assert needed <= packages
    assert len(MUTATIONS) >= 40


def test_every_mutation_is_caught_and_the_page_says_by_what():
    found = mutate.known(MUTATIONS, mutate.stored())
    assert [m.name for m in MUTATIONS if m.name not in found] == [], "run: make mutate"
    assert [name for name, result in found.items() if result.caught_by == mutate.SURVIVED] == []
    assert mutate.PAGE.read_text(encoding="utf-8") == mutate.page(MUTATIONS, found)


def test_the_tests_that_caught_them_exist():
    for result in mutate.known(MUTATIONS, mutate.stored()).values():
        assert is_there(result.caught_by), result


def nightly(source: str) -> set[str]:
    """Test functions marked nightly; the mark stands on a function, never on one of its cases."""
    return {
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
        and "pytest.mark.nightly" in map(ast.unparse, node.decorator_list)
    }


def test_the_tests_that_caught_them_are_in_the_gate():
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in files}
    marks = {name: text.count("mark.nightly") for name, text in texts.items() if name != OWN_TEST}
    found = {name: nightly(texts[name]) for name, count in marks.items() if count}
    assert found
    # a mark elsewhere (a case, a class, a whole file) would not be seen here
    assert {name: len(functions) for name, functions in found.items()} == {
        name: marks[name] for name in found
    }
    caught = {
        result.caught_by.split("[", maxsplit=1)[0]
        for result in mutate.known(MUTATIONS, mutate.stored()).values()
    }
    assert (
        caught & {f"{name}::{each}" for name, all_of in found.items() for each in all_of} == set()
    )


# --- the harness -------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A small project with one function and one test, whose pytest loads no more than it needs."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p xdist")
    (tmp_path / "src" / "privatest").mkdir(parents=True)
    (tmp_path / "src" / "privatest" / "__init__.py").write_text("")
    (tmp_path / "src" / "privatest" / "a.py").write_text("def two():\n    return 1 + 1\n")
    test = "from privatest.a import two\n\ndef test_two():\n    assert two() == 2\n"
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(test)
    (tmp_path / "tests" / "test_other.py").write_text("def test_other():\n    assert True\n")
    return tmp_path


def planted(new: str, *tests: str) -> Mutation:
    return Mutation("m", "adding", "return 1 + 1", new, tests)


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("new", "tests", "caught"),
    [
        ("return 1 + 2", ("tests/test_a.py",), "tests/test_a.py::test_two"),
        ("return 1 + 2", ("tests/test_other.py",), "tests/test_a.py::test_two"),  # by the rest
        ("return 2 * 1", ("tests/test_a.py",), mutate.SURVIVED),
    ],
)
def test_a_mutation_is_tried_and_taken_back(project, new, tests, caught):
    source = project / "src" / "privatest" / "a.py"
    before = source.read_text()
    again = new == "return 1 + 2" and tests == ("tests/test_a.py",)
    # a compiled file of the first must not serve the second
    for stamp in (10**9, 10**9 + 2)[: 2 if again else 1]:
        found = mutate.try_mutation(planted(new, *tests), project, stamp, False, 0)
        assert found.caught_by == caught
        assert found.file == "src/privatest/a.py"
        assert source.read_text() == before


@pytest.mark.e2e
def test_quick_does_not_fall_back(project):
    found = mutate.try_mutation(
        planted("return 1 + 2", "tests/test_other.py"), project, 10**9, True, 0
    )
    assert found.caught_by == mutate.SURVIVED


@pytest.mark.e2e
def test_nightly_tests_do_not_count(project):
    test = project / "tests" / "test_a.py"
    test.write_text("import pytest\n\npytestmark = pytest.mark.nightly\n" + test.read_text())
    (project / "pytest.ini").write_text("[pytest]\nmarkers = nightly\n")
    found = mutate.try_mutation(
        planted("return 1 + 2", "tests/test_a.py"), project, 10**9, False, 0
    )
    assert found.caught_by == mutate.SURVIVED


@pytest.mark.e2e
def test_tests_that_cannot_run_are_an_error(project):
    with pytest.raises(SystemExit, match="could not run"):
        mutate.first_failure(project, ["tests/gone.py"], 0)


def test_code_that_moved_away_is_an_error(project):
    with pytest.raises(SystemExit, match="it is there 0 times"):
        mutate.place(Mutation("m", "", "return 3", "return 4", ()), mutate.sources(project))
    papers = project / "papers" / "src" / "privatest_papers"  # mistakes are planted there too
    papers.mkdir(parents=True)
    for folder, times in ((papers, 2), (project / "src" / "privatest", 3)):
        (folder / "b.py").write_text("def f():\n    return 1 + 1\n")
        with pytest.raises(SystemExit, match=f"it is there {times} times"):
            mutate.place(planted("return 2"), mutate.sources(project))


def test_a_mutation_of_blanks_is_an_error():
    with pytest.raises(SystemExit, match="changes nothing"):
        mutate.mutated(planted("return (1 + 1)"), "def two():\n    return 1 + 1\n")


def test_results_of_another_change_are_stale():
    mutation = planted("return 3")
    result = Result(mutation.digest, "a.py", "tests/test_a.py::test_two", 1.0)
    assert mutate.known([mutation], {"m": result}) == {"m": result}
    assert mutate.known([planted("return 4")], {"m": result}) == {}


@pytest.mark.e2e
def test_the_list_can_be_read():
    command = [sys.executable, "scripts/mutate.py", "--list", "--only", MUTATIONS[0].name]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.startswith(f"{MUTATIONS[0].name}: {MUTATIONS[0].breaks} (src")


def test_the_project_itself_is_not_mutated():
    text = Path(mutate.__file__).read_text(encoding="utf-8")
    writes = [line for line in text.splitlines() if ".write_text(" in line]
    assert len(writes) == 4  # twice in the copy, the results, the page
