#!/usr/bin/env bash
# Builds the Python package with the workspace and installs it in the environment of the tests. Then
# checks its types and style, and tests it against the binary. Without Python 3.11 or pip, prints
# that the tests are skipped, and succeeds. Arguments are passed to pytest. SEEKWELL_TEST_RAY=1
# installs Ray and also tests the sweeps (`make test-ray` tests only these). If Ray cannot be
# installed, prints that these tests are skipped.
#
# Cargo builds the extension module together with the tests, so that nothing is compiled twice. This
# script does the other steps of `pip install ./python` itself. With SEEKWELL_TEST_PIP=1, pip and
# maturin do them.
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

# Both files are built as for the other tests. They exist if those tests have run.
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
# Run in another directory, so that `import seekwell` finds the installed package.
cd tests
if [ $# -eq 0 ]; then set -- .; fi
exec pytest -c ../pyproject.toml --rootdir .. -q -p no:cacheprovider "$@"
