"""Parameters of devices and workloads in Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """A number or a switch that users can set, as `NAME:parameter=value` and in experiments.

    Before `__init__` is called, the instance gets an attribute of this name with the value.

    Attributes:
        name: Name, as users type it. It consists of lower-case letters, digits and `_`.
        default: Default value. A bool is typed as yes or no, and an int is an integer.
        unit: Unit for display, for example "us" or "requests".
        min: Smallest value, 0 or more.
        max: Largest value. None: 2**53.
        help: Description in one line.
    """

    name: str
    default: float
    unit: str = ""
    min: float = 0
    max: float | None = None
    help: str = ""
