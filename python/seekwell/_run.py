"""The functions `run`, `replay`, `compare`, `arena`, `explain` and `calibrate`."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol

from seekwell import _seekwell
from seekwell._errors import InputError
from seekwell._seekwell import Calibration, Explained, Record, Results
from seekwell.device import Device, register_device
from seekwell.scheduler import Scheduler, register
from seekwell.workload import Workload, register_workload

PathLike = str | os.PathLike[str]
SchedulerLike = str | type[Scheduler]
DeviceLike = PathLike | type[Device]
WorkloadLike = str | type[Workload]

# Default for the largest number of stored events per run, as in the binary.
MOST_EVENTS = 250_000


def scheduler_name(scheduler: SchedulerLike) -> str:
    """Returns the name of a scheduler. Registers it if it is a class."""
    if isinstance(scheduler, str):
        return scheduler
    return register(scheduler).name


def device_name(device: DeviceLike) -> str:
    """Returns the name of a device. Registers it if it is a class."""
    return register_device(device).name if isinstance(device, type) else os.fspath(device)


def workload_name(workload: WorkloadLike) -> str:
    """Returns the name of a workload. Registers it if it is a class."""
    return workload if isinstance(workload, str) else register_workload(workload).name


def _options(
    device: DeviceLike,
    scheduler: SchedulerLike,
    seed: int,
    hz: int,
    nr_requests: int | None,
    depth: int | None,
    max_sectors_kb: int | None,
    nomerges: int,
    machine: str,
    beside: Sequence[str],
) -> dict[str, object]:
    return {
        "device": device_name(device),
        "scheduler": scheduler_name(scheduler),
        "seed": seed,
        "hz": hz,
        "nr_requests": nr_requests,
        "depth": depth,
        "max_sectors_kb": max_sectors_kb,
        "nomerges": nomerges,
        "machine": machine,
        "beside": list(beside),
    }


def run(
    workload: WorkloadLike,
    *,
    device: DeviceLike = "hdd:hitachi-7k200",
    scheduler: SchedulerLike = "deadline",
    params: Mapping[str, object] | None = None,
    seed: int = 1,
    hz: int = 250,
    nr_requests: int | None = None,
    depth: int | None = None,
    max_sectors_kb: int | None = None,
    nomerges: int = 0,
    machine: str = "",
    beside: Sequence[str] = (),
    events: bool = False,
    most_events: int = MOST_EVENTS,
) -> Record:
    """Runs a program once, in simulation.

    The interpreter's lock is released during the run, so several runs can use several threads.

    Args:
        workload: A name from `workloads()`, with parameters after a colon
            ("fs-mark:files=20,workers=4"), the path of a fio job file, or your own class.
        device: A name from `devices()`, the path of a preset file, or your own class.
        scheduler: A name from `schedulers()`, optionally with a version and tunables
            ("cfq-3.4:slice_idle=0"), or your own class.
        params: Parameters of the workload.
        seed: Seed of every random stream. The same seed gives the same bytes.
        hz: Clock ticks per second of the modelled kernel.
        nr_requests: queue/nr_requests. None: the default of the block layer.
        depth: device/queue_depth. None: the largest depth of the device.
        max_sectors_kb: queue/max_sectors_kb, KiB. None: the kernel's default.
        nomerges: queue/nomerges: 0 merges, 1 does only simple merges, 2 does not merge.
        machine: A name from `seekwell machines`, or settings ("memory=2G,cores=2").
        beside: Background workloads that run at the same time.
        events: Whether to store the events of the block layer (`Record.events()`).
        most_events: Largest number of stored events.

    Raises:
        InputError: A name or value is invalid. `nearest` has the name that was probably meant.
        SchedulerError, DeviceError, WorkloadError: Your own class failed.
        KeyboardInterrupt: Ctrl-C was pressed. The run ends immediately.
    """
    options = _options(
        device,
        scheduler,
        seed,
        hz,
        nr_requests,
        depth,
        max_sectors_kb,
        nomerges,
        machine,
        beside,
    )
    given = [f"{name}={_word(value)}" for name, value in (params or {}).items()]
    return _seekwell.run(workload_name(workload), given, options, most_events if events else None)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def replay(
    file: PathLike,
    *,
    device: DeviceLike = "hdd:hitachi-7k200",
    scheduler: SchedulerLike = "deadline",
    mode: str = "timed",
    format: str | None = None,
    fit: str = "strict",
    limit: int | None = None,
    volume: str | None = None,
    from_ns: int | None = None,
    until_ns: int | None = None,
    pids: Sequence[int] = (),
    allow_truncated: bool = False,
    seed: int = 1,
    hz: int = 250,
    nr_requests: int | None = None,
    depth: int | None = None,
    max_sectors_kb: int | None = None,
    nomerges: int = 0,
    events: bool = False,
    most_events: int = MOST_EVENTS,
) -> Record:
    """Replays a recorded trace on a modelled device.

    Args:
        file: The trace, in a format that `seekwell formats` lists. It may be compressed.
        mode: Timing: "timed", "scaled:1/10", "depth:8" or "closed".
        format: Format of the trace. None: it is detected.
        fit: "strict" rejects addresses beyond the device. "wrap" folds them into the device.
        limit: Largest number of I/Os.
        volume: The volume to replay, for a trace of several volumes.
        from_ns: Start of the replayed part, ns since the start of the trace.
        until_ns: End of the replayed part, ns since the start of the trace.
        pids: Process ids. Only I/Os of these processes are replayed. Empty: all I/Os.
        allow_truncated: Whether to accept a trace that ends in the middle of a record. The complete
            records are replayed.

    The other arguments are those of `run`.

    Raises:
        InputError: The trace cannot be read. The message has file, line and remedy.
    """
    options = _options(
        device, scheduler, seed, hz, nr_requests, depth, max_sectors_kb, nomerges, "", ()
    )
    said: dict[str, object] = {
        "mode": mode,
        "format": format,
        "fit": fit,
        "limit": limit,
        "volume": volume,
        "from_ns": from_ns,
        "until_ns": until_ns,
        "pids": sorted(pids),
        "allow_truncated": allow_truncated,
    }
    return _seekwell.replay(Path(file), said, options, most_events if events else None)


@dataclasses.dataclass
class Experiment:
    """An experiment. The attributes are those of an experiment file (docs/experiments.md).

    Attributes:
        devices: Names of devices, or your own classes.
        schedulers: Names of schedulers with settings, or your own classes.
        workloads: Names of workloads with parameters, or your own classes.
        name: Name of the experiment.
        repeats: Number of blocks. Each scheduler runs once per block. None: the stopping rule
            decides.
        seed: Seed of the runs and of their order.
        experiment: Other keys of the `[experiment]` table: margin, confidence, budget.
        more: Other tables of the file: machine, vary.
    """

    devices: Sequence[DeviceLike]
    schedulers: Sequence[SchedulerLike]
    workloads: Sequence[WorkloadLike]
    name: str = "experiment"
    repeats: int | None = None
    seed: int | None = None
    experiment: Mapping[str, object] = dataclasses.field(default_factory=dict)
    more: Mapping[str, object] = dataclasses.field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Returns the content of the experiment file as a dict."""
        about: dict[str, object] = {"name": self.name, **self.experiment}
        if self.repeats is not None:
            about["repeats"] = self.repeats
        if self.seed is not None:
            about["seed"] = self.seed
        return {
            "devices": list(self.devices),
            "schedulers": list(self.schedulers),
            "workloads": list(self.workloads),
            "experiment": about,
            **self.more,
        }


class DataclassLike(Protocol):
    """Any dataclass whose fields are those of an experiment file."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


ExperimentLike = PathLike | Mapping[str, Any] | Experiment | DataclassLike


_NAMED: Mapping[str, Callable[[Any], str]] = {
    "devices": device_name,
    "schedulers": scheduler_name,
    "workloads": workload_name,
}


def experiment_text(experiment: ExperimentLike) -> tuple[str, str | None]:
    """Returns the text of an experiment file, and the name of the file if it exists."""
    if isinstance(experiment, str | os.PathLike):
        name = os.fspath(experiment)
        try:
            return Path(name).read_text(encoding="utf-8"), name
        except (OSError, UnicodeError) as e:
            raise InputError(f"{name}: {e}", file=name) from e
    if isinstance(experiment, Experiment):
        experiment = experiment.to_dict()
    elif dataclasses.is_dataclass(experiment) and not isinstance(experiment, type):
        experiment = dataclasses.asdict(experiment)
    if not isinstance(experiment, Mapping):
        kind = type(experiment).__name__
        raise TypeError(f"an experiment is a path, a dict or a dataclass, not {kind}")
    plain = dict(experiment)
    for field, named in _NAMED.items():
        if isinstance(plain.get(field), list | tuple):
            plain[field] = [named(of) if isinstance(of, type) else of for of in plain[field]]
    return _seekwell.experiment_text(plain), None


def compare(
    experiment: ExperimentLike,
    *,
    results: PathLike | None = None,
    threads: int | None = None,
    budget_s: float | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Results:
    """Runs an experiment. The results have the same bytes as those of `seekwell compare FILE.toml`.

    Every run is stored in the results folder when it ends. After Ctrl-C or the loss of the process,
    the same call continues the experiment.

    Args:
        experiment: A file, or its content as a dict, an `Experiment` or another dataclass.
        results: The results folder. None: a temporary folder, which is deleted together with the
            returned object.
        threads: Number of simultaneous runs. None: one per core. The results do not depend on it.
        budget_s: Time in seconds after which no further block starts.
        progress: Called with the number of finished runs and the number of planned runs. If it
            raises, the experiment ends.

    Raises:
        InputError: The experiment has faults. The message lists file, line, field and remedy.
        StoreError: The folder cannot be written, for example because the disk is full, or it
            belongs to another experiment.
    """
    source = experiment_text(experiment)
    if budget_s is not None and not 0 <= budget_s < 1e12:
        raise InputError(f"budget_s: {budget_s} is not a valid time in seconds")
    if threads is not None and threads < 1:
        raise InputError(f"threads: {threads} is too small; give 1 or more, or None for all cores")
    if results is not None:
        return _seekwell.carry_out(source, Path(results), threads, budget_s, progress)
    home = tempfile.mkdtemp(prefix="seekwell-")
    try:
        folder = Path(home) / "results"
        kept = _seekwell.carry_out(source, folder, threads, budget_s, progress)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    # The folder is deleted together with the results object, or at the end of the process.
    weakref.finalize(kept, shutil.rmtree, home, ignore_errors=True)
    return kept


def arena(
    scheduler: SchedulerLike,
    *,
    rivals: Sequence[SchedulerLike] | None = None,
    devices: Sequence[DeviceLike] = (),
    workloads: Sequence[WorkloadLike] = (),
    traces: Sequence[PathLike] = (),
    seeds: int = 3,
    seed: int = 1,
    threads: int | None = None,
) -> dict[str, Any]:
    """Compares a scheduler with its rivals, with the same seeds in the same cells.

    Args:
        scheduler: The scheduler to be compared.
        rivals: The other schedulers. None: every other scheduler of the same layer.
        devices: Devices. Empty: those that `seekwell compare` uses for the scheduler's era.
        workloads: Workloads. Empty: those of `seekwell compare`.
        traces: Traces that are replayed in addition to the workloads.
        seeds: Number of seeds. Confidence intervals need at least 2.
        seed: The first seed.
        threads: Number of simultaneous runs. None: one per core.

    Returns:
        A dict. `places` has one entry per scheduler, with its mean throughput, p99 and fairness
        relative to all schedulers in the same cell. The values are factors (larger is better), with
        95 % intervals over the seeds. `front` is true if no other scheduler is better in all three.
        `behind` lists the cells in which the compared scheduler is significantly worse than another
        one. The worst cell comes first.
    """
    name = scheduler_name(scheduler)
    if rivals is None:
        all_of = _seekwell.schedulers()
        plain = name.split(":")[0]
        own = [s for s in all_of if plain in (s["name"], *_versioned(s))]
        layer = own[0]["layer"] if own else None
        met = [s["name"] for s in all_of if s["layer"] == layer and s not in own]
    else:
        met = [scheduler_name(s) for s in rivals]
    own_devices = [device_name(d) for d in devices]
    ground = (own_devices, [workload_name(w) for w in workloads], [os.fspath(t) for t in traces])
    return _seekwell.arena([name, *met], ground, seeds, seed, threads)


def _versioned(scheduler: Mapping[str, Any]) -> list[str]:
    return [f"{scheduler['name']}-{version}" for version in scheduler["versions"]]


def read_results(folder: PathLike) -> Results:
    """Reads a results folder. The experiment may be unfinished.

    Raises:
        StoreError: The folder does not exist, or it is damaged.
    """
    return _seekwell.read_results(Path(folder))


def explain(
    file: PathLike,
    *,
    scheduler: SchedulerLike | None = None,
    case: str | None = None,
    tunables: Mapping[str, object] | None = None,
    events: bool = True,
    keep_tunables: bool = False,
) -> list[Explained]:
    """Runs a scheduler on given requests, and returns its decisions with their reasons.

    Args:
        file: A request list (CSV), or cases with recorded decisions (JSON lines). It may be
            compressed.
        scheduler: The scheduler to run. None: the scheduler that each case names.
        case: Name of the only case to run. None: all cases.
        tunables: Tunables to set.
        events: Whether to store every event, with rule, reason and state.
        keep_tunables: Whether a given `scheduler` gets the tunables of the case, as far as it has
            them. Otherwise it uses its defaults.

    Raises:
        InputError: The file cannot be read. The message has file, line and remedy.
    """
    name = None if scheduler is None else scheduler_name(scheduler)
    given = [f"{key}={_word(value)}" for key, value in (tunables or {}).items()]
    return _seekwell.explain(Path(file), name, case, given, events, keep_tunables)


def calibrate(
    device: str,
    *,
    name: str | None = None,
    seed: int = 1,
    budget_s: float = 180.0,
    allow_write: bool = False,
) -> Calibration:
    """Fits a device model to a modelled disk by probing the disk, in virtual time.

    Args:
        device: A name from `devices()`. To calibrate a real disk, use the command
            `seekwell calibrate /dev/...`.
        name: Name of the preset. None: derived from the name of the device.
        seed: Seed of the positions that are probed.
        budget_s: Time for all probes on the device's clock, s.
        allow_write: Whether the probes may write.

    Raises:
        InputError: No device has this name.
    """
    if "/dev/" in device:
        what = f"{device} is a real disk: use the command line, `seekwell calibrate {device}`"
        raise InputError(what)
    good = "".join(c if c.isalnum() or c in "-_." else "-" for c in device)
    return _seekwell.calibrate(device, name or good, seed, budget_s, allow_write)
