# What a developer does, each with one word. Every target sets up what it needs first: see `make help`.
SHELL := /bin/bash
.DEFAULT_GOAL := help
unexport PYTHONDONTWRITEBYTECODE  # tests start a hundred processes, each of which would compile all modules again
SUITES := faults cluster page docs scenarios storms mysql tidb pairs
.PHONY: help setup build demo test test-all $(SUITES:%=test-%) lint format bench report docs wheel lock clean clean-cache always

VENV := .venv
BIN := $(VENV)/bin
TESTS =
SOURCE = mariadb
TARGET = mariadb
RUN = PYTHONPATH=tests $(BIN)/python -m suites.run
SIZE = full
CONFTESTS := $(subst /,.,$(basename $(wildcard tests/conftest.py tests/*/conftest.py)))
KERNELS := $(wildcard src/unshard/kernels/*.py src/unshard/kernels/*.pxd)
COMPILED := $(wildcard src/unshard/kernels/*.so)
# Compiled kernels whose source was deleted, for example by a switch to another branch. Python would import them.
DELETED := $(filter-out $(basename $(notdir $(KERNELS))),$(basename $(basename $(notdir $(COMPILED)))))

help: ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: $(VENV)/.kernels $(VENV)/.class-archive ## system packages, .venv with pinned libraries, compiled kernels; done by the others too

build: setup ## compile the kernels that changed

demo: setup ## two sources with live writes, merged into one target, and the proof that both are equal; SOURCE=mysql TARGET=tidb
	@test $(SOURCE) != mysql || tools/test-servers mysql-8.0
	@test $(TARGET) != tidb || tools/test-servers tidb
	@$(BIN)/unshard demo --source $(SOURCE) --target $(TARGET)

test: setup ## the tests that every change must pass; TESTS=tests/relay runs all tests of a part
	@$(if $(TESTS),$(BIN)/python -m pytest -q --numprocesses $(or $(JOBS),2) --dist loadfile $(TESTS),$(RUN) test)

test-all: setup ## every test: `make test`, and the suites test-faults, test-cluster and so on
	@$(RUN) all

# tests/suites/catalogue.py tells what each of them holds.
$(SUITES:%=test-%): test-%: setup
	@$(RUN) $*

lint: setup ## ruff and mypy over everything
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@tools/types $(CONFTESTS)

format: setup ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

bench: setup ## every benchmark, one JSON object each
	@$(BIN)/python -m bench all --json

report: setup ## every benchmark beside its peers, faults in each phase, and all types, into report/; SIZE=quick: a first look
	@$(BIN)/python -m bench.report --size $(SIZE)

docs: setup ## write the generated reference pages
	@$(BIN)/python docs/generate.py

wheel: setup ## the wheel with compiled kernels and the sdist, into dist/; the wheel runs the demo in a fresh environment
	@tools/wheel --rows 500 --seconds 3

lock: setup ## pin the newest versions that pyproject.toml allows
	@$(BIN)/python -m pip install -q pip-tools
	@$(BIN)/pip-compile -q --upgrade --extra dev --generate-hashes --allow-unsafe --strip-extras --no-annotate \
	  --no-header --no-emit-index-url --no-emit-find-links --no-emit-trusted-host -o requirements.lock pyproject.toml

clean-cache: ## remove what was fetched and built outside of the checkout, for all checkouts of this user
	@tools/cache clean

clean: ## remove everything that was built in this checkout, .venv too
	@rm -rf $(VENV) build dist src/*.egg-info src/unshard/kernels/*.so .pytest_cache .mypy_cache .mypy_cache.part .ruff_cache .test-records

# .cached leads to the entry of the cache that .venv was linked to; where somebody has removed it, .venv is made anew.
$(VENV)/.cached/pyvenv.cfg:

$(VENV)/.libraries: requirements.lock tools/libraries tools/python tools/system-packages $(VENV)/.cached/pyvenv.cfg
	@echo "setting up, some minutes the first time on a machine: Python libraries into $(VENV)"
	@tools/system-packages
	@tools/libraries
	@touch $@

$(VENV)/.package: pyproject.toml setup.py $(VENV)/.libraries
	@echo "setting up: compiled kernels"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.kernels: $(KERNELS) $(VENV)/.package $(if $(DELETED),always)
	@$(BIN)/python setup.py -q build_ext --inplace
	@touch $@

$(VENV)/.class-archive: $(VENV)/.package tools/class-archive | $(VENV)/.kernels
	@echo "setting up: Spark's classes, for quick starts"
	@tools/class-archive
	@touch $@
