"""Real data, taken from a file to an answer as a newcomer would type, with what goes wrong first.

The files are the Palmer penguins (Gorman, Williams and Fraser 2014, CC0), with missing values and
categories, and data sets of scikit-learn, with names of several words. Twelve more were walked by
hand; docs/how-to/your-own-file.md has what came up.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from privatest.cli.spending import open_ledger
from tests.e2e.command_line import refused, released

PENGUINS = Path(__file__).parent.parent / "data" / "penguins.csv"
MASS = ["--bounds", "body_mass_g=2000:7000"]
SEX = ["--group", "sex", "--groups", "male", "female"]
ASKED = ["--epsilon", "5"]
DESCRIBED = """
[columns.body_mass_g]
type = "numeric"
bounds = [2000, 7000]
missing = 4000
[columns.sex]
type = "categorical"
categories = ["male", "female"]
missing = "female"
"""


@pytest.fixture
def penguins(cli) -> str:
    Path("penguins.csv").write_bytes(PENGUINS.read_bytes())
    return "penguins.csv"


def test_missing_values_are_found_before_they_cost(cli, penguins):
    run = cli("check", penguins, *SEX, *MASS)
    assert run.code == 2
    assert "2 of 2 columns do not fit" in run.out
    assert "column 'body_mass_g' has a missing value" in run.out
    assert "column 'sex' has a missing value" in run.out
    refused(cli("two-sample", penguins, *SEX, *MASS, *ASKED), "was spent", "privatest check")
    Path("penguins.toml").write_text(DESCRIBED)
    described = ["--schema", "penguins.toml", "--group", "sex"]
    run = cli("check", penguins, *described)
    assert (run.code, run.err) == (0, "")
    assert "All columns fit their description (344 rows)." in run.out
    document = released(cli("two-sample", penguins, *described, *ASKED, "--json"))
    assert document["reject"] is True  # males are heavier by far
    assert document["sizes"] == {"N": 344}


def test_checking_costs_nothing(cli, penguins):
    assert cli("ledger", "init", "penguins", "--epsilon", "1").code == 0
    assert "1 of 1 columns do not fit" in cli("check", penguins, *MASS).out
    with open_ledger(None) as ledger:
        assert ledger.totals("penguins").account.spent.events == 0
        assert len(ledger.history("penguins")) == 1


def test_a_check_as_a_document(cli, penguins):
    run = cli("check", penguins, *MASS, "--bounds", "year=2000:2020", "--json")
    assert run.code == 2
    found = json.loads(run.out)
    assert found["fits"] is False
    assert [column["problem"] is None for column in found["columns"]] == [False, True]


def test_a_template_that_is_half_filled_in(cli, penguins):
    assert cli("schema", penguins, "-o", "penguins.toml").code == 0
    run = cli("mean", penguins, "--schema", "penguins.toml", "--columns", "year", *ASKED)
    refused(run, "'species'", "filled in", "or remove the column")


@pytest.mark.parametrize(
    ("separator", "word"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")]
)
def test_other_separators(cli, separator, word):
    pd.read_csv(PENGUINS).to_csv("penguins.csv", sep=separator, index=False)
    refused(cli("schema", "penguins.csv"), word)


def german(encoding: str) -> str:
    names = {"body_mass_g": "Größe", "sex": "Geschlecht"}
    frame = pd.read_csv(PENGUINS).rename(columns=names).dropna()
    frame["Geschlecht"] = frame["Geschlecht"].map({"male": "männlich", "female": "weiblich"})
    frame.to_csv("pinguine.csv", index=False, encoding=encoding)
    return "pinguine.csv"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_names_that_are_not_ascii(cli, encoding):
    asked = ["--group", "Geschlecht", "--groups", "männlich", "weiblich"]
    asked += ["--bounds", "Größe=2000:7000", *ASKED]
    document = released(cli("two-sample", german(encoding), *asked, "--json"))
    assert document["reject"] is True
    assert document["request"]["columns"] == ["Größe"]


def test_a_file_in_another_encoding(cli):
    data = german("latin-1")
    refused(cli("schema", data), "UTF-8")
    refused(cli("mean", data, "--bounds", "Größe=2000:7000", *ASKED), "UTF-8")


def test_names_of_several_words(cli):
    frame = load_breast_cancer(as_frame=True).frame
    frame.to_csv("cancer.csv", index=False)
    group = ["--group", "target", "--groups", "0", "1"]
    bounds = ["--bounds", "mean radius=5:30"]
    # as a shell would split it
    run = cli("two-sample", "cancer.csv", "radius", *group, "--columns", "mean", *bounds, *ASKED)
    refused(run, "there is no file 'radius'", "Quote names with spaces")
    document = released(cli("two-sample", "cancer.csv", *group, *bounds, *ASKED, "--json"))
    assert document["reject"] is True
    private = ["--epsilon", "9", "--delta", "1e-6", "--points", "20", "-o", "s.parquet"]
    assert cli("release", "cancer.csv", *bounds, *private).code == 0
    refused(cli("query", "s.parquet", "probability", "mean radius > 15"), 'column("mean radius")')
    assert cli("query", "s.parquet", "probability", 'column("mean radius") > 15').code == 0


def test_types_of_parquet_are_public(cli):
    """Text where numbers should be is seen from the file's own types, before anything is spent."""
    frame = load_iris(as_frame=True).frame.astype({"petal width (cm)": str})
    pq.write_table(pa.Table.from_pandas(frame), "iris.parquet")
    run = cli("mean", "iris.parquet", "--bounds", "petal width (cm)=0:10", *ASKED)
    refused(run, "must hold numbers")
    with open_ledger(None) as ledger:
        assert ledger.totals("iris").account.spent.events == 0


def test_paired_columns_are_named(cli, penguins):
    run = cli("paired", penguins, "--before", "bill_depth_mm", "--after", "bill_length_mm", *ASKED)
    refused(run, "column 'bill_length_mm'", "missing")


def test_a_first_command_is_told_its_own_data_set(cli, penguins, tmp_path):
    run = cli("mean", penguins, *MASS, *ASKED, "--ledger", str(tmp_path / "none.db"))
    refused(run, "privatest ledger init penguins --epsilon 5")
