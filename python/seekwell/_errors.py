"""Exceptions. Their words are the binary's: what was wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Sequence


class SeekwellError(Exception):
    """Anything that went wrong in Seekwell.

    Attributes:
        file: The file that is meant; None: none is.
        line: Its line, from 1; None: not known, or no file.
        nearest: The word that was probably meant; None: no word is near.
        faults: All that is wrong, each as (line, field, fault with remedy); line 0: no file.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        nearest: str | None = None,
        faults: Sequence[tuple[int, str, str]] = (),
    ) -> None:
        super().__init__(message)
        self.file = file
        self.line = line
        self.nearest = nearest
        self.faults = list(faults)


class InputError(SeekwellError, ValueError):
    """What was asked for cannot be: a name that is none, a file that cannot be read."""


class RunError(SeekwellError, RuntimeError):
    """A run came to nothing."""


class StoreError(SeekwellError, OSError):
    """Results cannot be kept or read; what was kept until then is there."""


class SchedulerError(RunError):
    """A scheduler in Python raised, lost a request, let one go twice, or did not return.

    `__cause__` is what it raised, with its traceback.
    """


class DeviceError(RunError):
    """A device in Python raised, said what cannot be, or did not return.

    `__cause__` is what it raised, with its traceback.
    """


class WorkloadError(RunError):
    """A workload in Python raised, or did not return.

    `__cause__` is what it raised, with its traceback.
    """


class CheckError(SeekwellError, AssertionError):
    """A property does not hold: which, and the smallest case that was found."""


class Overdue(BaseException):
    """Raised inside a callback that does not return; no `except Exception` holds it up."""
