"""Seekwell: which I/O scheduler, with which settings, is best for this device and this workload?

The words are the command line's: `run` one program, `replay` a trace, `compare` an experiment,
`explain` decisions, `calibrate` a device model, `read_results` of a folder. Tables are Arrow's
memory and go without a copy to polars, pyarrow and DuckDB. A scheduler, a device model and a
workload can be written in Python (`Scheduler`, `Device`, `Workload`), held to the tree's properties
(`check`) and compared with all others.

Times are integer nanoseconds, addresses and lengths sectors of 512 bytes, where nothing else is
said.
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
