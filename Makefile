# Each target creates the environment that it runs in: `make test` and `make demo` are all that a newcomer needs.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
PYTHON ?=
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt

# A test run starts hundreds of Python processes. Without bytecode each would compile Ray, pyarrow and evenflow, which takes most of its time:
# bytecode is written to this folder even if the shell sets PYTHONDONTWRITEBYTECODE.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/build/bytecode

.PHONY: help install test check nightly lint format api types doctest unit coverage cluster spark demo compare chaos chaos-kafka simulate bench docs pictures dist java browser promtool azurite pyright clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 16

install: $(INSTALLED) ## the environment in .venv; PYTHON=... chooses the interpreter

test: $(INSTALLED) java ## the first check, a few minutes: style, types, docstrings, unit tests, the most important tests on Ray and Spark
	@$(BIN)/python .ci/parts.py test

check: $(INSTALLED) java browser promtool azurite pyright ## the other tests: many seeds, benchmarks, kills, the page in a browser
	@$(BIN)/python .ci/parts.py check

nightly: $(INSTALLED) java ## the longest tests: several nodes, hosts, an autoscaler, chaos
	@$(BIN)/python .ci/parts.py nightly

lint: $(INSTALLED) ## style, and changes of the public API that would break programs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/public_api.py check

format: $(INSTALLED) ## fix the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

api: $(INSTALLED) ## update docs/api.txt, with which `make lint` compares the public API
	$(BIN)/python .ci/public_api.py write

types: $(INSTALLED) ## mypy --strict
	$(BIN)/mypy

doctest: $(INSTALLED) ## the examples in docstrings
	$(BIN)/python -m pytest tests/docstrings

unit: $(INSTALLED) promtool azurite pyright ## all tests without Ray and Spark
	$(BIN)/python -m pytest tests/unit tests/simulation tests/project

COVERAGE = $(BIN)/python -m coverage
COVERED := engine scheduler balancer
SIMULATED := simulation steering joins kept_values kinds_of_windows

coverage: $(INSTALLED) ## the lines that tests without Ray reach; fails below 95 % of engine/, scheduler/ or balancer/; minutes
	rm -rf build/coverage
	$(COVERAGE) run -m pytest -p no:cacheprovider -q $(COVERED:%=tests/unit/%)
	EVENFLOW_SEEDS=60 $(COVERAGE) run -m pytest -p no:cacheprovider -q --timeout 600 $(SIMULATED:%=tests/simulation/test_%.py)
	$(COVERAGE) combine --quiet
	$(COVERAGE) report --show-missing --fail-under 0 --skip-covered
	@failed=0; for each in $(COVERED); do \
	  total="$$($(COVERAGE) report --include "$$each/*" --format total | head -n 1)" || failed=1; echo "$$each: $$total % of the lines"; \
	done; exit $$failed

cluster: $(INSTALLED) browser promtool ## tests on a local Ray cluster
	$(BIN)/python -m pytest tests/cluster

spark: $(INSTALLED) java ## tests on Ray and Spark
	$(BIN)/python -m pytest tests/spark

demo: $(INSTALLED) java ## flight delays, from Spark through evenflow and back; UI=1 opens the live page of each act
	$(BIN)/python examples/delays.py $(if $(UI),--ui)

SEEDS ?= 20000

simulate: $(INSTALLED) ## more simulated jobs: moves, scaling, policies, backends, crashes; SEEDS=20000 of each kind
	EVENFLOW_SEEDS=$(SEEDS) $(BIN)/python .ci/parts.py simulate

MINUTES ?= 10
SEED ?=

chaos: $(INSTALLED) java ## a job that loses a process every 5 s, compared with Spark; MINUTES=10 SEED=
	$(BIN)/python -W ignore -m evenflow.bench.recovery.chaos --minutes $(MINUTES) $(SEED:%=--seed %)

chaos-kafka: $(INSTALLED) ## Kafka to Kafka exactly once, with a killed process or cut connection every 2 s, compared with DuckDB; MINUTES=1 SEED=
	$(BIN)/python -W ignore -m evenflow.bench.kafka.chaos $(if $(filter file,$(origin MINUTES)),,--minutes $(MINUTES)) $(SEED:%=--seed %)

compare: $(INSTALLED) java ## the README's five numbers with those of other systems, in 15 minutes; installs Flink
	$(BIN)/python -m evenflow.bench run compare

bench: $(INSTALLED) java ## the benchmarks
	$(BIN)/python -m evenflow.bench

dist: $(INSTALLED) ## sdist and wheel in dist/, checked on each tested Python that is installed: flows, types, extras, all without Java
	$(BIN)/python .ci/dist.py

clean: ## build outputs and caches; the environment stays
	rm -rf build dist src/evenflow.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -path ./.venv -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

# setuptools goes in first and build isolation stays off, so that the constraints hold for the build tool too.
$(INSTALLED): pyproject.toml constraints.txt
	@$(make_environment)
	$(PIP) install -c constraints.txt uv
	@eval "$$($(PIP) config list | $(BIN)/python .ci/pip_settings.py)"; set -x; \
	$(UV) setuptools; \
	$(UV) --no-build-isolation -e ".[dev,demo,bench]"
	@touch $@

docs: $(INSTALLED) ## the site in build/site, from docs/ and the docstrings; a broken link is an error
	@$(BIN)/python -c 'import furo, myst_parser, sphinx' 2>/dev/null || { \
	  eval "$$($(PIP) config list | $(BIN)/python .ci/pip_settings.py)"; $(UV) --no-build-isolation -e ".[docs]"; }
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --write-all -b html -d build/site-cache docs build/site
	@echo "build/site/index.html"

pictures: $(INSTALLED) browser ## update docs/images: the page of a job that moves keys, in a browser, and the moving picture; minutes
	$(BIN)/python .ci/moving_picture.py
	$(BIN)/python .ci/pictures.py

java:
	@$(find_java)

browser:
	@$(find_browser)

promtool:
	@$(find_promtool)

azurite:
	@$(find_azurite)

pyright: $(INSTALLED)
	$(UV) basedpyright

define make_environment
new_enough() { "$$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }; \
if new_enough "$(BIN)/python" && "$(BIN)/python" -m pip --version >/dev/null 2>&1; then exit 0; fi; \
python=; \
for candidate in $(or $(PYTHON),python3 python3.13 python3.12 python3.11); do \
  if new_enough "$$candidate"; then python="$$candidate"; break; fi; \
done; \
if [ -z "$$python" ]; then \
  echo "evenflow needs Python 3.11 or newer; $(or $(PYTHON),python3) is $$($(or $(PYTHON),python3) --version 2>&1 | head -n 1)." >&2; \
  echo "Install one and name it: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; \
fi; \
if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
  package="$$("$$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"; \
  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
    apt-get update -q && apt-get install -q -y "$$package"; \
  else \
    echo "$$python can't make environments: install its venv module (on Debian and Ubuntu: sudo apt-get install $$package)." >&2; exit 1; \
  fi; \
fi; \
"$$python" -m venv --clear "$(VENV)"
endef

# Debian 12 has Java 17 and no 21, Debian 13 has 21 and no 17.
define find_java
java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
major() { { "$$java" -version 2>&1 || true; } | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1; }; \
found="$$(major)"; \
if [ "$${found:-0}" -ge 17 ]; then exit 0; fi; \
if [ -z "$${JAVA_HOME:-}" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
  apt-get update -q && { apt-get install -q -y openjdk-17-jre-headless || apt-get install -q -y openjdk-21-jre-headless; }; \
  found="$$(major)"; \
  if [ "$${found:-0}" -ge 17 ]; then exit 0; fi; \
fi; \
echo "Spark needs Java 17 or newer; $$java is $${found:-not installed}." >&2; \
echo "Install one (on Debian and Ubuntu: sudo apt-get install openjdk-17-jre-headless, or openjdk-21-jre-headless)" >&2; \
echo "and set JAVA_HOME to it, or put it on the PATH and leave JAVA_HOME unset." >&2; exit 1
endef

define find_browser
if [ -n "$${CHROMIUM:-}" ]; then exit 0; fi; \
for name in chromium chromium-browser google-chrome; do if command -v "$$name" >/dev/null; then exit 0; fi; done; \
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
  apt-get update -q && apt-get install -q -y chromium; \
  if command -v chromium >/dev/null; then exit 0; fi; \
fi; \
echo "The web page is tested in Chromium, which is not installed." >&2; \
echo "Install it (on Debian and Ubuntu: sudo apt-get install chromium), or set CHROMIUM to its path." >&2; exit 1
endef

# The package is extracted and not installed: it would start a Prometheus server.
define find_promtool
if [ -n "$${PROMTOOL:-}" ] || [ -x build/promtool/promtool ] || command -v promtool >/dev/null; then exit 0; fi; \
if command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then \
  folder="$$(mktemp -d)"; trap 'rm -rf "$$folder"' EXIT; chmod 755 "$$folder"; \
  if [ "$$(id -u)" = 0 ]; then apt-get update -q || true; fi; \
  if (cd "$$folder" && apt-get download -q prometheus && dpkg-deb -x prometheus_*.deb .); then \
    mkdir -p build/promtool && mv "$$folder/usr/bin/promtool" build/promtool/promtool; exit 0; \
  fi; \
fi; \
echo "The alert rules are tested by promtool of Prometheus, which was not found." >&2; \
echo "Install Prometheus (on Debian and Ubuntu: sudo apt-get install prometheus), or set PROMTOOL to the path of promtool." >&2; exit 1
endef

AZURITE_VERSION := 3.37.0

define find_azurite
if [ -n "$${AZURITE:-}" ] && command -v node >/dev/null; then exit 0; fi; \
if [ -x build/azurite-$(AZURITE_VERSION)/node_modules/.bin/azurite-blob ] && command -v node >/dev/null; then exit 0; fi; \
if ! command -v npm >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
  apt-get update -q && apt-get install -q -y --no-install-recommends nodejs npm; \
fi; \
if command -v npm >/dev/null && command -v node >/dev/null; then \
  rm -rf build/azurite.new && mkdir -p build/azurite.new; \
  if npm install --silent --no-save --no-audit --no-fund --prefix build/azurite.new azurite@$(AZURITE_VERSION); then \
    rm -rf build/azurite-$(AZURITE_VERSION) && mv build/azurite.new build/azurite-$(AZURITE_VERSION); exit 0; \
  fi; \
fi; \
echo "Azure Blob Storage is tested by its emulator Azurite, which was not found. It needs Node.js and npm." >&2; \
echo "Install these (on Debian and Ubuntu: sudo apt-get install nodejs npm), or set AZURITE to the path of its dist/src/blob/main.js." >&2; exit 1
endef
