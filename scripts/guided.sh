#!/usr/bin/env bash
# Runs a cargo command so that what it builds is laid out by the profile of pgo/: what runs often
# together, what hardly ever runs out of the way. Results are the same bytes either way.
#
#   scripts/guided.sh cargo build --release --locked -p seekwell-cli
#
# The profile names functions as one compiler names them, so that it is used with that compiler only;
# with another, or where SEEKWELL_PLAIN is set, the command runs as it stands.
set -euo pipefail
pgo=$(cd "$(dirname "$0")/../pgo" && pwd)

made_by=$(cat "$pgo/compiler")
here=$(rustc -vV | sed -n 's/^release: //p;s/^host: //p' | paste -sd' ')
if [ -z "${SEEKWELL_PLAIN:-}" ]; then
  if [ "$here" = "$made_by" ]; then
    # Flags are parted by a byte that no path has. Functions that changed since go without.
    flags="-Cprofile-use=$pgo/seekwell.profdata"$'\x1f'"-Cllvm-args=-no-pgo-warn-mismatch"
    flags+=$'\x1f--cfg\x1fseekwell_guided'
    if [ -n "${CARGO_ENCODED_RUSTFLAGS:-}" ]; then
      flags="$CARGO_ENCODED_RUSTFLAGS"$'\x1f'"$flags"
    elif [ -n "${RUSTFLAGS:-}" ]; then
      flags="$(tr -s ' ' '\037' <<<"$RUSTFLAGS" | tr -d '\n')"$'\x1f'"$flags"
    fi
    export CARGO_ENCODED_RUSTFLAGS=$flags
  else
    echo "without the profile of pgo/, which is of $made_by (here $here): some 20 per cent slower" >&2
  fi
fi
exec "$@"
