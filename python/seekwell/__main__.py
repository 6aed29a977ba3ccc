"""`python -m seekwell`: the commands `tune` and `sweep`, which the binary passes to Python."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from seekwell._errors import SeekwellError
from seekwell.tune import OBJECTIVES, TEST_SEEDS, TRAIN_SEEDS, TRIALS


def _bar(quiet: bool, what: str) -> Callable[[int, int], None] | None:
    """Returns a function that shows the progress on a terminal. None without a terminal."""
    if quiet or not sys.stderr.isatty():
        return None

    def told(done: int, of: int) -> None:
        end = "\n" if done >= of else ""
        print(f"\r{done} of {of} {what}", end=end, file=sys.stderr, flush=True)

    return told


def _seeds(text: str) -> list[int]:
    """Parses seeds such as "3", "1-5" or "1,2,7"."""
    try:
        out: list[int] = []
        for part in text.split(","):
            first, _, last = part.partition("-")
            out += range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: write 1-5, or 1,2,7") from None
    return out


def _tunable(text: str) -> tuple[str, list[int] | None]:
    """Parses a tunable such as "fifo_batch" or "fifo_batch=1,4,16"."""
    name, _, values = text.partition("=")
    try:
        return name, [int(v) for v in values.split(",")] if values else None
    except ValueError:
        what = f"{text}: write NAME, or NAME=1,4,16"
        raise argparse.ArgumentTypeError(what) from None


def parser() -> argparse.ArgumentParser:
    """Returns the parser for the arguments of both commands."""
    top = argparse.ArgumentParser(prog="seekwell", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    tune = commands.add_parser(
        "tune",
        help="search the tunables of schedulers for the best setting",
        description="Searches the tunables of schedulers for a device and a mix of workloads. "
        "Measures the gain of the best setting on held-out seeds and workloads.",
    )
    add = tune.add_argument
    add("-d", "--device", default="hdd:hitachi-7k200", help="modelled device [%(default)s]")
    add(
        "-w",
        "--workload",
        action="append",
        required=True,
        help="workload for the search, with parameters after a colon; may be repeated",
    )
    add(
        "-s",
        "--scheduler",
        "--schedulers",
        required=True,
        help="scheduler, or several schedulers separated by commas",
    )
    add(
        "-t",
        "--tunable",
        action="append",
        type=_tunable,
        default=[],
        help="tunable to search, optionally with its possible values (fifo_batch=1,4,16); "
        "may be repeated [all]",
    )
    add(
        "--objective",
        action="append",
        choices=list(OBJECTIVES),
        help="objective to improve; may be repeated [throughput]",
    )
    add(
        "--held-out",
        action="append",
        default=[],
        help="workload for measuring the gain; may be repeated [the workloads of the search]",
    )
    add("--trials", type=int, default=TRIALS, help="number of settings to try [%(default)s]")
    add(
        "--train-seeds",
        type=_seeds,
        default=list(TRAIN_SEEDS),
        help=f"seeds for the search [{TRAIN_SEEDS[0]}-{TRAIN_SEEDS[-1]}]",
    )
    add(
        "--test-seeds",
        type=_seeds,
        default=list(TEST_SEEDS),
        help=f"seeds for measuring the gain [{TEST_SEEDS[0]}-{TEST_SEEDS[-1]}]",
    )
    add("--machine", default="", help="modelled machine, as for `seekwell run`")
    add("--seed", type=int, default=1, help="seed of the search [%(default)s]")
    add("--threads", type=int, help="number of simultaneous runs [one per core]")
    add("--results", help="new results folder, which `seekwell apply` can use")
    add("-q", "--quiet", action="store_true", help="do not show the progress")

    sweep = commands.add_parser(
        "sweep",
        help="run an experiment on a Ray cluster",
        description="Runs an experiment file on a Ray cluster. The results have the same bytes as "
        "those of `seekwell compare FILE.toml`. If the command or a worker is lost, the same "
        "command continues the experiment.",
    )
    add = sweep.add_argument
    add("file", help="experiment file (TOML)")
    add("--address", help="address of a running cluster [a cluster is started on this machine]")
    add("--workers", type=int, help="CPUs of a cluster that is started on this machine [all]")
    add("--results", required=True, help="results folder: a new one, or one to be continued")
    add("-q", "--quiet", action="store_true", help="do not show the progress")
    return top


def _tune(a: argparse.Namespace) -> None:
    from seekwell.tune import tune  # noqa: PLC0415 (only the requested command is loaded)

    given = dict(a.tunable)
    valued = {k: v for k, v in given.items() if v is not None}
    if valued and len(valued) < len(given):
        missing = ", ".join(sorted(set(given) - set(valued)))
        raise SeekwellError(f"--tunable {missing}: give values for each tunable, or for none")
    found = tune(
        device=a.device,
        workloads=a.workload,
        schedulers=[s.strip() for s in a.scheduler.split(",") if s.strip()],
        objectives=a.objective or ["throughput"],
        tunables=valued or list(given) or None,
        trials=a.trials,
        train_seeds=a.train_seeds,
        test_seeds=a.test_seeds,
        held_out=a.held_out,
        machine=a.machine,
        seed=a.seed,
        threads=a.threads,
        results=a.results,
        progress=_bar(a.quiet, "settings"),
    )
    print(found.summary())


def _sweep(a: argparse.Namespace) -> None:
    from seekwell.sweep import sweep  # noqa: PLC0415 (it needs Ray)

    done = sweep(
        a.file,
        results=a.results,
        address=a.address,
        workers=a.workers,
        progress=_bar(a.quiet, "runs"),
    )
    for sentence in done.sentences:
        print(sentence)
    print(f"Results: {done.path}")
    print(f"  seekwell report {done.path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command. Returns the exit code."""
    a = parser().parse_args(arguments)
    try:
        {"tune": _tune, "sweep": _sweep}[a.command](a)
    except (SeekwellError, ImportError) as e:
        print(f"seekwell: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("seekwell: interrupted; finished runs are stored", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
