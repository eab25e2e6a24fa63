# SPDX-License-Identifier: Apache-2.0
# Every target sets up what it needs in .venv by itself; `make help` lists them.

SHELL := /bin/bash
BIN := .venv/bin
STORE ?= var/standalone
PROCESS_TESTS := tests/process tests/crash
FUZZ_MINUTES ?= 60
# One kind of tests that fails does not keep the others from running.
MAKEFLAGS += --keep-going --no-print-directory
# Tests start many processes: what one has compiled, the next need not; `make clean` removes it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test fuzz lint unit tidy process crash engine engine-oldest compat mqadmin-table bench bench-client bench-spark check docs map dist image clean run-environment environment

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: run-environment ## name server (9876) and broker (10911, VIP 10909) in the foreground; STORE=folder, ARGS=...
	@exec $(BIN)/txrocketmq standalone --store "$(STORE)" $(ARGS)

test: unit tidy process engine compat ## all tests: of modules, of the repository, with processes, with Spark, with official clients

fuzz: environment ## property tests over and over, an hour; FUZZ_MINUTES=5, ARGS="--seed 7 tests/remoting/frame/test_frame.py"
	@$(BIN)/python -m tests.fuzz --minutes $(FUZZ_MINUTES) $(ARGS)

unit: environment ## tests without peers and network, under a minute; ARGS="-k pull"
	@echo "unit: tests of each module, no peers"
	@$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
		--ignore tests/engine $(addprefix --ignore ,tests/tidy $(PROCESS_TESTS)) $(ARGS)

tidy: environment ## who may import whom, sizes, mirror of modules, pages up to date, the wheel
	@echo "tidy: the rules of the repository"
	@$(BIN)/pytest tests/tidy $(ARGS)

process: environment ## commands and servers as processes, those of the pages, killed; ARGS="-k tail"
	@echo "process: our commands and servers, those of README and docs too"
	@$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile -rfEsR \
		$(PROCESS_TESTS) $(ARGS)

crash: environment ## kills, power cuts, damages, failures, judged by one rule; ROUNDS=1000, SEED=4711
	@seed=$(or $(SEED),$$RANDOM); echo "crash: $(or $(ROUNDS),1000) rounds, from seed $$seed on"; \
		CRASH_ROUNDS=$(or $(ROUNDS),1000) CRASH_SEED=$$seed $(BIN)/pytest -n auto --maxprocesses 4 \
		--timeout 3600 tests/crash $(ARGS)

engine: environment ## tests of the Spark sources through Spark itself (Java 17); ARGS="-k stream"
	@echo "engine: Spark sessions over stores and servers"
	@$(BIN)/pytest tests/engine -n 2 --dist loadfile --timeout 300 --reruns 1 -rfEsR $(ARGS)

engine-oldest: ## batches and tables with PySpark 4.0, in an environment of its own in var/ (a large download)
	@test -x var/pyspark-4.0/bin/pytest || { python3 -m venv var/pyspark-4.0 \
		&& var/pyspark-4.0/bin/pip install --quiet --upgrade pip setuptools \
		&& var/pyspark-4.0/bin/pip install --quiet 'pyspark==4.0.*' --editable '.[spark-source]' \
			pytest pytest-timeout hypothesis; }
	@var/pyspark-4.0/bin/pytest tests/engine/test_batch.py tests/engine/test_tables.py --timeout 300 $(ARGS)

compat: environment ## the official Java and Go clients against our servers; ARGS="--server original-5.4.0"
	@echo "compat: official clients (the first time, their jars and an image are fetched)"
	@$(BIN)/pytest compat_tests -n 2 --dist loadfile --reruns 1 -rfEsR $(ARGS)

mqadmin-table: environment ## every command of mqadmin, ours beside the original: docs/mqadmin.md; ARGS="--java local"
	@echo "mqadmin-table: four brokers one after the other, six minutes or so"
	@$(BIN)/python -m compat_tests.mqadmin_table $(ARGS)

bench: environment ## the same load on our broker and on the original, in turn; ARGS="--quick"
	@echo "bench: table here, pages in docs; about a quarter of an hour, a few minutes with ARGS=--quick"
	@$(BIN)/python -m benchmarks.run $(ARGS) && $(BIN)/python -m docs.generate_benchmarks

bench-client: environment ## our Python client beside the Java one and librocketmq, on our broker; ARGS="--quick"
	@echo "bench-client: table here; about ten minutes, two with ARGS=--quick"
	@$(BIN)/python -m benchmarks.clients $(ARGS)

bench-spark: environment ## what reading stores with Spark costs, beside its floors; ARGS="--gib 1"
	@echo "bench-spark: table here, JSON in var/bench-spark; about fifteen minutes and 20 GB of disk"
	@$(BIN)/python -m benchmarks.spark $(ARGS)

check: lint tidy ## format, lint, types, import layers, tidy tests

lint: environment ## format, lint, types, import layers
	@echo "lint: format";  $(BIN)/ruff format --check --quiet .
	@echo "lint: rules";   $(BIN)/ruff check --quiet .
	@echo "lint: types";   $(BIN)/mypy && $(BIN)/mypy tests compat_tests benchmarks docs
	@echo "lint: layers";  $(BIN)/lint-imports --no-logo | tail -n 5; exit $${PIPESTATUS[0]}

docs: environment ## writes the generated pages and tables anew
	@for script in docs/generate_*.py; do \
		echo "docs: $$script"; $(BIN)/python -m docs.$$(basename $$script .py) || exit; \
	done

map: environment ## each folder and each module with a sentence; ARGS="broker"
	@$(BIN)/python -m docs.file_map $(ARGS)

dist: ## source archive and wheel, in dist/
	@scripts/distribution dist

image: environment dist ## container image txrocketmq, of the wheel in dist/
	@$(BIN)/python -m compat_tests.image

clean: ## removes .venv and everything built; keeps var/ (stores, results)
	@rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

run-environment:
	@scripts/environment

environment:
	@scripts/environment dev
