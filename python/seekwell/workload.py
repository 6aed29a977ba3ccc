"""Workloads in Python. A workload is a coroutine that makes calls to a modelled machine.

Calls have lengths but no data, because the content of files has no effect on the model. Python code
takes no time on the modelled machine. Use `Machine.compute` for CPU time.
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
    """Makes a call to the machine and returns its result."""
    return (yield what)


@dataclass(frozen=True)
class Stat:
    """Attributes of a file.

    Attributes:
        len: Length, bytes.
        allocated: Allocated space, bytes.
        dir: Whether it is a directory.
        ino: Inode number.
        mtime_ns: Time of the last change of its content, ns since the start of the run.
    """

    len: int
    allocated: int
    dir: bool
    ino: int
    mtime_ns: int


@dataclass
class Operation:
    """An operation that is measured: `with machine.operation("read") as op: ...; op.bytes = n`.

    Attributes:
        bytes: Number of bytes that the operation moved. Set by the script.
    """

    _machine: Machine
    _kind: str
    bytes: int = 0
    _since_ns: int = 0

    def __enter__(self) -> Operation:
        self._since_ns = self._machine.now_ns
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # A failed operation is not counted.
        if kind is None:
            m = self._machine
            m._notes.append(("op", self._kind, self._since_ns, m.now_ns, self.bytes))


class Machine:
    """The modelled machine, as one task uses it.

    A file descriptor is a number that is valid in every task of the run. Calls raise `OSError` with
    the errno of the system call of the same name. If the script does not catch the exception, the
    run ends early (`Record.early`). When the run is stopped, every waiting call raises ECANCELED.
    Times are in ns of virtual time, and offsets and lengths are in bytes.

    Attributes:
        now_ns: Time since the start of the run, ns.
        cpus: Number of logical CPUs.
        cache_bytes: Largest size of the page cache, bytes.
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
        """Random numbers of this task. They depend on the run's seed and the task's name."""
        if self._random is None:
            self._random = random.Random(self._seed)
        return self._random

    def _path(self, path: str) -> str:
        return f"{self._home}/{path}" if path else self._home

    # Time.

    async def compute(self, ns: int) -> None:
        """Uses `ns` of CPU time on a core, which other tasks may also use."""
        await _call("compute", ns)

    async def sleep(self, ns: int) -> None:
        """Sleeps for `ns`, without using the CPU."""
        await _call("sleep", ns)

    # Files.

    async def open(self, path: str, **how: bool) -> int:
        """Opens a path below the directory of the run (open(2)). Returns the descriptor.

        Args:
            how: Flags: create, excl, trunc, append, rdonly, directory, direct, sync, dsync. With
                direct, offsets and lengths must be multiples of 4096.
        """
        return int(await _call("open", self._path(path), _flags(how)))

    async def close(self, fd: int) -> None:
        """Closes a descriptor in all tasks. Dirty data stay in the page cache."""
        await _call("close", fd)

    async def read(self, fd: int, offset: int, length: int) -> int:
        """Reads (pread(2)). Returns the number of bytes, which is smaller at the end of a file."""
        return int(await _call("read", fd, offset, length))

    async def write(self, fd: int, offset: int, length: int) -> int:
        """Writes all `length` bytes (pwrite(2)). Returns the number of bytes."""
        return int(await _call("write", fd, offset, length))

    async def append(self, fd: int, length: int) -> int:
        """Writes at the end of the file (write(2)). Returns the number of bytes."""
        return int(await _call("append", fd, length))

    async def fsync(self, fd: int) -> None:
        """Calls fsync(2). For a directory, this writes its entries."""
        await _call("fsync", fd)

    async def fdatasync(self, fd: int) -> None:
        """Calls fdatasync(2)."""
        await _call("fdatasync", fd)

    async def syncfs(self) -> None:
        """Calls syncfs(2) for the file system of the run."""
        await _call("syncfs")

    async def truncate(self, fd: int, length: int) -> None:
        """Calls ftruncate(2)."""
        await _call("truncate", fd, length)

    async def fallocate(self, fd: int, offset: int, length: int) -> None:
        """Calls fallocate(2) with mode 0."""
        await _call("fallocate", fd, offset, length)

    async def fadvise(self, fd: int, offset: int, length: int, advice: Advice) -> None:
        """Calls posix_fadvise(2). With length 0, the range extends to the end of the file."""
        await _call("fadvise", fd, offset, length, advice)

    async def rename(self, old: str, new: str) -> None:
        """Calls rename(2). An existing file with the new name is replaced."""
        await _call("rename", self._path(old), self._path(new))

    async def unlink(self, path: str) -> None:
        """Calls unlink(2)."""
        await _call("unlink", self._path(path))

    async def mkdir(self, path: str) -> None:
        """Calls mkdir(2)."""
        await _call("mkdir", self._path(path))

    async def rmdir(self, path: str) -> None:
        """Calls rmdir(2)."""
        await _call("rmdir", self._path(path))

    async def readdir(self, path: str = "") -> list[tuple[str, bool]]:
        """Returns (name, whether it is a directory) of each entry, in file system order."""
        return list(await _call("readdir", self._path(path)))

    async def stat(self, path: str) -> Stat:
        """Calls stat(2)."""
        return Stat(*await _call("stat", self._path(path)))

    async def fstat(self, fd: int) -> Stat:
        """Calls fstat(2), for files and the raw device."""
        return Stat(*await _call("fstat", fd))

    async def drop_caches(self) -> None:
        """Drops all clean pages and metadata. Call `syncfs` first to clean dirty pages."""
        await _call("drop_caches")

    async def open_device(self, **how: bool) -> int:
        """Opens the raw device. Possible flags are rdonly and direct."""
        return int(await _call("open_device", _flags(how)))

    # Many operations at a time.

    async def aio(self, depth: int) -> int:
        """Creates a queue for at most `depth` operations in progress. The maximum is 4096."""
        return int(await _call("aio", depth))

    async def submit(self, aio: int, what: Sequence[tuple[int, AioOp, int, int, int]]) -> None:
        """Submits operations in one call. Each is (file, operation, offset, length, tag)."""
        await _call("submit", aio, list(what))

    async def reap(self, aio: int, least: int = 1) -> list[tuple[int, int | None, int | None]]:
        """Waits for at least `least` operations to end.

        Returns (tag, bytes, None) for each successful operation, and (tag, None, errno) for each
        failed operation.
        """
        return list(await _call("reap", aio, least))

    async def aio_close(self, aio: int) -> None:
        """Waits for the outstanding operations and closes the queue."""
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
        """Starts `script(machine, *args)` as a new process. Returns the number of its task.

        Args:
            name: Name of the task, unique among the tasks that this task starts.
            nice: Nice value, -20 to 19.
            ioprio: Class (0 none, 1 real time, 2 best effort, 3 idle) and level (0 to 7).
        """
        own = Machine(self._home, self.cpus, self.cache_bytes)
        return int(await _call("spawn", name, nice, ioprio, own, script(own, *args)))

    async def join(self, task: int) -> None:
        """Waits for the end of a task. Raises the task's exception. Can be called once per task."""
        await _call("join", task)

    async def lock(self) -> int:
        """Creates a lock, which is free."""
        return int(await _call("lock"))

    async def acquire(self, lock: int) -> None:
        """Waits until a lock is free and takes it. Tasks get the lock in the order of calls."""
        await _call("acquire", lock)

    async def release(self, lock: int) -> None:
        """Frees a lock."""
        await _call("release", lock)

    async def barrier(self, tasks: int) -> int:
        """Creates a barrier for this number of tasks."""
        return int(await _call("barrier", tasks))

    async def arrive(self, barrier: int) -> None:
        """Waits until all tasks of a barrier have arrived."""
        await _call("arrive", barrier)

    async def channel(self, room: int) -> int:
        """Creates a channel that can hold `room` numbers."""
        return int(await _call("channel", room))

    async def send(self, channel: int, value: int) -> None:
        """Waits for space in a channel and puts a number into it."""
        await _call("send", channel, value)

    async def recv(self, channel: int) -> int | None:
        """Waits for a number from a channel. Returns None if the channel is ended and empty."""
        value = await _call("recv", channel)
        return None if value is None else int(value)

    async def end_channel(self, channel: int) -> None:
        """Ends a channel. Receivers get the numbers that are still in it, and then None."""
        await _call("end_channel", channel)

    # Measurements. These calls take no time.

    def operation(self, kind: str) -> Operation:
        """Returns an operation. Used in `with`, it is counted with its latency as `kind`."""
        return Operation(self, kind)

    def clock_start(self) -> None:
        """Starts the clock: the measured part of the run begins."""
        self._notes.append(("clock start", self.now_ns))

    def clock_stop(self) -> None:
        """Stops the clock: the measured part of the run ends."""
        self._notes.append(("clock stop", self.now_ns))

    def phase(self, name: str) -> None:
        """Marks the start of a phase on the time axis."""
        self._notes.append(("phase", self.now_ns, name))

    def metric(self, name: str, unit: str, value: float, *, higher_is_better: bool) -> None:
        """Reports a value of the workload. The first value of a run is its main metric."""
        self._notes.append(("metric", name, unit, float(value), higher_is_better))

    def counts(self, kind: str) -> None:
        """States that the main metric counts operations of this kind, or is their mean."""
        self._notes.append(("counts", kind))


def _flags(how: dict[str, bool]) -> int:
    unknown = sorted(set(how) - set(_FLAGS))
    if unknown:
        raise TypeError(f"open: no flag {', '.join(unknown)}; there are {', '.join(_FLAGS)}")
    return sum(1 << i for i, name in enumerate(_FLAGS) if how.get(name))


class Workload:
    """Base class of workloads in Python.

    `run` is a coroutine that awaits only calls of the machine. `__init__` takes no arguments. It is
    called when the parameters are set.
    """

    name: ClassVar[str]
    """Name, as users type it. It consists of lower-case letters, digits, `-` and `_`."""
    summary: ClassVar[str] = "a workload in Python"
    """Description in one line."""
    metric: ClassVar[str] = "what the script says"
    """Description of the main metric for lists, with unit and direction."""
    parameters: ClassVar[Sequence[Parameter]] = ()
    """Parameters that users can set."""
    needs: ClassVar[Literal["directory", "device"]] = "directory"
    """Whether the workload uses a directory of a file system or the raw device."""
    space_bytes: ClassVar[int] = 1 << 30
    """Estimated largest size of its files, bytes."""

    async def run(self, machine: Machine) -> None:
        """Runs the script of the workload."""
        raise NotImplementedError(f"{type(self).__name__} has no async def run(self, machine)")


W = TypeVar("W", bound=type[Workload])


def register_workload(workload: W) -> W:
    """Registers a class. From then on, its name can be used as a workload everywhere.

    This function can be used as a decorator. A class with the same name and parameters replaces the
    earlier class, so that a notebook cell can be run again.

    Raises:
        InputError: A built-in workload has this name, or the name has invalid characters.
    """
    if not isinstance(workload, type) or not issubclass(workload, Workload):
        raise TypeError(f"{workload!r} is no subclass of seekwell.Workload")
    if not isinstance(getattr(workload, "name", None), str):
        raise TypeError(f'{workload.__name__} has no name: write name = "my-workload" in it')
    _seekwell.register_workload(workload)
    return workload
