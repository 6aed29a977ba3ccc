"""The project's property tests, for schedulers, devices and workloads that users write."""

from __future__ import annotations

from seekwell import _seekwell
from seekwell._errors import CheckError
from seekwell._run import run
from seekwell.device import Device, register_device
from seekwell.scheduler import Scheduler, register
from seekwell.workload import Workload, register_workload

# The device on which workloads are checked. It has a constant service time.
PLAIN = "constant:depth=4,service_us=100"


def check(
    what: type[Scheduler] | type[Device] | type[Workload] | str, *, cases: int = 64
) -> list[str]:
    """Tests the properties that every built-in scheduler, device or workload has.

    A scheduler must complete each bio exactly once. Merges must keep all bytes and respect the
    limits. No request may get stuck, even with requeues, drains, switches and extreme tunables. If
    `waiting` is set, no request may wait longer than that bound.

    A device must complete each accepted command exactly once, in order, and not before its arrival.
    The same seed must give the same completions, for steps of any length.

    A workload must end, and the same seed must give the same bytes.

    Args:
        what: A class, which is then registered, or the name of any scheduler.
        cases: Random cases for each property. The built-in schedulers pass 256. A workload is
            tested with one seed per 16 cases.

    Returns:
        The properties that hold.

    Raises:
        CheckError: A property does not hold. The message names the property and the smallest
            failing case that was found.
    """
    if isinstance(what, str):
        return _seekwell.check(what, cases, True)
    if isinstance(what, type) and issubclass(what, Device):
        return _seekwell.check_device(register_device(what).name, cases)
    if isinstance(what, type) and issubclass(what, Workload):
        return _workload(register_workload(what), max(1, cases // 16))
    register(what)
    return _seekwell.check(what.name, cases, what.waiting is not None)


def _workload(workload: type[Workload], seeds: int) -> list[str]:
    same = "the same seed gives the same bytes"
    for seed in range(1, seeds + 1):
        one, other = (
            run(workload.name, device=PLAIN, scheduler="noop", seed=seed) for _ in range(2)
        )
        if one.early is not None:
            raise CheckError(f"it ends: it does not hold.\nseed {seed}: {one.early}")
        if one.to_json() != other.to_json():
            what = "is there a set, a clock or a random number that does not follow from the seed?"
            raise CheckError(f"{same}: it does not hold.\nseed {seed}; {what}")
    return ["it ends", same]
