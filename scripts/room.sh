#!/usr/bin/env bash
# Prints a warning if the disk space is too small for a build. Without free space, a linker ends
# with a bus error and prints no reason.
#
#   scripts/room.sh GB WHAT    GB: size of the target directory after the build
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
free=$(df --output=avail -BM "$target" | tail -1 | tr -dc 0-9)
there=$(du -sm "$target" | cut -f1)
if [ $((free + there)) -lt $(($1 * 1000)) ]; then
  echo "$2 needs about $1 GB in $target, where $there MB are used and $free MB are free:" \
    "free some space, or set CARGO_TARGET_DIR to a disk with more"
fi
