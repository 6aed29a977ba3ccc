#!/usr/bin/env bash
# Makes pgo/seekwell.profdata anew: builds the programs with counters, runs below what stands for their
# use, and keeps what was counted. Takes two cores a quarter of an hour, and 2 GB of disk meanwhile.
#
#   rustup component add llvm-tools && scripts/pgo.sh
#
# Both programs are built as they are for use, each by itself: names of functions depend on it.
set -euo pipefail
cd "$(dirname "$0")/.."

merge=$(echo "$(rustc --print sysroot)"/lib/rustlib/*/bin/llvm-profdata)
[ -x "$merge" ] || { echo "llvm-profdata is missing: rustup component add llvm-tools" >&2; exit 2; }
# Counters of the build's own programs are of no use.
export LLVM_PROFILE_FILE=/dev/null
target=${CARGO_TARGET_DIR:-target}/pgo
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

for package in seekwell-cli seekwell-bench; do
  CARGO_ENCODED_RUSTFLAGS="-Cprofile-generate=$work" \
    cargo build --release --locked --quiet -p $package --target-dir "$target"
done
bench=$target/release/seekwell-bench
# On one core there is one thread, and no count is lost to another's.
core=$(taskset -cp $$ | sed 's/.*: //;s/[-,].*//')
seekwell() { taskset -c "$core" "$target/release/seekwell" "$@" >/dev/null; }

# One file a program, to which each run of it adds.
export LLVM_PROFILE_FILE=$work/%m.profraw

# Every scheduler by itself and over devices, and worlds without programs.
$bench list | awk '{print $1}' | while read -r name; do
  case $name in
  pair-* | world-*) ios=500000 ;;
  *) ios=100000 ;;
  esac
  $bench stream "$name" $ios >/dev/null
done

# What the README shows, and behaviours: each scheduler under programs of all kinds.
seekwell compare --quiet
seekwell demo all
seekwell reproduce all --quick --quiet --results "$work/results"

"$merge" merge --sparse -o pgo/seekwell.profdata "$work"/*.profraw
rustc -vV >pgo/compiler
ls -l pgo/seekwell.profdata
rm -rf "$target"
