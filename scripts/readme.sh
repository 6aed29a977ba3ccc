#!/bin/sh
# Runs the commands of README.md and of the book (docs/) and writes what they print into them; with
# --check only compares. SEEKWELL_PAGE takes the pages with that in their path only. The directory of
# traces that are not in the repository is named by SEEKWELL_TRACES.
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
"") SEEKWELL_README=write && export SEEKWELL_README ;;
--check) ;;
*) echo "usage: scripts/readme.sh [--check]" >&2 && exit 2 ;;
esac
exec cargo test --quiet --locked --workspace --test run readme:: -- --nocapture
