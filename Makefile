# Two commands do everything: `make run` and `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := run
.PHONY: run test test-tools test-python test-ray properties bench bench-gate profile docs guards page page-check install deb aarch64 wheels dist test-all clean

# Builds the program and compares the default workloads under four schedulers.
run:
	cargo run --profile quick --locked --quiet -p seekwell-cli -- compare

# Installs the tools that the tests need, as far as possible, and runs the tests. ROOM is the disk
# space that this needs, GB.
ROOM ?= 8
test: test-tools
	@scripts/room.sh $(ROOM) "make test"
	$(MAKE) --no-print-directory page-check
	cargo test --workspace --locked --no-fail-fast
	$(MAKE) --no-print-directory test-python

# Runs the tests and the long tests: real programs on real disks, the report in a browser, random
# experiments, and the number of instructions per I/O. CI runs this.
test-all: test
	cargo test --workspace --locked --no-fail-fast --test live --test browser --test campaign
	$(MAKE) --no-print-directory bench-gate

# Builds, installs, checks and tests the Python package, in a separate Python environment.
test-python:
	@scripts/test-python.sh

# Tests the sweeps of the Python package: clusters of 1 and of 4 workers on this machine. Some
# workers are killed. Installs Ray.
test-ray:
	@SEEKWELL_TEST_RAY=1 scripts/test-python.sh test_sweep.py

# Installs the tools that the tests need in addition to cargo. Without root and sudo, prints which
# tests are skipped.
test-tools:
	@scripts/test-tools.sh

# Runs the property tests with random cases, four times as many as usual. To repeat a failure, use
# `make properties SEED=...`.
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
properties:
	@echo "PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=1024"
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=1024 cargo test --workspace --locked --no-fail-fast

# Measures the wall time per I/O: best and median of ten runs, next to a reference in the same
# process.
bench:
	scripts/guided.sh cargo run --release --locked --quiet -p seekwell-bench -- wall

# Compares instructions per I/O with the committed numbers. The build does not use the profile, so
# that the age of the profile has no effect.
bench-gate:
	cargo run --release --locked --quiet -p seekwell-bench -- gate

# Makes a new profile for release builds. Takes a quarter of an hour. Run it before a release.
profile:
	scripts/pgo.sh

# Writes the pages that are generated from the registries.
docs:
	cargo run --locked --quiet -p seekwell-cli -- schedulers --markdown -o docs/schedulers.md
	cargo run --locked --quiet -p seekwell-cli -- formats --markdown -o docs/formats.md
	cargo run --locked --quiet -p seekwell-cli -- defaults --markdown -o docs/defaults.md
	cargo run --locked --quiet -p seekwell-cli -- devices --validate --markdown -o docs/devices-validation.md
	cargo run --locked --quiet -p seekwell-cli -- reproduce all --quick --results target/reproduced --markdown -o docs/reproduction.md
	scripts/readme.sh

# Measures the robustness of the scores of the reproductions. Committed runs are reused. Runs whose
# specification changed are made again, which takes up to three quarters of an hour of CPU time. The
# committed runs are in crates/seekwell-evidence/published/guards. Copy new runs there.
guards:
	mkdir -p target/reproduced
	cp --update=none crates/seekwell-evidence/published/guards/*-guard-*.jsonl target/reproduced/
	scripts/guided.sh cargo run --release --locked --quiet -p seekwell-cli -- reproduce all --guard all --results target/reproduced --markdown -o docs/reproduction-guards.md

# Builds the script and the style of the report from their sources. The result is committed, so that
# a build of the program needs no node.
page:
	cd crates/seekwell-report/page && npm ci --no-audit --no-fund --silent --ignore-scripts \
	  && npm run --silent build

# Checks that the committed script and style match their sources. On machines without node, a test
# checks the hash of the sources instead.
page-check:
	@if command -v node >/dev/null && [ -d crates/seekwell-report/page/node_modules ]; then \
	  cd crates/seekwell-report/page && npm run --silent build && git diff --quiet -- dist \
	  || { echo "crates/seekwell-report/page/dist is not what its sources build: make page"; exit 1; }; \
	else echo "skipped: building the report's page again (node and npm)"; fi

# Installs the stripped binary, its manual pages and its completions under PREFIX. Below /usr and
# /usr/local, also installs the systemd unit. DESTDIR is put before every path.
PREFIX ?= $(HOME)/.local
export DESTDIR
install:
	scripts/guided.sh cargo build --release --locked --quiet -p seekwell-cli
	scripts/tree.sh $${CARGO_TARGET_DIR:-target}/release/seekwell $(PREFIX)

# Builds target/seekwell_VERSION_ARCHITECTURE.deb, for machines without a compiler or a network.
deb:
	scripts/guided.sh cargo build --release --locked --quiet -p seekwell-cli
	scripts/deb.sh $${CARGO_TARGET_DIR:-target}/release/seekwell

# Builds a static binary for 64-bit ARM, and tries it under an emulator with the file tree of a
# phone.
aarch64:
	scripts/static.sh aarch64

# Builds wheels of the Python package for x86-64 and 64-bit ARM in target/wheels, and tries each of
# them.
wheels:
	scripts/wheels.sh

# Makes everything that users download, in target/dist, and tries each file. Needs root.
dist:
	scripts/dist.sh

clean:
	cargo clean
