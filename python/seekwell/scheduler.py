"""Schedulers in Python. A class defines `insert`, `dispatch` and `joined`, with the same interface
as the built-in schedulers (docs/add-a-scheduler.md).

Such schedulers are slow, because every call goes through the interpreter. They are meant for
teaching and for first experiments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeVar

from seekwell import _seekwell
from seekwell._seekwell import Bio, Cx, Request

__all__ = ["Queue", "Scheduler", "Tunable", "register", "set_callback_limit"]

INT_MAX = 2**31 - 1


@dataclass(frozen=True)
class Tunable:
    """A number that users can set, as `NAME:tunable=value` and in experiments.

    The scheduler has an attribute of this name with the value.

    Attributes:
        name: Name, as users type it.
        default: Default value.
        kind: "count", "bool", "ms", "us" or "ns".
        unit: Unit for display, for example "requests" or "ms".
        min: Smallest value. Smaller values are set to it.
        max: Largest value, at most 2**31 - 1. Larger values are set to it.
        help: Description in one line.
    """

    name: str
    default: int
    kind: Literal["count", "bool", "ms", "us", "ns"] = "count"
    unit: str = ""
    min: int = 0
    max: int = INT_MAX
    help: str = ""


@dataclass(frozen=True)
class Queue:
    """Properties of the queue, as in its sysfs files.

    Attributes:
        rotational: queue/rotational.
        depth: Largest number of commands in the driver.
        nr_requests: queue/nr_requests.
        hctxs: Number of hardware queues.
        cpus: Number of software queues.
        max_sectors: queue/max_sectors_kb, in sectors of 512 bytes.
        name: Name of the device.
    """

    rotational: bool
    depth: int
    nr_requests: int
    hctxs: int
    cpus: int
    max_sectors: int
    name: str


class Scheduler:
    """Base class of schedulers in Python.

    One instance serves one queue. The block layer calls its methods. The scheduler acts through
    `cx`: it dispatches requests (`cx.emit`), arms timers, and names the rule that decided
    (`cx.why`). It must use no clock, no random numbers and no thread of its own, so that the same
    seed gives the same bytes.

    A scheduler must define `insert`, `dispatch` and `joined`. `__init__` takes no arguments. It is
    called when `self.queue` and the tunables are set.
    """

    name: ClassVar[str]
    """Name, as users type it. It consists of lower-case letters, digits, `-` and `_`."""
    layer: ClassVar[Literal["blk-mq", "single-queue"]] = "blk-mq"
    """Block layer of the scheduler."""
    kernel: ClassVar[str] = ""
    """Kernel of the single-queue layer: "2.6.18", "2.6.24", "3.4" or "4.0". "" means "4.0"."""
    summary: ClassVar[str] = "a scheduler in Python"
    """Description in one line."""
    tunables: ClassVar[Sequence[Tunable]] = ()
    """Tunables that users can set."""
    waiting: ClassVar[Mapping[str, int] | None] = None
    """Bound for the waiting time of a request, which `check` tests. The keys are `fixed_ms`,
    `requests`, `per_task_ms` and `per_task_requests` (docs/add-a-scheduler.md). None: no bound."""

    queue: Queue

    def insert(self, cx: Cx, rq: Request, how: str) -> None:
        """Inserts a request. `how` is "sorted", "at_head", "requeue" or "reinsert"."""
        raise NotImplementedError(f"{type(self).__name__} has no insert(self, cx, rq, how)")

    def dispatch(self, cx: Cx, hctx: int, force: bool) -> None:
        """Dispatches a request with `cx.emit`.

        It may dispatch none if a timer is armed or a request is in the device. With `force`, it
        must hold no request back. blk-mq expects at most one request per call.
        """
        raise NotImplementedError(f"{type(self).__name__} has no dispatch(self, cx, hctx, force)")

    def joined(self, cx: Cx, kept: Request, gone: Request) -> None:
        """Called when `kept` has taken the bios of `gone`. The scheduler must forget `gone`."""
        raise NotImplementedError(f"{type(self).__name__} has no joined(self, cx, kept, gone)")

    def has_work(self, cx: Cx, hctx: int) -> bool:
        """Returns whether `dispatch` may find a request. By default, whether any is queued."""
        return cx.queued > 0

    def completed(self, cx: Cx, rq: Request) -> None:
        """Called when a request completes. `rq.start_ns` and `rq.issue_ns` give its latencies."""

    def timer(self, cx: Cx, slot: int) -> None:
        """Called when timer `slot` has fired."""

    def find_front(self, cx: Cx, bio: Bio) -> Request | None:
        """Returns a queued request that starts at the end of `bio`, for a front merge."""
        return None

    def allow_merge(self, cx: Cx, rq: Request, bio: Bio) -> bool:
        """Returns whether `bio` may be merged into `rq`."""
        return True

    def merged(self, cx: Cx, rq: Request, kind: str) -> None:
        """Called when `rq` grew at its "back" or "front". A front merge changes `rq.sector`."""

    def former(self, cx: Cx, rq: Request) -> Request | None:
        """Returns the request before `rq` by sector. The two are joined if they are contiguous."""
        return None

    def latter(self, cx: Cx, rq: Request) -> Request | None:
        """Returns the request after `rq` by sector. The two are joined if they are contiguous."""
        return None

    def stored(self, cx: Cx, name: str) -> None:
        """Called when a tunable was set. `getattr(self, name)` is its value."""

    def check(self, cx: Cx) -> None:
        """Raises if an invariant is violated. Called after every step of `seekwell.check`."""

    def state(self) -> str:
        """Returns a line about the state, for `explain`."""
        return ""


S = TypeVar("S", bound=type[Scheduler])


def register(scheduler: S) -> S:
    """Registers a class. From then on, its name can be used as a scheduler everywhere.

    This function can be used as a decorator. A class with the same name replaces the earlier class,
    so that a notebook cell can be run again.

    Raises:
        InputError: A built-in scheduler has this name, or the name has invalid characters.
    """
    _named(scheduler)
    _seekwell.register_scheduler(scheduler)
    return scheduler


def _named(scheduler: type[Scheduler]) -> None:
    if not isinstance(scheduler, type) or not issubclass(scheduler, Scheduler):
        raise TypeError(f"{scheduler!r} is no subclass of seekwell.Scheduler")
    if not isinstance(getattr(scheduler, "name", None), str):
        raise TypeError(f'{scheduler.__name__} has no name: write name = "my-scheduler" in it')


def set_callback_limit(seconds: float) -> None:
    """Sets the longest wall-clock time of a callback, in seconds. The default is 10 s."""
    _seekwell.set_callback_limit(seconds)
