#!/usr/bin/env bash
# The Python package: built, installed into the tests' own environment, checked for types and style, and
# tested against the binary. Without Python 3.11 or pip it says so and is content. Arguments go to
# pytest. SEEKWELL_TEST_RAY=1 installs Ray, too, and tests sweeps, which are slow where others are busy.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$target"
home=$(scripts/python-home.sh 2> >(tee "$target/python-home.log" >&2))
if [ -z "$home" ]; then
  echo "skipped: the Python package ($(tail -1 "$target/python-home.log"))"
  exit 0
fi
export PATH=$home/bin:$PATH
if [ -n "${SEEKWELL_TEST_RAY:-}" ]; then
  pip install --quiet --disable-pip-version-check -r python/requirements-ray.txt
fi

cargo fmt --check --manifest-path python/Cargo.toml
# Little optimisation is enough for tests: a third of the time that a release build takes.
CARGO_TARGET_DIR=$target/python-build pip install --quiet --disable-pip-version-check \
  --no-build-isolation --no-deps --force-reinstall -C build-args="--profile dev" ./python
# The binary as the other tests have it: there already, where those have run.
cargo test --workspace --locked --quiet --no-run --test house

cd python
ruff check --quiet .
ruff format --check --quiet .
mypy
# Not here: `import seekwell` has to find what was installed.
cd tests
if [ $# -eq 0 ]; then set -- .; fi
exec pytest -c ../pyproject.toml --rootdir .. -q -p no:cacheprovider "$@"
