"""Reads a results folder with pandas, polars and DuckDB. Compares every number of runs.parquet with
`seekwell export --format csv`, and the numbers of the other files with each other.

    python scripts/read_results.py FOLDER RUNS.csv
"""

import csv
import math
import sys
from pathlib import Path

import duckdb
import pandas
import polars

TABLES = ["runs", "series", "operations", "records"]


def by_pandas(path):
    frame = pandas.read_parquet(path)
    return list(frame.columns), [list(row) for row in frame.itertuples(index=False)]


def by_polars(path):
    frame = polars.read_parquet(path)
    return frame.columns, [list(row) for row in frame.rows()]


def by_duckdb(path):
    found = duckdb.execute("SELECT * FROM read_parquet(?)", [str(path)])
    return [column[0] for column in found.description], [list(row) for row in found.fetchall()]


READERS = {"pandas": by_pandas, "polars": by_polars, "duckdb": by_duckdb}


def missing(value):
    return value is None or value is pandas.NA or (isinstance(value, float) and math.isnan(value))


def same(value, text):
    """Returns whether a value equals that of the CSV."""
    if missing(value):
        return text in ("", "NaN")
    if isinstance(value, (bool,)) or type(value).__name__ == "bool_":
        return text == str(bool(value)).lower()
    if isinstance(value, str):
        return value == text
    # pandas stores a column of integers with missing values as floating-point numbers.
    if text.lstrip("-").isdigit():
        return int(value) == int(text)
    return float(value) == float(text)


def alike(one, other):
    if missing(one) or missing(other):
        return missing(one) and missing(other)
    return one == other


def main():
    folder, exported = Path(sys.argv[1]), Path(sys.argv[2])
    with exported.open(newline="", encoding="utf-8") as lines:
        head, *rows = csv.reader(lines)
    values = 0
    for name, read in READERS.items():
        columns, table = read(folder / "runs.parquet")
        assert columns == head, f"{name}: {columns} {head}"
        assert len(table) == len(rows), f"{name}: {len(table)} rows, {len(rows)} exported"
        for number, (row, told) in enumerate(zip(table, rows)):
            for column, value, text in zip(columns, row, told):
                assert same(value, text), f"{name}: row {number}, {column}: {value!r} {text!r}"
                values += 1
    print(f"runs: {len(rows)} rows, {values} values as exported")
    for table in TABLES[1:]:
        first_columns, first = by_pandas(folder / f"{table}.parquet")
        for name in ["polars", "duckdb"]:
            columns, other = READERS[name](folder / f"{table}.parquet")
            assert list(columns) == list(first_columns), f"{name}: {table}: {columns}"
            assert len(other) == len(first), f"{name}: {table}: {len(other)} {len(first)}"
            for number, (a, b) in enumerate(zip(first, other)):
                for column, one, two in zip(columns, a, b):
                    assert alike(one, two), f"{name}: {table}, {number}, {column}: {one!r} {two!r}"
        print(f"{table}: {len(first)} rows, the same in all three")
    # The files are consistent: for each run, the bios per second add up to the bios per direction.
    query = """
        WITH seconds AS (SELECT run, sum(ops) AS ops FROM read_parquet(?)
                         WHERE layer = 'block' GROUP BY run),
             kinds AS (SELECT run, sum("count") AS ops FROM read_parquet(?)
                       WHERE layer = 'block' GROUP BY run)
        SELECT count(*), count(*) FILTER (seconds.ops >= kinds.ops) FROM seconds JOIN kinds USING (run)
    """
    paths = [str(folder / "series.parquet"), str(folder / "operations.parquet")]
    runs, good = duckdb.execute(query, paths).fetchone()
    assert runs == good, f"{runs - good} of {runs} runs have fewer bios by second than in all"
    print(f"{runs} runs joined")


main()
