"""Tests of the comparison of a scheduler with its rivals."""

from __future__ import annotations

import pytest
from test_scheduler import Fifo, Patient

import seekwell

WORKLOADS = ["streams:size=16m,direct=yes,seconds=500ms", "fs-mark:files=3"]


def test_arena_ranks_a_python_scheduler_among_its_rivals() -> None:
    s = seekwell.arena(
        Fifo,
        rivals=["mq-deadline", "bfq"],
        devices=["hdd:hitachi-7k200", "constant:depth=1,service_us=100"],
        workloads=WORKLOADS,
    )
    assert [p["scheduler"] for p in s["places"]] == ["fifo-py", "mq-deadline", "bfq"]
    assert (s["cells"], s["seeds"], s["failed"]) == (4, 3, 0)
    assert any(p["front"] for p in s["places"])
    for place in s["places"]:
        for mean in filter(None, place["means"]):
            low, high = mean["interval95"]
            assert low <= mean["factor"] <= high
    # The factors of all schedulers in a metric are relative to their mean.
    product = 1.0
    for place in s["places"]:
        product *= place["means"][0]["factor"]
    assert product == pytest.approx(1.0, rel=1e-6)


def test_arena_reports_the_largest_deficit_of_a_slow_scheduler() -> None:
    s = seekwell.arena(
        Patient,
        rivals=["none"],
        devices=["constant:depth=1,service_us=100"],
        workloads=WORKLOADS[1:],
    )
    worst = s["behind"][0]
    assert worst["rival"] == "none" and "fs-mark" in worst["cell"]
    assert worst["mean"]["factor"] <= worst["mean"]["interval95"][1] < 1
    assert not s["places"][0]["front"] and s["places"][1]["front"]


def test_arena_counts_failed_runs_of_a_broken_scheduler() -> None:
    from test_scheduler import Loser  # noqa: PLC0415 (only here)

    s = seekwell.arena(
        Loser, rivals=["none"], devices=["constant:depth=1"], workloads=WORKLOADS[1:], seeds=2
    )
    assert s["failed"] == 2


def test_arena_suggests_a_scheduler_for_an_unknown_name() -> None:
    with pytest.raises(seekwell.InputError, match="did you mean"):
        seekwell.arena("mq-dedline", rivals=["bfq"])
