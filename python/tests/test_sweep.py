"""Sweeps on Ray: the bytes of one machine, whatever is lost on the way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from test_compare import AS_DICT, bytes_of

import seekwell
from seekwell.sweep import sweep

if not os.environ.get("SEEKWELL_TEST_RAY"):
    pytest.skip("a cluster is started only where SEEKWELL_TEST_RAY is set", allow_module_level=True)
ray = pytest.importorskip("ray")
pytestmark = pytest.mark.filterwarnings("ignore")


def workers() -> list[int]:
    """Of this process's own cluster."""
    psutil = pytest.importorskip("psutil")
    below = psutil.Process().children(recursive=True)
    # Not its agents, whose end is the end of the node.
    return [p.pid for p in below if p.name() in ("ray::run_json", "ray::IDLE")]


def test_the_bytes_of_one_machine_also_with_a_worker_killed(tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    here = seekwell.compare(AS_DICT, results=tmp_path / "here", threads=1)
    killed: list[int] = []

    def kill(done: int, planned: int) -> None:
        if done in (2, 5):
            for pid in workers()[:1]:
                psutil.Process(pid).kill()
                killed.append(pid)

    one = sweep(AS_DICT, results=tmp_path / "one", workers=1)
    two = sweep(AS_DICT, results=tmp_path / "two", workers=2, progress=kill)
    assert killed
    assert not ray.is_initialized()
    assert bytes_of(one.path) == bytes_of(here.path)
    assert bytes_of(two.path) == bytes_of(here.path)
    with pytest.raises(seekwell.StoreError):
        sweep(AS_DICT, results=tmp_path / "two", workers=1)


def test_one_that_was_interrupted_is_gone_on_with(tmp_path: Path) -> None:
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


def test_bad_input_is_told_and_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(seekwell.InputError, match="did you mean"):
        sweep({**AS_DICT, "schedulers": ["nop"]}, results=tmp_path / "x", workers=1)
    assert not (tmp_path / "x").exists()
