"""Seekwell: which I/O scheduler, with which settings, is best for this device and this workload?

The functions have the names of the command line: `run` runs a program, `replay` replays a trace,
`compare` runs an experiment, and `explain` shows decisions. `calibrate` fits a device model, and
`read_results` reads a results folder. Tables are in Arrow format, and polars, pyarrow and DuckDB
read them without a copy. Schedulers, device models and workloads can be written in Python
(`Scheduler`, `Device`, `Workload`). `check` runs the project's property tests for them, and they
can be compared with the built-in ones.

Unless stated otherwise, times are integers in nanoseconds, and addresses and lengths are in
sectors of 512 bytes.
"""

from seekwell._errors import (
    CheckError,
    DeviceError,
    InputError,
    RunError,
    SchedulerError,
    SeekwellError,
    StoreError,
    WorkloadError,
)
from seekwell._run import (
    Experiment,
    arena,
    calibrate,
    compare,
    explain,
    read_results,
    replay,
    run,
)
from seekwell._seekwell import (
    Bio,
    Calibration,
    Command,
    Cx,
    Explained,
    Record,
    Request,
    Results,
    Table,
    devices,
    schedulers,
    version,
    workloads,
)
from seekwell.check import check
from seekwell.device import Device, register_device
from seekwell.parameters import Parameter
from seekwell.scheduler import Queue, Scheduler, Tunable, register, set_callback_limit
from seekwell.workload import Machine, Workload, register_workload

__version__ = version()[0]

__all__ = [
    "Bio",
    "Calibration",
    "CheckError",
    "Command",
    "Cx",
    "Device",
    "DeviceError",
    "Experiment",
    "Explained",
    "InputError",
    "Machine",
    "Parameter",
    "Queue",
    "Record",
    "Request",
    "Results",
    "RunError",
    "Scheduler",
    "SchedulerError",
    "SeekwellError",
    "StoreError",
    "Table",
    "Tunable",
    "Workload",
    "WorkloadError",
    "__version__",
    "arena",
    "calibrate",
    "check",
    "compare",
    "devices",
    "explain",
    "read_results",
    "register",
    "register_device",
    "register_workload",
    "replay",
    "run",
    "schedulers",
    "set_callback_limit",
    "workloads",
]
