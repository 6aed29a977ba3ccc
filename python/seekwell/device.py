"""Device models in Python: a class that says when a command is done, by the contract of the tree's
own models.

Slow: every call goes through the interpreter. For teaching and for a first idea.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, TypeVar

from seekwell import _seekwell
from seekwell._seekwell import Command
from seekwell.parameters import Parameter

__all__ = ["Command", "Device", "register_device"]


class Device:
    """What a device model in Python is a subclass of.

    A model that knows at once when a command will be done has `serve`. One that decides later (it
    has a queue that it sorts) has `accept`, `next_event` and `advance` instead. Both have no clock,
    no thread and no randomness but what follows from `self.seed`: the same seed gives the same
    bytes.

    What `__init__` finds: `self.seed` and the parameters. It takes no arguments, and may set the
    facts below anew, as attributes of the instance.
    """

    name: ClassVar[str]
    """As it is typed: small letters, digits, `-` and `_`."""
    summary: ClassVar[str] = "a device in Python"
    """One line."""
    parameters: ClassVar[Sequence[Parameter]] = ()
    """What can be set."""

    seed: int
    """Of the run."""

    capacity: int = 1 << 28
    """Sectors of 512 bytes."""
    depth: int = 1
    """Commands that it takes at a time through each of its hardware queues."""
    hw_queues: int = 1
    """Hardware queues."""
    rotational: bool = False
    """queue/rotational: cfq, bfq and adios change their ways."""
    write_cache: bool = False
    """Has a volatile write cache: flushes are sent."""
    fua: bool = False
    """Takes write-through commands."""
    max_sectors: int = 65535
    """Largest command, sectors."""

    def serve(self, now_ns: int, command: Command) -> int:
        """When a command that comes now is done, ns; now or later. Once for each command."""
        raise NotImplementedError(f"{type(self).__name__} has no serve(self, now_ns, command)")

    def accept(self, now_ns: int, command: Command) -> bool:
        """Takes a command, or says False: it is full, and is asked again after a completion."""
        raise NotImplementedError(f"{type(self).__name__} has no accept(self, now_ns, command)")

    def next_event(self) -> int | None:
        """The earliest time, ns, at which something changes by itself; None: it rests."""
        raise NotImplementedError(f"{type(self).__name__} has no next_event(self)")

    def advance(self, to_ns: int) -> Iterable[tuple[int, int]]:
        """Goes to a time, inclusive: (id, when it was done) of each command, in order of time."""
        raise NotImplementedError(f"{type(self).__name__} has no advance(self, to_ns)")

    def state(self) -> str:
        """A line about the state, for `explain`."""
        return ""


D = TypeVar("D", bound=type[Device])


def register_device(device: D) -> D:
    """Puts a class among the kinds of devices; from then on its name is a device everywhere.

    May stand above a class as a decorator. A class of the same name and parameters takes the place
    of the one before, so that a cell of a notebook can be run again.

    Raises:
        InputError: the name is taken by one of the tree, or cannot be typed.
    """
    if not isinstance(device, type) or not issubclass(device, Device):
        raise TypeError(f"{device!r} is no subclass of seekwell.Device")
    if not isinstance(getattr(device, "name", None), str):
        raise TypeError(f'{device.__name__} has no name: write name = "my-device" in it')
    _seekwell.register_device(device)
    return device
