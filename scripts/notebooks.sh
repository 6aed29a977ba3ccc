#!/usr/bin/env bash
# Runs the notebooks of python/notebooks and writes what they show into docs/notebooks. They need the
# package where the tests have it: `make test-python` puts it there. A name is one notebook only.
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
  # Tables as text: the other form is for browsers, and long.
  jupyter nbconvert --log-level ERROR --to markdown --execute --CoalesceStreamsPreprocessor.enabled=True \
    --NbConvertBase.display_data_priority="['image/png', 'text/plain']" \
    --output-dir "$PWD/docs/notebooks" "python/notebooks/$name.ipynb" 2> >(grep -v 'IPKernelApp' >&2)
done
# Blank lines between cells: one is enough.
for name in "${names[@]}"; do
  page=docs/notebooks/$name.md
  sed -i -e 's/[[:space:]]*$//' "$page"
  cat -s "$page" >"$page.new" && mv "$page.new" "$page"
done
