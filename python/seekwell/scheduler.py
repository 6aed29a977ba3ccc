"""Schedulers in Python: a class with `insert`, `dispatch` and `joined`, by the contract of the
tree's own (docs/add-a-scheduler.md).

Slow: every call goes through the interpreter. For teaching and for a first idea.
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
    """A number that can be set, by `NAME:tunable=value` and in experiments.

    The scheduler has it as an attribute of this name.

    Attributes:
        name: As it is typed.
        default: Its value at first.
        kind: "count", "bool", "ms", "us" or "ns".
        unit: For people: "requests", "ms".
        min: Smallest value; what is beyond is clamped.
        max: Largest value, at most 2**31 - 1.
        help: One line.
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
    """The queue, as its sysfs files show it.

    Attributes:
        rotational: queue/rotational.
        depth: Commands that the driver takes at once.
        nr_requests: queue/nr_requests.
        hctxs: Hardware queues.
        cpus: Software queues.
        max_sectors: queue/max_sectors_kb, in sectors of 512 bytes.
        name: The device.
    """

    rotational: bool
    depth: int
    nr_requests: int
    hctxs: int
    cpus: int
    max_sectors: int
    name: str


class Scheduler:
    """What a scheduler in Python is a subclass of.

    One instance serves one queue. The layer calls; the scheduler answers through `cx`: it lets
    requests go (`cx.emit`), arms timers, names the rule that decided (`cx.why`). It has no clock of
    its own, no randomness and no thread, so that the same seed gives the same bytes.

    `insert`, `dispatch` and `joined` have to be there; `__init__` takes no arguments and finds
    `self.queue` and the tunables set.
    """

    name: ClassVar[str]
    """As it is typed: small letters, digits, `-` and `_`."""
    layer: ClassVar[Literal["blk-mq", "single-queue"]] = "blk-mq"
    """Which block layer it lives in."""
    kernel: ClassVar[str] = ""
    """Single-queue: whose layer, "2.6.18", "2.6.24", "3.4" or "4.0" (also "")."""
    summary: ClassVar[str] = "a scheduler in Python"
    """One line."""
    tunables: ClassVar[Sequence[Tunable]] = ()
    """What can be set."""
    waiting: ClassVar[Mapping[str, int] | None] = None
    """How long somebody may have to wait, for `check`: `fixed_ms`, `requests`, `per_task_ms`,
    `per_task_requests` (docs/add-a-scheduler.md). None: it says nothing, and is not held to it."""

    queue: Queue

    def insert(self, cx: Cx, rq: Request, how: str) -> None:
        """Takes a request. `how`: "sorted", "at_head", "requeue" or "reinsert"."""
        raise NotImplementedError(f"{type(self).__name__} has no insert(self, cx, rq, how)")

    def dispatch(self, cx: Cx, hctx: int, force: bool) -> None:
        """Lets a request go with `cx.emit`, or none, if a timer is armed or one is with the device.

        `force`: drain, hold nothing back. blk-mq expects one at most a call.
        """
        raise NotImplementedError(f"{type(self).__name__} has no dispatch(self, cx, hctx, force)")

    def joined(self, cx: Cx, kept: Request, gone: Request) -> None:
        """`kept` took over the bios of `gone`, which has to be forgotten."""
        raise NotImplementedError(f"{type(self).__name__} has no joined(self, cx, kept, gone)")

    def has_work(self, cx: Cx, hctx: int) -> bool:
        """Would a dispatch be worth a try? While requests are inside, unless it is overridden."""
        return cx.queued > 0

    def completed(self, cx: Cx, rq: Request) -> None:
        """A request is done: `rq.start_ns` and `rq.issue_ns` tell its latencies."""

    def timer(self, cx: Cx, slot: int) -> None:
        """Timer `slot` fired."""

    def find_front(self, cx: Cx, bio: Bio) -> Request | None:
        """A request inside that starts where `bio` ends, for a front merge."""
        return None

    def allow_merge(self, cx: Cx, rq: Request, bio: Bio) -> bool:
        """May this bio become a part of that request?"""
        return True

    def merged(self, cx: Cx, rq: Request, kind: str) -> None:
        """`rq` grew at its "back" or its "front"; at the front `rq.sector` is another now."""

    def former(self, cx: Cx, rq: Request) -> Request | None:
        """The neighbour before `rq`, to be joined if they touch."""
        return None

    def latter(self, cx: Cx, rq: Request) -> Request | None:
        """The neighbour behind `rq`."""
        return None

    def stored(self, cx: Cx, name: str) -> None:
        """A tunable was set: `getattr(self, name)` is its value."""

    def check(self, cx: Cx) -> None:
        """Raises if an invariant is broken. Called after every step of `seekwell.check`."""

    def state(self) -> str:
        """A line about the state, for `explain`."""
        return ""


S = TypeVar("S", bound=type[Scheduler])


def register(scheduler: S) -> S:
    """Puts a class into the registry; from then on its name is a scheduler everywhere.

    May stand above a class as a decorator. A class of the same name takes the place of the one
    before, so that a cell of a notebook can be run again.

    Raises:
        InputError: the name is taken by one of the tree, or cannot be typed.
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
    """Sets how long a callback may take on the wall clock before it is ended: 10 s at first."""
    _seekwell.set_callback_limit(seconds)
