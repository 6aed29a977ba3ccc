"""The properties of the tree, over a class of one's own."""

from __future__ import annotations

from seekwell import _seekwell
from seekwell._errors import CheckError
from seekwell._run import run
from seekwell.device import Device, register_device
from seekwell.scheduler import Scheduler, register
from seekwell.workload import Workload, register_workload

# Where a workload is checked: nothing of a device is in the way.
PLAIN = "constant:depth=4,service_us=100"


def check(
    what: type[Scheduler] | type[Device] | type[Workload] | str, *, cases: int = 64
) -> list[str]:
    """Holds a scheduler, a device or a workload to what every one of the tree is held to.

    Of a scheduler: each bio completes exactly once, merges keep bytes and limits, nothing gets
    stuck, whatever comes: requeues, drains, switches, tunables at their extremes; and, where it
    says so in `waiting`, nobody waits for longer. Of a device: each command that it takes completes
    exactly once, in order, not before it came; the same seed gives the same completions, from event
    to event or in leaps. Of a workload: it ends, and the same seed gives the same bytes.

    Args:
        what: A class, which is registered, or the name of any scheduler.
        cases: Cases drawn for each property; those of the tree pass 256. Of a workload: seeds, one
            for each 16 cases.

    Returns:
        The properties that hold.

    Raises:
        CheckError: one does not: which, and the smallest case that was found.
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
