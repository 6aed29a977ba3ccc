"""Tests of sweeps on Ray: same bytes as on one machine, even if workers or the driver are lost."""

from __future__ import annotations

import os
import random
import socket
import subprocess
from pathlib import Path

import pytest
from test_compare import AS_DICT, FILE, bytes_of

import seekwell
from seekwell.sweep import sweep

if not os.environ.get("SEEKWELL_TEST_RAY"):
    pytest.skip("a cluster is started only where SEEKWELL_TEST_RAY is set", allow_module_level=True)
ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")

# 24 runs, so that there are enough random moments at which a worker can be killed.
LONG = FILE.replace("repeats = 3", "repeats = 6")
RUNS = 24
KILLS = 4
SEED = 20


def workers() -> list[int]:
    """Returns the worker processes of the cluster that this process started."""
    psutil = pytest.importorskip("psutil")
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            # Leave out the agents of Ray, because their end also ends the node.
            if process.name() in ("ray::run_json", "ray::IDLE"):
                found.append(process.pid)
        except psutil.NoSuchProcess:
            continue
    return sorted(found)


class Killer:
    """Kills any worker after randomly selected runs. It is called at the end of each run."""

    def __init__(self, seed: int) -> None:
        self.drawn = random.Random(seed)
        self.moments = sorted(self.drawn.sample(range(1, RUNS - 4), KILLS))
        self.left = list(self.moments)
        self.owed = 0
        self.killed: list[int] = []

    def __call__(self, done: int, planned: int) -> None:
        psutil = pytest.importorskip("psutil")
        # The same count may be reported twice, when more runs are planned.
        while self.left and done >= self.left[0]:
            self.left.pop(0)
            self.owed += 1
        there = [pid for pid in workers() if pid not in self.killed]
        # If a worker was killed just before, its replacement may not exist yet.
        if self.owed and there:
            pid = self.drawn.choice(there)
            psutil.Process(pid).kill()
            self.killed.append(pid)
            self.owed -= 1


@pytest.fixture(scope="module")
def there(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, bytes]]:
    """The experiment, and the results folder that the binary creates for it."""
    folder = tmp_path_factory.mktemp("binary")
    file = folder / "two.toml"
    file.write_text(LONG)
    words: list[str | Path] = [binary, "compare", file, "--results", folder / "kept", "--quiet"]
    subprocess.run(words, check=True, capture_output=True)
    theirs = bytes_of(folder / "kept")
    assert "runs.parquet" in theirs
    return file, theirs


def test_compare_results_equal_those_of_the_binary(
    there: tuple[Path, dict[str, bytes]], tmp_path: Path
) -> None:
    file, theirs = there
    assert bytes_of(seekwell.compare(file, results=tmp_path / "here").path) == theirs


@pytest.mark.parametrize("count", [1, 4])
def test_sweep_results_equal_those_of_the_binary(
    there: tuple[Path, dict[str, bytes]], tmp_path: Path, count: int
) -> None:
    file, theirs = there
    assert bytes_of(sweep(file, results=tmp_path / "swept", workers=count).path) == theirs
    assert not ray.is_initialized()


@pytest.mark.parametrize("count", [1, 4])
def test_sweep_results_are_unchanged_by_killed_workers(
    there: tuple[Path, dict[str, bytes]], tmp_path: Path, count: int
) -> None:
    file, theirs = there
    kill = Killer(SEED + count)
    swept = sweep(file, results=tmp_path / "swept", workers=count, progress=kill)
    assert kill.killed and not kill.left, (kill.moments, kill.killed)
    assert len(kill.killed) + kill.owed == KILLS
    print(f"killed {len(kill.killed)} workers of {count}, at {kill.moments} of {RUNS} runs")
    assert not swept.failures
    assert bytes_of(swept.path) == theirs
    with pytest.raises(seekwell.StoreError):
        sweep(AS_DICT, results=tmp_path / "swept", workers=1)


def test_interrupted_sweep_resumes(tmp_path: Path) -> None:
    folder = tmp_path / "kept"

    def stop(done: int, planned: int) -> None:
        if done == 3:
            raise LookupError

    with pytest.raises(LookupError):
        sweep(AS_DICT, results=folder, workers=1, progress=stop)
    begun = seekwell.read_results(folder)
    assert not begun.finished
    whole = sweep(AS_DICT, results=folder, workers=1)
    here = seekwell.compare(AS_DICT)
    assert whole.runs().column("value") == here.runs().column("value")


def test_invalid_input_is_reported_and_creates_no_folder(tmp_path: Path) -> None:
    with pytest.raises(seekwell.InputError, match="did you mean"):
        sweep({**AS_DICT, "schedulers": ["nop"]}, results=tmp_path / "x", workers=1)
    assert not (tmp_path / "x").exists()


def test_missing_cluster_is_reported_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        # No process listens at this address.
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(seekwell.RunError, match=f"no cluster at {address}: .*refused"):
            sweep(AS_DICT, results=tmp_path / "kept", address=address)
    assert not ray.is_initialized()
    assert not (tmp_path / "kept").exists()
