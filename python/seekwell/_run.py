"""The words of the command line: `run`, `replay`, `compare`, `explain`, `calibrate`."""

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

# Events of a run that are kept, as the binary has it.
MOST_EVENTS = 250_000


def scheduler_name(scheduler: SchedulerLike) -> str:
    """The name of a scheduler; a class is registered for it."""
    if isinstance(scheduler, str):
        return scheduler
    return register(scheduler).name


def device_name(device: DeviceLike) -> str:
    """The name of a device; a class is registered for it."""
    return register_device(device).name if isinstance(device, type) else os.fspath(device)


def workload_name(workload: WorkloadLike) -> str:
    """The name of a workload; a class is registered for it."""
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
    """Runs a program once, in simulation, without the interpreter's lock: many go on threads.

    Args:
        workload: A name of `workloads()`, with parameters behind a colon
            ("fs-mark:files=20,workers=4"), the path of a fio job file, or a class of your own.
        device: A name of `devices()`, the path of a preset file, or a class of your own.
        scheduler: A name of `schedulers()`, with version and tunables where wanted
            ("cfq-3.4:slice_idle=0"), or a class of your own.
        params: Parameters of the workload.
        seed: Seed of every random stream: same seed, same bytes.
        hz: Ticks a second of the modelled kernel.
        nr_requests: queue/nr_requests; None: the layer's.
        depth: device/queue_depth; None: what the device takes.
        max_sectors_kb: queue/max_sectors_kb, KiB; None: the kernel generation's.
        nomerges: queue/nomerges: 0 merge, 1 simple merges only, 2 none.
        machine: A name of `seekwell machines`, or its words ("memory=2G,cores=2").
        beside: Workloads that run beside it.
        events: Keep what happened in the block layer: `Record.events()`.
        most_events: Keep at most so many.

    Raises:
        InputError: something asked for is none, with what was probably meant.
        SchedulerError, DeviceError, WorkloadError: a class of your own failed.
        KeyboardInterrupt: Ctrl-C; the run ends at once.
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
        file: The trace, of any format of `seekwell formats`, also compressed.
        mode: "timed", "scaled:1/10", "depth:8" or "closed".
        format: What it is; None: it is recognised.
        fit: "strict", or "wrap" to put addresses beyond the device into it.
        limit: I/Os at most.
        volume: One volume of a trace of many.
        from_ns: The part of the trace that is replayed, ns since its begin.
        until_ns: Its end.
        pids: Only what these processes did.
        allow_truncated: A trace that ends in the middle of a record is replayed up to there.

    The rest is as `run` has it.

    Raises:
        InputError: the trace cannot be read: file, line and remedy.
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
    """An experiment, by the fields of an experiment file (docs/experiments.md).

    Attributes:
        devices: Names of devices, or classes of your own.
        schedulers: Names of schedulers with what is set, or classes of your own.
        workloads: Names of workloads with parameters, or classes of your own.
        name: What it is called.
        repeats: Blocks: each scheduler runs once in each. None: as the stopping rule says.
        seed: Seed of the order of runs, and of the runs.
        experiment: More of the `[experiment]` table: margin, confidence, budget.
        more: More of the file's tables: machine, vary.
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
        """As a file has it."""
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
    """An experiment as the text of a file, and the file, if it is one."""
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
    """Carries an experiment out, as `seekwell compare FILE.toml` does, with the same bytes.

    Every run is kept in the folder as it ends. After Ctrl-C or a lost process the same call goes on
    where it was.

    Args:
        experiment: A file, or its content as a dict, an `Experiment` or another dataclass.
        results: The folder; None: one that goes away with what is returned.
        threads: Runs at a time; None: one a core. The results do not depend on it.
        budget_s: Begin no more blocks after so many seconds.
        progress: Is called with the runs that ended and those that are planned so far; if it
            raises, the experiment ends.

    Raises:
        InputError: all that is wrong with the experiment: file, line, field, remedy.
        StoreError: the folder cannot be written (a full disk), or is of another experiment.
    """
    source = experiment_text(experiment)
    if budget_s is not None and not 0 <= budget_s < 1e12:
        raise InputError(f"budget_s: {budget_s} is no time; give seconds")
    if threads is not None and threads < 1:
        raise InputError(f"threads: {threads} is none; give 1 or more, or None for one a core")
    if results is not None:
        return _seekwell.carry_out(source, Path(results), threads, budget_s, progress)
    home = tempfile.mkdtemp(prefix="seekwell-")
    try:
        folder = Path(home) / "results"
        kept = _seekwell.carry_out(source, folder, threads, budget_s, progress)
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    # It goes away with what was made of it, or with the process.
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
    """Meets a scheduler with its rivals, with the same seeds in the same cells.

    Args:
        scheduler: Whom it is about.
        rivals: Whom it meets; None: every scheduler of its layer.
        devices: Where; none named: those that `seekwell compare` takes for the scheduler's era.
        workloads: Under what; none named: those of `seekwell compare`.
        traces: And under these.
        seeds: So many, at least 2 for intervals.
        seed: The first.
        threads: Runs at a time; None: one a core.

    Returns:
        `places`: everybody with the means of throughput, p99 and fairness against all in the same
        cell, as factors (larger is better) with 95 % intervals over the seeds, and whether nobody
        beats him in all three (`front`); `behind`: the cells where the first is surely behind
        somebody, the worst first.
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
    """Reads a results folder, also one of an experiment that goes on.

    Raises:
        StoreError: there is none, or it is damaged.
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
    """Puts a scheduler under the microscope: what it decides on given requests, and why.

    Args:
        file: A request list (CSV), or cases with recorded decisions (JSON lines, also compressed).
        scheduler: Under which it runs; None: the one that each case names.
        case: Only this one.
        tunables: What is set.
        events: Keep every event, with rules, reasons and states.
        keep_tunables: Another scheduler gets what the case sets, as far as it has that; its own
            defaults otherwise.

    Raises:
        InputError: the file cannot be read: file, line and remedy.
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
    """Fits a device model to a modelled disk by probing it, on virtual time.

    Args:
        device: A name of `devices()`. A real disk is calibrated by `seekwell calibrate /dev/...`.
        name: What the preset is called; None: made of the device's.
        seed: Seed of the places that are probed.
        budget_s: Time for everything on the device's clock, s.
        allow_write: Write, too.

    Raises:
        InputError: no device is called so.
    """
    if "/dev/" in device:
        what = (
            f"{device}: a real disk is calibrated by the command line: seekwell calibrate {device}"
        )
        raise InputError(what)
    good = "".join(c if c.isalnum() or c in "-_." else "-" for c in device)
    return _seekwell.calibrate(device, name or good, seed, budget_s, allow_write)
