"""Checks an installed wheel without the source tree: `wheel_try.py BINARY.json HOME`."""

import json
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import seekwell

said, home = sys.argv[1:]
assert Path(seekwell.__file__).is_relative_to(home), seekwell.__file__
assert seekwell._seekwell.__file__.endswith("_seekwell.abi3.so"), seekwell._seekwell.__file__


def one(seed: int) -> seekwell.Record:
    return seekwell.run("fs-mark:files=6", device="hdd:hitachi-7k200", scheduler="cfq", seed=seed)


if said != "none":
    with open(said) as file:
        theirs = json.load(file)["records"][0]
    # The build differs, but the results must be equal.
    ours = one(3).to_dict() | {"build": theirs["build"]}
    assert ours == theirs, "not what the binary gives"
    print("ok: a run, to the last digit what the binary gives")
with ThreadPoolExecutor(2) as pool:
    first, second = pool.map(lambda seed: one(seed).to_json(), (1, 2))
assert first == one(1).to_json() and first != second
try:
    seekwell.run("fs-mrk", device="constant")
    raise AssertionError("a workload of no name ran")
except seekwell.SeekwellError as error:
    assert "`fs-mark`" in str(error), error
results = seekwell.compare(
    {
        "experiment": {"repeats": 2},
        "device": [{"use": "constant"}],
        "scheduler": [{"use": "noop"}, {"use": "deadline"}],
        "workload": [{"use": "fs-mark:files=3"}],
    }
)
assert len(results.sentences) > 0
print(f"ok: Python {platform.python_version()} on {platform.machine()}: threads, errors, an experiment")
