// Block-level pictures of a window: numbers of waiting requests and of requests in the device, distances
// between requests, merges, and the time of requests in the scheduler and in the device.
import { D } from './data';
import { $, h, onChange, onWidth, s, state, whenSeen } from './dom';
import { at, lane, type Lane } from './lane';
import { lines } from './lines';
import { color, shown } from './look';
import { bytes, time } from './text';

const BINS = ['0', '< 64 kB', '< 1 MB', '< 16 MB', '< 256 MB', '< 4 GB', '≥ 4 GB'];
const EDGES = [1, 64e3, 1e6, 16e6, 256e6, 4e9, Infinity];

const cut = (name: string, n: number) => (name.length > n ? `${name.slice(0, n - 1)}…` : name);

/** Draws the distances between one served request and the next. */
function distances(ls: Lane[]): HTMLElement {
  const rows = ls.map((l) => {
    const n = BINS.map(() => 0);
    for (let k = 1; k < l.done.length; k++) {
      const [, a, an] = at(l.done[k - 1]!, l.done[k - 1]!.tC);
      const far = Math.abs(at(l.done[k]!, l.done[k]!.tC)[1] - a - an) * 512;
      n[EDGES.findIndex((e) => far < e)]!++;
    }
    const sum = Math.max(1, n.reduce((x, y) => x + y, 0));
    return n.map((x) => x / sum);
  });
  const box = h('div', { class: 'chart' });
  onWidth(box, (W) => {
    const RH = 44;
    const L = W < 430 ? 84 : 104;
    const cw = (W - L) / BINS.length;
    const percent = (f: number) => `${Math.round(f * 100)} %`;
    const g = s('svg', { width: W, height: ls.length * RH + 20, role: 'img', 'aria-label': `Share of requests by distance from the one before: ${ls.map((l, k) => `${l.name} ${percent(rows[k]![0]!)} without a seek`).join(', ')}` });
    ls.forEach((l, k) => {
      const foot = k * RH + RH - 2;
      g.append(s('text', { x: L - 8, y: foot - 4, class: 'name', 'text-anchor': 'end' }, cut(l.name, W < 430 ? 8 : 13)));
      rows[k]!.forEach((f, j) => {
        const x = L + j * cw;
        const tall = f * (RH - 20);
        g.append(s('g', {}, s('title', {}, `${l.name}: ${percent(f)} at ${BINS[j]}`), s('rect', { x: x + 3, y: foot - tall, width: Math.max(1, cw - 6), height: Math.max(f ? 1 : 0, tall), fill: color(l.of.s) })),
          s('path', { d: `M${x + 3},${foot}h${Math.max(1, cw - 6)}`, class: 'grid' }));
        if (f >= 0.02 && cw > 40) g.append(s('text', { x: x + cw / 2, y: foot - 4 - tall, class: 'tick', 'text-anchor': 'middle' }, percent(f)));
      });
    });
    BINS.forEach((b, j) => g.append(s('text', { x: L + j * cw + cw / 2, y: ls.length * RH + 14, class: 'tick', 'text-anchor': 'middle' }, cw < 52 ? b.replace(/ ([kMG])B/, '$1').replace(/^< /, '') : b)));
    box.replaceChildren(g);
  });
  return h('figure', { class: 'panel' }, h('figcaption', {}, h('b', {}, 'Distance from one request to the next')), box);
}

/** Draws the mean time in the scheduler (pale) and in the device (full). */
function whereTime(ls: Lane[]): HTMLElement | null {
  const of = (l: Lane, write: boolean) => {
    const all = l.done.filter((r) => r.op > 0 === write && !r.joined && r.tD < Infinity);
    const mean = (f: (r: Lane['done'][0]) => number) => all.reduce((a, r) => a + f(r), 0) / Math.max(1, all.length);
    return { l, kind: write ? 'writes' : 'reads', n: all.length, wait: mean((r) => r.tD - r.tI), dev: mean((r) => r.tC - r.tD) };
  };
  const bars = ls.flatMap((l) => [of(l, false), of(l, true)]).filter((b) => b.n > 0);
  if (!bars.length) return null;
  const max = Math.max(1e-9, ...bars.map((b) => b.wait + b.dev));
  const say = (b: (typeof bars)[0]) => `${time(b.wait * 1e6)} + ${time(b.dev * 1e6)}`;
  const box = h('div', { class: 'chart' });
  onWidth(box, (W) => {
    const narrow = W < 430;
    const [RH, L, R] = [narrow ? 40 : 24, narrow ? 0 : 154, narrow ? 0 : 132];
    const X = (v: number) => (v / max) * (W - L - R);
    const g = s('svg', { width: W, height: bars.length * RH + 4, role: 'img', 'aria-label': `Mean time waiting in the scheduler and in the device: ${bars.map((b) => `${b.l.name} ${b.kind} ${say(b)}`).join('; ')}` });
    bars.forEach((b, k) => {
      const y = k * RH + (narrow ? 18 : 0);
      const c = color(b.l.of.s);
      g.append(s('text', narrow ? { x: 0, y: y - 2, class: 'name' } : { x: L - 10, y: y + 16, class: 'name', 'text-anchor': 'end' }, `${cut(b.l.name, 12)} ${b.kind}`),
        s('rect', { x: L, y: y + 4, width: Math.max(1, X(b.wait)), height: 15, fill: c, opacity: 0.4 }),
        s('rect', { x: L + X(b.wait), y: y + 4, width: Math.max(1, X(b.dev)), height: 15, fill: c }),
        s('text', narrow ? { x: W, y: y - 2, class: 'tick', 'text-anchor': 'end' } : { x: L + X(b.wait + b.dev) + 8, y: y + 16, class: 'tick' }, say(b)));
    });
    box.replaceChildren(g);
  });
  return h('figure', { class: 'panel' }, h('figcaption', {}, h('b', {}, 'Where a request spends its time'), ' pale: waiting in the scheduler; full: in the device'), box);
}

const BIN_COUNT = 120;

/** Converts steps to bins with the mean over time, the minimum and the maximum, so that no peak is lost. */
export function binned(t: number[], v: number[], length: number, bins = BIN_COUNT) {
  const [x, y, lo, hi]: number[][] = [[], [], [], []];
  const w = length / bins;
  let k = 0;
  for (let b = 0; b < bins; b++) {
    const [from, to] = [b * w, (b + 1) * w];
    while (k + 1 < t.length && t[k + 1]! <= from) k++;
    let [j, sum, least, most, at] = [k, 0, v[k]!, v[k]!, from];
    for (;;) {
      const next = Math.min(to, t[j + 1] ?? to);
      sum += v[j]! * (next - at);
      least = Math.min(least, v[j]!);
      most = Math.max(most, v[j]!);
      at = next;
      if (at >= to || j + 1 >= t.length) break;
      j++;
    }
    x!.push(from);
    y!.push(sum / w);
    lo!.push(least);
    hi!.push(most);
  }
  return { x: x!, y: y!, lo: lo!, hi: hi! };
}

/** Returns the numbers of completed, merged and joined requests as a table. */
function counts(ls: Lane[]): HTMLElement {
  const heads = ['Scheduler', 'done', 'merged bios', 'joined', 'in the cache', 'flushes', 'head moved', 'held back'];
  const row = (l: Lane) => {
    const merged = l.reqs.reduce((a, r) => a + r.spans.length - 1, 0);
    let travel = 0;
    for (let k = 1; k < l.head.length; k++) travel += Math.abs(l.head[k]![1] - l.head[k - 1]![1]);
    const held = l.idle.reduce((a, [x, y]) => a + y - x, 0);
    return [l.done.length, merged, l.reqs.filter((r) => r.joined).length, l.reqs.filter((r) => r.cached).length, l.flushes.length, l.head.length ? bytes(travel * 512) : '–', time(held * 1e6)];
  };
  return h('figure', { class: 'panel wide' }, h('figcaption', {}, h('b', {}, 'Merges and other counts'), ' in this window'),
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Merges and other counts' }, h('table', { class: 'figures' },
      h('thead', {}, h('tr', {}, ...heads.map((x) => h('th', { scope: 'col' }, x)))),
      h('tbody', {}, ...ls.map((l) => h('tr', {}, h('th', { scope: 'row' }, l.name), ...row(l).map((v) => h('td', {}, String(v)))))))));
}

export function blocks() {
  const out = $('#blocks');
  let turn = 0;
  const draw = async () => {
    const mine = ++turn;
    const scene = D.scenes.find((x) => D.rows[x.row]!.id === state.get('scene')) ?? D.scenes[0]!;
    const ls = await Promise.all(scene.lanes.filter((l) => shown(l.s)).map(lane));
    if (mine !== turn) return;
    const over = (title: string, of: 'wait' | 'dev') => {
      const el = lines({
        title, x: 'ms', y: 'requests', height: 220, note: 'line: mean; band: lowest to highest',
        lines: ls.map((l) => ({ name: l.name, i: l.of.s, ...binned(l.depth.t, l.depth[of], l.length) })),
      });
      el.classList.add('panel');
      return el;
    };
    out.replaceChildren(...(ls.length ? [over('Waiting in the scheduler', 'wait'), over('In the device', 'dev'), distances(ls), whereTime(ls), counts(ls)].filter((x) => x !== null) : []));
  };
  whenSeen(out, () => void draw());
  onChange((k) => { if (k.has('scene') || k.has('hide')) void draw(); });
}
