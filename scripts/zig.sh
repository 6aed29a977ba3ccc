#!/usr/bin/env bash
# Prints where the tools are that build wheels: an environment below the target directory
# with what python/requirements-wheels.txt names (maturin, and zig for the C in it: a compiler, a
# linker and the C libraries of other machines in one package of 100 MB). Where none can be made it
# prints nothing and says why on stderr.
set -euo pipefail
cd "$(dirname "$0")/.."

home=${CARGO_TARGET_DIR:-$PWD/target}/zig
wanted=python/requirements-wheels.txt
if ! cmp -s "$wanted" "$home/wanted.txt"; then
  if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
    echo "no Python 3 with venv and pip" >&2
    exit
  fi
  rm -rf "$home"
  python3 -m venv "$home"
  if ! "$home/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2; then
    rm -rf "$home"
    echo "no network: pip reaches no package index" >&2
    exit
  fi
  cp "$wanted" "$home/wanted.txt"
fi
echo "$home"
