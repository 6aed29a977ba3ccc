"""Exceptions. Their messages say what is wrong, where, and what to do, as in the binary."""

from __future__ import annotations

from collections.abc import Sequence


class SeekwellError(Exception):
    """Base class of all errors of Seekwell.

    Attributes:
        file: The file with the error. None: the error is not in a file.
        line: Line number in the file, from 1. None: unknown, or the error is not in a file.
        nearest: The word that the user probably meant. None: no word is similar.
        faults: All faults, each as (line, field, fault with remedy). Line 0: not in a file.
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
    """The input is invalid, for example an unknown name or a file that cannot be read."""


class RunError(SeekwellError, RuntimeError):
    """A run failed and has no result."""


class StoreError(SeekwellError, OSError):
    """Results cannot be stored or read. Results that were stored before the error are kept."""


class SchedulerError(RunError):
    """A scheduler in Python raised, lost a request, dispatched one twice, or did not return.

    `__cause__` is the exception of the scheduler, with its traceback.
    """


class DeviceError(RunError):
    """A device in Python raised, returned an impossible value, or did not return.

    `__cause__` is the exception of the device, with its traceback.
    """


class WorkloadError(RunError):
    """A workload in Python raised, or did not return.

    `__cause__` is the exception of the workload, with its traceback.
    """


class CheckError(SeekwellError, AssertionError):
    """A property does not hold. The message names it and the smallest failing case found."""


class Overdue(BaseException):
    """Raised inside a callback that takes too long. `except Exception` does not catch it."""
