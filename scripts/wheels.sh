#!/usr/bin/env bash
# Builds wheels of the Python package, for machines without a compiler:
# scripts/wheels.sh [--quick] [MACHINE...]
# The default machines are x86_64 and aarch64. With --quick, the build is hardly optimised but gives
# the same results. CI builds this form. The wheels are in target/wheels, and each is tried
# (scripts/wheel-try.sh). The build directory of 0.7 GB is deleted.
#
# maturin builds the wheels. zig compiles and links their C code for glibc 2.28 (Debian 10, RHEL 8
# and later), so they do not depend on the glibc of this machine. Without a network, the script
# prints this and exits with 3.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$target"
if [ "${1-}" = --quick ]; then
  shift
  export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
    CARGO_PROFILE_RELEASE_OPT_LEVEL=1
fi
[ $# -gt 0 ] || set -- x86_64 aarch64

missing() {
  echo "skipped: wheels of the Python package: $1" >&2
  exit 3
}
home=$(scripts/zig.sh 2> >(tee "$target/zig.log" >&2))
[ -n "$home" ] || missing "$(tail -1 "$target/zig.log")"
export PATH=$home/bin:$PATH
for machine in "$@"; do
  rustup target list --installed 2>/dev/null | grep -qx "$machine-unknown-linux-gnu" ||
    rustup target add "$machine-unknown-linux-gnu" >/dev/null 2>&1 ||
    missing "no Rust for it (rustup target add $machine-unknown-linux-gnu)"
done

build=$target/wheels-build
trap 'rm -rf "$build"' EXIT
for machine in "$@"; do
  # Leave out the line numbers for backtraces, which are half of a wheel.
  CARGO_TARGET_DIR=$build CARGO_PROFILE_RELEASE_DEBUG=0 CARGO_INCREMENTAL=0 \
    maturin build --quiet --release --locked --strip --zig --manifest-path python/Cargo.toml \
    --target "$machine-unknown-linux-gnu" --compatibility manylinux_2_28 --out "$target/wheels"
  rm -rf "$build/$machine-unknown-linux-gnu"
  scripts/wheel-try.sh "$target"/wheels/seekwell_lab-*-manylinux_*_"$machine".whl
done
