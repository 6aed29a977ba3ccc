"""Tests of tuning: a known optimum is found, noise gives no gain, and errors are reported."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from pathlib import Path

import pytest

import seekwell
from seekwell.tune import Gain, interval, knobs, tune

pytest.importorskip("optuna")


NO_SEEKS = "constant:depth=1,service_us=200"
# Four readers whose think time is longer than a request takes.
THINKERS = "streams:streams=4,size=16m,direct=yes,think=3ms,seconds=1s"


def noise(*key: object) -> float:
    """Returns a normally distributed number that depends only on the key."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    one, other = (int.from_bytes(digest[i : i + 7], "big") + 1 for i in (0, 8))
    radius = math.sqrt(-2 * math.log(one / 2**56))
    return radius * math.cos(2 * math.pi * other / 2**56)


def test_tuning_finds_slice_idle_0_on_a_device_without_seeks() -> None:
    """On a device without seeks and rotation, idling only costs time, so slice_idle=0 is best."""
    found = tune(
        device=NO_SEEKS,
        workloads=[THINKERS],
        schedulers="cfq",
        tunables={"slice_idle": [0, 1, 2, 4, 8, 16, 32, 64]},
        trials=60,
        train_seeds=[1, 2],
        test_seeds=[11, 12, 13, 14],
    )
    assert found.trials <= 60
    assert "slice_idle=0" in found.best
    assert found.better, found.summary()
    # With one run per setting, the best of the eight is three times as good as the default.
    assert found.gains[0].low > 2
    assert "apply" not in found.summary()


def test_tuning_keeps_the_default_where_idling_pays() -> None:
    """On a disk with seeks, the same search keeps the kernel's default or reports a gain."""
    found = tune(
        device="hdd:hitachi-7k200",
        workloads=["streams:streams=4,size=16m,direct=yes,think=1ms,seconds=1s"],
        schedulers="cfq",
        tunables={"slice_idle": [0, 8]},
        trials=4,
        train_seeds=[1, 2],
        test_seeds=[11, 12, 13],
    )
    assert found.best == "cfq" or "slice_idle=8" in found.best
    assert "defaults are as good" in found.summary()


def test_tuning_finds_a_planted_optimum_within_60_trials() -> None:
    best = {"fifo_batch": 64, "read_expire": 125}

    def planted(scheduler: str, workload: str, seed: int) -> float:
        given = dict(part.split("=") for part in scheduler.split(":")[1:])
        loss = sum(
            abs(math.log2(max(int(given.get(k, d)), 1) / v))
            for (k, v), d in zip(best.items(), (16, 500), strict=True)
        )
        return -0.05 * loss + 0.01 * noise(scheduler, workload, seed)

    found = tune(
        workloads=["one", "two"],
        schedulers="deadline",
        tunables=list(best),
        evaluate=planted,
        trials=60,
    )
    assert found.best == "deadline:fifo_batch=64:read_expire=125"
    assert found.better and found.pruned > 0
    # The gain on held-out seeds.
    (gain,) = found.gains
    assert gain.low > 1.1


def test_tuning_claims_no_gain_on_noise() -> None:
    claimed = 0
    for study in range(100):

        def nothing(scheduler: str, workload: str, seed: int, study: int = study) -> float:
            return 0.1 * noise(study, scheduler, workload, seed)

        found = tune(
            workloads=["one"],
            schedulers="deadline",
            tunables=["fifo_batch", "read_expire"],
            evaluate=nothing,
            trials=20,
            train_seeds=[1, 2, 3],
            seed=study,
            threads=1,
        )
        claimed += found.better
        if not found.better:
            assert "defaults are as good" in found.summary()
    # Printed with `-s` or on failure. docs/python.md contains the number.
    print(f"on noise {claimed} searches of 100 say that there is a gain")
    assert claimed <= 5


def test_several_objectives_give_a_pareto_front() -> None:
    def two(scheduler: str, workload: str, seed: int) -> tuple[float, float]:
        given = dict(part.split("=") for part in scheduler.split(":")[1:])
        batch = math.log2(max(int(given.get("fifo_batch", 16)), 1))
        # A gain in one objective is a loss in the other. The default is bad in both.
        lost = 1.0 if batch == 4 else 0.0
        return (0.1 * batch - lost, -0.1 * batch - lost)

    found = tune(
        workloads=["one"],
        schedulers="deadline",
        objectives=["throughput", "p99"],
        tunables=["fifo_batch"],
        evaluate=two,
        trials=40,
    )
    assert len(found.front) > 2
    assert [g.objective for g in found.gains] == ["throughput", "p99"]
    assert found.better


def test_tuned_setting_can_be_applied(tmp_path: Path, binary: Path) -> None:
    folder = tmp_path / "tuned"
    found = tune(
        device=NO_SEEKS,
        workloads=[THINKERS],
        schedulers="cfq",
        tunables={"slice_idle": [0, 8]},
        trials=4,
        train_seeds=[1],
        test_seeds=[11, 12, 13],
        results=folder,
    )
    assert found.results == folder
    assert f"seekwell apply {folder}" in found.summary()
    kept = seekwell.read_results(folder)
    assert kept.finished
    assert set(kept.runs().column("label")) == {found.default, found.best}
    said = subprocess.run([binary, "recommend", folder], capture_output=True, text=True, check=True)
    assert "cfq" in said.stdout


def test_invalid_tuning_requests_are_rejected() -> None:
    words = {"workloads": ["fs-mark:files=2"], "schedulers": "deadline"}
    with pytest.raises(seekwell.InputError, match="in both train_seeds and test_seeds"):
        tune(**words, train_seeds=[1, 2], test_seeds=[2, 3])  # type: ignore[arg-type]
    with pytest.raises(seekwell.InputError, match='no tunable "fifobatch"; it has'):
        tune(**words, tunables=["fifobatch"])  # type: ignore[arg-type]
    with pytest.raises(seekwell.InputError, match='no objective is called "speed"'):
        tune(**words, objectives="speed")  # type: ignore[arg-type]
    with pytest.raises(seekwell.InputError, match="did you mean `deadline`"):
        tune(workloads=["fs-mark:files=2"], schedulers="dedline")
    with pytest.raises(seekwell.InputError, match="is not finite"):
        tune(**words, evaluate=lambda *_: math.nan)  # type: ignore[arg-type]


def test_search_covers_every_numeric_tunable_from_its_default() -> None:
    all_of = {k.name: k.values for k in knobs("deadline", None)}
    assert all_of["front_merges"] == (0, 1)
    assert 16 in all_of["fifo_batch"] and 0 in all_of["fifo_batch"]
    assert all_of["fifo_batch"][-1] == 16 * 32
    assert list(all_of["read_expire"]) == sorted(all_of["read_expire"])


def test_interval_uses_student_t() -> None:
    mean, low, high = interval([1.0, 2.0, 3.0, 4.0])
    assert mean == 2.5
    # Four values: t(0.975, 3) = 3.182446, s = 1.290994.
    assert high - mean == pytest.approx(3.182446 * 1.290994 / 2, rel=1e-6)
    assert low == pytest.approx(2 * mean - high)
    assert str(Gain("p99", 1.1, 1.05, 1.15, 4)).startswith("p99: +10.0 %")


def test_tune_command_prints_results_and_errors() -> None:
    words = [sys.executable, "-m", "seekwell", "tune", "-s", "deadline", "-w", "fs-mark:files=2"]
    words += ["-t", "fifo_batch=1,16", "--trials", "2", "--train-seeds", "1", "--quiet"]
    done = subprocess.run(
        [*words, "--test-seeds", "11-12"], capture_output=True, text=True, check=True
    )
    assert "tried 2 settings" in done.stdout and "deadline" in done.stdout
    done = subprocess.run(
        [*words, "--test-seeds", "1-2"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "in both train_seeds" in done.stderr
