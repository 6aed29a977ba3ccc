#!/usr/bin/env bash
# Makes pictures of the report for docs/: runs an experiment, and opens its report in the browser
# test.
set -euo pipefail
cd "$(dirname "$0")/.."

to=$(mktemp -d)
trap 'rm -rf "$to"' EXIT
cargo build --workspace --locked --quiet --bin seekwell
target/debug/seekwell compare docs/report/laptop.toml --results "$to/laptop" --quiet >/dev/null
target/debug/seekwell report "$to/laptop" --output "$to/laptop.html" --quiet
SEEKWELL_PAGE="$to/laptop.html" SEEKWELL_PICTURES="$to" \
  cargo test --workspace --locked --test browser real_experiment_page
for picture in top-1280-light replay-1280-dark closer-1280-light top-390-dark; do
  base64 -d "$to/report-${picture%%-*}-${picture#*-}.png.b64" >"docs/report/$picture.png"
done
