"""The deadline scheduler of Linux 4.0, in Python. It makes the same decisions as the built-in one.

It dispatches requests in one-way sweeps, in batches, with expiry times. For each direction (reads
and writes), the requests are in two lists: by sector and by age. Each batch has one direction. This
is reads, unless writes were passed over `writes_starved` times. If the oldest request of the
direction has expired, the sweep continues from there.
"""

from __future__ import annotations

from bisect import bisect_left, insort

from seekwell import Bio, Cx, Request, Scheduler, Tunable

READ, WRITE = 0, 1


class Sorted:
    """Requests ordered by first sector, and then by arrival."""

    def __init__(self) -> None:
        self.keys: list[tuple[int, int]] = []
        self.requests: dict[tuple[int, int], Request] = {}
        self.key_of: dict[Request, tuple[int, int]] = {}
        self.count = 0

    def add(self, rq: Request) -> None:
        self.count += 1
        key = (rq.sector, self.count)
        insort(self.keys, key)
        self.requests[key] = rq
        self.key_of[rq] = key

    def remove(self, rq: Request) -> None:
        key = self.key_of.pop(rq)
        del self.keys[bisect_left(self.keys, key)]
        del self.requests[key]

    def beside(self, rq: Request, step: int) -> Request | None:
        at = bisect_left(self.keys, self.key_of[rq]) + step
        return self.requests[self.keys[at]] if 0 <= at < len(self.keys) else None

    def at(self, sector: int) -> Request | None:
        at = bisect_left(self.keys, (sector, 0))
        if at < len(self.keys) and self.keys[at][0] == sector:
            return self.requests[self.keys[at]]
        return None


class Deadline(Scheduler):
    """deadline of Linux 4.0."""

    name = "deadline-py"
    layer = "single-queue"
    kernel = "4.0"
    summary = "deadline of Linux 4.0, written in Python"
    tunables = (
        Tunable("read_expire", 500, kind="ms", unit="ms", help="Deadline of a read."),
        Tunable("write_expire", 5000, kind="ms", unit="ms", help="Deadline of a write."),
        Tunable("writes_starved", 2, unit="read batches", min=-(2**31), help="Before writes."),
        Tunable("front_merges", 1, kind="bool", unit="bool", max=1, help="Look for them."),
        Tunable("fifo_batch", 16, unit="requests", help="Requests of a batch."),
    )
    waiting = {"fixed_ms": 5000, "requests": 48}  # noqa: RUF012 (as a class has it)

    read_expire: int
    write_expire: int
    writes_starved: int
    front_merges: int
    fifo_batch: int

    def __init__(self) -> None:
        self.sorted = (Sorted(), Sorted())
        # Requests with their deadlines in jiffies, in the order of the deadlines.
        self.fifo: tuple[dict[Request, int], dict[Request, int]] = ({}, {})
        self.next: list[Request | None] = [None, None]
        self.batch = 0
        self.starved = 0

    def insert(self, cx: Cx, rq: Request, how: str) -> None:
        expire = self.write_expire if rq.is_write else self.read_expire
        self.sorted[rq.is_write].add(rq)
        self.fifo[rq.is_write][rq] = cx.jiffies + cx.ms_to_jiffies(expire)

    def take(self, cx: Cx, rq: Request, rule: str) -> None:
        """Dispatches `rq`. The sweep continues after it."""
        cx.why(rule)
        d = rq.is_write
        self.next = [None, None]
        self.next[d] = self.sorted[d].beside(rq, 1)
        del self.fifo[d][rq]
        self.sorted[d].remove(rq)
        cx.emit(rq)

    def direction(self) -> int | None:
        """Returns the direction of the next batch."""
        reads, writes = bool(self.fifo[READ]), bool(self.fifo[WRITE])
        if not writes:
            return READ if reads else None
        if reads:
            passed_over = self.starved
            self.starved += 1
            # A negative limit is never reached, because the kernel's comparison is unsigned.
            if passed_over < self.writes_starved % 2**32:
                return READ
        self.starved = 0
        return WRITE

    def dispatch(self, cx: Cx, hctx: int, force: bool) -> None:
        following = self.next[WRITE] or self.next[READ]
        if following is not None and self.batch < self.fifo_batch:
            self.batch += 1
            self.take(cx, following, "batch-continues")
            return
        d = self.direction()
        if d is None:
            return
        head, deadline = next(iter(self.fifo[d].items()))
        if cx.jiffies >= deadline:
            rq, rule = head, "head-expired"
        elif (following := self.next[d]) is not None:
            rq, rule = following, "sweep-continues"
        else:
            rq, rule = head, "fifo-head"
        self.batch = 1
        self.take(cx, rq, rule)

    def find_front(self, cx: Cx, bio: Bio) -> Request | None:
        return self.sorted[bio.is_write].at(bio.end) if self.front_merges else None

    def merged(self, cx: Cx, rq: Request, kind: str) -> None:
        if kind == "front":
            self.sorted[rq.is_write].remove(rq)
            self.sorted[rq.is_write].add(rq)

    def joined(self, cx: Cx, kept: Request, gone: Request) -> None:
        d = kept.is_write
        fifo = self.fifo[d]
        if fifo[gone] < fifo[kept]:
            # The kept request gets the position and the deadline of the older one.
            del fifo[kept]
            items = [(kept if rq is gone else rq, at) for rq, at in fifo.items()]
            fifo.clear()
            fifo.update(items)
        else:
            del fifo[gone]
        if self.next[d] is gone:
            self.next[d] = self.sorted[d].beside(gone, 1)
        self.sorted[d].remove(gone)

    def former(self, cx: Cx, rq: Request) -> Request | None:
        return self.sorted[rq.is_write].beside(rq, -1)

    def latter(self, cx: Cx, rq: Request) -> Request | None:
        return self.sorted[rq.is_write].beside(rq, 1)

    def check(self, cx: Cx) -> None:
        for d in (READ, WRITE):
            assert len(self.sorted[d].keys) == len(self.fifo[d]), "tree and fifo hold the same"
            following = self.next[d]
            assert following is None or following in self.fifo[d], "next is in its tree"

    def state(self) -> str:
        fifos = ["[" + " ".join(str(rq.id) for rq in fifo) + "]" for fifo in self.fifo]
        return f"reads: {fifos[READ]}; writes: {fifos[WRITE]}; batch {self.batch}"
