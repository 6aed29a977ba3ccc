// The course of time: one strip per scheduler on the same axes, with checkpoints, flushes and throttling
// inside the strip.
import uPlot from 'uplot';
import { D, type Columns, type Kept } from './data';
import { css, h, onWidth, say, set, state } from './dom';
import { onRedraw } from './lines';
import { mark } from './look';
import { three } from './text';

const KINDS = { mean: 'per second', lat: 'mean latency', sd: 'SD of latency', max: 'longest' } as const;
type Kind = keyof typeof KINDS;
const FONT = '11.5px system-ui, sans-serif';
const plain = (v: number) => (v >= 1e4 ? `${+(v / 1000).toPrecision(2)}k` : String(+v.toPrecision(2)));

/** Returns the plural of a kind of operation. */
export const many = (kind: string) => (/s$/.test(kind) ? kind : `${kind}s`);

export function course(c: Columns, sides: Kept[]): HTMLElement | null {
  const have = sides.filter((x) => c.has(`${x.s}.mean`));
  if (!have.length) return null;
  const what = String(c.head.operation);
  const step = Number(c.head.step);
  const kinds = (Object.keys(KINDS) as Kind[]).filter((k) => have.some((x) => c.has(`${x.s}.${k}`)));
  const asked = state.get('lat') as Kind | null;
  const kind: Kind = asked && kinds.includes(asked) ? asked : 'mean';
  const rate = kind === 'mean';
  const log = !rate && state.get('log') !== '0';
  const n = Math.max(...have.map((x) => c.column(`${x.s}.mean`).length));
  const xs = Array.from({ length: n }, (_, k) => k * step);
  const of = (name: string, f: (v: number) => number) => have.map((x) => (c.has(`${x.s}.${name}`) ? Array.from(c.column(`${x.s}.${name}`), f) : []));
  const ys = of(kind, (v) => (rate ? v / 1000 : v / 1e6));
  const band = rate ? [of('low', (v) => v), of('high', (v) => v)] : null;
  let [top, bottom] = [0, Infinity];
  for (const v of [...ys, ...(band?.[1] ?? [])].flat()) {
    top = Math.max(top, v);
    if (v > 0) bottom = Math.min(bottom, v);
  }
  const [lo, hi] = log && top > 0 ? [10 ** Math.floor(Math.log10(bottom)), 10 ** Math.ceil(Math.log10(top) + 1e-9)] : [0, top * 1.04 || 1];
  const out = h('output', { class: 'readout', 'aria-live': 'off' });
  const all = () => zoom(0, xs[n - 1]!);
  const tools = h('span', { class: 'tools' },
    ...kinds.map((k) => h('button', { class: 'small', type: 'button', 'data-kind': k, 'aria-pressed': String(k === kind), onclick: () => set({ lat: k === 'mean' ? null : k }) }, KINDS[k])),
    rate ? null : h('button', { class: 'small', type: 'button', 'aria-pressed': String(log), onclick: () => set({ log: log ? '0' : null }) }, 'log axis'),
    h('button', { class: 'small', type: 'button', onclick: () => all() }, 'show all'));
  const rows = h('div', { class: 'course-rows' });
  const title = `Second by second: ${many(what)}, ${KINDS[kind]}`;
  const stage = h('div', { class: 'stage', tabindex: 0, role: 'group', 'aria-roledescription': 'chart', 'aria-label': `${title}, one strip per scheduler. Arrow keys move the cursor, Shift by ten, plus and minus zoom, Escape shows all.` }, rows);
  const marked = (name: string) => have.some((x) => x.marks.some((m) => m[0] === name));
  const note = [rate ? 'line: mean of the runs, band: lowest to highest' : 'all runs together', ...(step > 1 ? [`steps of ${step} s`] : [])].join('; ');
  const key = h('p', { class: 'lanekey' }, h('span', {}, note),
    marked('checkpoint') ? h('span', {}, h('i', { class: 'k-cp' }), 'checkpoint') : null,
    marked('throttled') ? h('span', {}, h('i', { class: 'k-th' }), 'writers throttled') : null,
    marked('flush') ? h('span', {}, h('i', { class: 'k-fl' }), 'flush') : null,
    marked('checkpoint') || marked('throttled') || marked('flush') ? h('span', {}, 'marks: first run only') : null,
    h('span', {}, 'drag to zoom'));
  const box = h('figure', { class: 'panel wide course' }, h('figcaption', {}, h('b', {}, title), tools, out), stage, key);
  let us: uPlot[] = [];
  let [W, syncing, cursor] = [0, false, 0];
  const words = (i: number) => `${xs[i]} s: ${have.map((x, k) => (ys[k]![i] === undefined ? null : `${D.schedulers[x.s]!.name} ${three(ys[k]![i]!)}`)).filter(Boolean).join(' · ')}${rate ? ' per second' : ' ms'}`;
  const zoom = (a: number, b: number, from?: uPlot) => {
    if (syncing) return;
    syncing = true;
    for (const u of us) if (u !== from) u.setScale('x', { min: a, max: b });
    syncing = false;
  };
  const splits = () => {
    const at: number[] = [];
    for (let v = lo; v <= hi * 1.01; v *= hi / lo > 1e3 ? 100 : 10) at.push(v);
    return at;
  };
  const paint = (u: uPlot, side: Kept) => {
    const g = u.ctx;
    const { left, top: y, width, height } = u.bbox;
    const X = (ms: number) => u.valToPos(ms / 1000, 'x', true);
    const r = devicePixelRatio || 1;
    g.save();
    g.beginPath();
    g.rect(left, y, width, height);
    g.clip();
    for (const [name, from, to] of side.marks) {
      const [a, b] = [X(from), Math.max(X(to), X(from) + r)];
      if (b < left || a > left + width) continue;
      if (name === 'throttled') {
        [g.fillStyle, g.globalAlpha] = [css('--warn'), 0.22];
        g.fillRect(a, y, b - a, height);
      } else if (name === 'checkpoint') {
        g.fillStyle = css('--shade');
        g.fillRect(a, y, b - a, height);
        g.fillStyle = css('--dim');
        g.fillRect(a, y + height - 4 * r, b - a, 4 * r);
      } else {
        g.fillStyle = css('--ink');
        g.fillRect(a, y, r, height / 4);
      }
      g.globalAlpha = 1;
    }
    g.restore();
  };
  const build = () => {
    if (!W) return;
    for (const u of us) u.destroy();
    const [narrow, ink, grid] = [W < 560, css('--dim'), css('--line')];
    us = have.map((x, k) => {
      const el = rows.children[k]!.querySelector<HTMLElement>('.plot')!;
      const last = k === have.length - 1;
      const stroke = css(`--s${x.s % 8}`);
      const y = log ? ys[k]!.map((v) => (v > 0 ? v : null)) : ys[k]!;
      const edge = { stroke: 'transparent', points: { show: false } };
      return new uPlot({
        width: W - (narrow ? 0 : 132), height: last ? 98 : 78, padding: [6, 24, last ? 0 : 6, 0], legend: { show: false },
        cursor: { drag: { x: true, y: false }, sync: { key: 'course' }, points: { size: 6 }, y: false },
        scales: { x: { time: false }, y: { distr: log ? 3 : 1, range: [lo, hi] } },
        axes: [
          { size: last ? 26 : 2, stroke: ink, font: FONT, grid: { stroke: grid, width: 1 }, ticks: { show: false }, values: (_u, v) => v.map((s) => (last ? `${s} s` : '')) },
          { size: 46, stroke: ink, font: FONT, grid: { stroke: grid, width: 1 }, ticks: { show: false }, splits: log ? splits : undefined, space: 26, values: (_u, v) => v.map(plain) },
        ],
        series: [{}, { stroke, width: 1.4, points: { show: false }, fill: `${stroke}18`, fillTo: lo }, ...(band ? [edge, edge] : [])],
        bands: band ? [{ series: [3, 2], fill: `${stroke}40` }] : [],
        hooks: {
          drawClear: [(u) => paint(u, x)],
          setCursor: [(u) => { out.textContent = u.cursor.idx == null ? '' : words(u.cursor.idx); }],
          setScale: [(u, name) => { if (name === 'x') zoom(u.scales.x!.min!, u.scales.x!.max!, u); }],
        },
      }, [xs.slice(0, ys[k]!.length), y, ...(band ? [band[0]![k]!, band[1]![k]!] : [])] as uPlot.AlignedData, el);
    });
  };
  for (const x of have) rows.append(h('div', { class: 'course-row' }, h('span', { class: 'course-name', title: D.schedulers[x.s]!.name }, mark(x.s), D.schedulers[x.s]!.name), h('div', { class: 'plot', 'aria-hidden': 'true' })));
  stage.addEventListener('keydown', (e) => {
    const u = us[0];
    if (!u) return;
    const { min, max } = u.scales.x!;
    const by = e.shiftKey ? 10 : 1;
    const mid = xs[cursor]!;
    if (e.key === 'ArrowRight') cursor = Math.min(n - 1, cursor + by);
    else if (e.key === 'ArrowLeft') cursor = Math.max(0, cursor - by);
    else if (e.key === 'Home') cursor = 0;
    else if (e.key === 'End') cursor = n - 1;
    else if (e.key === '+' || e.key === '=') return zoom(mid - (mid - min!) / 2, mid + (max! - mid) / 2);
    else if (e.key === '-') return zoom(Math.max(0, mid - (mid - min!) * 2), Math.min(xs[n - 1]!, mid + (max! - mid) * 2));
    else if (e.key === 'Escape') return all();
    else return;
    e.preventDefault();
    u.setCursor({ left: u.valToPos(xs[cursor]!, 'x'), top: 10 });
    out.textContent = words(cursor);
    say(words(cursor));
  });
  const table = h('details', { class: 'astable' }, h('summary', {}, 'As a table'));
  table.addEventListener('toggle', () => {
    if (table.querySelector('table')) return;
    const want = Math.min(n, 30);
    const at = Array.from({ length: want }, (_, k) => Math.round((k * (n - 1)) / Math.max(1, want - 1)));
    table.append(h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Second by second' },
      n > want ? h('p', { class: 'params' }, `${want} of ${n} steps`) : null,
      h('table', { class: 'figures' }, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 's'), ...have.map((x) => h('th', { scope: 'col' }, D.schedulers[x.s]!.name)))),
        h('tbody', {}, ...at.map((j) => h('tr', {}, h('th', { scope: 'row' }, String(xs[j])), ...have.map((_x, k) => h('td', {}, ys[k]![j] === undefined ? '–' : three(ys[k]![j]!)))))))));
  });
  box.append(table);
  onWidth(stage, (w) => {
    W = w;
    build();
  });
  onRedraw(box, build);
  return box;
}
