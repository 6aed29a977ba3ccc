"""Searches the tunables of schedulers, and measures the gain of the best setting on held-out runs.

The search uses Optuna: TPE for one objective, and NSGA-II for several. With one objective, a
setting that falls behind after a few seeds is stopped early. The best setting is also the luckiest
of many, so its result in the search is too good. The reported gain is therefore measured on
held-out seeds, and on held-out workloads if they are given. It compares the setting with the
defaults in the same runs, and has a confidence interval. If the interval contains 0, no gain is
claimed.

Not supported: real disks (use `seekwell compare --host` with the setting).
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

# A gain below this fraction is too small to matter. The lab uses the same margin everywhere.
MARGIN = 0.02
ALPHA = 0.05
TRIALS = 60
TRAIN_SEEDS = tuple(range(1, 6))
TEST_SEEDS = tuple(range(1001, 1013))
# Range of the search around the default of a tunable: this number of doublings up and down.
DOUBLINGS = 5
# Number of settings that are tried completely before a setting may be stopped early.
PRUNE_AFTER = 10

Evaluate = Callable[[str, str, int], float | Sequence[float]]
"""A function of scheduler with settings, workload and seed. It returns the values of the objectives
as logarithms, for which larger is better."""


def _throughput(record: Record) -> float:
    """Returns the logarithm of the workload's main metric, or of bytes per second without one."""
    if record.value is None:
        return math.log(max(record.bytes_per_s, 1e-12))
    value = math.log(max(record.value, 1e-12))
    return value if record.higher_is_better else -value


def _p99(record: Record) -> float:
    """Returns minus the logarithm of the most frequent operation's p99 latency in ns."""
    table = record.operations()
    rows = list(
        zip(table.column("layer"), table.column("count"), table.column("p99_ns"), strict=True)
    )
    own = [r for r in rows if r[0] == "workload"] or rows
    if not own:
        return 0.0
    return -math.log(max(max(own, key=lambda r: r[1])[2], 1))


def _fairness(record: Record) -> float:
    """Returns the logarithm of Jain's index of the bytes of the processes.

    The index is 1 if all processes get the same, and 1/n if one of n processes gets everything.
    """
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
    """A tunable that is searched, with its possible values in ascending order."""

    name: str
    values: tuple[int, ...]


def _grid(low: int, high: int, default: int) -> tuple[int, ...]:
    """Returns the default, its doubles and halves, and 0 and 1, within the allowed range."""
    base = max(abs(default), 1)
    steps = {round(base * 2.0**k) for k in range(-DOUBLINGS, DOUBLINGS + 1)}
    found = {v for v in steps | {0, 1, default} if low <= v <= high}
    return tuple(sorted(found))


def knobs(scheduler: str, asked: Mapping[str, Sequence[int]] | Iterable[str] | None) -> list[Knob]:
    """Returns the tunables to search: all numeric ones, the named ones, or those with values."""
    name = scheduler.split(":", maxsplit=1)[0]
    known = [s for s in _seekwell.schedulers() if name in _names(s)]
    if not known:
        # A run raises the error with the best message.
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
            raise InputError(f'{name} has no tunable "{key}"; it has {there}')
        of = tunables[key]
        if of["kind"] in ("Text", "ReadOnly"):
            if asked is not None:
                raise InputError(f'{name}: "{key}" is not a number, so it cannot be searched')
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
    """The gain over the default, as a factor. For example, 1.1 is 10 % better.

    Attributes:
        objective: Name of the objective.
        factor: Mean over the seeds.
        low: Lower end of the 95 % interval of the factor.
        high: Upper end of the 95 % interval of the factor.
        n: Number of seeds.
    """

    objective: str
    factor: float
    low: float
    high: float
    n: int

    @property
    def claimed(self) -> bool:
        """Whether the gain is statistically significant."""
        return self.low > 1.0

    def __str__(self) -> str:
        def percent(x: float) -> str:
            return f"{(x - 1) * 100:+.1f} %"

        span = f"{percent(self.factor)} (95 %: {percent(self.low)} to {percent(self.high)})"
        return f"{self.objective}: {span}, {self.n} seeds"


@dataclass(frozen=True)
class Tuned:
    """The result of a search.

    Attributes:
        default: The scheduler as it was given. If several were given, the best one without search.
        best: The best setting that was found, as users type it.
        trials: Number of settings that were tried.
        pruned: Number of these that were stopped early, after some of the seeds.
        front: The settings that no other setting beats in all objectives, with their gains in the
            search. With one objective, the best setting comes first.
        gains: Gains of `best` on held-out seeds and workloads, which the search did not use.
        results: The results folder for `seekwell apply`. None: it was not requested, or the best
            setting is the default.
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
        """Whether there is a significant gain in an objective, and no significant loss."""
        lost = any(g.high < 1.0 for g in self.gains)
        return any(g.claimed for g in self.gains) and not lost

    def summary(self) -> str:
        """Returns a description of the result for the terminal."""
        lines = [f"tried {self.trials} settings, {self.pruned} stopped early"]
        lines += [f"  {text}" for text, _ in self.front if len(self.gains) > 1]
        lines.append(f"best setting in the search: {self.best} (default: {self.default})")
        lines.append("gain on held-out seeds and workloads:")
        lines += [f"  {gain}" for gain in self.gains] or ["  none: the best is the default"]
        if not self.better:
            lines.append(f"defaults are as good: keep {self.default}")
        elif all(g.high < 1 + MARGIN for g in self.gains):
            lines.append("the gain is real, but too small to matter (below 2 %)")
        else:
            lines.append(f"use {self.best}")
        if self.results is not None:
            lines.append(f"results: {self.results}")
            lines.append(f"  sudo seekwell apply {self.results} --device NAME")
        return "\n".join(lines + self.notes)


class _Bench:
    """Runs settings, each once, and stores their results."""

    def __init__(self, evaluate: Evaluate, threads: int | None) -> None:
        self.evaluate = evaluate
        self.pool = ThreadPoolExecutor(threads)
        self.known: dict[tuple[str, str, int], tuple[float, ...]] = {}

    def all(self, settings: Sequence[str], workloads: Sequence[str], seeds: Sequence[int]) -> None:
        """Makes the missing runs, in parallel."""
        wanted = [(s, w, n) for s in settings for w in workloads for n in seeds]
        missing = [key for key in wanted if key not in self.known]
        for key, value in zip(missing, self.pool.map(self._one, missing), strict=True):
            self.known[key] = value

    def _one(self, key: tuple[str, str, int]) -> tuple[float, ...]:
        value = self.evaluate(*key)
        values = (float(value),) if isinstance(value, int | float) else tuple(map(float, value))
        if not all(math.isfinite(v) for v in values):
            setting, workload, seed = key
            raise InputError(f"{workload} under {setting}, seed {seed}: {values} is not finite")
        return values

    def gain(
        self, setting: str, default: str, workloads: Sequence[str], seed: int
    ) -> tuple[float, ...]:
        """Returns the gain of a setting with one seed, as the mean over the workloads."""
        self.all([setting, default], workloads, [seed])
        pairs = [(self.known[setting, w, seed], self.known[default, w, seed]) for w in workloads]
        count = len(pairs[0][0])
        return tuple(sum(a[i] - b[i] for a, b in pairs) / len(pairs) for i in range(count))


def interval(values: Sequence[float], alpha: float = ALPHA) -> tuple[float, float, float]:
    """Returns the mean and its t interval."""
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
        device: A name from `devices()`, or the path of a preset file.
        workloads: Workloads for the search.
        schedulers: One or several schedulers.
        objectives: "throughput" (the workload's main metric), "p99" (latency of the most frequent
            operation), "fairness" (Jain's index of the bytes of the processes), or a list of these.
        tunables: Names of the tunables to search, or a mapping from names to values. None: all
            numeric tunables, up to 5 doublings above and below the default, and 0.
        trials: Largest number of settings to try.
        train_seeds: Seeds for the search.
        test_seeds: Seeds for measuring the gain. They must differ from the seeds for the search.
        held_out: Workloads for measuring the gain. Empty: the workloads of the search.
        machine: The modelled machine, as for `run`.
        seed: Seed of the search.
        threads: Number of simultaneous runs. None: one per core.
        results: A new results folder for `seekwell apply`, with the default and the best setting
            on the workloads for measuring the gain.
        evaluate: A function that returns the values instead of a simulation, from scheduler,
            workload and seed. The values are logarithms, and larger is better.
        progress: Called with the number of tried settings and the number of planned settings.

    Raises:
        InputError: A name is unknown, or a seed is in both lists of seeds.
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
        # If there are several defaults, the best of them is the baseline.
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
                # With several objectives, the intervals are widened (Bonferroni correction).
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
        notes.append(f"nothing is written to {results}, because the best is the default")
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
            raise InputError(f'no objective is called "{name}"; there are {known}')
    if not names or not workloads or not train or trials < 1:
        raise InputError("name at least one objective, workload, seed and trial")
    both = sorted(set(train) & set(test))
    if both:
        what = "test seeds must not be used in the search"
        raise InputError(f"seeds {both} are in both train_seeds and test_seeds: {what}")
    if len(test) < 2:
        raise InputError("test_seeds: give at least 2 seeds, which an interval needs")


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
    """Runs the search.

    Returns the study, and the settings that no other setting beats in all objectives. A setting is
    ranked by its smallest gain over the objectives, and the largest comes first.
    """
    several = len(names) > 1
    if several:
        sampler = optuna.samplers.NSGAIISampler(seed=seed, population_size=min(20, trials))
        study = optuna.create_study(directions=["maximize"] * len(names), sampler=sampler)
    else:
        # A sampler for the tunables together.
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
    # The default is also a candidate. A setting that does not beat it is not the best.
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
