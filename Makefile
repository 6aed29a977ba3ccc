# Two commands do everything: `make run` and `make test`.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := run
.PHONY: run test test-tools test-python test-ray properties bench bench-gate profile docs guards page page-check install deb aarch64 wheels clean

# Builds and runs the main job: every two of the built-in workloads under four schedulers.
run:
	cargo run --profile quick --locked --quiet -p seekwell-cli -- compare

# Installs whatever the tests need (as far as it may) and runs them all. What they take of the disk, GB.
ROOM ?= 12
test: test-tools
	@scripts/room.sh $(ROOM) "make test"
	$(MAKE) --no-print-directory page-check
	cargo test --workspace --locked --no-fail-fast
	$(MAKE) --no-print-directory test-python
	$(MAKE) --no-print-directory bench-gate

# The Python package: built, installed into an environment of its own, checked, tested.
test-python:
	@scripts/test-python.sh

# Its sweeps: a cluster of 1 and of 4 workers on this machine, some of which are killed. Installs Ray.
test-ray:
	@SEEKWELL_TEST_RAY=1 scripts/test-python.sh test_sweep.py

# What the tests need beside cargo. Without root and without sudo it says what is skipped.
test-tools:
	@scripts/test-tools.sh

# The property tests with cases drawn by chance, four times as many. A failure is drawn again with
# `make properties SEED=...`.
SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
properties:
	@echo "PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=1024"
	PROPTEST_RNG_SEED=$(SEED) PROPTEST_CASES=1024 cargo test --workspace --locked --no-fail-fast

# Wall time per I/O, best and median of ten, beside a yardstick in the same process.
bench:
	scripts/guided.sh cargo run --release --locked --quiet -p seekwell-bench -- wall

# Instructions per I/O against the committed figures; of a build without the profile, so that a change
# is judged and not the profile's age.
bench-gate:
	cargo run --release --locked --quiet -p seekwell-bench -- gate

# The profile that builds for use are laid out by, anew: a quarter of an hour. Before a release.
profile:
	scripts/pgo.sh

# Pages that are made from the registries.
docs:
	cargo run --locked --quiet -p seekwell-cli -- schedulers --markdown -o docs/schedulers.md
	cargo run --locked --quiet -p seekwell-cli -- formats --markdown -o docs/formats.md
	cargo run --locked --quiet -p seekwell-cli -- devices --validate --markdown -o docs/devices-validation.md
	cargo run --locked --quiet -p seekwell-cli -- reproduce all --quick --results target/reproduced --markdown -o docs/reproduction.md
	scripts/readme.sh

# What reproductions' scores are worth. What was made is carried, and made again only where runs are
# others: then it takes a processor three quarters of an hour. The pages hold what is carried in
# crates/seekwell-lab/published/guards: copy what was made there.
guards:
	mkdir -p target/reproduced
	cp --update=none crates/seekwell-lab/published/guards/*-guard-*.jsonl target/reproduced/
	scripts/guided.sh cargo run --release --locked --quiet -p seekwell-cli -- reproduce all --guard all --results target/reproduced --markdown -o docs/reproduction-guards.md

# The report's script and style, from their sources; what it writes is committed, so that a build
# needs no node.
page:
	cd crates/seekwell-report/page && npm ci --no-audit --no-fund --silent --ignore-scripts \
	  && npm run --silent build

# Whether what is committed of it is what its sources build; a test holds their hash where there is
# no node.
page-check:
	@if command -v node >/dev/null && [ -d crates/seekwell-report/page/node_modules ]; then \
	  cd crates/seekwell-report/page && npm run --silent build && git diff --quiet -- dist \
	  || { echo "crates/seekwell-report/page/dist is not what its sources build: make page"; exit 1; }; \
	else echo "skipped: building the report's page again (node and npm)"; fi

# The stripped binary, its manual pages and completions, under PREFIX; below /usr and /usr/local the
# unit of systemd, too. DESTDIR stands in front of all.
PREFIX ?= $(HOME)/.local
export DESTDIR
install:
	scripts/guided.sh cargo build --release --locked --quiet -p seekwell-cli
	scripts/tree.sh $${CARGO_TARGET_DIR:-target}/release/seekwell $(PREFIX)

# target/seekwell_VERSION_ARCHITECTURE.deb, for machines without a compiler or a network.
deb:
	scripts/guided.sh cargo build --release --locked --quiet -p seekwell-cli
	scripts/deb.sh $${CARGO_TARGET_DIR:-target}/release/seekwell

# A static binary for 64-bit ARM, tried under an emulator on a phone's tree.
aarch64:
	scripts/aarch64.sh --release

# Wheels of the Python package for x86-64 and 64-bit ARM, in target/wheels, each of them tried.
wheels:
	scripts/wheels.sh

clean:
	cargo clean
