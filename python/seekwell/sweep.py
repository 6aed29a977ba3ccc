"""Experiments with thousands of cells on a Ray cluster.

Each run is one task. Workers need only the wheel of this package, and they only simulate. The
driver selects the next run and stores every run when it ends, as `compare` does. The results
folder therefore has the same bytes as on one machine, for any number of workers, and even if
workers are lost. If the driver is lost, the same call continues the experiment.

Not supported: distribution of traces. A trace must be on every machine, under the same path.
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

# Number of runs per CPU that are sent to the cluster, so that no CPU waits for the next run.
AHEAD = 2
# Interval at which a waiting thread checks whether the experiment must end, s.
LOOK_S = 0.5
# Longest time in which the head of a cluster must accept a connection, s.
REACH_S = 10.0
# Number of times that a run is repeated if its worker was lost.
RETRIES = 8
# The local node cannot be lost. If it answers slowly, it is busy with the runs.
PATIENT = {"health_check_timeout_ms": 600_000, "health_check_failure_threshold": 60}


def run_json(spec: str) -> str:
    """Runs a specification on a worker. The specification and the returned record are JSON."""
    return _seekwell.run_json(spec)


def sweep(
    experiment: ExperimentLike,
    *,
    results: PathLike,
    address: str | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Results:
    """Runs an experiment on a cluster.

    Args:
        experiment: An experiment, as for `compare`. Only built-in schedulers are possible.
        results: The results folder: a new one, or one to be continued.
        address: Address of a running cluster. None: a cluster is started on this machine, and
            stopped at the end.
        workers: Number of CPUs of a cluster that is started on this machine. None: all.
        progress: Called with the number of finished runs and the number of planned runs.

    Raises:
        ImportError: Ray is not installed.
        RunError: The cluster does not respond. Runs that were stored before are in the folder.
        InputError, StoreError: As for `compare`.
    """
    source = experiment_text(experiment)
    # Check the experiment before a cluster is started.
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
    """Raises an error if a cluster does not respond. Ray itself would try for many minutes."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit():
        # Ray itself interprets "auto" and addresses that begin with ray://.
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_S).close()
    except (OSError, OverflowError) as e:
        raise RunError(f"no cluster at {address}: {e}; `ray status` shows whether it runs") from e


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
        raise RunError(f"no cluster {where}: {e}; `ray status` shows whether it runs") from e


def _await(ray: Any, task: Any, token: Token) -> str:
    """Waits for the result of a worker and returns it."""
    while True:
        if token.is_set():
            ray.cancel(task)
            return ""
        try:
            ready, _ = ray.wait([task], timeout=LOOK_S)
            if ready:
                return str(ray.get(task))
        except ray.exceptions.RayTaskError:
            # The run itself failed, and would fail again. It is stored with the reason.
            raise
        except ray.exceptions.RayError as e:
            # The cluster caused the error. The run is not stored, and the sweep ends.
            token.lose(f"the cluster lost a run for good: {e}")
            return ""
        except (ConnectionError, OSError) as e:
            token.lose(f"the cluster does not answer: {e}")
            return ""
        time.sleep(0)
