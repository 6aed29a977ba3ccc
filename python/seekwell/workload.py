"""Workloads in Python: a coroutine over the calls of a modelled machine.

Only lengths go in and out: what is in the bytes matters to nobody. Python takes no time of the
modelled machine; `Machine.compute` does.
"""

from __future__ import annotations

import random
import types
from collections.abc import Callable, Coroutine, Generator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from seekwell import _seekwell
from seekwell.parameters import Parameter

__all__ = ["Machine", "Operation", "Stat", "Workload", "register_workload"]

_FLAGS = ("direct", "sync", "dsync", "create", "excl", "trunc", "append", "rdonly", "directory")

Advice = Literal["normal", "random", "sequential", "willneed", "dontneed"]
AioOp = Literal["read", "write", "fsync", "fdatasync"]


@types.coroutine
def _call(*what: object) -> Generator[tuple[object, ...], Any, Any]:
    """Asks the machine, and gives what it answers."""
    return (yield what)


@dataclass(frozen=True)
class Stat:
    """Of a file.

    Attributes:
        len: Length, bytes.
        allocated: Space allocated, bytes.
        dir: It is a directory.
        ino: Inode number.
        mtime_ns: Last change of contents, ns since the run began.
    """

    len: int
    allocated: int
    dir: bool
    ino: int
    mtime_ns: int


@dataclass
class Operation:
    """One that goes on: `with machine.operation("read") as op: ...; op.bytes = n`.

    Attributes:
        bytes: What it moved.
    """

    _machine: Machine
    _kind: str
    bytes: int = 0
    _since_ns: int = 0

    def __enter__(self) -> Operation:
        self._since_ns = self._machine.now_ns
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # One that failed is not counted.
        if kind is None:
            m = self._machine
            m._notes.append(("op", self._kind, self._since_ns, m.now_ns, self.bytes))


class Machine:
    """The modelled machine, as one task sees it.

    A file is a number, valid in every task of the run. Calls raise `OSError` with the errno of the
    system call of their name; one that is not caught ends the run early (`Record.early`). When the
    run is stopped, every call that waits raises ECANCELED. Times are ns of virtual time, offsets
    and lengths bytes.

    Attributes:
        now_ns: The time since the run began.
        cpus: Logical CPUs.
        cache_bytes: Memory that the page cache can use at most.
    """

    def __init__(self, home: str, cpus: int, cache_bytes: int) -> None:
        self.now_ns = 0
        self.cpus = cpus
        self.cache_bytes = cache_bytes
        self._home = home
        self._seed = 0
        self._notes: list[tuple[object, ...]] = []
        self._random: random.Random | None = None

    @property
    def random(self) -> random.Random:
        """This task's own random numbers: they follow from the run's seed and the task's name."""
        if self._random is None:
            self._random = random.Random(self._seed)
        return self._random

    def _path(self, path: str) -> str:
        return f"{self._home}/{path}" if path else self._home

    # Time.

    async def compute(self, ns: int) -> None:
        """Uses a core for so much CPU time, shared with other tasks."""
        await _call("compute", ns)

    async def sleep(self, ns: int) -> None:
        """Waits without using the CPU."""
        await _call("sleep", ns)

    # Files.

    async def open(self, path: str, **how: bool) -> int:
        """open(2) of a path below the run's directory.

        Args:
            how: create, excl, trunc, append, rdonly, directory, direct, sync, dsync. Direct takes
                offsets and lengths that are multiples of 4096.
        """
        return int(await _call("open", self._path(path), _flags(how)))

    async def close(self, fd: int) -> None:
        """Closes it in all tasks; dirty data stays in the cache."""
        await _call("close", fd)

    async def read(self, fd: int, offset: int, length: int) -> int:
        """pread(2): what was read; less at the end of the file."""
        return int(await _call("read", fd, offset, length))

    async def write(self, fd: int, offset: int, length: int) -> int:
        """pwrite(2): all of it."""
        return int(await _call("write", fd, offset, length))

    async def append(self, fd: int, length: int) -> int:
        """write(2) at the end of the file."""
        return int(await _call("append", fd, length))

    async def fsync(self, fd: int) -> None:
        """fsync(2); of a directory: its entries."""
        await _call("fsync", fd)

    async def fdatasync(self, fd: int) -> None:
        """fdatasync(2)."""
        await _call("fdatasync", fd)

    async def syncfs(self) -> None:
        """syncfs(2) of the run's file system."""
        await _call("syncfs")

    async def truncate(self, fd: int, length: int) -> None:
        """ftruncate(2)."""
        await _call("truncate", fd, length)

    async def fallocate(self, fd: int, offset: int, length: int) -> None:
        """fallocate(2), mode 0."""
        await _call("fallocate", fd, offset, length)

    async def fadvise(self, fd: int, offset: int, length: int, advice: Advice) -> None:
        """posix_fadvise(2); length 0: to the end."""
        await _call("fadvise", fd, offset, length, advice)

    async def rename(self, old: str, new: str) -> None:
        """rename(2); a file of the new name is replaced."""
        await _call("rename", self._path(old), self._path(new))

    async def unlink(self, path: str) -> None:
        """unlink(2)."""
        await _call("unlink", self._path(path))

    async def mkdir(self, path: str) -> None:
        """mkdir(2)."""
        await _call("mkdir", self._path(path))

    async def rmdir(self, path: str) -> None:
        """rmdir(2)."""
        await _call("rmdir", self._path(path))

    async def readdir(self, path: str = "") -> list[tuple[str, bool]]:
        """Names, and whether each is a directory, in the order of the file system."""
        return list(await _call("readdir", self._path(path)))

    async def stat(self, path: str) -> Stat:
        """stat(2)."""
        return Stat(*await _call("stat", self._path(path)))

    async def fstat(self, fd: int) -> Stat:
        """fstat(2), of files and the raw device."""
        return Stat(*await _call("fstat", fd))

    async def drop_caches(self) -> None:
        """Drops all clean pages and metadata; `syncfs` goes before."""
        await _call("drop_caches")

    async def open_device(self, **how: bool) -> int:
        """The raw device (rdonly, direct)."""
        return int(await _call("open_device", _flags(how)))

    # Many operations at a time.

    async def aio(self, depth: int) -> int:
        """A queue for so many operations, at most 4096."""
        return int(await _call("aio", depth))

    async def submit(self, aio: int, what: Sequence[tuple[int, AioOp, int, int, int]]) -> None:
        """Submits (file, operation, offset, length, tag) of each, in one call."""
        await _call("submit", aio, list(what))

    async def reap(self, aio: int, least: int = 1) -> list[tuple[int, int | None, int | None]]:
        """Waits for so many: (tag, bytes, None) or (tag, None, errno) of each that ended."""
        return list(await _call("reap", aio, least))

    async def aio_close(self, aio: int) -> None:
        """Waits for what is outstanding and ends the queue."""
        await _call("aio_close", aio)

    # Tasks, and waiting for each other.

    async def spawn(
        self,
        name: str,
        script: Callable[..., Coroutine[Any, Any, None]],
        *args: object,
        nice: int = 0,
        ioprio: tuple[int, int] = (0, 0),
    ) -> int:
        """Starts `script(machine, *args)` as a process of its own, beside this one.

        Args:
            name: Unique among those that this task starts.
            nice: -20 to 19.
            ioprio: Class (0 none, 1 real time, 2 best effort, 3 idle) and level (0 to 7).
        """
        own = Machine(self._home, self.cpus, self.cache_bytes)
        return int(await _call("spawn", name, nice, ioprio, own, script(own, *args)))

    async def join(self, task: int) -> None:
        """Waits for its end, once; raises what ended it."""
        await _call("join", task)

    async def lock(self) -> int:
        """A new lock, free."""
        return int(await _call("lock"))

    async def acquire(self, lock: int) -> None:
        """Waits until it is free and takes it, in order of asking."""
        await _call("acquire", lock)

    async def release(self, lock: int) -> None:
        """Frees it."""
        await _call("release", lock)

    async def barrier(self, tasks: int) -> int:
        """A new barrier for so many tasks."""
        return int(await _call("barrier", tasks))

    async def arrive(self, barrier: int) -> None:
        """Waits until all have come."""
        await _call("arrive", barrier)

    async def channel(self, room: int) -> int:
        """A new channel that holds so many numbers."""
        return int(await _call("channel", room))

    async def send(self, channel: int, value: int) -> None:
        """Waits for room, and puts a number in."""
        await _call("send", channel, value)

    async def recv(self, channel: int) -> int | None:
        """Waits for a number; None: the channel is ended and empty."""
        value = await _call("recv", channel)
        return None if value is None else int(value)

    async def end_channel(self, channel: int) -> None:
        """Ends it: receivers get what is in it, then None."""
        await _call("end_channel", channel)

    # Measures: at the present time, without any of their own.

    def operation(self, kind: str) -> Operation:
        """Counts what goes on inside `with`, and its latency, under a name."""
        return Operation(self, kind)

    def clock_start(self) -> None:
        """What the figure is about begins."""
        self._notes.append(("clock start", self.now_ns))

    def clock_stop(self) -> None:
        """It has ended; what follows belongs to no measure."""
        self._notes.append(("clock stop", self.now_ns))

    def phase(self, name: str) -> None:
        """A phase begins, for the time axis."""
        self._notes.append(("phase", self.now_ns, name))

    def metric(self, name: str, unit: str, value: float, *, higher_is_better: bool) -> None:
        """The workload's own figure; the first of a run is the one it is about."""
        self._notes.append(("metric", name, unit, float(value), higher_is_better))

    def counts(self, kind: str) -> None:
        """The figure counts operations of this kind, or is their mean."""
        self._notes.append(("counts", kind))


def _flags(how: dict[str, bool]) -> int:
    unknown = sorted(set(how) - set(_FLAGS))
    if unknown:
        raise TypeError(f"open: no flag {', '.join(unknown)}; there are {', '.join(_FLAGS)}")
    return sum(1 << i for i, name in enumerate(_FLAGS) if how.get(name))


class Workload:
    """What a workload in Python is a subclass of.

    `run` is a coroutine that awaits the machine's calls and nothing else. `__init__` takes no
    arguments and finds the parameters set.
    """

    name: ClassVar[str]
    """As it is typed: small letters, digits, `-` and `_`."""
    summary: ClassVar[str] = "a workload in Python"
    """One line."""
    metric: ClassVar[str] = "what the script says"
    """What it prints, with unit and direction, for lists."""
    parameters: ClassVar[Sequence[Parameter]] = ()
    """What can be set."""
    needs: ClassVar[Literal["directory", "device"]] = "directory"
    """On what it runs: a directory of a file system, or the raw device."""
    space_bytes: ClassVar[int] = 1 << 30
    """What its files hold at most, roughly."""

    async def run(self, machine: Machine) -> None:
        """The script."""
        raise NotImplementedError(f"{type(self).__name__} has no async def run(self, machine)")


W = TypeVar("W", bound=type[Workload])


def register_workload(workload: W) -> W:
    """Puts a class among the workloads; from then on its name is one everywhere.

    May stand above a class as a decorator. A class of the same name and parameters takes the place
    of the one before, so that a cell of a notebook can be run again.

    Raises:
        InputError: the name is taken by one of the tree, or cannot be typed.
    """
    if not isinstance(workload, type) or not issubclass(workload, Workload):
        raise TypeError(f"{workload!r} is no subclass of seekwell.Workload")
    if not isinstance(getattr(workload, "name", None), str):
        raise TypeError(f'{workload.__name__} has no name: write name = "my-workload" in it')
    _seekwell.register_workload(workload)
    return workload
