#!/usr/bin/env bash
# The Python package: built with the workspace, laid into the tests' own environment, checked for types
# and style, and tested against the binary. Without Python 3.11 or pip it says so and is content.
# Arguments go to pytest. SEEKWELL_TEST_RAY=1 installs Ray, too, and tests sweeps (`make test-ray` only
# those); where Ray cannot be had it says so and leaves them out.
#
# Cargo builds the extension module where it builds the tests, so nothing is compiled twice; what `pip
# install ./python` does beside that is done here by hand. SEEKWELL_TEST_PIP=1 has pip and maturin do it.
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
  if ! pip install --quiet --disable-pip-version-check -r python/requirements-ray.txt; then
    echo "skipped: sweeps on Ray (pip cannot install python/requirements-ray.txt)"
    unset SEEKWELL_TEST_RAY
    if [ "$*" = test_sweep.py ]; then exit 0; fi
  fi
fi

# Both as the other tests have them: there already, where those have run.
cargo test --workspace --locked --quiet --no-run --test module --test house
if [ -n "${SEEKWELL_TEST_PIP:-}" ]; then
  pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
    -C build-args="--profile dev" ./python
else
  site=$(python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
  rm -rf "$site"/seekwell "$site"/seekwell_lab-*
  cp -r python/seekwell "$site/seekwell"
  cp "$target/debug/deps/lib_seekwell.so" "$site/seekwell/_seekwell.abi3.so"
  (cd python && maturin pep517 write-dist-info --metadata-directory "$site" >/dev/null)
fi

cd python
ruff check --quiet .
ruff format --check --quiet .
mypy
# Not here: `import seekwell` has to find what was installed.
cd tests
if [ $# -eq 0 ]; then set -- .; fi
exec pytest -c ../pyproject.toml --rootdir .. -q -p no:cacheprovider "$@"
