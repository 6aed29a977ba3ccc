// A lane of the replay: the requests over time and the scheduler's decisions, computed from its events.
import { D, open, type LaneOf, type Scene } from './data';

const INF = Infinity;

/** A request. Times are in ms since the start of the window; `spans` changes when a merge makes it larger. */
export interface Req {
  id: number;
  task: number;
  /** 0 read, 1 write, 2 flush, 3 discard, 4 zeroes. */
  op: number;
  tI: number;
  tE: number;
  tD: number;
  tC: number;
  /** Each span: its start time, first sector, and number of sectors. */
  spans: [number, number, number][];
  /** The drive's cache answered the request, or accepted its data. */
  cached?: boolean;
  /** The request was merged into another one. */
  joined?: boolean;
}
export interface Decision { t: number; req: Req; why: number[] }
export interface Note { t: number; why: number }
/** A part of the disk that is in use. Between two pieces, no request accesses the disk. */
export interface Piece { lo: number; hi: number }

export interface Lane {
  of: LaneOf;
  name: string;
  length: number;
  reqs: Req[];
  done: Req[];
  flushes: Req[];
  decisions: Decision[];
  notes: Note[];
  /** Rule and text of each reason. */
  reasons: [string, string][];
  /** Path of the head: time and sector. It is empty if the position of the head is unknown. */
  head: [number, number][];
  pieces: Piece[];
  lo: number;
  hi: number;
  depth: { t: number[]; wait: number[]; dev: number[] };
  /** Times at which the device is empty although a request waits. */
  idle: [number, number][];
  task: (id: number) => string;
  member: string | null;
  members: number;
  state: string;
}

/** Returns the position of a request at a time. */
export function at(r: Req, t: number): [number, number, number] {
  let k = 0;
  while (k + 1 < r.spans.length && r.spans[k + 1]![0] <= t) k++;
  return r.spans[k]!;
}

function piecesOf(rs: Req[]): Piece[] {
  const all = rs.flatMap((r) => r.spans.map(([, s, n]) => ({ lo: s, hi: s + n }))).filter((p) => p.hi > p.lo);
  return merged(all);
}

/** Merges pieces that are near each other. Unused parts above 6 % of the span are left out. */
function merged(all: Piece[]): Piece[] {
  if (!all.length) return [{ lo: 0, hi: 1 }];
  all.sort((a, b) => a.lo - b.lo);
  const span = all.reduce((a, p) => Math.max(a, p.hi), 0) - all[0]!.lo;
  const out: Piece[] = [{ ...all[0]! }];
  for (const p of all) {
    const last = out[out.length - 1]!;
    if (p.lo - last.hi > span * 0.06) out.push({ ...p });
    else last.hi = Math.max(last.hi, p.hi);
  }
  return out;
}

export interface Axis {
  X: (sector: number) => number;
  parts: { x0: number; x1: number; lo: number; hi: number }[];
}

/** Puts the pieces of several lanes on one axis. */
export function axisOf(ls: Lane[]): (W: number, pad: number) => Axis {
  const ps = merged(ls.flatMap((l) => l.pieces.map((p) => ({ ...p }))));
  const used = ps.reduce((a, p) => a + p.hi - p.lo, 0) || 1;
  const share = ps.map((p) => Math.max(0.14, (p.hi - p.lo) / used));
  const sum = share.reduce((a, b) => a + b, 0);
  return (W, pad) => {
    const gap = 16;
    const room = W - 2 * pad - gap * (ps.length - 1);
    let x = pad;
    const parts = ps.map((p, k) => {
      const w = (share[k]! / sum) * room;
      const o = { x0: x, x1: x + w, lo: p.lo, hi: Math.max(p.hi, p.lo + 1) };
      x += w + gap;
      return o;
    });
    const X = (sector: number) => {
      for (let k = 0; k < parts.length; k++) {
        const p = parts[k]!;
        if (sector > p.hi && k < parts.length - 1) continue;
        const b = parts[k - 1];
        if (sector < p.lo && b) return b.x1 + ((sector - b.hi) / (p.lo - b.hi)) * (p.x0 - b.x1);
        return p.x0 + ((Math.min(Math.max(sector, p.lo), p.hi) - p.lo) / (p.hi - p.lo)) * (p.x1 - p.x0);
      }
      return pad;
    };
    return { X, parts };
  };
}

const cache = new Map<string, Promise<Lane>>();
export function lane(of: LaneOf): Promise<Lane> {
  let p = cache.get(of.part);
  if (!p) cache.set(of.part, (p = read(of)));
  return p;
}

export const sceneName = (s: Scene) => {
  const r = D.rows[s.row]!;
  return `${r.name} on ${D.devices[r.device]}${r.machine ? `, ${r.machine}` : ''}`;
};

type Held = [number, number, number, number, number, number, number | null, string];

/** Time in ms for reading this many sectors at about 80 MB/s; only used to draw the end of a seek. */
const passing = (n: number) => (n * 512) / 80e3;

async function read(of: LaneOf): Promise<Lane> {
  const c = await open(of.part);
  const letters = String(c.head.letters);
  const [T, A, RQ, TASK, OP, SEC, N, MORE] = ['t', 'a', 'rq', 'task', 'op', 'sector', 'n', 'more'].map((x) => c.column(x)) as Float64Array[];
  const [HF, HB, HU] = ['h.from', 'h.begin', 'h.until'].map((x) => c.column(x)) as Float64Array[];
  const reasons = c.head.reasons as [string, string][];
  const names = c.head.tasks as Record<string, string>;
  const length = Number(c.head.length) / 1e6;
  const live = new Map<number, Req>();
  const reqs: Req[] = [];
  const decisions: Decision[] = [];
  const notes: Note[] = [];
  const done: Req[] = [];
  const head: [number, number][] = [];
  for (const [id, task, op, sector, n, age, device, state] of c.head.inside as Held[]) {
    if (state === 'plugged' && device === null) continue;
    const out = state === 'dispatched' || state === 'started' || device !== null;
    const r: Req = {
      id, task, op, tI: -age / 1e6, tE: out ? -(device ?? 0) / 1e6 : INF,
      tD: device === null ? INF : -device / 1e6, tC: INF, spans: [[-INF, sector, n]],
    };
    live.set(id, r);
    reqs.push(r);
  }
  let pending: number[] = [];
  let moved = 0;
  // A request that bypasses the scheduler is known from its dispatch on. Its cache state is reported before that.
  let hit = -1;
  const settle = (t: number) => {
    for (const why of pending) notes.push({ t, why });
    pending = [];
  };
  const begin = (k: number, t: number): Req => {
    const r: Req = { id: RQ![k]!, task: TASK![k]!, op: OP![k]!, tI: t, tE: INF, tD: INF, tC: INF, spans: [[t, SEC![k]!, N![k]!]] };
    live.set(r.id, r);
    reqs.push(r);
    return r;
  };
  for (let k = 0; k < T!.length; k++) {
    const t = T![k]! / 1e6;
    const r = live.get(RQ![k]!);
    switch (letters[A![k]!]) {
      case 'm': case 'T': pending.push(MORE![k]!); break;
      case 'a': case 'd': break;
      case 'I': {
        settle(t);
        // Between the steps of a flush sequence, the request is inserted again.
        const q = r && r.tC === INF && r.tD < INF ? r : begin(k, t);
        if (MORE![k] === 1 && q.tE === INF) q.tE = t;
        break;
      }
      case 'M': case 'F': r?.spans.push([t, SEC![k]!, N![k]!]); break;
      case 'j': {
        const gone = live.get(MORE![k]!);
        if (gone) {
          gone.joined = true;
          gone.tE = gone.tD = gone.tC = t;
          live.delete(gone.id);
        }
        break;
      }
      case 'E': {
        const q = r ?? begin(k, t);
        q.tE = t;
        if (N![k]!) decisions.push({ t, req: q, why: pending });
        else settle(t);
        pending = [];
        break;
      }
      case 'D': {
        const q = r ?? begin(k, t);
        q.tD = t;
        if (hit === q.id) q.cached = true;
        hit = -1;
        if (q.tE === INF) {
          q.tE = t;
          // No decision dispatched the request, because it bypassed the scheduler.
          if (q.op !== 2) decisions.push({ t, req: q, why: [] });
        }
        break;
      }
      case 'h': {
        const [from, b, u] = [HF![moved]!, HB![moved]! / 1e6, HU![moved]! / 1e6];
        moved++;
        head.push([b, from], [Math.max(b, u - passing(N![k]!)), SEC![k]!], [u, SEC![k]! + N![k]!]);
        break;
      }
      case 'c':
        if (r) r.cached = true;
        else hit = RQ![k]!;
        break;
      case 'R': if (r) r.tD = INF; break;
      case 'C':
        settle(t);
        if (r) {
          r.tC = t;
          done.push(r);
          live.delete(r.id);
        }
    }
  }
  settle(length);
  const data = reqs.filter((r) => r.op !== 2 && r.spans.some((s) => s[2] > 0));
  const flushes = reqs.filter((r) => r.op === 2 && r.tD < INF);
  let [lo, hi] = [INF, 0];
  for (const r of data) for (const [, s, n] of r.spans) [lo, hi] = [Math.min(lo, s), Math.max(hi, s + n)];
  // Head movements are reported when they start, but are drawn in the order of time.
  head.sort((a, b) => a[0] - b[0]);
  const { depth, idle } = depths(data, flushes);
  return {
    of, name: D.schedulers[of.s]!.name, length, reqs: data, done: done.filter((r) => r.op !== 2), flushes,
    decisions, notes, reasons, head, pieces: piecesOf(data), lo: lo === INF ? 0 : lo, hi: Math.max(hi, 1), depth, idle,
    task: (id) => names[id] ?? `task ${id}`, member: c.head.member as string | null,
    members: Number(c.head.members), state: String(c.head.scheduler ?? ''),
  };
}

/** Returns the numbers of waiting requests and of requests in the device at each change, and the times of idling. */
function depths(data: Req[], flushes: Req[]) {
  const steps: [number, number, number][] = [];
  for (const r of [...data, ...flushes]) {
    if (r.op !== 2) steps.push([Math.max(0, r.tI), 1, 0]);
    if (r.tD < INF) steps.push([Math.max(0, r.tD), r.op === 2 ? 0 : -1, r.joined ? 0 : 1]);
    if (r.tC < INF && !r.joined) steps.push([r.tC, 0, -1]);
  }
  steps.sort((a, b) => a[0] - b[0]);
  const depth = { t: [0], wait: [0], dev: [0] };
  const idle: [number, number][] = [];
  let [w, v, since] = [0, 0, -1];
  let k = 0;
  while (k < steps.length) {
    const t = steps[k]![0];
    for (; k < steps.length && steps[k]![0] === t; k++) [w, v] = [w + steps[k]![1], v + steps[k]![2]];
    const n = depth.t.length - 1;
    if (depth.t[n] === t) [depth.wait[n], depth.dev[n]] = [w, v];
    else {
      depth.t.push(t);
      depth.wait.push(w);
      depth.dev.push(v);
    }
    if (v === 0 && w > 0) {
      if (since < 0) since = t;
    } else if (since >= 0) {
      if (t > since) idle.push([since, t]);
      since = -1;
    }
  }
  return { depth, idle };
}

/** Returns the index of the last item of a sorted list that is not later than `t`, or -1. */
export function before<T>(all: T[], t: number, of: (x: T) => number): number {
  let [a, b, k] = [0, all.length - 1, -1];
  while (a <= b) {
    const m = (a + b) >> 1;
    if (of(all[m]!) <= t) [k, a] = [m, m + 1];
    else b = m - 1;
  }
  return k;
}

/** Returns the position of the head. A seek accelerates at its start and slows down at its end. */
export function headAt(l: Lane, t: number): number | null {
  if (!l.head.length) return null;
  const k = before(l.head, t, (p) => p[0]);
  if (k < 0) return l.head[0]![1];
  const p = l.head[k]!;
  const n = l.head[k + 1];
  if (!n || n[0] === p[0]) return p[1];
  const f = (t - p[0]) / (n[0] - p[0]);
  return p[1] + (n[1] - p[1]) * (f * f * (3 - 2 * f));
}

/** Returns the colours of the processes of some lanes. */
export const taskColors = (ls: Lane[]) => processColors(new Set(ls.flatMap((l) => l.reqs.map((r) => l.task(r.task)))));

/** Returns one of six colours for each program, and grey or brown for threads of the kernel. */
export function processColors(names: Iterable<string>): Map<string, number> {
  const out = new Map<string, number>();
  let c = 0;
  for (const n of [...names].sort((x, y) => x.localeCompare(y, 'en', { numeric: true }))) {
    out.set(n, /(^|\/)(flusher|kworker|writeback)/.test(n) ? 6 : /(^|\/)(journal|jbd2)/.test(n) ? 7 : c++ % 6);
  }
  return out;
}

export const gb = (sector: number) => (sector * 512) / 1e9;
