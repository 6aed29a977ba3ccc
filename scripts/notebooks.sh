#!/usr/bin/env bash
# Runs the notebooks and writes their rendered pages, docs/notebooks/*.md with pictures.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=${NOTEBOOK_BIN:-target/python/venv/bin}
"$bin/jupyter-nbconvert" --log-level ERROR --to markdown --execute --output-dir docs/notebooks \
  --ExecutePreprocessor.kernel_name=python3 python/notebooks/*.ipynb
