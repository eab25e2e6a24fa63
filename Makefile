# SPDX-License-Identifier: Apache-2.0
# Every target sets up what it needs in .venv by itself; `make help` lists them.

SHELL := /bin/bash
BIN := .venv/bin
STORE ?= var/standalone
PROCESS_TESTS := tests/process tests/crash
# Tests start many processes: what one has compiled, the next need not; `make clean` removes it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test unit tidy process engine compat bench bench-spark check docs dist clean run-environment environment

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: run-environment ## name server (9876) and broker (10911, VIP 10909) in the foreground; STORE=folder, ARGS=...
	@exec $(BIN)/txrocketmq standalone --store "$(STORE)" $(ARGS)

test: ## the unit tests, those of the repository, with processes and with Spark, then the compat tests
	@$(MAKE) --no-print-directory --keep-going unit tidy process engine compat

unit: environment ## tests without peers and network, under a minute; ARGS="-k pull"
	@echo "unit: tests of each module, no peers"
	@$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
		--ignore tests/engine $(addprefix --ignore ,tests/tidy $(PROCESS_TESTS)) $(ARGS)

tidy: environment ## who may import whom, sizes, mirror of modules, pages up to date, the wheel
	@echo "tidy: the rules of the repository"
	@$(BIN)/pytest tests/tidy $(ARGS)

process: environment ## commands and servers as processes, those of the pages, killed; ARGS="-k tail"
	@echo "process: our commands and servers, those of README and docs too"
	@$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile $(PROCESS_TESTS) $(ARGS)

engine: environment ## tests of the Spark sources through Spark itself (Java 17); ARGS="-k stream"
	@echo "engine: Spark sessions over stores and servers"
	@$(BIN)/pytest tests/engine --timeout 300 $(ARGS)

compat: environment ## the official Java and Go clients against our servers; ARGS="--server original-5.4.0"
	@echo "compat: official clients (the first time, their jars and an image are fetched)"
	@$(BIN)/pytest compat_tests $(ARGS)

bench: environment ## the same load on our broker and on the original, in turn; ARGS="--quick"
	@echo "bench: table here, JSON and plot in var/bench; about ten minutes, a minute with ARGS=--quick"
	@$(BIN)/python -m benchmarks.run $(ARGS)

bench-spark: environment ## what reading stores with Spark costs, beside its floors; ARGS="--gib 1"
	@echo "bench-spark: table here, JSON in var/bench-spark; about fifteen minutes and 20 GB of disk"
	@$(BIN)/python -m benchmarks.spark $(ARGS)

check: environment ## format, lint, types, import layers, tidy tests
	@echo "check: format";  $(BIN)/ruff format --check --quiet .
	@echo "check: lint";    $(BIN)/ruff check --quiet .
	@echo "check: types";   $(BIN)/mypy && $(BIN)/mypy tests compat_tests benchmarks docs
	@echo "check: layers";  $(BIN)/lint-imports --no-logo | tail -n 5; exit $${PIPESTATUS[0]}
	@$(MAKE) --no-print-directory tidy

docs: environment ## writes the generated pages and tables anew
	@for script in docs/generate_*.py; do \
		echo "docs: $$script"; $(BIN)/python -m docs.$$(basename $$script .py) || exit; \
	done

dist: environment ## source archive and wheel, in dist/
	@$(BIN)/python -m build --no-isolation --outdir dist .

clean: ## removes .venv and everything built; keeps var/ (stores, results)
	@rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

run-environment:
	@scripts/environment

environment:
	@scripts/environment dev
