"""Experiments of thousands of cells on a Ray cluster: one task a run, the wheel its only need.

The driver decides what runs next and keeps every run as it ends, as `compare` does; workers only
simulate. So the folder has the same bytes as on one machine, whatever the number of workers and
whichever of them were lost, and the same call goes on where a lost driver was.

Left out: sharing traces: a trace has to be on every machine, under the same path.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from seekwell import _seekwell
from seekwell._errors import RunError
from seekwell._run import ExperimentLike, PathLike, experiment_text
from seekwell._seekwell import Results, Token

# Runs that wait at each CPU, so that none is idle while a result travels.
AHEAD = 2
# How often a waiting thread looks whether all is to end, s.
LOOK_S = 0.5
# How long the head of a cluster may take to answer, s.
REACH_S = 10.0
# How often a run is made again whose worker was lost.
RETRIES = 8
# A node that is this machine does not vanish: where it is slow to answer, it is busy with the runs.
PATIENT = {"health_check_timeout_ms": 600_000, "health_check_failure_threshold": 60}


def run_json(spec: str) -> str:
    """What a worker does: a specification to a record, both JSON."""
    return _seekwell.run_json(spec)


def sweep(
    experiment: ExperimentLike,
    *,
    results: PathLike,
    address: str | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Results:
    """Carries an experiment out on a cluster.

    Args:
        experiment: As `compare` has it; schedulers of the tree only.
        results: The folder, new or to go on with.
        address: Of an existing cluster; None: one is started here, and ended at the end.
        workers: CPUs of a cluster that is started here; None: all.
        progress: Is called with the runs that ended and those that are planned so far.

    Raises:
        ImportError: Ray is not installed.
        RunError: the cluster is dead, or dies; what was kept until then is in the folder.
        InputError, StoreError: as `compare`.
    """
    source = experiment_text(experiment)
    # Before a cluster is started for nothing.
    _seekwell.check_experiment(source)
    ray = _ray()
    began = not ray.is_initialized()
    if began:
        _begin(ray, address, workers)
    try:
        remote = ray.remote(max_retries=RETRIES)(run_json)
        threads = max(1, int(ray.cluster_resources().get("CPU", 1))) * AHEAD

        def run(spec: str, token: Token) -> str:
            return _await(ray, remote.remote(spec), token)

        return _seekwell.carry_out(source, Path(results), threads, None, progress, run)
    finally:
        if began:
            ray.shutdown()


def _ray() -> Any:
    try:
        import ray  # noqa: PLC0415 (importing seekwell must not need it)
    except ImportError as e:
        what = "sweeps need Ray: pip install 'seekwell-lab[sweep]' (or: pip install ray)"
        raise ImportError(what) from e
    return ray


def _reach(address: str) -> None:
    """Refuses a cluster that nobody answers for; Ray itself would try for many minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        # "auto" and what begins with ray:// are Ray's own words.
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_S).close()
    except (OSError, OverflowError) as e:
        raise RunError(f"no cluster at {address}: {e}; `ray status` says whether it lives") from e


def _begin(ray: Any, address: str | None, workers: int | None) -> None:
    if address is not None:
        _reach(address)
    how: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        how |= {"num_cpus": workers, "include_dashboard": False, "_system_config": PATIENT}
    else:
        how["address"] = address
    try:
        ray.init(**how)
    except Exception as e:
        where = "here" if address is None else f"at {address}"
        raise RunError(f"no cluster {where}: {e}; `ray status` says whether it lives") from e


def _await(ray: Any, task: Any, token: Token) -> str:
    """What a worker gives."""
    while True:
        if token.is_set():
            ray.cancel(task)
            return ""
        try:
            ready, _ = ray.wait([task], timeout=LOOK_S)
            if ready:
                return str(ray.get(task))
        except ray.exceptions.RayTaskError:
            # The run itself failed, and would again: a row with the reason.
            raise
        except ray.exceptions.RayError as e:
            # Not the run's fault: it is not kept, and the sweep ends with what was.
            token.lose(f"the cluster lost a run for good: {e}")
            return ""
        except (ConnectionError, OSError) as e:
            token.lose(f"the cluster does not answer: {e}")
            return ""
        time.sleep(0)
