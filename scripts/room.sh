#!/usr/bin/env bash
# Says so if the disk will be full before the build is done: a linker that finds no room ends with a
# bus error and names no reason.
#
#   scripts/room.sh GB WHAT    GB: what the target directory holds in the end
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
free=$(df --output=avail -BM "$target" | tail -1 | tr -dc 0-9)
there=$(du -sm "$target" | cut -f1)
if [ $((free + there)) -lt $(($1 * 1000)) ]; then
  echo "$2 takes some $1 GB in $target, where $there MB are used and $free MB are free:" \
    "make room there, or set CARGO_TARGET_DIR to a place with more"
fi
