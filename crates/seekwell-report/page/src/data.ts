// The data in the file: one readable index, and deflated columns that are opened when they are needed.
// The program computes every number and every sentence; the page formats and draws.

/** The result of one scheduler compared with another, as in the verdict. */
export type Class =
  | 'identical' | 'identical_so_far' | 'better' | 'worse' | 'better_maybe_small'
  | 'worse_maybe_small' | 'real_but_small' | 'no_difference' | 'hint' | 'cannot_tell';

export interface Side {
  /** Index of the scheduler. */
  s: number;
  n: number;
  failed: number;
  mean: number | null;
  sd: number | null;
  se: number | null;
  lo: number | null;
  hi: number | null;
  /** Value of each block. */
  v: (number | null)[];
  /** Position of each run in the order of the whole experiment. */
  at: (number | null)[];
  /** Reasons why runs failed, each once. */
  why: string[];
}

export interface Pair {
  a: number;
  b: number;
  /** How many times better `a` is than `b`, with the ends of the interval. */
  times: number | null;
  lo: number | null;
  hi: number | null;
  cls: Class;
  words: string;
}

/** One device, test and machine with its parameter values. */
export interface Row {
  id: string;
  device: number;
  name: string;
  machine: string;
  metric: string;
  unit: string;
  higher: boolean;
  /** win: some schedulers are ahead; none: no difference; open: not decided; failed; single. */
  kind: 'win' | 'none' | 'open' | 'failed' | 'single';
  /** Schedulers that are significantly ahead, and those that are level with them. */
  tops: number[];
  best: number | null;
  words: string;
  sides: Side[];
  pairs: Pair[];
  flags: string[];
  /** The sweep that contains this row, by its index in `sweeps`, and the row's value on the axis. */
  sweep: [number, number] | null;
  /** Name of the part with percentiles and series, if there is one. */
  part: string | null;
}

export interface Sweep {
  device: number;
  name: string;
  axis: string;
  rows: number[];
}

export interface Score {
  s: number;
  times: number;
  lo: number | null;
  hi: number | null;
}

export interface Group {
  device: number;
  machine: string;
  reference: number;
  scores: Score[];
}

/** A window of events under several schedulers. */
export interface Scene {
  row: number;
  block: number;
  /** Start on the workload's clock, ns. */
  from: number;
  lanes: LaneOf[];
}

export interface LaneOf { s: number; part: string; length: number }

interface Index {
  title: string;
  margin: number;
  schedulers: { name: string; layer: string }[];
  devices: string[];
  rows: Row[];
  sweeps: Sweep[];
  groups: Group[];
  scenes: Scene[];
}

export const D: Index = JSON.parse(document.getElementById('sw-index')!.textContent!);

export const side = (r: Row, s: number) => r.sides.find((x) => x.s === s);

const FLIP: Partial<Record<Class, Class>> = {
  better: 'worse', worse: 'better', better_maybe_small: 'worse_maybe_small',
  worse_maybe_small: 'better_maybe_small',
};

export interface Versus { times: number | null; lo: number | null; hi: number | null; cls: Class }

/** Returns one scheduler compared with another; `times` above 1 means that `one` is better. */
export function versus(r: Row, one: number, other: number): Versus | undefined {
  const over = (x: number | null) => (x === null ? null : 1 / x);
  for (const p of r.pairs) {
    if (p.a === one && p.b === other) return p;
    if (p.a === other && p.b === one) {
      return { times: over(p.times), lo: over(p.hi), hi: over(p.lo), cls: FLIP[p.cls] ?? p.cls };
    }
  }
  return undefined;
}

export const level = (c: Class) =>
  c === 'identical' || c === 'no_difference' || c === 'real_but_small' || c === 'identical_so_far';
export const undecided = (c: Class) =>
  c === 'hint' || c === 'cannot_tell';

/** Details of a scheduler in a cell. */
export interface Kept {
  s: number;
  runs: number;
  /** Number of operations that the percentiles are based on. */
  n: number;
  /** Events of the run with their start and end, ms. */
  marks: [string, number, number][];
  /** Bytes by process. */
  shares: [string, number][];
  facts: {
    rate: number; requests: number; merges: number; seek: number; busy: number; depth: number;
    outstanding: number; percentiles: (number | null)[];
  } | null;
  traded: { rate: number; rates: [number, number] | null; p99: number; p99s: [number, number] | null } | null;
}

interface Column { name: string; kind: 'int' | 'log'; n: number; at: number; lo?: number; step?: number }

/** Columns of one part. */
export interface Columns {
  head: { columns: Column[]; [key: string]: unknown };
  has(name: string): boolean;
  column(name: string): Float64Array;
}

const opened = new Map<string, Promise<Columns>>();

/** Opens one part of the file. Each part is opened only once. */
export function open(name: string): Promise<Columns> {
  let p = opened.get(name);
  if (!p) opened.set(name, (p = unpack(name)));
  return p;
}

async function unpack(name: string): Promise<Columns> {
  const text = document.getElementById(`sw-${name}`)?.textContent?.trim();
  if (!text) throw new Error(`the file holds no part ${name}`);
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const flow = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const raw = new Uint8Array(await new Response(flow).arrayBuffer());
  const length = new DataView(raw.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + length))) as Columns['head'];
  const body = raw.subarray(4 + length);
  const done = new Map<string, Float64Array>();
  const find = (c: string) => head.columns.find((x) => x.name === c);
  return {
    head,
    has: (c) => find(c) !== undefined,
    column(c) {
      const known = done.get(c);
      if (known) return known;
      const of = find(c)!;
      const out = new Float64Array(of.n);
      let at = of.at;
      let before = 0;
      for (let i = 0; i < of.n; i++) {
        let zigzag = 0;
        let place = 1;
        let byte: number;
        do {
          byte = body[at++]!;
          zigzag += (byte & 127) * place;
          place *= 128;
        } while (byte & 128);
        before += zigzag % 2 ? -(zigzag + 1) / 2 : zigzag / 2;
        out[i] = of.kind === 'log' ? (before ? Math.exp(of.lo! + (before - 1) * of.step!) : 0) : before;
      }
      done.set(c, out);
      return out;
    },
  };
}
