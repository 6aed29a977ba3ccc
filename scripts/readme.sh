#!/bin/sh
# Runs the commands of README.md and of the book (docs/) and writes their output into these files.
# With --check, only compares. SEEKWELL_PAGE selects the pages whose path contains its value.
# SEEKWELL_TRACES names the directory of traces that are not in the repository.
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
"") SEEKWELL_README=write && export SEEKWELL_README ;;
--check) ;;
*) echo "usage: scripts/readme.sh [--check]" >&2 && exit 2 ;;
esac
exec cargo test --quiet --locked --workspace --test run readme:: -- --nocapture
