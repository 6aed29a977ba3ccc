#!/usr/bin/env bash
# Fuzzes every target in fuzz/, or only the named ones, one after the other:
#   scripts/fuzz.sh [-s SECONDS] [TARGET...]      (default: 600 s per target)
# It uses the toolchain of the project and libFuzzer, but not cargo-fuzz. The compiler itself adds
# the edge counters. At the end it prints a table: target, executions, seconds, peak memory, and how
# the run ended. Failing inputs are in target/fuzz/found, and inputs that reach new edges are in
# target/fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=600
if [ "${1-}" = -s ]; then
  seconds=$2
  shift 2
fi
[ $# -gt 0 ] || set -- $(basename -s .rs -a fuzz/fuzz_targets/*.rs)

triple=$(rustc -vV | sed -n 's/^host: //p')
build=${CARGO_TARGET_DIR:-target}/fuzz
edges="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
for part in inline-8bit-counters pc-table trace-compares; do
  edges+=" -Cllvm-args=-sanitizer-coverage-$part"
done
# A --target is given, so that programs that run during the build have no counters. Overflows are
# checked.
RUSTFLAGS="$edges -Coverflow-checks=on -Cdebug-assertions=on" CARGO_INCREMENTAL=0 \
  CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=$build \
  cargo build --locked --quiet --manifest-path fuzz/Cargo.toml --target "$triple" \
  $(printf -- '--bin %s ' "$@")

mkdir -p "$build/found"
failed=0
printf '%-16s %12s %8s %9s  %s\n' target executions seconds 'peak MiB' end
for target in "$@"; do
  corpus=$build/corpus/$target
  mkdir -p "$corpus"
  seeds=fuzz/seeds/$target
  [ -d "$seeds" ] || seeds=
  log=$build/$target.log
  end="nothing found"
  begun=$SECONDS
  # An input may take at most 10 s and 1 GiB.
  if ! "$build/$triple/debug/$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -max_len=4096 -print_final_stats=1 -artifact_prefix="$build/found/$target-" "$corpus" $seeds \
    >"$log" 2>&1; then
    end="FOUND: $(grep -m1 -E "panicked at|SUMMARY|ERROR" "$log" || true) ($log)"
    failed=1
  fi
  stat() { sed -n "s/^stat::$1: *//p" "$log"; }
  printf '%-16s %12s %8s %9s  %s\n' "$target" "$(stat number_of_executed_units)" \
    $((SECONDS - begun)) "$(stat peak_rss_mb)" "$end"
done
exit $failed
