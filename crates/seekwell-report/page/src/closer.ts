// Details of one test on one device: the course of time, percentiles, throughput against tail latency,
// shares of processes, and the activity of the disk.
import { D, open, type Columns, type Kept, type Row } from './data';
import { $, h, onChange, onWidth, s, set, state, whenSeen } from './dom';
import { course, many } from './course';
import { processColors } from './lane';
import { lines } from './lines';
import { color, mark, markPath, shown } from './look';
import { bytes, inProse, three, time } from './text';

const nameOf = (x: Kept) => D.schedulers[x.s]!.name;
const cut = (name: string, n: number) => (name.length > n ? `${name.slice(0, n - 1)}…` : name);

/** Returns the position of a share on an axis of nines: 0.9 is at 1, 0.99 at 2. */
const nines = (f: number) => -Math.log10(Math.max(1e-7, 1 - f));
const SHARES = [0, 0.5, 0.9, 0.99, 0.999, 0.9999];
const PLAIN = [0, 25, 50, 75, 100];

function percentiles(c: Columns, sides: Kept[]): HTMLElement | null {
  const kind = String(c.head.operation);
  const have = sides.filter((x) => c.has(`${x.s}.latency`));
  if (!have.length) return null;
  const tail = state.get('tail') !== '0';
  // The axis ends at p99.99, or at the last operation.
  const top = Math.min(4.4, Math.max(...have.map((x) => c.column(`${x.s}.share`).reduce((a, b) => Math.max(a, nines(b / 1e7)), 0))));
  const el = lines({
    title: `How long ${/^[aeiou]/i.test(kind) ? 'an' : 'a'} ${kind} took`, note: 'all runs together', x: 'latency, log scale', y: 'done within, %', logX: 10, fx: time, height: 300,
    lines: have.map((x) => {
      const [latency, share] = [c.column(`${x.s}.latency`), c.column(`${x.s}.share`)];
      // Below half a per cent, the curve lies on the axis. The few reads from the page cache would take half the width.
      const from = Math.max(0, share.findIndex((f) => f > 5e4) - 1);
      // The curve starts at the axis, so that it is visible if all operations took the same time.
      const rise = from === 0 && latency.length ? [latency[0]! * 0.998] : [];
      const y = Array.from(share.subarray(from), (f) => (tail ? Math.min(top, nines(f / 1e7)) : f / 1e5));
      return { name: nameOf(x), i: x.s, x: [...rise, ...latency.subarray(from)], y: [...rise.map(() => 0), ...y] };
    }),
    ...(tail
      ? { ymin: 0, ymax: top + 0.1, splitsY: SHARES.map(nines).filter((v) => v <= top + 0.01), fy: (v: number) => `${+((1 - 10 ** -v) * 100).toFixed(4)}` }
      : { ymin: 0, ymax: 101, splitsY: PLAIN, fy: (v: number) => `${+v.toFixed(1)}` }),
  });
  el.classList.add('panel');
  $('figcaption', el).append(h('span', { class: 'tools' }, h('button', { class: 'small', type: 'button', id: 'tail', 'aria-pressed': String(tail), onclick: () => set({ tail: tail ? '0' : null }) }, 'enlarge the tail')));
  return el;
}

/** Draws throughput against tail latency, with the schedulers on the Pareto front and the loss of the others. */
function traded(sides: Kept[], kind: string): HTMLElement | null {
  const pts = sides.flatMap((x) => (x.traded ? [{ x, ...x.traded }] : []));
  if (pts.length < 2) return null;
  const better = (p: (typeof pts)[0], q: (typeof pts)[0]) => q.p99 <= p.p99 && q.rate >= p.rate && (q.p99 < p.p99 || q.rate > p.rate);
  const front = pts.filter((p) => !pts.some((q) => better(p, q))).sort((a, b) => a.p99 - b.p99);
  const ends = pts.flatMap((p) => [p.p99, ...(p.p99s ?? [])]).filter((v) => v > 0);
  const tops = pts.flatMap((p) => [p.rate, ...(p.rates ?? [])]);
  const box = h('div', { class: 'chart' });
  onWidth(box, (W) => {
    const [H, L, R, B] = [270, 66, 20, 46];
    const [a, b, top] = [Math.log10(Math.min(...ends)) - 0.1, Math.log10(Math.max(...ends)) + (W < 430 ? 0.5 : 0.3), Math.max(...tops) * 1.12];
    const X = (v: number) => L + ((Math.log10(Math.max(v, 10 ** a)) - a) / (b - a)) * (W - L - R);
    const Y = (v: number) => H - B - (Math.max(0, v) / top) * (H - B - 8);
    const g = s('svg', { width: W, height: H, role: 'img', 'aria-label': `Throughput against the 99th percentile: ${pts.map((p) => `${nameOf(p.x)} ${bytes(p.rate)}/s at ${time(p.p99)}`).join('; ')}` });
    const marks = b - a > 1.6 ? [1] : b - a > 0.7 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9];
    for (let k = Math.floor(a); k <= b; k++) {
      for (const m of marks) {
        const v = m * 10 ** k;
        if (v < 10 ** a || v > 10 ** b) continue;
        g.append(s('path', { d: `M${X(v)},8V${H - B}`, class: 'grid' }), s('text', { x: X(v), y: H - B + 16, class: 'tick', 'text-anchor': 'middle' }, time(v).replace(/\.?0+ /, ' ')));
      }
    }
    for (const f of [0, 0.5, 1]) {
      const v = +(f * top * 0.9).toPrecision(2);
      g.append(s('path', { d: `M${L},${Y(v)}H${W - R}`, class: 'grid' }), s('text', { x: L - 8, y: Y(v) + 4, class: 'tick', 'text-anchor': 'end' }, bytes(v)));
    }
    g.append(s('path', { d: `M${front.map((p) => `${X(p.p99)},${Y(p.rate)}`).join('L')}`, stroke: 'var(--line2)', 'stroke-width': 2, 'stroke-dasharray': '2 4', fill: 'none' }),
      s('text', { x: (L + W - R) / 2, y: H - 6, class: 'tick', 'text-anchor': 'middle' }, `99th percentile of ${many(kind)}, log scale: left is better`));
    pts.sort((p, q) => p.p99 - q.p99).forEach((p, n) => {
      const i = p.x.s;
      const [x, y] = [X(p.p99), Y(p.rate)];
      const [x0, x1] = p.p99s ?? [p.p99, p.p99];
      const [y0, y1] = p.rates ?? [p.rate, p.rate];
      const right = x > W - 90;
      g.append(s('g', {}, s('title', {}, `${nameOf(p.x)}: ${bytes(p.rate)}/s, 99th percentile ${time(p.p99)}`),
        s('path', { d: `M${X(x0)},${y}H${X(x1)}M${x},${Y(y0)}V${Y(y1)}`, stroke: color(i), 'stroke-width': 1.5 }),
        s('path', { d: markPath(i, 6), transform: `translate(${x},${y})`, fill: color(i), stroke: 'var(--paper)' }),
        s('text', { x: x + (right ? -10 : 10), y: y + (n % 2 ? 20 : -10), class: 'name', 'text-anchor': right ? 'end' : 'start' }, cut(nameOf(p.x), 16))));
    });
    box.replaceChildren(g);
  });
  return h('figure', { class: 'panel' }, h('figcaption', {}, h('b', {}, 'Throughput against tail latency'), ` bytes per second against the 99th percentile; top left is best; on the Pareto front: ${front.map((p) => inProse(nameOf(p.x))).join(', ')}`), box);
}

/** Draws a 100 % bar per scheduler with one piece per process. Draws nothing if one process moved nearly all bytes. */
function shares(sides: Kept[]): HTMLElement | null {
  const rows = sides.filter((x) => x.shares.length > 1);
  const sum = (x: Kept) => x.shares.reduce((a, b) => a + b[1], 0);
  if (!rows.length || rows.every((x) => x.shares[0]![1] > 0.97 * sum(x))) return null;
  const names = [...new Set(rows.flatMap((x) => x.shares.map((p) => p[0])))].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  const crowd = names.length > 8;
  const colors = processColors(names);
  const short = (n: string) => n.split('/').pop()!;
  const box = h('div', { class: 'chart' });
  onWidth(box, (W) => {
    const narrow = W < 430;
    const [L, RH, R] = [narrow ? 0 : 112, narrow ? 44 : 30, 4];
    const g = s('svg', { width: W, height: rows.length * RH + 22, role: 'img', 'aria-label': `Share of the bytes that each process got: ${rows.map((x) => `${nameOf(x)} ${x.shares.slice(0, 6).map((p) => `${p[0]} ${three((100 * p[1]) / sum(x))} %`).join(', ')}`).join('; ')}` });
    rows.forEach((x, k) => {
      const of = new Map(x.shares);
      const y = k * RH + (narrow ? 18 : 4);
      let at = L;
      g.append(narrow ? s('text', { x: 0, y: y - 4, class: 'name' }, nameOf(x)) : s('text', { x: L - 10, y: y + 15, class: 'name', 'text-anchor': 'end' }, cut(nameOf(x), 14)));
      names.forEach((n, j) => {
        const f = (of.get(n) ?? 0) / Math.max(1, sum(x));
        const w = f * (W - L - R);
        const part = s('g', {}, s('title', {}, `${nameOf(x)}: ${n} ${three(f * 100)} %`),
          s('rect', { x: at, y, width: Math.max(0, w - 1), height: 21, fill: crowd ? color(x.s) : `var(--t${colors.get(n)})`, opacity: crowd ? (j % 2 ? 0.75 : 0.5) : 1 }));
        if (w > 80 && !crowd) part.append(s('text', { x: at + 6, y: y + 15, class: 'in' }, cut(short(n), Math.floor(w / 8.5))));
        g.append(part);
        at += w;
      });
    });
    g.append(s('text', { x: L, y: rows.length * RH + 14, class: 'tick' }, '0 %'), s('text', { x: W - R, y: rows.length * RH + 14, class: 'tick', 'text-anchor': 'end' }, '100 % of the bytes'));
    box.replaceChildren(g);
  });
  return h('figure', { class: 'panel' }, h('figcaption', {}, h('b', {}, 'Share of each process'), ` ${names.length} processes, means of the runs`), box);
}

function facts(sides: Kept[], kind: string): HTMLElement | null {
  const rows = sides.flatMap((x) => (x.facts ? [{ x, f: x.facts }] : []));
  if (!rows.length) return null;
  type F = NonNullable<Kept['facts']>;
  const p = (k: number) => (f: F) => (f.percentiles[k] == null ? '–' : time(f.percentiles[k]!));
  const heads: [string, (f: F) => string][] = [
    ['moved', (f) => `${bytes(f.rate)}/s`], ['requests', (f) => three(f.requests)], ['merges', (f) => three(f.merges)],
    ['mean seek', (f) => bytes(f.seek)], ['busy', (f) => `${three(Math.min(1, f.busy) * 100)} %`], ['in the device', (f) => three(f.depth)],
    ['outstanding', (f) => three(f.outstanding)], ['p50', p(0)], ['p99', p(1)], ['p99.9', p(2)], ['p99.99', p(3)],
  ];
  return h('figure', { class: 'panel wide' }, h('figcaption', {}, h('b', {}, 'Figures of the disk'), ` means over the runs; percentiles of ${many(kind)}`),
    h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Figures of the disk' }, h('table', { class: 'figures' },
      h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Scheduler'), ...heads.map((x) => h('th', { scope: 'col' }, x[0])))),
      h('tbody', {}, ...rows.map((r) => h('tr', {}, h('th', { scope: 'row' }, mark(r.x.s), nameOf(r.x)), ...heads.map((x) => h('td', {}, x[1](r.f)))))))));
}

/** Returns the row that the address selects, or else the row with the largest difference. */
function looked(): Row | undefined {
  const all = D.rows.filter((r) => r.part);
  const size = (r: Row) => Math.max(0, ...r.pairs.map((p) => (p.times === null ? 0 : Math.abs(Math.log(p.times)))));
  const most = all.reduce<Row | undefined>((a, r) => (!a || (r.kind === 'win' && size(r) > size(a)) ? r : a), undefined);
  return D.rows.find((r) => r.id === state.get('look')) ?? most;
}

const pictured = (r: Row) => h('p', { class: 'empty' }, r.sides.flatMap((x) => x.why)[0] ? `Nothing can be shown: ${r.sides.flatMap((x) => x.why)[0]}.` : 'Only the figures of this test were stored.');

export function closer() {
  const device = $<HTMLSelectElement>('#c-device');
  const test = $<HTMLSelectElement>('#c-test');
  const out = $('#c-out');
  D.devices.forEach((name, d) => { if (D.rows.some((r) => r.device === d)) device.append(h('option', { value: String(d) }, name)); });
  const title = (r: Row) => `${r.name}${r.machine ? `, ${r.machine}` : ''}`;
  let turn = 0;
  const draw = async () => {
    const mine = ++turn;
    const r = looked();
    if (!r) return;
    device.value = String(r.device);
    test.replaceChildren(...D.rows.filter((x) => x.device === r.device).map((x) => h('option', { value: x.id }, title(x))));
    test.value = r.id;
    $('#c-verdict').textContent = r.words;
    const scene = D.scenes.some((x) => D.rows[x.row] === r);
    $('#c-replay').hidden = !scene;
    if (!r.part) {
      out.replaceChildren(pictured(r));
      return;
    }
    let c: Columns;
    try {
      c = await open(r.part);
    } catch (e) {
      out.replaceChildren(h('p', { class: 'empty' }, `This browser cannot unpack the data of this section: ${String(e)}. The answers, the map and the tables are complete.`));
      return;
    }
    if (mine !== turn) return;
    const sides = (c.head.sides as Kept[]).filter((x) => shown(x.s));
    const kind = String(c.head.operation);
    const parts = [course(c, sides), percentiles(c, sides), traded(sides, kind), shares(sides), facts(sides, kind)].filter((x): x is HTMLElement => !!x);
    out.replaceChildren(...(parts.length ? parts : [pictured(r)]));
    out.dataset.loaded = r.id;
  };
  device.addEventListener('change', () => set({ look: D.rows.find((r) => r.device === Number(device.value))?.id ?? null }));
  test.addEventListener('change', () => set({ look: test.value }));
  $('#c-replay').addEventListener('click', () => {
    set({ scene: looked()!.id, a: null, b: null, at: null }, true);
    $('#elevator').scrollIntoView();
    $('#r-stage').focus({ preventScroll: true });
  });
  onChange((k) => { if (['look', 'tail', 'log', 'lat', 'hide'].some((x) => k.has(x))) void draw(); });
  addEventListener('look', () => {
    $('#closer').scrollIntoView();
    $('#h-closer').focus({ preventScroll: true });
  });
  whenSeen(out, () => void draw());
}

/** Shows the details of a test. */
export function look(r: Row) {
  set({ look: r.id }, true);
  dispatchEvent(new Event('look'));
}
