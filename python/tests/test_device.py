"""Tests of devices in Python: their properties, their use like built-in devices, and errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import seekwell
from seekwell import Command, Device, Parameter, register_device

WORKLOAD = "streams:size=16m,direct=yes,seconds=500ms"


class Drum(Device):
    """A drum with one head per track. Each command waits for the rotation, one after the other."""

    name = "drum-py"
    summary = "a magnetic drum"
    parameters = (Parameter("service_us", 200, "us", 1, 10**6, "time of a command"),)
    service_us: int

    def __init__(self) -> None:
        self.free_ns = 0

    def serve(self, now_ns: int, command: Command) -> int:
        self.free_ns = max(now_ns, self.free_ns) + self.service_us * 1000
        return self.free_ns


class Sorter(Device):
    """Accepts eight commands and serves the nearest first, so it decides after their arrival."""

    name = "sorter-py"
    depth = 8

    def __init__(self) -> None:
        self.waiting: list[Command] = []
        self.at: tuple[int, Command] | None = None
        self.head = 0

    def begin(self, now_ns: int) -> None:
        if self.at is None and self.waiting:
            nearest = min(self.waiting, key=lambda c: (abs(c.sector - self.head), c.id))
            self.waiting.remove(nearest)
            # Positions beyond the end of the device fail.
            place = min(nearest.sector, self.capacity)
            self.at = (now_ns + 100_000 + abs(place - self.head) // 1000, nearest)
            self.head = place

    def accept(self, now_ns: int, command: Command) -> bool:
        self.waiting.append(command)
        self.begin(now_ns)
        return True

    def next_event(self) -> int | None:
        return self.at[0] if self.at else None

    def advance(self, to_ns: int) -> list[tuple[int, int]]:
        done = []
        while self.at and self.at[0] <= to_ns:
            at_ns, command = self.at
            done.append((command.id, at_ns))
            self.at = None
            self.begin(at_ns)
        return done


@pytest.mark.parametrize("device", [Drum, Sorter])
def test_example_devices_pass_the_property_checks(device: type[Device]) -> None:
    assert len(seekwell.check(device, cases=24)) == 2


def test_python_device_equals_the_built_in_one_to_the_nanosecond() -> None:
    register_device(Drum)

    def figures(device: str) -> dict[str, object]:
        record = seekwell.run(WORKLOAD, device=device, scheduler="deadline", seed=3).to_dict()
        return {k: record[k] for k in ("read", "write", "operations", "duration_ns", "metric")}

    # The same capacity and depth.
    tree = "constant:depth=1,service_us=350,capacity=268435456"
    assert figures("drum-py:service_us=350") == figures(tree)
    assert figures("drum-py:service_us=351") != figures(tree)


def test_python_device_is_compared_and_listed() -> None:
    results = seekwell.compare(
        seekwell.Experiment(
            devices=[Drum, Sorter], schedulers=["noop", "cfq"], workloads=[WORKLOAD], repeats=2
        )
    )
    assert results.finished and not results.failures
    assert set(results.runs().column("device")) >= {"drum-py", "sorter-py"}
    assert any("drum-py" in str(d["name"]) for d in seekwell.devices())


def bad(name: str, serve: Callable[[Device, int, Command], object]) -> type[Device]:
    return type(name, (Device,), {"name": f"{name.lower()}-py", "serve": serve})


@pytest.mark.parametrize(
    ("device", "said"),
    [
        (bad("Past", lambda _, now, __: now - 1), "before it came"),
        (bad("Wordy", lambda *_: "soon"), "wordy-py.serve raised TypeError"),
        (bad("Raiser", lambda *_: 1 // 0), r"raiser-py.serve raised ZeroDiv.*test_device.py:"),
    ],
)
def test_invalid_device_answers_are_rejected(device: type[Device], said: str) -> None:
    with pytest.raises(seekwell.DeviceError, match=said) as e:
        seekwell.run(WORKLOAD, device=device, scheduler="noop")
    assert e.value.__cause__ is not None
    with pytest.raises(seekwell.CheckError, match="does not hold"):
        seekwell.check(device, cases=4)


def test_device_that_never_answers_is_stopped() -> None:
    class Mute(Sorter):
        name = "mute-py"

        def next_event(self) -> int | None:
            return None

    with pytest.raises(seekwell.DeviceError, match="they would never be done"):
        seekwell.run(WORKLOAD, device=Mute, scheduler="noop")

    class Stuck(Drum):
        name = "stuck-py"

        def serve(self, now_ns: int, command: Command) -> int:
            while True:
                pass

    seekwell.set_callback_limit(0.2)
    try:
        with pytest.raises(seekwell.DeviceError, match="did not return"):
            seekwell.run(WORKLOAD, device=Stuck, scheduler="noop")
    finally:
        seekwell.set_callback_limit(10)


def test_invalid_device_classes_are_rejected() -> None:
    class Neither(Device):
        name = "neither-py"

    with pytest.raises(seekwell.InputError, match="either serve"):
        register_device(Neither)

    class Taken(Drum):
        name = "hdd"

    with pytest.raises(seekwell.InputError, match="registered already"):
        register_device(Taken)

    class Small(Drum):
        name = "small-py"
        capacity = 7

    with pytest.raises(seekwell.RunError, match="capacity: 7 sectors is not within"):
        seekwell.run(WORKLOAD, device=Small, scheduler="noop")
    with pytest.raises(TypeError, match="no subclass"):
        register_device(int)  # type: ignore[type-var]
    with pytest.raises(seekwell.InputError, match='unknown parameter "servis_us"'):
        register_device(Drum)
        seekwell.run(WORKLOAD, device="drum-py:servis_us=3", scheduler="noop")
