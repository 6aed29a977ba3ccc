#!/usr/bin/env bash
# Runs a cargo command with profile-guided optimisation, using the profile in pgo/. The compiler
# then places code that often runs together close together. The results of the program are the same
# bytes with and without the profile.
#
#   scripts/guided.sh cargo build --release --locked -p seekwell-cli
#
# The names of functions in a profile depend on the compiler. The profile is therefore used only
# with the compiler that made it. With another compiler, or if SEEKWELL_PLAIN is set, the command
# runs without the profile. Flags in RUSTFLAGS are kept. As with any RUSTFLAGS, the flags in cargo's
# configuration are ignored.
set -euo pipefail
pgo=$(cd "$(dirname "$0")/../pgo" && pwd)

if [ -z "${SEEKWELL_PLAIN:-}" ]; then
  here=$(rustc -vV)
  made_by=$(cat "$pgo/compiler")
  if [ "$here" = "$made_by" ]; then
    # Flags are separated by a byte that no path contains. Functions that changed are built without
    # profile data.
    flags="-Cprofile-use=$pgo/seekwell.profdata"$'\x1f'"-Cllvm-args=-no-pgo-warn-mismatch"
    flags+=$'\x1f--cfg\x1fseekwell_guided'
    read -ra own <<<"${RUSTFLAGS:-}"
    own=$(IFS=$'\x1f' && printf %s "${own[*]}")
    own=${CARGO_ENCODED_RUSTFLAGS:-$own}
    export CARGO_ENCODED_RUSTFLAGS=${own:+$own$'\x1f'}$flags
  else
    echo "built without the profile in pgo/, which makes the program a fifth slower: the profile is for ${made_by%%$'\n'*}, not ${here%%$'\n'*}" >&2
  fi
fi
exec "$@"
