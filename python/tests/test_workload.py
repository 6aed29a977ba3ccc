"""Tests of workloads in Python, which are coroutines on a modelled machine."""

from __future__ import annotations

import errno
import time

import pytest

import seekwell
from seekwell import Machine, Parameter, Workload, register_workload

DISK = "hdd:hitachi-7k200"


class Diary(Workload):
    """Several writers append entries and sync each entry."""

    name = "diary-py"
    summary = "an entry, each synced"
    parameters = (
        Parameter("entries", 8, "entries", 1, 1000, "of each writer"),
        Parameter("writers", 2, "tasks", 1, 16),
        Parameter("direct", False),
    )
    entries: int
    writers: int
    direct: bool

    async def run(self, machine: Machine) -> None:
        machine.clock_start()
        tasks = [
            await machine.spawn(f"writer{i}", self.write, i, nice=i) for i in range(self.writers)
        ]
        for task in tasks:
            await machine.join(task)
        machine.clock_stop()
        seconds = machine.now_ns / 1e9
        rate = self.entries * self.writers / seconds
        machine.metric("entries", "entries/s", rate, higher_is_better=True)
        machine.counts("entry")

    async def write(self, machine: Machine, number: int) -> None:
        fd = await machine.open(f"diary{number}", create=True, direct=self.direct)
        for day in range(self.entries):
            with machine.operation("entry") as op:
                op.bytes = await machine.write(fd, day * 4096, 4096)
                await machine.fsync(fd)
            await machine.sleep(machine.random.randrange(1_000_000))
        await machine.close(fd)


def test_python_workload_runs_and_reports_like_a_built_in_one() -> None:
    assert seekwell.check(Diary, cases=32) == ["it ends", "the same seed gives the same bytes"]
    record = seekwell.run("diary-py:entries=5", device=DISK, scheduler="cfq")
    assert record.unit == "entries/s" and record.higher_is_better
    assert record.value is not None and record.value > 0
    table = record.operations()
    rows = dict(zip(table.column("kind"), table.column("count"), strict=False))
    assert rows["entry"] == 10
    assert record.histogram("entry").num_rows > 0
    whole = record.to_dict()
    assert sum(o["bytes"] for o in whole["operations"]) == 10 * 4096
    again = seekwell.run("diary-py", params={"entries": 5}, device=DISK, scheduler="cfq")
    assert again.to_dict()["operations"] == whole["operations"]
    other = seekwell.run("diary-py:entries=5", device=DISK, scheduler="cfq", seed=2)
    assert other.to_dict()["operations"] != whole["operations"]


def test_python_workload_is_compared_and_listed() -> None:
    results = seekwell.compare(
        seekwell.Experiment(
            devices=[DISK], schedulers=["noop", "cfq"], workloads=[Diary], repeats=2
        )
    )
    assert results.finished and not results.failures
    assert "diary-py" in {w["name"] for w in seekwell.workloads()}


class Everything(Workload):
    """Makes every call once."""

    name = "everything-py"

    async def run(self, machine: Machine) -> None:
        await machine.mkdir("d")
        fd = await machine.open("d/a", create=True)
        await machine.fallocate(fd, 0, 1 << 20)
        await machine.append(fd, 4096)
        await machine.truncate(fd, 1 << 20)
        await machine.fdatasync(fd)
        await machine.syncfs()
        await machine.drop_caches()
        await machine.fadvise(fd, 0, 0, "random")
        assert await machine.read(fd, 0, 4096) == 4096
        assert await machine.read(fd, 1 << 30, 4096) == 0
        stat = await machine.fstat(fd)
        assert stat == await machine.stat("d/a") and stat.len == 1 << 20 and not stat.dir
        aio = await machine.aio(4)
        await machine.submit(aio, [(fd, "read", i * 4096, 4096, i) for i in range(4)])
        done = await machine.reap(aio, 4)
        assert sorted(d[0] for d in done) == [0, 1, 2, 3]
        assert all(d[1:] == (4096, None) for d in done)
        await machine.aio_close(aio)
        await machine.close(fd)
        await machine.rename("d/a", "d/b")
        assert await machine.readdir("d") == [("b", False)]
        before = machine.now_ns
        await machine.compute(1000)
        await machine.sleep(5000)
        assert machine.now_ns >= before + 6000
        try:
            await machine.open("none")
        except FileNotFoundError as e:
            assert e.errno == errno.ENOENT
        else:
            raise AssertionError("a file that is not there")
        lock, barrier = await machine.lock(), await machine.barrier(2)
        channel = await machine.channel(1)
        task = await machine.spawn("other", self.other, lock, barrier, channel, ioprio=(3, 0))
        await machine.arrive(barrier)
        assert [await machine.recv(channel) for _ in range(3)] == [0, 1, None]
        await machine.join(task)
        await machine.acquire(lock)
        await machine.release(lock)
        await machine.unlink("d/b")
        await machine.rmdir("d")

    async def other(self, machine: Machine, lock: int, barrier: int, channel: int) -> None:
        machine.phase("other")
        await machine.acquire(lock)
        await machine.arrive(barrier)
        for n in range(2):
            await machine.send(channel, n)
        await machine.end_channel(channel)
        await machine.release(lock)


def test_every_machine_call_works() -> None:
    record = seekwell.run(Everything, device=DISK, scheduler="noop")
    assert record.early is None


def test_workload_reads_the_raw_device() -> None:
    class Raw(Workload):
        name = "raw-py"
        needs = "device"

        async def run(self, machine: Machine) -> None:
            fd = await machine.open_device(rdonly=True, direct=True)
            for _ in range(20):
                await machine.read(fd, machine.random.randrange(1000) * 4096, 4096)

    record = seekwell.run(Raw, device=DISK, scheduler="noop")
    assert record.to_dict()["read"]["ios"] == 20


def test_errors_in_a_script_are_reported() -> None:
    class Wrong(Workload):
        name = "wrong-py"

        async def run(self, machine: Machine) -> None:
            raise LookupError("mine")

    with pytest.raises(seekwell.WorkloadError, match=r"wrong-py.run raised LookupError.*py:") as e:
        seekwell.run(Wrong, device=DISK, scheduler="noop")
    assert isinstance(e.value.__cause__, LookupError)

    class Missing(Workload):
        name = "missing-py"

        async def run(self, machine: Machine) -> None:
            await machine.open("none")

    early = seekwell.run(Missing, device=DISK, scheduler="noop").early
    assert early is not None and "no such file" in early and "test_workload.py:" in early

    class Plain(Workload):
        name = "plain-py"

        def run(self, machine: Machine) -> None:  # type: ignore[override]
            return None

    with pytest.raises(seekwell.WorkloadError, match="has to be a coroutine"):
        seekwell.run(Plain, device=DISK, scheduler="noop")

    class Foreign(Workload):
        name = "foreign-py"

        async def run(self, machine: Machine) -> None:
            import asyncio  # noqa: PLC0415 (what must not be awaited)

            await asyncio.sleep(0)

    with pytest.raises(seekwell.WorkloadError, match="the machine's calls only"):
        seekwell.run(Foreign, device=DISK, scheduler="noop")

    class Chancy(Workload):
        name = "chancy-py"

        async def run(self, machine: Machine) -> None:
            await machine.sleep(time.perf_counter_ns() % 1_000_000)

    with pytest.raises(seekwell.CheckError, match="the same seed gives the same bytes"):
        seekwell.check(Chancy)


def test_invalid_workload_classes_are_rejected() -> None:
    class Taken(Diary):
        name = "fs-mark"

    with pytest.raises(seekwell.InputError, match="registered already"):
        register_workload(Taken)

    class Outside(Workload):
        name = "outside-py"
        parameters = (Parameter("n", 5, "", 6, 7),)

    with pytest.raises(seekwell.InputError, match="has to lie within 6..=7"):
        register_workload(Outside)
    with pytest.raises(seekwell.InputError, match='has no parameter "entrys"'):
        register_workload(Diary)
        seekwell.run("diary-py:entrys=3", device=DISK)
