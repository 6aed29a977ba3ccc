#!/usr/bin/env bash
# Prints the path of the environment with the tools that build wheels. It is below the target
# directory and contains the packages of python/requirements-wheels.txt: maturin and zig. zig is a
# compiler and linker with the C libraries of other machines, in one package of 100 MB. If the
# environment cannot be created, prints nothing, and prints the reason to stderr.
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
