"""Tests of schedulers in Python: decisions, properties and errors."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import seekwell
from seekwell import Cx, Request, Scheduler, Tunable
from seekwell.examples.deadline import Deadline


class Fifo(Scheduler):
    """First in, first out."""

    name = "fifo-py"
    tunables = (Tunable("batch", 1, unit="requests", max=8, help="Nothing, here."),)

    def __init__(self) -> None:
        self.fifo: list[Request] = []

    def insert(self, cx: Cx, rq: Request, how: str) -> None:
        if how == "sorted":
            self.fifo.append(rq)
        else:
            self.fifo.insert(0, rq)

    def dispatch(self, cx: Cx, hctx: int, force: bool) -> None:
        if self.fifo:
            cx.emit(self.fifo.pop(0))

    def joined(self, cx: Cx, kept: Request, gone: Request) -> None:
        self.fifo.remove(gone)


class Patient(Fifo):
    """Dispatches a request only if a millisecond has passed since the previous dispatch."""

    name = "patient-py"

    def __init__(self) -> None:
        super().__init__()
        self.not_before = 0
        self.fired = 0

    def dispatch(self, cx: Cx, hctx: int, force: bool) -> None:
        if self.fifo and not force and cx.now_ns < self.not_before:
            cx.arm(0, self.not_before)
            return
        if self.fifo:
            self.not_before = cx.now_ns + 1_000_000
            cx.emit(self.fifo.pop(0))

    def timer(self, cx: Cx, slot: int) -> None:
        self.fired += 1
        cx.kick()


class Loser(Fifo):
    """Loses every fifth request."""

    name = "loser-py"

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def insert(self, cx: Cx, rq: Request, how: str) -> None:
        self.count += 1
        if self.count % 5:
            super().insert(cx, rq, how)


class Twice(Fifo):
    """Dispatches a request twice."""

    name = "twice-py"

    def dispatch(self, cx: Cx, hctx: int, force: bool) -> None:
        if self.fifo:
            cx.emit(self.fifo[0])
            cx.emit(self.fifo.pop(0))


class Raiser(Fifo):
    """Raises at its tenth request."""

    name = "raiser-py"

    def dispatch(self, cx: Cx, hctx: int, force: bool) -> None:
        if cx.now_ns > 1_000_000 and self.fifo:
            raise ZeroDivisionError("a slip of the author's")
        super().dispatch(cx, hctx, force)


class Endless(Fifo):
    """Does not return, and catches every exception that it can."""

    name = "endless-py"

    def dispatch(self, cx: Cx, hctx: int, force: bool) -> None:
        turns = 0
        while self.fifo:
            try:
                turns += 1
            except Exception:
                turns = 0


WORKLOAD = "fs-mark:files=5"


@pytest.mark.parametrize("log", ["deadline-4.0"])
def test_python_deadline_decides_like_the_recorded_original(logs: Path, log: str) -> None:
    file = logs / f"{log}.jsonl.zst"
    cases = seekwell.explain(file, scheduler=Deadline, events=False, keep_tunables=True)
    theirs = seekwell.explain(file, events=False)
    assert len(cases) == len(theirs) > 5
    assert sum(c.expected or 0 for c in cases) > 500
    wrong = [c.case for c in cases if not c.identical]
    assert not wrong
    # The Rust scheduler makes the same decisions.
    for one, other in zip(cases, theirs, strict=True):
        assert one.dispatch().column("time_ns") == other.dispatch().column("time_ns")
        assert one.dispatch().column("bios") == other.dispatch().column("bios")


def test_recorded_logs_detect_a_wrong_deadline(logs: Path) -> None:
    class Wrong(Deadline):
        name = "wrong-deadline-py"

        def direction(self) -> int | None:
            return 1 if self.fifo[1] else super().direction()

    file = logs / "deadline-4.0.jsonl.zst"
    cases = seekwell.explain(file, scheduler=Wrong, events=False, keep_tunables=True)
    assert not all(c.identical for c in cases)


def test_python_deadline_gives_the_results_of_the_rust_deadline() -> None:
    ours = seekwell.run(WORKLOAD, scheduler=Deadline).to_dict()
    theirs = seekwell.run(WORKLOAD, scheduler="deadline").to_dict()
    for field in ("metric", "read", "write", "requests", "joins", "operations", "duration_ns"):
        assert ours[field] == theirs[field], field
    few = {"scheduler": "deadline-py:fifo_batch=1", "seed": 2}
    many = seekwell.run(WORKLOAD, scheduler="deadline:fifo_batch=1", seed=2)
    assert seekwell.run(WORKLOAD, **few).value == many.value  # type: ignore[arg-type]


def test_reasons_and_states_are_explained(tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    file.write_text("t_us,id,pid,op,sector,n\n0,1,1,R,900,8\n0,2,1,R,100,8\n0,3,2,R,300,8\n")
    (case,) = seekwell.explain(file, scheduler=Deadline)
    assert case.dispatch().column("bios") == ["1", "2", "3"]
    rules = {r for r in case.events().column("rule") if r}
    assert {"fifo-head"} <= rules
    assert any("batch" in (s or "") for s in case.events().column("state"))
    with pytest.raises(seekwell.InputError, match=r"list.csv: input row 1 \(op \"Q\" is none of"):
        file.write_text("t_us,id,pid,op,sector,n\n0,1,1,Q,900,8\n")
        seekwell.explain(file, scheduler=Deadline)


@pytest.mark.parametrize("scheduler", [Deadline, Fifo, Patient])
def test_correct_schedulers_pass_the_property_checks(scheduler: type[Scheduler]) -> None:
    held = seekwell.check(scheduler, cases=24)
    assert len(held) == (2 if scheduler is Deadline else 1)


@pytest.mark.parametrize(
    ("scheduler", "said"),
    [
        (Loser, "loser-py.dispatch"),
        (Twice, "twice-py.dispatch let a request go"),
        (Raiser, "ZeroDivisionError"),
    ],
)
def test_faulty_schedulers_fail_the_property_checks(scheduler: type[Scheduler], said: str) -> None:
    with pytest.raises(seekwell.CheckError) as e:
        seekwell.check(scheduler, cases=24)
    assert said in str(e.value)
    assert "minimal failing input" in str(e.value)


def test_check_detects_a_false_waiting_bound() -> None:
    class Boaster(Deadline):
        name = "boaster-py"
        waiting = {"fixed_ms": 1}  # noqa: RUF012

    with pytest.raises(seekwell.CheckError, match="declared"):
        seekwell.check(Boaster, cases=24)


def test_built_in_schedulers_are_checked_by_name() -> None:
    assert len(seekwell.check("sio", cases=8)) == 2
    with pytest.raises(seekwell.InputError, match="did you mean"):
        seekwell.check("sioo")


def test_timer_fires_and_delays_requests() -> None:
    slow = seekwell.run(WORKLOAD, device="constant:depth=1,service_us=100", scheduler=Patient)
    fast = seekwell.run(WORKLOAD, device="constant:depth=1,service_us=100", scheduler=Fifo)
    assert slow.to_dict()["requests"] > 0
    assert slow.duration_ns > fast.duration_ns


@pytest.mark.parametrize(
    ("scheduler", "said"),
    [
        (Loser, "Was one lost?"),
        (Twice, "each goes once"),
        (Raiser, r"raised ZeroDivisionError\(.a slip of the author's.\) \(.*test_scheduler.py:\d+"),
    ],
)
def test_faulty_scheduler_ends_a_run_with_the_reason(scheduler: type[Scheduler], said: str) -> None:
    with pytest.raises(seekwell.SchedulerError, match=said) as e:
        seekwell.run(WORKLOAD, scheduler=scheduler)
    assert e.value.__cause__ is not None


def test_callback_that_never_returns_is_stopped() -> None:
    seekwell.set_callback_limit(0.3)
    try:
        with pytest.raises(seekwell.SchedulerError, match="did not return"):
            seekwell.run(WORKLOAD, scheduler=Endless)
    finally:
        seekwell.set_callback_limit(10)
    with pytest.raises(seekwell.InputError, match="callback limit"):
        seekwell.set_callback_limit(float("nan"))


def test_interrupt_ends_a_callback_that_never_returns() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import seekwell, signal, threading, os\n"
        "from test_scheduler import Endless\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    seekwell.run('fs-mark:files=5', scheduler=Endless)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(7)\n"
    )
    words = [sys.executable, "-c", code, str(Path(__file__).parent)]
    assert subprocess.run(words, check=False, timeout=120).returncode == 7


def test_faulty_scheduler_in_an_experiment_fails_only_its_own_runs() -> None:
    results = seekwell.compare(
        seekwell.Experiment(
            devices=["ssd:sata3-256-2011"],
            schedulers=["mq-deadline", Fifo, Raiser],
            workloads=[WORKLOAD],
            repeats=3,
        ),
        threads=2,
    )
    labels = {label for _, label, _, _ in results.failures}
    assert labels == {"raiser-py"}
    why = results.failures[0][3]
    assert "ZeroDivisionError" in why and "please report" not in why
    runs = results.runs()
    rows = zip(runs.column("scheduler"), runs.column("outcome"), strict=True)
    assert {("mq-deadline", "done"), ("fifo-py", "done"), ("raiser-py", "failed")} <= set(rows)


def test_new_class_replaces_an_earlier_class_of_the_same_name() -> None:
    def made(backwards: bool) -> type[Scheduler]:
        class Mine(Fifo):
            name = "mine-py"

            def dispatch(self, cx: Cx, hctx: int, force: bool) -> None:
                if self.fifo:
                    cx.emit(self.fifo.pop(-1 if backwards else 0))

        return Mine

    workload = "interactive:size=16m,bulk=64m,seconds=2s"
    values = [seekwell.run(workload, scheduler=made(b)).to_json() for b in (False, True, False)]
    assert values[0] == values[2] != values[1]
    made(True)

    class Elsewhere(Fifo):
        name = "mine-py"
        layer = "single-queue"

    with pytest.raises(seekwell.InputError, match="choose another name"):
        seekwell.register(Elsewhere)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": "cfq"}, "registered already"),
        ({"name": "No Name"}, "a name consists of lower-case letters"),
        ({"layer": "sideways"}, "no layer is called"),
        ({"kernel": "7.0"}, 'no kernel "7.0"'),
        ({"tunables": (Tunable("x", 9, max=3),)}, "not within 0..=3"),
        ({"waiting": {"fixed": 1}}, 'no "fixed"'),
    ],
)
def test_invalid_scheduler_classes_are_rejected(fields: dict[str, object], said: str) -> None:
    body = {"name": "wrong-py", **fields}
    wrong = type("Wrong", (Fifo,), body)
    with pytest.raises(seekwell.InputError, match=said):
        seekwell.register(wrong)


def test_objects_that_are_no_scheduler_are_rejected() -> None:
    with pytest.raises(TypeError, match="no subclass"):
        seekwell.register(int)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="has no name"):
        seekwell.register(type("Nameless", (Scheduler,), {}))


def test_tunables_are_set_and_clamped() -> None:
    seen: list[int] = []

    class Told(Fifo):
        name = "told-py"

        def stored(self, cx: Cx, name: str) -> None:
            seen.append(getattr(self, name))

    seekwell.run(WORKLOAD, scheduler=Told)
    assert seen == []
    seekwell.run(WORKLOAD, scheduler=f"{Told.name}:batch=5")
    assert seen == [5]
    with pytest.raises(seekwell.InputError, match="batch"):
        seekwell.run(WORKLOAD, scheduler=f"{Told.name}:batch=99")


def test_parallel_runs_give_equal_results() -> None:
    alone = seekwell.run(WORKLOAD, scheduler=Fifo).to_json()
    out: list[str] = []

    def one() -> None:
        out.append(seekwell.run(WORKLOAD, scheduler="fifo-py").to_json())

    threads = [threading.Thread(target=one) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert out == [alone] * 4
