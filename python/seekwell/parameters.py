"""Parameters of devices and workloads in Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Parameter:
    """A number or a switch that can be set: `NAME:parameter=value`, and in experiments.

    The instance has it as an attribute of this name before `__init__` is called.

    Attributes:
        name: As it is typed: small letters, digits, `_`.
        default: Its value at first; a bool is typed as yes or no, an int is a whole number.
        unit: For people: "us", "requests".
        min: Smallest value, 0 or more.
        max: Largest value; None: 2**53.
        help: One line.
    """

    name: str
    default: float
    unit: str = ""
    min: float = 0
    max: float | None = None
    help: str = ""
