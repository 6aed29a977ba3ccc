#!/usr/bin/env bash
# The Python package: builds it, installs it into an environment of its own, checks types and style,
# and runs its tests against the binary. Without Python 3.11 or pip it says so and is content.
set -euo pipefail
cd "$(dirname "$0")/.."

fits='import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))'
python=
for found in ${PYTHON:-} python3 python3.11 python3.12 python3.13; do
  if "$found" -c "$fits" 2>/dev/null; then python=$found; break; fi
done
if [ -z "$python" ]; then
  echo "skipped: the Python package (Python 3.11 or later with venv and pip)"
  exit 0
fi

home=$PWD/target/python/venv
wanted=python/requirements-test.txt
if ! cmp -s "$wanted" "$home/wanted.txt"; then
  rm -rf "$home"
  "$python" -m venv "$home"
  if ! "$home/bin/pip" install --quiet --disable-pip-version-check -r "$wanted"; then
    rm -rf "$home"
    echo "skipped: the Python package (pip reaches no package index)"
    exit 0
  fi
  cp "$wanted" "$home/wanted.txt"
fi

# Little optimisation is enough for tests: a third of the time that a release build takes.
PATH=$home/bin:$PATH CARGO_TARGET_DIR=$PWD/target/python "$home/bin/pip" install --quiet --disable-pip-version-check \
  --no-build-isolation --no-deps --force-reinstall -C build-args="--profile dev" ./python
cargo build --workspace --locked --quiet --bin seekwell

cd python
"$home/bin/ruff" check --quiet .
"$home/bin/ruff" format --check --quiet .
"$home/bin/mypy"
# Not here: `import seekwell` has to find what was installed.
cd tests
PATH=$home/bin:$PATH exec "$home/bin/pytest" -c ../pyproject.toml --rootdir .. -q -p no:cacheprovider .
