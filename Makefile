# Every target sets itself up: it needs only make and a Python of at least 3.11.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: demo test test-all quick check fix coverage matrix mutate audit bench bench-scale docs clean help postgresql chromium r

VENV := .venv
BIN := $(VENV)/bin
# Without it each build of the docs prints a banner about the theme's future.
export NO_MKDOCS_2_WARNING := 1
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check

# The first interpreter that is new enough; `make PYTHON=...` overrides.
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; \
	then echo $$p; break; fi; done)
endif

demo: $(VENV)/.core ## three questions about real people, answered privately; writes demo/report.html
	@mkdir -p demo && $(BIN)/privatest demo --report demo/report.html

# A file's tests stay together as long as possible, so that services and clusters start once; who is
# done first takes over from the other.
PARALLEL := -n 2 --dist worksteal

# A third worker for two processors: some tests wait, for a database, a browser or another process.
TESTS := $(PARALLEL) -n 3 --ignore=tests/test_architecture.py
test: check postgresql chromium r ## the gate: the checks, then all tests that are not marked nightly
	$(BIN)/pytest $(TESTS) -m "not nightly"

test-all: check postgresql chromium r ## the checks and every test: each night and before a release
	$(BIN)/pytest $(TESTS)

# What to run while you work: starts no program, no simulation, no attack, nothing over 5 seconds.
QUICK := -q -m "not slow and not statistical and not e2e and not privacy" tests/unit tests/papers src papers/src
quick: $(VENV)/.installed ## style, types and unit tests, in about a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest $(PARALLEL) $(QUICK) tests/test_architecture.py

# Programs that tests use. Where one can neither be found nor installed its tests are skipped (in CI they fail).
INSTALL := sh scripts/install_packages.sh
R_PACKAGES := generics httr2 jsonlite testthat
postgresql:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	$(INSTALL) PostgreSQL postgresql
chromium:
	@command -v chromedriver >/dev/null || $(INSTALL) Chromium chromium chromium-driver
r:
	@Rscript -e 'quit(status = !all(sapply(commandArgs(TRUE), requireNamespace, quietly = TRUE)))' \
	$(R_PACKAGES) >/dev/null 2>&1 || \
	$(INSTALL) R --no-install-recommends r-base-core $(addprefix r-cran-,$(R_PACKAGES))

# Types are checked beside the docs: each alone would leave a processor idle. What they say comes last.
# No --quiet for mkdocs: it hides warnings before --strict can count them.
check: $(VENV)/.installed ## style, types, architecture, and whether the docs build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p .mypy_cache; $(BIN)/mypy >.mypy_cache/said 2>&1 & types=$$!; \
	$(BIN)/pytest -q tests/test_architecture.py && \
	$(BIN)/mkdocs build --strict --site-dir site; \
	rest=$$?; wait $$types; types=$$?; cat .mypy_cache/said; exit $$((rest + types))

PAGES = for page in api_reference cli_reference json_reference guarantees limits notebooks; do $(BIN)/python -m tools.$$page || exit; done
fix: $(VENV)/.installed ## mend style and write the generated pages
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	$(PAGES)
	$(BIN)/python -m papers.gallery --text

# Without the slow ones: most of them watch other processes, which it does not see.
coverage: $(VENV)/.installed ## which lines no test runs; writes htmlcov/
	$(BIN)/pytest -q $(PARALLEL) -m "not slow" --cov --cov-report=term --cov-report=html

# The interpreters that are claimed, each with the newest dependencies and with the oldest ones that
# pyproject.toml allows and the interpreter has wheels of. `make matrix-3.12-oldest` runs one of them.
MATRIX := $(foreach python,3.11 3.12 3.13,$(python)-newest $(python)-oldest)
matrix: $(addprefix matrix-,$(MATRIX)) ## the quick tests on Python 3.11 to 3.13, with the newest and the oldest dependencies
	@for each in $(MATRIX); do \
	if [ -d .venv-$$each ]; then echo "$$each: passed"; else echo "$$each: not run, there is no such Python"; fi; done

# uv takes an interpreter that is here, or downloads one. Old packages use what newer ones deprecate.
matrix-%: $(VENV)/.created
	@$(PIP) uv && rm -rf .venv-$*
	@if $(BIN)/uv venv -q --python $(firstword $(subst -, ,$*)) .venv-$*; then \
	$(BIN)/uv pip install -q --python .venv-$* --only-binary :all: -r pyproject.toml --extra dev \
	--resolution $(if $(findstring oldest,$*),lowest-direct,highest) && \
	$(BIN)/uv pip install -q --python .venv-$* --no-deps -e . -e papers && \
	.venv-$*/bin/pytest $(PARALLEL) $(QUICK) $(if $(findstring oldest,$*),-W ignore::DeprecationWarning); \
	else echo "$*: there is no such Python, and it could not be downloaded." >&2; test -z "$$CI"; fi

mutate: $(VENV)/.installed ## plant mistakes one at a time: does a test fail for each? (an hour)
	$(BIN)/python scripts/mutate.py

audit: $(VENV)/.installed ## attack every test; goes on where it stopped; writes docs/audit.json
	$(BIN)/python -m tools.audit $(AUDIT)
	$(BIN)/python -m tools.guarantees

bench: $(VENV)/.installed ## speed, memory and power; writes JSON
	$(BIN)/python -m benchmarks

bench-scale: $(VENV)/.installed ## tests on 2 × 20,000,000 rows of Parquet beside reading it (4 GB of disk)
	$(BIN)/python -m benchmarks.scale.table $(SCALE)

docs: $(VENV)/.installed chromium ## write the CLI reference, screenshots of the page, and the site into site/
	$(PAGES)
	$(BIN)/python -m papers.gallery
	@if command -v chromedriver >/dev/null; then $(BIN)/python -m tools.screenshots && $(BIN)/python -m tools.report_figures; fi
	$(BIN)/mkdocs build --strict --site-dir site

clean: ## remove everything that make made
	rm -rf $(VENV) .venv-* demo site build dist htmlcov .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Stamps: .created after venv succeeded (it may leave half an environment behind), .core and
# .installed after pip. Both installs are redone when pyproject.toml changes. The demo needs no papers.
$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "privatest needs Python 3.11 or newer; none was found." >&2; exit 1; }
	@rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: pyproject.toml | $(VENV)/.created
	@echo "Installing privatest into $(VENV) ..."
	@$(PIP) -e ".[plot]"
	@touch $@

$(VENV)/.installed: pyproject.toml papers/pyproject.toml | $(VENV)/.created
	@echo "Installing privatest and its development tools into $(VENV) ..."
	@$(PIP) -e ".[dev]" -e papers
	@touch $(VENV)/.core $@
