"""curator.toml: every mistake is named, with its line."""

from __future__ import annotations

import tomllib

import pytest

from privatest.core.errors import ParameterError
from privatest.core.privacy import Budget
from privatest.curator import CuratorConfig
from privatest.curator.config import (
    ALL_TESTS,
    EXAMPLE,
    line_of,
    lines_of_keys,
    read_config,
    syntax_error_line,
)
from tests.curators import CONFIG, SCHEMA, write

# --- where a key stands ----------------------------------------------------------------------

TEXT = '''\
top = 1
words = """
[tables.a]
one = 2
"""

[tables.a]
one = 1
"a = b" = 2
deep.er = 3
lists = [
  ["x"],
  "y",
]

[tables."b c"]
one = 1
  two= 2

[[many]]
one = 1
'''


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("top",), 1),
        (("words",), 2),
        (("tables", "a"), 7),
        (("tables", "a", "one"), 8),
        (("tables", "a", "a = b"), 9),
        (("tables", "a", "deep"), 10),
        (("tables", "a", "deep", "er"), 10),
        (("tables", "a", "lists"), 11),
        (("tables", "b c", "two"), 18),
        (("tables", "b c", "three"), 16),
        (("tables", "c"), 7),
        (("many",), 20),
        ((), 1),
    ],
)
def test_lines_of_keys(key, line):
    assert line_of(lines_of_keys(TEXT, tomllib.loads(TEXT)), key) == line


@pytest.mark.parametrize(
    ("text", "line"), [("a = 1\nb = \n", 2), ("a = 1\n\nc = [1,\n", 3), ("a = 1\na = 2", 2)]
)
def test_line_of_a_syntax_error(text, line):
    assert abs(syntax_error_line(text) - line) <= 1


def test_no_syntax_error_has_no_line_but_the_first():
    assert syntax_error_line("a = 1") == 1


# --- what is in order ------------------------------------------------------------------------


def test_the_example_is_in_order(tmp_path):
    write(tmp_path)
    (tmp_path / "people.csv").rename(tmp_path / "visits.csv")
    (tmp_path / "people.toml").rename(tmp_path / "visits.toml")
    (tmp_path / "curator.toml").write_text(EXAMPLE, encoding="utf-8")
    config = CuratorConfig.load(tmp_path / "curator.toml")
    assert config.ledger == str(tmp_path / "ledger.db")
    assert config.log == tmp_path / "curator.log"
    visits = config.datasets["visits"]
    assert visits.budget == Budget(3, "1e-6")
    assert visits.policy.largest == Budget("0.5", "1e-7")
    assert ("independence", "hsic") in visits.policy.tests
    assert ("independence", "tot") not in visits.policy.tests
    assert ("fit", "distribution") in visits.policy.tests
    assert ("fit", "family") not in visits.policy.tests  # its time depends on values
    assert config.analysts["ada"].budget == Budget(1, "5e-7")


def test_defaults_and_exact_decimals(tmp_path):
    text = CONFIG.replace("epsilon = 3", "epsilon = 0.1000000000000000055")
    config = CuratorConfig.load(write(tmp_path, text))
    people = config.datasets["people"]
    assert f"{people.budget.epsilon:f}" == "0.100000000000000006"  # kept to 18 places, rounded up
    assert people.composition == "basic"
    named = {("fit", "family"), ("two-sample", "hotelling"), ("mean", "moments")}
    named |= {("independence", "gcm")}
    assert people.policy.tests == ALL_TESTS - named - {("release", "features")}
    assert (people.policy.permutations, people.policy.points) == (9999, 500)
    assert people.policy.work == 50_000_000_000
    assert people.policy.largest == Budget(1, "1e-6")  # delta: as much as there is
    assert config.analysts["bob"].budget is None
    assert config.state == tmp_path / "curator.state.json"


def test_an_address_is_not_a_path(tmp_path):
    text = CONFIG.replace("ledger.db", "postgresql://me@host/db")
    assert CuratorConfig.load(write(tmp_path, text)).ledger == "postgresql://me@host/db"


@pytest.mark.parametrize(
    ("words", "composition"),
    [('composition = "tight"', "tight"), ('composition = "equal"\neach_epsilon = 0.1', "equal")],
)
def test_compositions(tmp_path, words, composition):
    text = CONFIG.replace("delta = 1e-6", f"delta = 1e-6\n{words}", 1)
    people = CuratorConfig.load(write(tmp_path, text)).datasets["people"]
    assert people.composition == composition
    assert people.each == (Budget("0.1") if composition == "equal" else None)


# --- mistakes --------------------------------------------------------------------------------

DELTA = "delta = 1e-6"  # line 7; a further key is on line 8


@pytest.mark.parametrize(
    ("old", "new", "line", "fragment"),
    [
        ("epsilon = 3", "epsilon = 0", 6, "epsilon must be a number of at least"),
        ("epsilon = 3", "epsilon = -1", 6, "got Decimal|got -1"),
        ("epsilon = 3", 'epsilon = "much"', 6, "epsilon must be a number"),
        ("epsilon = 3", "epsilon = true", 6, "epsilon"),
        ("epsilon = 3\n", "", 6, "delta needs epsilon"),
        ("epsilon = 3\ndelta = 1e-6\n", "", 3, "epsilon must be given"),
        (DELTA, "delta = 1", 7, "delta must be"),
        (DELTA, "delta = -0.1", 7, "delta must be"),
        (DELTA, DELTA + "\nepsilo = 1", 8, "unknown key 'epsilo'"),
        (DELTA, DELTA + '\ncomposition = "best"', 8, "composition must be one of"),
        (DELTA, 'composition = "tight"', 7, "needs a delta above 0"),
        (DELTA, DELTA + '\ncomposition = "equal"', 8, "needs each_epsilon"),
        (DELTA, DELTA + "\neach_epsilon = 1", 8, 'composition "equal" only'),
        (DELTA, DELTA + '\npartition = "plan"', 8, 'membership = "public"'),
        (DELTA, DELTA + '\npartition = "visits"', 8, 'membership = "public"'),
        (DELTA, DELTA + '\npartition = "nothing"', 8, 'membership = "public"'),
        ('source = "people.csv"', 'source = "gone.csv"', 4, "no file 'gone.csv'"),
        ('source = "people.csv"', "source = 3", 4, "source must be text"),
        ('source = "people.csv"\n', "", 3, "source must be given"),
        ('schema = "people.toml"', 'schema = "gone.toml"', 5, "gone.toml cannot be read"),
        ('schema = "people.toml"', 'schema = "people.csv"', 5, "schema is not valid TOML"),
        ("largest_epsilon = 1", "largest_epsilon = 0", 10, "largest_epsilon must be"),
        ("largest_epsilon = 1", "largest_delta = 1e-9", 10, "largest_delta needs largest_epsilon"),
        ("largest_epsilon = 1", "largest_permutations = 0", 10, "integer of at least 1"),
        ("largest_epsilon = 1", 'largest_permutations = "9"', 10, "integer of at least 1"),
        ("largest_epsilon = 1", "largest_work = 1e9", 10, "integer of at least 1"),
        ("largest_epsilon = 1", 'tests = ["guess"]', 10, "unknown test 'guess'; .*two-sample"),
        ("largest_epsilon = 1", 'tests = ["fit/magic"]', 10, "distribution, family"),
        ("largest_epsilon = 1", "tests = []", 10, "tests must be a list"),
        ("largest_epsilon = 1", "limit = 1", 10, "unknown key 'limit'"),
        ('[analysts.ada]\ndatasets = ["people"]', "[analysts.ada]", 12, "list of names"),
        (
            '[analysts.ada]\ndatasets = ["people"]',
            '[analysts.ada]\ndatasets = "people"',
            13,
            "list",
        ),
        (
            '[analysts.ada]\ndatasets = ["people"]',
            '[analysts.ada]\ndatasets = ["people", "others"]',
            13,
            "unknown data set 'others'",
        ),
        ("epsilon = 2", "epsilon = 0", 14, "epsilon must be"),
        ('ledger = "ledger.db"', 'ledgr = "ledger.db"', 1, "unknown key 'ledgr'"),
        ('ledger = "ledger.db"', "ledger = 3", 1, "ledger must be text"),
        ('ledger = "ledger.db"', 'log = "gone/curator.log"', 1, "folder that exists"),
        ('ledger = "ledger.db"', 'analysts = "ada"', 1, "not TOML|must be a table"),
        ("[datasets.people]", "[datasets.people", 3, "not TOML"),
    ],
)
def test_each_mistake_is_named_with_its_line(tmp_path, old, new, line, fragment):
    assert old in CONFIG
    path = write(tmp_path, CONFIG.replace(old, new, 1))
    _, problems = read_config(path)
    assert problems
    with pytest.raises(ParameterError, match=fragment):
        CuratorConfig.load(path)
    if "not TOML" not in fragment:
        assert problems[0].line == line


def test_all_mistakes_are_found_at_once(tmp_path):
    text = CONFIG.replace("epsilon = 3", "epsilon = 0").replace("people.csv", "gone.csv")
    _, problems = read_config(write(tmp_path, text.replace("epsilon = 2", "epsilon = -2")))
    assert [problem.line for problem in problems] == [4, 6, 14]
    assert str(problems[0]).startswith("line 4: there is no file")


def test_a_tight_composition_needs_delta_of_analysts_too(tmp_path):
    text = CONFIG.replace("delta = 1e-6", 'delta = 1e-6\ncomposition = "tight"', 1)
    _, problems = read_config(
        write(tmp_path, text.replace("epsilon = 2\ndelta = 1e-6", "epsilon = 2"))
    )
    assert [problem.line for problem in problems] == [13]
    assert "delta must be given" in problems[0].message


def test_parts_of_a_partition_must_not_share_people(tmp_path):
    text = CONFIG.replace("delta = 1e-6", 'delta = 1e-6\npartition = "region"', 1)
    assert read_config(write(tmp_path, text))[1] == []
    several = SCHEMA.replace("rows_per_person = 1", "rows_per_person = 2")
    (problem,) = read_config(write(tmp_path, text, several))[1]
    assert problem.line == 8
    assert "rows_per_person = 1" in problem.message


@pytest.mark.parametrize("text", ["", "ledger = 'x'", "[datasets]"])
def test_nothing_to_curate(tmp_path, text):
    (problem,) = read_config(write(tmp_path, text))[1]
    assert "no data set" in problem.message


def test_files_that_cannot_be_read(tmp_path):
    config, (problem,) = read_config(tmp_path / "gone.toml")
    assert config is None
    assert "gone.toml cannot be read" in problem.message
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    assert "UTF-8" in read_config(tmp_path / "bytes.toml")[1][0].message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CONFIG, "datasets = 3"),
        (CONFIG, "[datasets]\npeople = 3\n[analysts.ada]\ndatasets = ['people']"),
        (CONFIG, "[[datasets]]\nname = 'people'"),
        (CONFIG, CONFIG.replace("people]", '""]')),
        (CONFIG, CONFIG.replace("people]", '"a\\nb"]')),
        ("largest_epsilon = 1", "largest_epsilon = 2020-01-01"),
        ("[datasets.people.policy]\nlargest_epsilon = 1", "policy = 3"),
        ("epsilon = 3", "epsilon = []"),
        ("epsilon = 3", "epsilon = {}"),
        ("epsilon = 3", "epsilon = nan"),
        ("epsilon = 3", "epsilon = 1e400"),
        ("delta = 1e-6", "delta = inf"),
        ("delta = 1e-6", "composition = []"),
        ("delta = 1e-6", "partition = 5"),
        ("delta = 1e-6", "composition = 'equal'\neach_epsilon = []"),
        ("largest_epsilon = 1", "tests = 3"),
        ("largest_epsilon = 1", "tests = [3, []]"),
        ("largest_epsilon = 1", "largest_permutations = []"),
        ("[analysts.ada]", "[[analysts.ada]]"),
        ('ledger = "ledger.db"', "ledger = []"),
        ('ledger = "ledger.db"', "state = 7"),
        ('ledger = "ledger.db"', "log = ''"),
    ],
)
def test_values_of_a_wrong_kind_are_mistakes_and_not_faults(tmp_path, old, new):
    assert old in CONFIG
    _, problems = read_config(write(tmp_path, CONFIG.replace(old, new, 1)))
    assert problems
    assert all(problem.line >= 1 and problem.message[-1] in ".?" for problem in problems)


@pytest.mark.parametrize("link", ["same", "symbolic", "hard"])
def test_two_data_sets_on_one_file_are_refused(tmp_path, link):
    again = '[datasets.again]\nsource = "again.csv"\nschema = "people.toml"\nepsilon = 3\n\n'
    text = CONFIG.replace("[analysts.ada]", f"{again}[analysts.ada]")
    path = write(tmp_path, text.replace("again.csv", "./people.csv") if link == "same" else text)
    if link == "symbolic":
        (tmp_path / "again.csv").symlink_to("people.csv")
    elif link == "hard":
        (tmp_path / "again.csv").hardlink_to(tmp_path / "people.csv")
    _, problems = read_config(path)
    (problem,) = problems
    assert "source is that of data set 'people' too" in problem.message
    assert text.splitlines()[problem.line - 1].startswith("source")
