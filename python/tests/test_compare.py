"""Tests of experiments: same bytes as the binary, all input forms, and results of early ends."""

from __future__ import annotations

import dataclasses
import gzip
import json
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import seekwell

FILE = """
devices = ["hdd:hitachi-7k200", "ssd:sata3-256-2011"]
schedulers = ["noop", "cfq"]
workloads = ["fs-mark:files=4"]
[experiment]
name = "two elevators"
repeats = 3
"""
AS_DICT = {
    "devices": ["hdd:hitachi-7k200", "ssd:sata3-256-2011"],
    "schedulers": ["noop", "cfq"],
    "workloads": ["fs-mark:files=4"],
    "experiment": {"name": "two elevators", "repeats": 3, "description": None},
}
# Files that contain the time, the machine and the input text, and no results.
OF_THE_DAY = {"environment.json"}


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Returns every file of a folder."""
    files = {p.name: p.read_bytes() for p in folder.iterdir() if p.is_file()}
    return {name: text for name, text in files.items() if name not in OF_THE_DAY}


def test_results_folder_equals_that_of_the_binary(binary: Path, tmp_path: Path) -> None:
    file = tmp_path / "two.toml"
    file.write_text(FILE)
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    words: list[str | Path] = [binary, "compare", file, "--results", theirs, "--quiet"]
    subprocess.run(words, check=True, capture_output=True)
    results = seekwell.compare(file, results=ours, threads=1)
    assert results.finished and not results.failures
    one, other = bytes_of(theirs), bytes_of(ours)
    assert set(one) == set(other) and "runs.parquet" in one
    differ = [name for name in one if one[name] != other[name]]
    assert not differ
    # The conclusions are also the same.
    again = seekwell.read_results(theirs)
    assert again.analysis() == results.analysis()
    assert again.sentences == results.sentences


def test_file_dict_and_dataclass_give_the_same_experiment(tmp_path: Path) -> None:
    @dataclasses.dataclass
    class Mine:
        devices: list[str]
        schedulers: list[str]
        workloads: list[str]
        experiment: dict[str, object]

    own = seekwell.Experiment(
        devices=["hdd:hitachi-7k200", "ssd:sata3-256-2011"],
        schedulers=["noop", "cfq"],
        workloads=["fs-mark:files=4"],
        name="two elevators",
        repeats=3,
    )
    file = tmp_path / "two.toml"
    file.write_text(FILE)
    mine = Mine(**AS_DICT)  # type: ignore[arg-type]
    each = [seekwell.compare(e) for e in (file, AS_DICT, own, mine)]
    values = [r.runs().column("value") for r in each]
    assert values[0] and all(v == values[0] for v in values)
    assert all(r.analysis() == each[0].analysis() for r in each)


def test_results_have_tables_of_runs_and_histograms() -> None:
    results = seekwell.compare(AS_DICT)
    runs = results.runs()
    assert set(runs.column("scheduler")) == {"noop", "cfq"}
    assert max(runs.column("run")) == 2 * 2 * 3 - 1
    histograms = results.histograms()
    assert sum(histograms.column("count")) > 0
    assert set(histograms.column("layer")) == {"workload", "block"}
    assert results.operations().num_rows > 0 and results.records().num_rows > 0
    path = results.path
    assert path.is_dir()
    del results, runs
    assert not path.exists(), "a folder without a name goes with its results"


def test_all_faults_of_a_file_are_reported_with_lines(tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(FILE.replace("cfq", "cfk").replace("repeats", "repeat"))
    with pytest.raises(seekwell.InputError) as e:
        seekwell.compare(file)
    assert e.value.file == str(file)
    assert e.value.line == 3
    assert len(e.value.faults) == 2
    assert e.value.nearest == "cfq"
    assert "cfq" in str(e.value) and "repeats" in str(e.value)
    assert f"{file}: line 3" in str(e.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schedulers": ["nope"]}, 'no scheduler is called "nope"'),
        ({"devices": []}, "devices"),
        ({"experiment": {"margin": float("nan")}}, "Out of range float"),
        ({"experiment": {"repeats": 0}}, "repeats"),
        ({"colour": "blue"}, "colour"),
    ],
)
def test_invalid_experiment_dict_is_rejected(change: dict[str, object], said: str) -> None:
    with pytest.raises(seekwell.InputError) as e:
        seekwell.compare({**AS_DICT, **change})
    assert said in str(e.value)


def test_other_types_and_missing_files_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a path, a dict or a dataclass"):
        seekwell.compare(3)  # type: ignore[arg-type]
    with pytest.raises(seekwell.InputError, match="none.toml"):
        seekwell.compare(tmp_path / "none.toml")
    with pytest.raises(seekwell.StoreError, match="does not exist"):
        seekwell.read_results(tmp_path / "none")
    with pytest.raises(seekwell.InputError, match="threads"):
        seekwell.compare(AS_DICT, threads=0)


def test_folder_with_foreign_files_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(seekwell.StoreError) as e:
        seekwell.compare(AS_DICT, results=tmp_path)
    assert e.value.file == str(tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "precious"


def test_interrupted_comparison_keeps_its_runs_and_resumes(tmp_path: Path) -> None:
    file, folder = tmp_path / "two.toml", tmp_path / "kept"
    file.write_text(FILE.replace("repeats = 3", "repeats = 40"))
    code = (
        "import seekwell, sys\n"
        "def told(done, planned):\n"
        "    print(done, flush=True)\n"
        "try:\n"
        "    seekwell.compare(sys.argv[1], results=sys.argv[2], threads=1, progress=told)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(7)\n"
    )
    words = [sys.executable, "-c", code, str(file), str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for _ in range(3):
            child.stdout.readline()
        child.send_signal(signal.SIGINT)
        code_of = child.wait(120)
    kept = seekwell.read_results(folder)
    # If the machine was faster than the signal, the experiment is complete.
    assert code_of == 7 or kept.finished
    if not kept.finished:
        with pytest.raises(seekwell.StoreError, match="not finished"):
            kept.runs()
        kept = seekwell.compare(file, results=folder)
    whole = seekwell.compare(file)
    assert kept.finished
    assert kept.runs().column("value") == whole.runs().column("value")


def test_exception_in_a_callback_ends_the_experiment(tmp_path: Path) -> None:
    def told(done: int, planned: int) -> None:
        raise LookupError(f"{done} of {planned}")

    with pytest.raises(LookupError):
        seekwell.compare(AS_DICT, results=tmp_path / "kept", threads=1, progress=told)
    assert seekwell.compare(AS_DICT, results=tmp_path / "kept").finished


def test_full_disk_is_reported_and_finished_runs_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    code = (
        "import resource, seekwell, signal, sys\n"
        "from pathlib import Path\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))\n"
        "try:\n"
        "    seekwell.compare(sys.argv[1], results=sys.argv[2], threads=1)\n"
        "except seekwell.StoreError as e:\n"
        "    print(e)\n"
        "    sys.exit(7)\n"
    )
    assert resource.RLIMIT_FSIZE is not None
    file = tmp_path / "two.toml"
    file.write_text(FILE)
    words = [sys.executable, "-c", code, str(file), str(folder), "12000"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 7, done.stderr
    assert str(folder) in done.stdout
    # When there is space again, the same call continues.
    assert seekwell.compare(file, results=folder).finished


def test_trace_with_several_volumes_is_split_by_volume(tmp_path: Path) -> None:
    """A compressed trace in the format of a public collection. Each volume becomes a cell."""
    lines = [f"{7 + i % 2},{'RW'[i % 3 == 0]},{i * 40960},4096,{i * 700}" for i in range(300)]
    whole = tmp_path / "many.csv.gz"
    whole.write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))
    results = seekwell.compare(
        {
            "devices": ["hdd:hitachi-7k200"],
            "schedulers": ["noop", "deadline"],
            "workload": [{"name": v, "trace": str(whole), "volume": v} for v in ("7", "8")],
            "experiment": {"repeats": 2},
        },
        results=tmp_path / "split",
    )
    assert results.finished and not results.failures
    specs = [json.loads(s) for s in results.records().column("spec")]
    assert {s["workload"]["volume"] for s in specs} == {"7", "8"}
    for volume in ("7", "8"):
        alone = tmp_path / f"{volume}.csv"
        own = [line for line in lines if line.startswith(volume)]
        alone.write_text("\n".join(own) + "\n")
        one = seekwell.replay(whole, scheduler="noop", volume=volume).to_dict()
        other = seekwell.replay(alone, scheduler="noop").to_dict()
        for figure in ("read", "write", "duration_ns"):
            assert one[figure] == other[figure]
    with pytest.raises(seekwell.InputError, match="2 volumes .*: 7 .150., 8 .150.") as refused:
        seekwell.replay(whole, scheduler="noop")
    assert str(refused.value).endswith('choose one with volume="NAME"')
    assert refused.value.file == str(whole)


def test_number_of_threads_does_not_change_results(tmp_path: Path) -> None:
    one = seekwell.compare(AS_DICT, results=tmp_path / "one", threads=1)
    four: list[seekwell.Results] = []

    def other() -> None:
        four.append(seekwell.compare(AS_DICT, results=tmp_path / "four", threads=4))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert bytes_of(one.path) == bytes_of(four[0].path)
