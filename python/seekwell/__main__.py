"""`python -m seekwell`: the commands that the binary hands over, `tune` and `sweep`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from seekwell._errors import SeekwellError
from seekwell.tune import OBJECTIVES, TEST_SEEDS, TRAIN_SEEDS, TRIALS


def _bar(quiet: bool, what: str) -> Callable[[int, int], None] | None:
    """Progress on a terminal; nothing where nobody looks."""
    if quiet or not sys.stderr.isatty():
        return None

    def told(done: int, of: int) -> None:
        end = "\n" if done >= of else ""
        print(f"\r{done} of {of} {what}", end=end, file=sys.stderr, flush=True)

    return told


def _seeds(text: str) -> list[int]:
    """ "3", "1-5", "1,2,7"."""
    try:
        out: list[int] = []
        for part in text.split(","):
            first, _, last = part.partition("-")
            out += range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text}: write 1-5, or 1,2,7") from None
    return out


def _tunable(text: str) -> tuple[str, list[int] | None]:
    """ "fifo_batch", "fifo_batch=1,4,16"."""
    name, _, values = text.partition("=")
    try:
        return name, [int(v) for v in values.split(",")] if values else None
    except ValueError:
        what = f"{text}: write NAME, or NAME=1,4,16"
        raise argparse.ArgumentTypeError(what) from None


def parser() -> argparse.ArgumentParser:
    """The arguments of both commands."""
    top = argparse.ArgumentParser(prog="seekwell", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True)
    tune = commands.add_parser(
        "tune",
        help="search the tunables of schedulers",
        description="Searches the tunables of schedulers for a device and a mix of workloads, and "
        "judges what was found on seeds and workloads that were held out.",
    )
    add = tune.add_argument
    add("-d", "--device", default="hdd:hitachi-7k200", help="modelled device [%(default)s]")
    add(
        "-w",
        "--workload",
        action="append",
        required=True,
        help="workload, with parameters behind a colon; may be repeated",
    )
    add(
        "-s",
        "--scheduler",
        "--schedulers",
        required=True,
        help="scheduler, or several with commas",
    )
    add(
        "-t",
        "--tunable",
        action="append",
        type=_tunable,
        default=[],
        help="search this one, among these values (fifo_batch=1,4,16); may be repeated [all]",
    )
    add(
        "--objective",
        action="append",
        choices=list(OBJECTIVES),
        help="what is to be better; may be repeated [throughput]",
    )
    add("--held-out", action="append", default=[], help="judge on this workload; may be repeated")
    add("--trials", type=int, default=TRIALS, help="settings to try [%(default)s]")
    add(
        "--train-seeds",
        type=_seeds,
        default=list(TRAIN_SEEDS),
        help=f"seeds to search on [{TRAIN_SEEDS[0]}-{TRAIN_SEEDS[-1]}]",
    )
    add(
        "--test-seeds",
        type=_seeds,
        default=list(TEST_SEEDS),
        help=f"seeds to judge on [{TEST_SEEDS[0]}-{TEST_SEEDS[-1]}]",
    )
    add("--machine", default="", help="the modelled machine, as `seekwell run` has it")
    add("--seed", type=int, default=1, help="seed of the search [%(default)s]")
    add("--threads", type=int, help="runs at a time [one a core]")
    add("--results", help="a new folder for what `seekwell apply` takes")
    add("-q", "--quiet", action="store_true", help="no progress")

    sweep = commands.add_parser(
        "sweep",
        help="an experiment on a Ray cluster",
        description="Carries an experiment file out on a Ray cluster, or on one that is started "
        "here: the same bytes as `seekwell compare FILE.toml`, and gone on with after anything was "
        "lost.",
    )
    add = sweep.add_argument
    add("file", help="experiment file (TOML)")
    add("--address", help="an existing cluster [one is started on this machine]")
    add("--workers", type=int, help="CPUs of a cluster that is started here [all]")
    add("--results", required=True, help="the folder: new, or one to go on with")
    add("-q", "--quiet", action="store_true", help="no progress")
    return top


def _tune(a: argparse.Namespace) -> None:
    from seekwell.tune import tune  # noqa: PLC0415 (only what is asked for is loaded)

    given = dict(a.tunable)
    valued = {k: v for k, v in given.items() if v is not None}
    if valued and len(valued) < len(given):
        missing = ", ".join(sorted(set(given) - set(valued)))
        raise SeekwellError(f"--tunable {missing}: give values to each, or to none")
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
    """Runs a command; the exit code."""
    a = parser().parse_args(arguments)
    try:
        {"tune": _tune, "sweep": _sweep}[a.command](a)
    except (SeekwellError, ImportError) as e:
        print(f"seekwell: {e}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("seekwell: interrupted; what was kept is kept", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
