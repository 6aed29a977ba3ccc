"""Seekwell: which I/O scheduler, with which settings, is best for this device and this workload?

The words are the command line's: `run` one program, `replay` a trace, `compare` an experiment,
`explain` decisions, `calibrate` a device model, `read_results` of a folder. Tables are Arrow's
memory and go without a copy to polars, pyarrow and DuckDB. A scheduler can be written in Python
(`Scheduler`), held to the tree's properties (`check`) and compared with all others.

Times are integer nanoseconds, addresses and lengths sectors of 512 bytes, where nothing else is
said.
"""

from seekwell._errors import (
    CheckError,
    InputError,
    RunError,
    SchedulerError,
    SeekwellError,
    StoreError,
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
from seekwell.scheduler import Queue, Scheduler, Tunable, check, register, set_callback_limit

__version__ = version()[0]

__all__ = [
    "Bio",
    "Calibration",
    "CheckError",
    "Cx",
    "Experiment",
    "Explained",
    "InputError",
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
    "__version__",
    "arena",
    "calibrate",
    "check",
    "compare",
    "devices",
    "explain",
    "read_results",
    "register",
    "replay",
    "run",
    "schedulers",
    "set_callback_limit",
    "workloads",
]
