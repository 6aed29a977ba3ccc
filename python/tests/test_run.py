"""Tests of single runs: numbers, tables and errors."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import seekwell

WORKLOAD = "fs-mark:files=6"
DEVICE = "hdd:hitachi-7k200"


def test_same_seed_gives_same_bytes_and_another_seed_differs() -> None:
    def one(seed: int) -> str:
        return seekwell.run(WORKLOAD, device=DEVICE, scheduler="cfq", seed=seed).to_json()

    assert one(1) == one(1)
    assert one(1) != one(2)


def test_run_equals_that_of_the_binary(binary: Path) -> None:
    words = ["run", WORKLOAD, "--device", DEVICE, "--scheduler", "deadline:fifo_batch=4"]
    words += ["--seeds", "1", "--seed", "3", "--json", "--series", "--quiet"]
    out = subprocess.run([binary, *words], capture_output=True, check=True, text=True).stdout
    theirs = json.loads(out)["records"][0]
    ours = seekwell.run(WORKLOAD, device=DEVICE, scheduler="deadline:fifo_batch=4", seed=3)
    assert ours.to_dict() == theirs


def test_parallel_runs_do_not_block_other_python_threads() -> None:
    def one(seed: int) -> str:
        return seekwell.run(WORKLOAD, scheduler="cfq", seed=seed).to_json()

    turns = 0
    done = threading.Event()

    def count() -> None:
        nonlocal turns
        while not done.wait(0.001):
            turns += 1

    counter = threading.Thread(target=count)
    counter.start()
    with ThreadPoolExecutor(4) as pool:
        side_by_side = list(pool.map(one, range(1, 9)))
    done.set()
    counter.join()
    assert side_by_side == [one(seed) for seed in range(1, 9)]
    assert turns > 3


def test_properties_equal_the_record() -> None:
    record = seekwell.run(WORKLOAD, scheduler="noop")
    whole = record.to_dict()
    assert record.value == whole["metric"]["value"]
    assert record.unit == whole["metric"]["unit"]
    assert record.duration_ns == whole["duration_ns"]
    table = record.operations()
    keys = zip(table.column("layer"), table.column("kind"), strict=True)
    rows = dict(zip(keys, table.column("count"), strict=True))
    assert rows["block", "write"] == whole["write"]["ios"]
    for operation in whole["operations"]:
        kind = operation["kind"]
        histogram = record.histogram(kind)
        assert sum(histogram.column("count")) == rows["workload", kind]
        values = histogram.column("value_ns")
        assert values == sorted(values)
    with pytest.raises(KeyError, match="there are"):
        record.histogram("nothing")


def test_tables_are_shared_with_polars_and_pyarrow_without_a_copy() -> None:
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    table = seekwell.run(WORKLOAD, scheduler="noop", events=True).events()
    assert len(table) > 100
    one, other = pyarrow.table(table), pyarrow.table(table)
    at = [t.column("sector").chunk(0).buffers()[1].address for t in (one, other)]
    assert at[0] == at[1], "two readers have one memory"
    frame = polars.DataFrame(table)
    assert frame.height == len(table)
    assert frame["action"].to_list() == table.column("action")
    assert table.to_polars().equals(frame)
    assert list(table.to_numpy()["sector"]) == table.column("sector")
    pytest.importorskip("pandas")
    assert list(table.to_pandas()["sector"]) == table.column("sector")


def test_events_are_complete_or_marked_as_cut() -> None:
    record = seekwell.run(WORKLOAD, scheduler="noop", events=True)
    letters = record.events().column("action")
    requests = record.to_dict()["requests"]
    assert letters.count("D") >= requests > 0
    assert not record.events_cut
    few = seekwell.run(WORKLOAD, scheduler="noop", events=True, most_events=10)
    assert len(few.events()) == 10 and few.events_cut
    with pytest.raises(seekwell.InputError, match="events=True"):
        seekwell.run(WORKLOAD, scheduler="noop").events()


@pytest.mark.parametrize(
    ("words", "said", "nearest"),
    [
        ({"scheduler": "dedline"}, "did you mean `deadline`", "deadline"),
        ({"scheduler": "elevator"}, 'no scheduler is called "elevator"', None),
        ({"scheduler": "deadline:fifobatch=1"}, "fifo_batch", "fifo_batch"),
        ({"scheduler": "deadline:fifo_batch=nan"}, "fifo_batch", None),
        ({"device": "hdd:hitachi"}, "hdd:hitachi", "hdd:hitachi-7k200"),
        ({"machine": "memry=2G"}, "memory", "memory"),
        ({"nomerges": 7}, "nomerges", None),
        ({"beside": ["nothing"]}, "beside nothing", None),
    ],
)
def test_unknown_words_get_a_suggestion(
    words: dict[str, object], said: str, nearest: str | None
) -> None:
    with pytest.raises(seekwell.InputError) as e:
        seekwell.run(WORKLOAD, **words)  # type: ignore[arg-type]
    assert said in str(e.value)
    assert e.value.nearest == nearest


def test_unknown_workload_or_parameter_gets_a_suggestion() -> None:
    with pytest.raises(seekwell.InputError, match="fs-mark") as e:
        seekwell.run("fsmark:files=1")
    assert e.value.nearest == "fs-mark"
    with pytest.raises(seekwell.InputError, match="files") as e:
        seekwell.run("fs-mark", params={"file": 3})
    assert e.value.nearest == "files"


def test_trace_is_replayed_and_an_invalid_trace_named(tmp_path: Path) -> None:
    trace = tmp_path / "few.csv"
    rows = [f"{i * 1_000_000},R,{(i * 7919) % 100000 * 8},8,{i % 3 + 1}" for i in range(200)]
    trace.write_text("t_ns,op,sector,sectors,pid\n" + "\n".join(rows) + "\n")
    record = seekwell.replay(trace, scheduler="deadline", mode="depth:4")
    assert record.to_dict()["read"]["ios"] == 200
    with pytest.raises(seekwell.InputError, match="mode"):
        seekwell.replay(trace, mode="tomed")
    trace.write_text("t_ns,op,sector,sectors\n1,R,8\n")
    with pytest.raises(seekwell.InputError, match="few.csv"):
        seekwell.replay(trace)
    with pytest.raises(seekwell.InputError, match="none.csv"):
        seekwell.replay(tmp_path / "none.csv")


def test_interrupt_ends_a_run() -> None:
    code = (
        "import seekwell, sys\n"
        "print('go', flush=True)\n"
        "try:\n"
        "    seekwell.run('streams:size=64m,seconds=20h', scheduler='cfq')\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(7)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        # Give the run time to start. An earlier signal would end it in the same way.
        threading.Event().wait(1.0)
        child.send_signal(signal.SIGINT)
        assert child.wait(120) == 7


def test_import_is_fast_and_loads_no_heavy_packages() -> None:
    code = (
        "import resource, sys\n"
        "def used():\n"
        "    r = resource.getrusage(resource.RUSAGE_SELF)\n"
        "    return r.ru_utime + r.ru_stime\n"
        "began = used()\n"
        "import seekwell\n"
        "took = used() - began\n"
        "heavy = {'polars', 'pandas', 'pyarrow', 'numpy', 'optuna', 'ray', 'matplotlib'}\n"
        "print(took, sorted(heavy & set(sys.modules)))\n"
    )
    env = {k: v for k, v in os.environ.items() if k != "SEEKWELL_BINARY"}
    each = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, text=True, env=env
        )
        took, loaded = done.stdout.split(maxsplit=1)
        assert loaded.strip() == "[]"
        each.append(float(took))
    assert min(each) < 0.3, each


def test_lists_equal_the_registries(binary: Path) -> None:
    def names(command: str) -> list[str]:
        out = subprocess.run([binary, command, "--json"], capture_output=True, check=True).stdout
        return [entry["name"] for entry in json.loads(out)]

    own = [s["name"] for s in seekwell.schedulers() if not s["name"].endswith("-py")]
    theirs = names("schedulers")
    assert [name for name in own if name in theirs] == theirs
    assert [w["name"] for w in seekwell.workloads()] == names("workloads")


def test_modelled_disk_is_calibrated() -> None:
    found = seekwell.calibrate("hdd:hitachi-7k200", budget_s=120)
    assert found.kind[0] == "hard disk" and found.kind[1]
    assert found.preset is not None and "[" in found.preset
    names = found.parameters().column("name")
    assert "rpm" in names
    rpm = float(found.parameters().column("value")[names.index("rpm")])
    assert rpm == pytest.approx(7200, rel=0.01)
    with pytest.raises(seekwell.InputError, match="command line"):
        seekwell.calibrate("/dev/sdz")
    with pytest.raises(seekwell.InputError, match="budget_s"):
        seekwell.calibrate("hdd:hitachi-7k200", budget_s=float("nan"))
