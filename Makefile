# Every target sets itself up: it needs only make and a Python of at least 3.11.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: demo test quick check fix coverage oldest mutate audit bench bench-scale docs clean help postgresql chromium r

VENV := .venv
OLDEST := .venv-oldest
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
test: check postgresql chromium r ## everything: the checks, then all tests
	$(BIN)/pytest $(PARALLEL) -n 3 --ignore=tests/test_architecture.py

# What to run while you work: starts no program, no simulation, no attack, nothing over 5 seconds.
QUICK := -q -m "not slow and not statistical and not e2e and not privacy" tests/unit src
quick: $(VENV)/.installed ## style, types and unit tests, in about a minute
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest $(PARALLEL) $(QUICK) tests/test_architecture.py

# The tests start a PostgreSQL of their own; without one its tests are skipped (in CI they fail).
postgresql:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y postgresql >/dev/null; \
	else echo "PostgreSQL is not installed: its tests will be skipped." >&2; fi

# The tests drive a real browser; without one its tests are skipped (in CI they fail).
chromium:
	@command -v chromedriver >/dev/null || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium chromium-driver >/dev/null; \
	else echo "Chromium is not installed: tests of the page will be skipped." >&2; fi

# The tests check the R package in clients/r; without R they are skipped (in CI they fail).
R_PACKAGES := generics httr2 jsonlite testthat
r:
	@Rscript -e 'quit(status = !all(sapply(commandArgs(TRUE), requireNamespace, quietly = TRUE)))' \
	$(R_PACKAGES) >/dev/null 2>&1 || \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
	r-base-core $(addprefix r-cran-,$(R_PACKAGES)) >/dev/null; \
	else echo "R or one of its packages is not installed: tests of the R client will be skipped." >&2; fi

# Types are checked beside the docs: each alone would leave a processor idle. What they say comes last.
# No --quiet for mkdocs: it hides warnings before --strict can count them.
check: $(VENV)/.installed ## style, types, architecture, and whether the docs build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@mkdir -p .mypy_cache; $(BIN)/mypy >.mypy_cache/said 2>&1 & types=$$!; \
	$(BIN)/pytest -q tests/test_architecture.py && \
	$(BIN)/mkdocs build --strict --site-dir site; \
	rest=$$?; wait $$types; types=$$?; cat .mypy_cache/said; exit $$((rest + types))

fix: $(VENV)/.installed ## mend style and write the generated pages
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	$(BIN)/python -m tools.cli_reference
	$(BIN)/python -m tools.json_reference
	$(BIN)/python -m tools.guarantees
	$(BIN)/python -m tools.limits
	$(BIN)/python -m tools.notebooks
	$(BIN)/python -m tools.walks
	$(BIN)/python -m tools.gallery --text

# Without the slow ones: most of them watch other processes, which it does not see.
coverage: $(VENV)/.installed ## which lines no test runs; writes htmlcov/
	$(BIN)/pytest -q $(PARALLEL) -m "not slow" --cov --cov-report=term --cov-report=html

oldest: ## the quick tests with the oldest dependencies that pyproject.toml allows
	@test -n "$(PYTHON)" || { echo "privatest needs Python 3.11 or newer; none was found." >&2; exit 1; }
	rm -rf $(OLDEST) && $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install -qq --disable-pip-version-check uv
	$(OLDEST)/bin/uv pip install -q --python $(OLDEST)/bin/python --resolution lowest-direct -e ".[dev]"
	$(OLDEST)/bin/pytest $(PARALLEL) $(QUICK)

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
	$(BIN)/python -m tools.cli_reference
	$(BIN)/python -m tools.json_reference
	$(BIN)/python -m tools.guarantees
	$(BIN)/python -m tools.notebooks
	$(BIN)/python -m tools.walks
	$(BIN)/python -m tools.gallery
	@if command -v chromedriver >/dev/null; then $(BIN)/python -m tools.screenshots && $(BIN)/python -m tools.report_figures; fi
	$(BIN)/mkdocs build --strict --site-dir site

clean: ## remove everything that make made
	rm -rf $(VENV) $(OLDEST) demo site build dist htmlcov .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Stamps: .created after venv succeeded (it may leave half an environment behind), .core and
# .installed after pip. Both installs are redone when pyproject.toml changes.
$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "privatest needs Python 3.11 or newer; none was found." >&2; exit 1; }
	@rm -rf $(VENV) && $(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.core: pyproject.toml | $(VENV)/.created
	@echo "Installing privatest into $(VENV) ..."
	@$(PIP) -e ".[plot]"
	@touch $@

$(VENV)/.installed: pyproject.toml | $(VENV)/.created
	@echo "Installing privatest and its development tools into $(VENV) ..."
	@$(PIP) -e ".[dev]"
	@touch $(VENV)/.core $@
