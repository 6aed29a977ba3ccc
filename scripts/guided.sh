#!/usr/bin/env bash
# Runs a cargo command so that what it builds is laid out by the profile of pgo/: what runs often
# together, what hardly ever runs out of the way. Results are the same bytes either way.
#
#   scripts/guided.sh cargo build --release --locked -p seekwell-cli
#
# The profile names functions as one compiler names them, so that it is used with that compiler only;
# with another, or where SEEKWELL_PLAIN is set, the command runs as it stands. Flags of RUSTFLAGS stay;
# those of cargo's own configuration do not, as with any RUSTFLAGS.
set -euo pipefail
pgo=$(cd "$(dirname "$0")/../pgo" && pwd)

if [ -z "${SEEKWELL_PLAIN:-}" ]; then
  here=$(rustc -vV)
  made_by=$(cat "$pgo/compiler")
  if [ "$here" = "$made_by" ]; then
    # Flags are parted by a byte that no path has. Functions that changed since go without.
    flags="-Cprofile-use=$pgo/seekwell.profdata"$'\x1f'"-Cllvm-args=-no-pgo-warn-mismatch"
    flags+=$'\x1f--cfg\x1fseekwell_guided'
    read -ra own <<<"${RUSTFLAGS:-}"
    own=$(IFS=$'\x1f' && printf %s "${own[*]}")
    own=${CARGO_ENCODED_RUSTFLAGS:-$own}
    export CARGO_ENCODED_RUSTFLAGS=${own:+$own$'\x1f'}$flags
  else
    echo "built without the profile of pgo/, a fifth slower: it is of ${made_by%%$'\n'*}, here is ${here%%$'\n'*}" >&2
  fi
fi
exec "$@"
