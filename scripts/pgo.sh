#!/usr/bin/env bash
# Makes a new pgo/seekwell.profdata: builds the programs with counters, runs the typical uses below,
# and stores the counts. Takes a quarter of an hour on two cores, and 2 GB of disk space while it
# runs.
#
#   rustup component add llvm-tools && scripts/pgo.sh
#
# Both programs are built separately, as for a release, because the names of functions depend on
# this.
set -euo pipefail
cd "$(dirname "$0")/.."

merge=$(echo "$(rustc --print sysroot)"/lib/rustlib/*/bin/llvm-profdata)
[ -x "$merge" ] || { echo "llvm-profdata is missing: rustup component add llvm-tools" >&2; exit 2; }
# Discard the counters of programs that run during the build.
export LLVM_PROFILE_FILE=/dev/null
target=${CARGO_TARGET_DIR:-target}/pgo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for package in seekwell-cli seekwell-bench; do
  CARGO_ENCODED_RUSTFLAGS="-Cprofile-generate=$work" \
    cargo build --release --locked --quiet -p $package --target-dir "$target"
done
bench=$target/release/seekwell-bench
# On one core there is one thread, so that no count is lost to another thread.
core=$(taskset -cp $$ | sed 's/.*: //;s/[-,].*//')
seekwell() { taskset -c "$core" "$target/release/seekwell" "$@" >/dev/null; }

# One file per program. Each run of the program adds its counts.
export LLVM_PROFILE_FILE=$work/%m.profraw

# Run every scheduler alone and with devices, and simulated machines without programs.
$bench list | awk '{print $1}' | while read -r name; do
  case $name in
  pair-* | world-*) ios=500000 ;;
  *) ios=100000 ;;
  esac
  $bench stream "$name" $ios >/dev/null
done

# Run the commands of the README and the demos: each scheduler under programs of all kinds.
seekwell compare --quiet
seekwell demo all
seekwell reproduce all --quick --quiet --results "$work/results"

"$merge" merge --sparse -o pgo/seekwell.profdata "$work"/*.profraw
rustc -vV >pgo/compiler
ls -l pgo/seekwell.profdata
rm -rf "$target"
