# SPDX-License-Identifier: Apache-2.0
# Every target sets up what it needs in .venv by itself; `make help` lists them.

SHELL := /bin/bash
BIN := .venv/bin
STORE ?= var/standalone
PROCESS_TESTS := tests/process tests/crash
# The other unit tests need no Spark and none of the libraries of tables, so that `make unit` installs little.
SPARK_TESTS := tests/spark tests/cli/spark tests/benchmarks
FUZZ_MINUTES ?= 60
# Other rounds each day; the summary says which, so that they can be repeated with `make crash`.
SEED_OF_DAY = $$(($$(date +%s) / 86400 * 100))
# One kind of tests that fails does not keep the others from running.
MAKEFLAGS += --keep-going --no-print-directory
# Tests start many processes: what one has compiled, the next need not; `make clean` removes it.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test test-all fuzz lint unit spark tidy process crash kernel kernel-test kernel-fuzz kernel-wheels engine engine-oldest compat compat-all mqadmin-table bench bench-client bench-proxy bench-spark check docs map dist release image clean run-environment unit-environment environment

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: run-environment ## name server (9876) and broker (10911, VIP 10909) in the foreground; STORE=folder, ARGS=...
	@exec $(BIN)/txrocketmq standalone --store "$(STORE)" $(ARGS)

# `make check test` runs the tidy tests once, in `check`; and times of all kinds are printed.
COMPUTING = unit kernel-test spark $(if $(filter check tidy,$(MAKECMDGOALS)),,tidy) process engine

test: environment ## all that a change has to pass: unit, kernel, spark, tidy, process and engine beside compat
	@MAKE="$(MAKE)" $(BIN)/python -m tests.lanes "$(COMPUTING)" compat

test-all: environment ## the same with every scenario on every release, a thousand rounds of crash, PySpark 4.0: for nights
	@MAKE="$(MAKE)" $(BIN)/python -m tests.lanes "$(COMPUTING) engine-oldest crash" compat-all

fuzz: environment ## property tests over and over, an hour; FUZZ_MINUTES=5, ARGS="--seed 7 tests/remoting/frame/test_frame.py"
	@$(BIN)/python -m tests.fuzz --minutes $(FUZZ_MINUTES) $(ARGS)

unit: unit-environment ## proves that each module does what it says, without peers, network and Spark; ARGS="-k pull"
	@echo "unit: each module does what it says, without peers, network and Spark"
	@$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
		--ignore tests/engine $(addprefix --ignore ,tests/tidy $(PROCESS_TESTS) $(SPARK_TESTS)) $(ARGS)

spark: environment ## proves the same of the modules that read stores for Spark, DuckDB and tables; ARGS="-k ingest"
	@echo "spark: each module for Spark, DuckDB and tables does what it says, without a JVM"
	@$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile $(SPARK_TESTS) $(ARGS)

tidy: environment ## proves the rules of the repository: who may import whom, sizes, pages up to date, the wheel
	@echo "tidy: the repository keeps its rules, its pages are up to date, its wheel is whole"
	@$(BIN)/pytest tests/tidy $(ARGS)

process: environment ## proves that servers and commands work as processes, and lose nothing when they are killed; ARGS="-k tail"
	@echo "process: servers and commands work as processes and as the pages say, and lose nothing when killed"
	@CRASH_SEED=$${CRASH_SEED:-$(SEED_OF_DAY)} $(BIN)/pytest -n 3 --dist loadfile -rfEs $(PROCESS_TESTS) $(ARGS)

crash: environment ## proves the same by many rounds of kills, power cuts, damages and failures; ROUNDS=1000, SEED=4711
	@seed=$(or $(SEED),$$RANDOM); echo "crash: $(or $(ROUNDS),1000) rounds, from seed $$seed on"; \
		CRASH_ROUNDS=$(or $(ROUNDS),1000) CRASH_SEED=$$seed $(BIN)/pytest -n auto --maxprocesses 4 \
		--timeout 3600 tests/crash $(ARGS)

kernel: unit-environment ## builds the compiled kernel, which is optional, and installs it into .venv; it needs cargo
	@scripts/kernel install

kernel-test: environment ## proves that the compiled kernel does what the forms in Python do, if there is cargo; ARGS="-k walk"
	@echo "kernel-test: the compiled kernel does what the forms in Python do"
	@scripts/kernel test $(ARGS)

kernel-fuzz: ## mutated frames and records against the compiled kernel, with a sanitizer if there is a nightly Rust; FUZZ_SECONDS=3600
	@FUZZ_SECONDS=$(or $(FUZZ_SECONDS),60) scripts/kernel fuzz $(ARGS)

kernel-wheels: unit-environment ## wheels of the compiled kernel for Linux on x86-64 and arm64, in dist/
	@scripts/kernel wheels

engine: environment ## proves that Spark itself reads stores and clusters as the sources say (Java 17); ARGS="-k stream"
	@echo "engine: Spark reads stores and clusters, intact and damaged, as the sources say"
	@$(BIN)/pytest tests/engine -rfEs $(ARGS)

engine-oldest: ## batches and tables with PySpark 4.0, in an environment of its own in var/ (a large download)
	@test -x var/pyspark-4.0/bin/pytest || { python3 -m venv var/pyspark-4.0 \
		&& var/pyspark-4.0/bin/pip install --quiet --upgrade pip setuptools \
		&& var/pyspark-4.0/bin/pip install --quiet 'pyspark==4.0.*' --editable '.[spark-source]' \
			pytest pytest-timeout hypothesis; }
	@var/pyspark-4.0/bin/pytest tests/engine/test_batch.py tests/engine/test_tables.py --timeout 300 $(ARGS)

compat: environment ## proves that official Java, Go and Python clients notice no difference; ARGS="--server original-5.4.0"
	@echo "compat: official clients notice no difference (the first time, their jars and an image are fetched)"
	@$(BIN)/pytest compat_tests -n 3 --dist loadfile --no-loadscope-reorder -rfEs $(ARGS)

compat-all: ## the same, with each scenario on each release of the Java clients
	@$(MAKE) compat ARGS="--all-releases $(ARGS)"

mqadmin-table: environment ## every command of mqadmin, ours beside the original: docs/mqadmin.md; ARGS="--java local"
	@echo "mqadmin-table: four brokers one after the other, six minutes or so"
	@$(BIN)/python -m compat_tests.mqadmin_table $(ARGS)

bench: environment ## the same load on our broker and on the original, in turn; ARGS="--quick", ARGS=--kernel
	@echo "bench: table here, pages in docs; about a quarter of an hour, a few minutes with ARGS=--quick"
	@$(BIN)/python -m benchmarks.run $(ARGS) && $(BIN)/python -m docs.generate_benchmarks

bench-client: environment ## our Python client beside the Java one and librocketmq, on our broker; ARGS="--quick"
	@echo "bench-client: table here; about ten minutes, two with ARGS=--quick"
	@$(BIN)/python -m benchmarks.clients $(ARGS)

bench-proxy: environment ## gRPC calls on our proxy and on the original's, in turn, on our broker; ARGS="--quick"
	@echo "bench-proxy: table here; about eight minutes, two with ARGS=--quick"
	@$(BIN)/python -m benchmarks.proxies $(ARGS)

bench-spark: environment ## what reading stores with Spark costs, beside its floors; ARGS="--gib 1"
	@echo "bench-spark: table here, JSON in var/bench-spark; about fifteen minutes and 20 GB of disk"
	@$(BIN)/python -m benchmarks.spark $(ARGS)

check: environment ## lint and tidy, side by side
	@MAKE="$(MAKE)" $(BIN)/python -m tests.lanes lint tidy

lint: environment ## proves that format, names, types and import layers are as style.md says
	@echo "lint: format";  $(BIN)/ruff format --check --quiet .
	@echo "lint: rules";   $(BIN)/ruff check --quiet .
	@echo "lint: types";   $(BIN)/mypy && $(BIN)/mypy tests compat_tests benchmarks docs
	@echo "lint: layers";  PYTHONPATH=typings $(BIN)/lint-imports --no-logo | tail -n 5; exit $${PIPESTATUS[0]}

docs: environment ## writes the generated pages and tables anew
	@for script in docs/generate_*.py; do \
		echo "docs: $$script"; $(BIN)/python -m docs.$$(basename $$script .py) || exit; \
	done

map: unit-environment ## each folder and each module with a sentence; ARGS="broker"
	@$(BIN)/python -m docs.file_map $(ARGS)

dist: ## source archive and wheel, in dist/
	@scripts/distribution dist

release: environment ## commit, tag, archives and notes of a release, nothing published; VERSION=0.2.0
	@BIN="$(BIN)" scripts/release "$(VERSION)"

image: environment dist ## container image txrocketmq, of the wheel in dist/
	@$(BIN)/python -m compat_tests.image

clean: ## removes .venv and everything built; keeps var/ (stores, results)
	@rm -rf .venv build dist *.egg-info client/*.pyi .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

run-environment:
	@scripts/environment

unit-environment:
	@scripts/environment unit

environment:
	@scripts/environment dev
