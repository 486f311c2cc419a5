# Two commands to know: "make demo" shows the package at work, "make test" checks everything.
# Both need Python 3.11 or newer and nothing else: they make a virtual environment in .venv and install the project there.
#
#   make test PYTHON=python3.13          another interpreter (remove .venv first: "make clean-venv")
#   make test PYTEST_ARGS="-k svc -x"    more arguments for pytest

PYTHON ?= python3
WORKERS ?= 2
PYTEST_ARGS ?=
AGAIN ?=
MINUTES ?= 30
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-cpus soak audit test-gallery lint format docs docs-check screenshots bench release-check clean clean-venv

help:
	@echo "make demo        train on generated data and on the digits, beside scikit-learn; writes a picture"
	@echo "make test        ruff, mypy, tests and doctests"
	@echo "make test-all    the same with the long tests: larger data, scikit-learn's checks for all options"
	@echo "make test-cpus   the tests with the instructions of other processors, as far as this one knows them"
	@echo "make test-gallery  scikit-learn's examples that use SVMs, with ours in their place; needs the network"
	@echo "make soak        campaigns of random trials for MINUTES=30; goes on where the last run ended"
	@echo "make audit       known holes of the packages that are installed here (pip-audit); needs the network"
	@echo "make lint        ruff and mypy only"
	@echo "make format      rewrite the files in this project's style"
	@echo "make docs        build the documentation into docs/_build/html; warnings are errors"
	@echo "make docs-check  spelling and links of the documentation; pages elsewhere that are not reached are named"
	@echo "make screenshots  pictures of the report pages for README and docs; needs Chromium"
	@echo "make bench       the quick benchmarks, within ten minutes; a run that was killed goes on (anew: make bench AGAIN=--again)"
	@echo "make release-check  build wheel and sdist, check them, and try them in empty environments of every Python here"
	@echo "make clean       remove what was built"
	@echo "make clean-venv  remove the virtual environment"

demo: $(VENV)/.installed-demo
	$(BIN)/slimsvm demo

test: lint
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

test-all: lint
	$(BIN)/python -m pytest -n $(WORKERS) -m "long or not long" $(PYTEST_ARGS)

test-cpus: $(VENV)/.installed-test
	$(BIN)/python tests/processors.py -n $(WORKERS) $(PYTEST_ARGS)

test-gallery: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check matplotlib pandas seaborn
	$(BIN)/python tests/sklearn_suite/gallery.py

soak: $(VENV)/.installed-test
	$(BIN)/python -m tests.soak --minutes $(MINUTES)

audit: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check pip-audit
	$(BIN)/python -m pip_audit --skip-editable

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs-check: $(VENV)/.installed-docs
	$(BIN)/codespell docs/*.md docs/*/*.md examples README.md CHANGELOG.md CONTRIBUTING.md src
	$(BIN)/python docs/links.py

docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

screenshots: $(VENV)/.installed-demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[browser]"
	PYTHONPATH=. $(BIN)/python docs/screenshots.py

bench: $(VENV)/.installed-bench
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable ".[peers]" || \
	  echo "not all peers could be installed: those that are missing will be shown as failed"
	$(BIN)/python -m benchmarks run all --quick $(AGAIN)

release-check: $(VENV)/.installed-release
	$(BIN)/python tests/release_check.py --lower-bounds

clean:
	rm -rf build dist docs/_build docs/generated docs/gallery .ruff_cache .mypy_cache .pytest_cache
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} +

clean-venv:
	rm -rf $(VENV)

# -- the environment: made once, and brought up to date when pyproject.toml changes --------------------------------------------------------

EXTRAS_demo := cli,plot
EXTRAS_test := test
EXTRAS_docs := docs
EXTRAS_bench := bench
EXTRAS_release := release

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "slimsvm needs Python 3.11 or newer, and '$(PYTHON)' is not. Name another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || { \
	  echo "'$(PYTHON) -m venv' failed. On Debian and Ubuntu the package python3-venv provides it." >&2; exit 1; }
	@touch $@

$(VENV)/.installed-%: pyproject.toml | $(VENV)/.created
	@echo "installing slimsvm[$(EXTRAS_$*)] into $(VENV), this may take a few minutes"
	@$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable ".[$(EXTRAS_$*)]"
	@touch $@
