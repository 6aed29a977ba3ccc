#!/usr/bin/env bash
# Runs the notebooks of python/notebooks and writes their output to docs/notebooks. The Python
# package must be installed in the environment of the tests, which `make test-python` does. An
# argument selects one notebook.
set -euo pipefail
cd "$(dirname "$0")/.."

home=$(scripts/python-home.sh)
if [ -z "$home" ] || ! "$home/bin/python" -P -c 'import seekwell' 2>/dev/null; then
  echo "the notebooks need the package: make test-python" >&2
  exit 1
fi
export PATH=$home/bin:$PATH
names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(basename -s .ipynb python/notebooks/*.ipynb)
for name in "${names[@]}"; do
  rm -rf "docs/notebooks/${name}_files"
  # Keep tables as text, because their HTML form is long.
  jupyter nbconvert --log-level ERROR --to markdown --execute --CoalesceStreamsPreprocessor.enabled=True \
    --NbConvertBase.display_data_priority="['image/png', 'text/plain']" \
    --output-dir "$PWD/docs/notebooks" "python/notebooks/$name.ipynb" 2> >(grep -v 'IPKernelApp' >&2)
done
# Keep only one blank line between cells.
for name in "${names[@]}"; do
  page=docs/notebooks/$name.md
  sed -i -e 's/[[:space:]]*$//' "$page"
  cat -s "$page" >"$page.new" && mv "$page.new" "$page"
done
