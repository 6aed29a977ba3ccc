"""Device models in Python. A class computes when a command completes, with the same interface as
the built-in models.

Such models are slow, because every call goes through the interpreter. They are meant for teaching
and for first experiments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

from seekwell import _seekwell
from seekwell._seekwell import Command
from seekwell.parameters import Parameter

__all__ = ["Command", "Device", "register_device"]


class Device:
    """Base class of device models in Python.

    If a model knows the completion time of a command when the command arrives, it defines `serve`.
    If it decides later, for example because it sorts a queue, it defines `accept`, `next_event` and
    `advance` instead. A model must use no clock and no thread. Its random numbers must depend only
    on `self.seed`, so that the same seed gives the same bytes.

    `__init__` takes no arguments. It is called when `self.seed` and the parameters are set. It may
    set the facts below as attributes of the instance.
    """

    name: ClassVar[str]
    """Name, as users type it. It consists of lower-case letters, digits, `-` and `_`."""
    summary: ClassVar[str] = "a device in Python"
    """Description in one line."""
    parameters: ClassVar[Sequence[Parameter]] = ()
    """Parameters that users can set."""

    seed: int
    """Seed of the run."""

    capacity: int = 1 << 28
    """Capacity in sectors of 512 bytes."""
    depth: int = 1
    """Largest number of outstanding commands per hardware queue."""
    hw_queues: int = 1
    """Number of hardware queues."""
    rotational: bool = False
    """Value of queue/rotational, which cfq, bfq and adios use."""
    write_cache: bool = False
    """Whether the device has a volatile write cache, so that flushes are sent."""
    fua: bool = False
    """Whether the device accepts write-through commands (FUA)."""
    max_sectors: int = 65535
    """Length of the largest command, sectors."""

    def serve(self, now_ns: int, command: Command) -> int:
        """Returns the completion time of a command that arrives now, ns. Called once per command.

        The time must not be before `now_ns`.
        """
        raise NotImplementedError(f"{type(self).__name__} has no serve(self, now_ns, command)")

    def accept(self, now_ns: int, command: Command) -> bool:
        """Accepts a command, or returns False if the device is full.

        A rejected command is sent again after a completion.
        """
        raise NotImplementedError(f"{type(self).__name__} has no accept(self, now_ns, command)")

    def next_event(self) -> int | None:
        """Returns the earliest time at which the device changes by itself, ns. None: never."""
        raise NotImplementedError(f"{type(self).__name__} has no next_event(self)")

    def advance(self, to_ns: int) -> Iterable[tuple[int, int]]:
        """Advances to a time, inclusive.

        Returns (id, completion time in ns) of each completed command, in order of time.
        """
        raise NotImplementedError(f"{type(self).__name__} has no advance(self, to_ns)")

    def state(self) -> str:
        """Returns a line about the state, for `explain`."""
        return ""


D = TypeVar("D", bound=type[Device])


def register_device(device: D) -> D:
    """Registers a class. From then on, its name can be used as a device everywhere.

    This function can be used as a decorator. A class with the same name and parameters replaces the
    earlier class, so that a notebook cell can be run again.

    Raises:
        InputError: A built-in device has this name, or the name has invalid characters.
    """
    if not isinstance(device, type) or not issubclass(device, Device):
        raise TypeError(f"{device!r} is no subclass of seekwell.Device")
    if not isinstance(getattr(device, "name", None), str):
        raise TypeError(f'{device.__name__} has no name: write name = "my-device" in it')
    _seekwell.register_device(device)
    return device
