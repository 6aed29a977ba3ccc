#!/usr/bin/env bash
# Prints where the tests' own Python is: an environment below the target directory with what
# python/requirements-test.txt names. Where none can be made it prints nothing and says why on stderr.
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
