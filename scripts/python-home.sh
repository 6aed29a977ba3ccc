#!/usr/bin/env bash
# Prints the path of the Python environment for the tests. It is below the target directory and
# contains the packages of python/requirements-test.txt. If it cannot be created, prints nothing,
# and prints the reason to stderr.
set -euo pipefail
cd "$(dirname "$0")/.."

fits='import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))'
python=
for found in ${PYTHON:-} python3 python3.11 python3.12 python3.13; do
  if "$found" -c "$fits" 2>/dev/null; then python=$found; break; fi
done
if [ -z "$python" ]; then
  echo "Python 3.11 or later with venv and pip" >&2
  exit
fi
home=${CARGO_TARGET_DIR:-$PWD/target}/python
wanted=python/requirements-test.txt
if ! cmp -s "$wanted" "$home/wanted.txt"; then
  echo "installing $wanted in $home" >&2
  rm -rf "$home"
  "$python" -m venv "$home"
  if ! "$home/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2; then
    rm -rf "$home"
    echo "a network: pip reaches no package index" >&2
    exit
  fi
  cp "$wanted" "$home/wanted.txt"
fi
echo "$home"
