"""Searches the tunables of schedulers, and judges what was found where it was not searched.

The search is Optuna's: TPE for one objective, with settings that fall behind after a few seeds
given up, NSGA-II for several. What it finds is the luckiest of many tries, so its own figure says
nothing: the gain that is told is that on other seeds, and where they are named other workloads,
against the defaults in the same runs, with its interval. Nothing is claimed where that holds 0.

Left out: real disks (`seekwell compare --host` on what was found).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seekwell import _seekwell
from seekwell._errors import InputError
from seekwell._run import Experiment, PathLike, SchedulerLike, compare, run, scheduler_name
from seekwell._seekwell import Record

# A gain below that is too small to matter, as everywhere in the lab.
MARGIN = 0.02
ALPHA = 0.05
TRIALS = 60
TRAIN_SEEDS = tuple(range(1, 6))
TEST_SEEDS = tuple(range(1001, 1013))
# How far a tunable is searched from its default: so many doublings, up and down.
DOUBLINGS = 5
# Settings that are tried before one is given up for falling behind.
PRUNE_AFTER = 10

Evaluate = Callable[[str, str, int], float | Sequence[float]]
"""Scheduler with settings, workload, seed: the objectives' values, larger is better, as logs."""


def _throughput(record: Record) -> float:
    """The workload's own figure; where it has none, bytes a second."""
    if record.value is None:
        return math.log(max(record.bytes_per_s, 1e-12))
    value = math.log(max(record.value, 1e-12))
    return value if record.higher_is_better else -value


def _p99(record: Record) -> float:
    """The 99th percentile of the latency of the most frequent operation, ns, as a loss."""
    table = record.operations()
    rows = list(
        zip(table.column("layer"), table.column("count"), table.column("p99_ns"), strict=True)
    )
    own = [r for r in rows if r[0] == "workload"] or rows
    if not own:
        return 0.0
    return -math.log(max(max(own, key=lambda r: r[1])[2], 1))


def _fairness(record: Record) -> float:
    """Jain's index of the processes' bytes: 1 is even, 1/n is one who has all."""
    shares = [float(b) for b in record.processes().column("bytes")]
    squares = sum(b * b for b in shares)
    if squares == 0:
        return 0.0
    return math.log(sum(shares) ** 2 / (len(shares) * squares))


OBJECTIVES: Mapping[str, Callable[[Record], float]] = {
    "throughput": _throughput,
    "p99": _p99,
    "fairness": _fairness,
}


@dataclass(frozen=True)
class Knob:
    """A tunable that is searched: its values, ascending."""

    name: str
    values: tuple[int, ...]


def _grid(low: int, high: int, default: int) -> tuple[int, ...]:
    """The default, doubled and halved, and 0 where it may be."""
    base = max(abs(default), 1)
    steps = {round(base * 2.0**k) for k in range(-DOUBLINGS, DOUBLINGS + 1)}
    found = {v for v in steps | {0, 1, default} if low <= v <= high}
    return tuple(sorted(found))


def knobs(scheduler: str, asked: Mapping[str, Sequence[int]] | Iterable[str] | None) -> list[Knob]:
    """What of a scheduler is searched: all its numbers, those named, or the values given."""
    name = scheduler.split(":", maxsplit=1)[0]
    known = [s for s in _seekwell.schedulers() if name in _names(s)]
    if not known:
        # The words of the error are the run's own.
        run("fs-mark:files=1", scheduler=scheduler)
        raise InputError(f"{name}: its tunables are not known")
    tunables = {t["name"]: t for t in known[0]["tunables"]}
    given: dict[str, Sequence[int] | None] = {}
    if asked is None:
        given = dict.fromkeys(tunables)
    elif isinstance(asked, Mapping):
        given = {k: tuple(v) for k, v in asked.items()}
    else:
        given = dict.fromkeys(asked)
    out: list[Knob] = []
    for key, values in given.items():
        if key not in tunables:
            there = ", ".join(tunables) or "none"
            raise InputError(f"{name} has no tunable `{key}`; it has {there}")
        of = tunables[key]
        if of["kind"] in ("Text", "ReadOnly"):
            if asked is not None:
                raise InputError(f"{name}: `{key}` is no number that can be searched")
            continue
        usual: tuple[int, ...] = (0, 1)
        if of["kind"] != "Bool":
            usual = _grid(of["min"], of["max"], int(of["default"]))
        searched = sorted(set(usual if values is None else values))
        if len(searched) > 1:
            out.append(Knob(key, tuple(searched)))
    return out


def _names(scheduler: Mapping[str, Any]) -> list[str]:
    own = str(scheduler["name"])
    return [own, *(f"{own}-{v}" for v in scheduler["versions"])]


@dataclass(frozen=True)
class Gain:
    """What was gained over the default, as a factor: 1.1 is 10 % better.

    Attributes:
        objective: Of what.
        factor: Mean over the seeds.
        low: Lower end of its 95 % interval.
        high: Its upper end.
        n: Seeds.
    """

    objective: str
    factor: float
    low: float
    high: float
    n: int

    @property
    def claimed(self) -> bool:
        """Whether it is better beyond chance."""
        return self.low > 1.0

    def __str__(self) -> str:
        def percent(x: float) -> str:
            return f"{(x - 1) * 100:+.1f} %"

        span = f"{percent(self.factor)} (95 %: {percent(self.low)} to {percent(self.high)})"
        return f"{self.objective}: {span}, {self.n} seeds"


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    Attributes:
        default: The scheduler as it was given; of several the best by itself.
        best: The best setting that was found, as it is typed.
        trials: Settings that were tried.
        pruned: Of them, given up after some of the seeds.
        front: With several objectives, the settings that none beats in all: each with its gains
            where it was searched.
        gains: Of `best`, held out: on seeds and workloads that were not searched on.
        results: The folder that `seekwell apply` takes; None: none was asked for, or there is
            nothing to compare.
    """

    default: str
    best: str
    trials: int
    pruned: int
    front: list[tuple[str, list[float]]]
    gains: list[Gain]
    results: Path | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def better(self) -> bool:
        """Whether something was gained beyond chance, and nothing lost beyond it."""
        lost = any(g.high < 1.0 for g in self.gains)
        return any(g.claimed for g in self.gains) and not lost

    def summary(self) -> str:
        """In words."""
        lines = [f"tried {self.trials} settings, {self.pruned} given up early"]
        lines += [f"  {text}" for text, _ in self.front if len(self.gains) > 1]
        lines.append(f"best where it was searched: {self.best} (default: {self.default})")
        lines.append("on seeds and workloads that were held out:")
        lines += [f"  {gain}" for gain in self.gains] or ["  it is the default itself"]
        if not self.better:
            lines.append(f"defaults are as good: keep {self.default}")
        elif all(g.high < 1 + MARGIN for g in self.gains):
            lines.append("the gain is real, and too small to matter: below 2 %")
        else:
            lines.append(f"use {self.best}")
        if self.results is not None:
            lines.append(f"results: {self.results}")
            lines.append(f"  sudo seekwell apply {self.results} --device NAME")
        return "\n".join(lines + self.notes)


class _Bench:
    """Runs settings, each once, and keeps what they gave."""

    def __init__(self, evaluate: Evaluate, threads: int | None) -> None:
        self.evaluate = evaluate
        self.pool = ThreadPoolExecutor(threads)
        self.known: dict[tuple[str, str, int], tuple[float, ...]] = {}

    def all(self, settings: Sequence[str], workloads: Sequence[str], seeds: Sequence[int]) -> None:
        """Runs what is missing, side by side."""
        wanted = [(s, w, n) for s in settings for w in workloads for n in seeds]
        missing = [key for key in wanted if key not in self.known]
        for key, value in zip(missing, self.pool.map(self._one, missing), strict=True):
            self.known[key] = value

    def _one(self, key: tuple[str, str, int]) -> tuple[float, ...]:
        value = self.evaluate(*key)
        values = (float(value),) if isinstance(value, int | float) else tuple(map(float, value))
        if not all(math.isfinite(v) for v in values):
            setting, workload, seed = key
            raise InputError(f"{workload} under {setting}, seed {seed}: {values} is no figure")
        return values

    def gain(
        self, setting: str, default: str, workloads: Sequence[str], seed: int
    ) -> tuple[float, ...]:
        """Of one seed, mean over the workloads."""
        self.all([setting, default], workloads, [seed])
        pairs = [(self.known[setting, w, seed], self.known[default, w, seed]) for w in workloads]
        count = len(pairs[0][0])
        return tuple(sum(a[i] - b[i] for a, b in pairs) / len(pairs) for i in range(count))


def interval(values: Sequence[float], alpha: float = ALPHA) -> tuple[float, float, float]:
    """Mean and t interval."""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return mean, -math.inf, math.inf
    sd = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1))
    half = _seekwell.t_quantile(1 - alpha / 2, n - 1) * sd / math.sqrt(n)
    return mean, mean - half, mean + half


def _factor(log: float) -> float:
    return math.exp(min(log, 700.0))


def _typed(scheduler: str, values: Mapping[str, int]) -> str:
    return scheduler + "".join(f":{k}={v}" for k, v in values.items())


def tune(
    *,
    device: PathLike = "hdd:hitachi-7k200",
    workloads: Sequence[str],
    schedulers: SchedulerLike | Sequence[SchedulerLike],
    objectives: str | Sequence[str] = "throughput",
    tunables: Mapping[str, Sequence[int]] | Iterable[str] | None = None,
    trials: int = TRIALS,
    train_seeds: Sequence[int] = TRAIN_SEEDS,
    test_seeds: Sequence[int] = TEST_SEEDS,
    held_out: Sequence[str] = (),
    machine: str = "",
    seed: int = 1,
    threads: int | None = None,
    results: PathLike | None = None,
    evaluate: Evaluate | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Tuned:
    """Searches the tunables of one or several schedulers for a device and a mix of workloads.

    Args:
        device: A name of `devices()`, or the path of a preset file.
        workloads: On which it is searched.
        schedulers: One or several.
        objectives: "throughput" (the workload's own figure), "p99" (of the latency of the most
            frequent operation), "fairness" (Jain's index of the processes' bytes), or several.
        tunables: Which are searched; with a mapping their values. None: all numbers, from the
            default 5 doublings up and down, and 0.
        trials: Settings that are tried at most.
        train_seeds: Seeds on which it is searched.
        test_seeds: Seeds on which it is judged; none of them may be among the others.
        held_out: Workloads on which it is judged; those of the search, if none is named.
        machine: As `run` has it.
        seed: Of the search.
        threads: Runs at a time; None: one a core.
        results: A new folder for what `seekwell apply` takes: default and best on the held-out
            workloads.
        evaluate: Gives the figures instead of a simulation: scheduler, workload, seed to
            logarithms, larger is better.
        progress: Is called with the settings that were tried and those to be tried.

    Raises:
        InputError: a name that is none; seeds on both sides.
        ImportError: Optuna is not installed.
    """
    optuna = _optuna()
    names = [objectives] if isinstance(objectives, str) else list(objectives)
    _checked(names, workloads, train_seeds, test_seeds, trials)
    given = [schedulers] if isinstance(schedulers, str | type) else list(schedulers)
    texts = [scheduler_name(s) for s in given]
    if not texts:
        raise InputError("schedulers: name at least one")
    space = {text: knobs(text, tunables) for text in texts}
    if evaluate is None:
        of = [OBJECTIVES[name] for name in names]

        def evaluate(scheduler: str, workload: str, seed: int) -> Sequence[float]:
            record = run(workload, device=device, scheduler=scheduler, seed=seed, machine=machine)
            return [f(record) for f in of]

    bench = _Bench(evaluate, threads)
    try:
        # Of several defaults the one is to be beaten that is best by itself.
        bench.all(texts, workloads, train_seeds)

        def own(text: str) -> float:
            values = [bench.known[text, w, n][0] for w in workloads for n in train_seeds]
            return sum(values)

        default = max(texts, key=own)
        study, front = _search(
            optuna, bench, space, default, names, workloads, train_seeds, trials, seed, progress
        )
        best = front[0][0]
        judged = list(held_out) or list(workloads)
        gains: list[Gain] = []
        if best != default:
            bench.all([best, default], judged, test_seeds)
            each = [bench.gain(best, default, judged, n) for n in test_seeds]
            for i, name in enumerate(names):
                # Several objectives are several chances to be lucky.
                mean, low, high = interval([e[i] for e in each], ALPHA / len(names))
                gains.append(
                    Gain(name, _factor(mean), _factor(low), _factor(high), len(test_seeds))
                )
    finally:
        bench.pool.shutdown(cancel_futures=True)
    states = [t.state for t in study.trials]
    pruned = sum(s == optuna.trial.TrialState.PRUNED for s in states)
    folder, notes = None, []
    if results is not None and best != default:
        folder = _stored(device, default, best, judged, test_seeds, results, threads)
    elif results is not None:
        notes.append(f"nothing is written to {results}: the best is the default itself")
    return Tuned(default, best, len(states), pruned, front, gains, folder, notes)


def _checked(
    names: Sequence[str],
    workloads: Sequence[str],
    train: Sequence[int],
    test: Sequence[int],
    trials: int,
) -> None:
    for name in names:
        if name not in OBJECTIVES:
            known = ", ".join(OBJECTIVES)
            raise InputError(f"no objective is called `{name}`; there are {known}")
    if not names or not workloads or not train or trials < 1:
        raise InputError("name at least one objective, workload, seed and trial")
    both = sorted(set(train) & set(test))
    if both:
        what = "a seed that was searched on cannot judge"
        raise InputError(f"seeds {both} are on both sides: {what}")
    if len(test) < 2:
        raise InputError("test_seeds: at least 2, for an interval")


def _optuna() -> Any:
    try:
        import optuna  # noqa: PLC0415 (importing seekwell must not need it)
    except ImportError as e:
        what = "tuning needs Optuna: pip install 'seekwell-lab[tune]' (or: pip install optuna)"
        raise ImportError(what) from e
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _search(
    optuna: Any,
    bench: _Bench,
    space: Mapping[str, Sequence[Knob]],
    default: str,
    names: Sequence[str],
    workloads: Sequence[str],
    seeds: Sequence[int],
    trials: int,
    seed: int,
    progress: Callable[[int, int], object] | None,
) -> tuple[Any, list[tuple[str, list[float]]]]:
    """The study, and the settings that none beats in all, the most balanced first."""
    several = len(names) > 1
    if several:
        sampler = optuna.samplers.NSGAIISampler(seed=seed, population_size=min(20, trials))
        study = optuna.create_study(directions=["maximize"] * len(names), sampler=sampler)
    else:
        # Of the tunables together, not each by itself.
        sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=min(15, trials))
        pruner = optuna.pruners.MedianPruner(n_startup_trials=PRUNE_AFTER, n_warmup_steps=1)
        study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
    texts = list(space)

    def setting(trial: Any) -> str:
        text = texts[0]
        if len(texts) > 1:
            text = trial.suggest_categorical("scheduler", texts)
        values = {}
        for knob in space[text]:
            at = trial.suggest_int(f"{text} {knob.name}", 0, len(knob.values) - 1)
            values[knob.name] = knob.values[at]
        return _typed(text, values)

    def objective(trial: Any) -> Any:
        text = setting(trial)
        trial.set_user_attr("setting", text)
        gains: list[tuple[float, ...]] = []
        for step, number in enumerate(seeds):
            gains.append(bench.gain(text, default, workloads, number))
            if not several:
                trial.report(sum(g[0] for g in gains) / len(gains), step)
                if trial.should_prune():
                    raise optuna.TrialPruned
        mean = [sum(g[i] for g in gains) / len(gains) for i in range(len(names))]
        return mean if several else mean[0]

    def told(study: Any, _: Any) -> None:
        if progress is not None:
            progress(len(study.trials), trials)

    study.optimize(objective, n_trials=trials, callbacks=[told])
    # The default is a setting, too: who does not beat it is not the best.
    front: list[tuple[str, list[float]]] = [(default, [0.0] * len(names))]
    for trial in study.best_trials:
        values = list(trial.values)
        better = min(values) > 0.0 if several else values[0] > 0.0
        if several or better:
            front.append((trial.user_attrs["setting"], values))
    front.sort(key=lambda f: min(f[1]), reverse=True)
    return study, front


def _stored(
    device: PathLike,
    default: str,
    best: str,
    workloads: Sequence[str],
    seeds: Sequence[int],
    folder: PathLike,
    threads: int | None,
) -> Path:
    experiment = Experiment(
        devices=[str(device)],
        schedulers=[default, best],
        workloads=workloads,
        name="tuned",
        repeats=len(seeds),
        seed=min(seeds),
        experiment={"reference": default},
    )
    return compare(experiment, results=folder, threads=threads).path
