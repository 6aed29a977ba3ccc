// Draws one test: bars or dots with intervals, a point for every run, the order of runs, and the values.
import { D, level, undecided, versus, type Row, type Side } from './data';
import { h, onWidth, s } from './dom';
import { color, mark, markPath, shown } from './look';
import { bestShown } from './map';
import { amount, lag, three, valueOf } from './text';

function ticks(max: number, n: number): number[] {
  const raw = max / n;
  const ten = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((x) => x * ten).find((x) => x >= raw) ?? raw;
  const out: number[] = [];
  for (let v = 0; v <= max * 1.0001; v += step) out.push(v);
  return out;
}

const tick = (v: number) => (v === 0 ? '0' : v >= 1000 ? `${+(v / 1000).toPrecision(3)}k` : String(+v.toPrecision(3)));

type Known = Side & { mean: number };
const known = (r: Row) => r.sides.filter((x): x is Known => x.mean !== null && shown(x.s));

export function bars(r: Row): HTMLElement {
  const rows = known(r).sort((a, b) => (r.higher ? b.mean - a.mean : a.mean - b.mean));
  const box = h('div', { class: 'chart' });
  if (!rows.length) return box;
  const best = bestShown(r)!;
  const all = rows.flatMap((x) => [...x.v.filter((v): v is number => v !== null), x.mean]);
  const positive = all.filter((v) => v > 0);
  const [max, min] = [Math.max(...all), Math.min(...positive)];
  // On a logarithmic axis, a bar has no start, so dots are drawn.
  const log = positive.length === all.length && max / min > 20;
  const ends = (x: Known) => [x.lo ?? x.mean, x.hi ?? x.mean] as const;
  onWidth(box, (W) => {
    const narrow = W < 430;
    const RH = narrow ? 46 : 34;
    const [L, R] = narrow ? [8, 12] : [118, 126];
    const H = 4 + rows.length * RH + 24;
    const right = W - R;
    const [low, high] = [Math.floor(Math.log10(min) + 1e-9), Math.ceil(Math.log10(max))];
    const top = Math.max(1e-300, ...rows.map((x) => Math.max(ends(x)[1], ...x.v.map((v) => v ?? 0)))) * 1.02;
    const X = log
      ? (v: number) => L + ((Math.log10(Math.max(v, 10 ** low)) - low) / Math.max(1, high - low)) * (right - L)
      : (v: number) => L + (Math.max(0, Math.min(v, top)) / top) * (right - L);
    const g = s('svg', { width: W, height: H, role: 'img', 'aria-label': `${r.name} on ${D.devices[r.device]}: ` + rows.map((x) => `${D.schedulers[x.s]!.name} ${amount(x.mean, r.unit)}`).join(', ') });
    const at = log ? Array.from({ length: high - low + 1 }, (_, k) => 10 ** (low + k)) : ticks(top, narrow ? 3 : 4);
    for (const v of at) {
      g.append(s('path', { d: `M${X(v)},4V${H - 22}`, class: 'grid' }));
      g.append(s('text', { x: X(v), y: H - 8, class: 'tick', 'text-anchor': X(v) > W - 30 ? 'end' : X(v) < 20 ? 'start' : 'middle' }, tick(v)));
    }
    rows.forEach((x, k) => {
      const y = 4 + k * RH + (narrow ? 30 : RH / 2);
      const v = x.s === best ? undefined : versus(r, x.s, best);
      const name = D.schedulers[x.s]!.name;
      const band = s('g', {}, s('title', {}, `${name}: ${amount(x.mean, r.unit)}; SD ${x.sd === null ? '–' : three(x.sd)}, SE ${x.se === null ? '–' : three(x.se)}, N ${x.n}${x.lo === null ? '' : `; 95 % interval ${three(x.lo)} to ${three(x.hi!)}`}`));
      if (!log) band.append(s('rect', { x: L, y: y - 8, width: Math.max(0, X(x.mean) - L), height: 16, rx: 2, fill: color(x.s), opacity: 0.22 }));
      const [lo, hi] = ends(x);
      if (hi > lo) {
        const from = X(Math.max(lo, log ? 10 ** low : 0));
        band.append(s('path', { d: `M${from},${y}H${X(hi)}m0,-5v10M${from},${y - 5}v10`, stroke: color(x.s), 'stroke-width': 2, fill: 'none' }));
      }
      x.v.forEach((p, n) => { if (p !== null) band.append(s('circle', { cx: X(p), cy: y + ((n % 3) - 1) * 4, r: 2.6, fill: color(x.s), 'fill-opacity': 0.55 })); });
      band.append(s('path', { d: markPath(x.s, 5.5), transform: `translate(${X(x.mean)},${y})`, fill: color(x.s), stroke: 'var(--paper)', 'stroke-width': 1.5 }));
      const said = x.s === best ? (r.tops.includes(best) && r.kind === 'win' ? 'best' : '')
        : !v ? '' : level(v.cls) ? 'level' : `${undecided(v.cls) ? '? ' : ''}${v.times === null ? '' : lag(v.times)}`;
      if (narrow) {
        band.append(s('text', { x: L, y: y - 16, class: 'name' }, cut(name, 24)),
          s('text', { x: W - 4, y: y - 16, class: 'val', 'text-anchor': 'end' }, s('tspan', { class: 'said' }, said ? `${said}   ` : ''), valueOf(x.mean, r.unit)));
      } else {
        band.append(s('text', { x: L - 10, y: y + 4, class: 'name', 'text-anchor': 'end' }, cut(name, 15)),
          s('text', { x: right + 12, y: y - 1, class: 'val' }, valueOf(x.mean, r.unit)),
          s('text', { x: right + 12, y: y + 12, class: 'said' }, said || `N ${x.n}`));
      }
      g.append(band);
    });
    if (log && !narrow) g.append(s('text', { x: W - 4, y: H - 8, class: 'tick', 'text-anchor': 'end' }, 'log scale'));
    box.replaceChildren(g);
  });
  return box;
}

/** Shortens a name with dots at its end. The whole name is in the title of its element. */
const cut = (name: string, n: number) => (name.length > n ? `${name.slice(0, n - 1)}…` : name);

/** Draws the value of each run over its position in the whole experiment, to show drift. */
export function order(r: Row): HTMLElement | null {
  const points = known(r).flatMap((x) => x.v.flatMap((v, n) => (v === null || x.at[n] == null ? [] : [{ s: x.s, v, at: x.at[n]!, block: n }])));
  if (points.length < 3) return null;
  points.sort((a, b) => a.at - b.at);
  const box = h('div', { class: 'chart' });
  onWidth(box, (W) => {
    const [H, L, B] = [170, 54, 26];
    const [from, to] = [points[0]!.at, points[points.length - 1]!.at];
    const values = points.map((p) => p.v);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const pad = (high - low || Math.abs(high) || 1) * 0.08;
    const X = (a: number) => L + ((a - from) / Math.max(1, to - from)) * (W - L - 12);
    const Y = (v: number) => 8 + ((high + pad - v) / (high - low + 2 * pad)) * (H - B - 8);
    const g = s('svg', { width: W, height: H, role: 'img', 'aria-label': `${r.name}: value of each run in the order they ran, from ${three(points[0]!.v)} to ${three(points[points.length - 1]!.v)}` });
    for (const v of [low, high]) g.append(s('path', { d: `M${L},${Y(v)}H${W - 12}`, class: 'grid' }), s('text', { x: L - 8, y: Y(v) + 4, class: 'tick', 'text-anchor': 'end' }, valueOf(v, r.unit)));
    for (const p of points) {
      g.append(s('g', {}, s('title', {}, `run ${p.at + 1}, block ${p.block + 1}: ${D.schedulers[p.s]!.name} ${amount(p.v, r.unit)}`),
        s('path', { d: markPath(p.s, 4), transform: `translate(${X(p.at)},${Y(p.v)})`, fill: color(p.s) })));
    }
    g.append(s('text', { x: (W + L) / 2, y: H - 6, class: 'tick', 'text-anchor': 'middle' }, 'runs in the order they were made'));
    box.replaceChildren(g);
  });
  return h('figure', {}, h('figcaption', {}, h('b', {}, 'Runs in the order they ran')), box);
}

/** Returns the values of the test as a table. */
export function figures(r: Row): HTMLElement {
  const best = r.best;
  const heads = ['Scheduler', r.unit, 'SD', 'SE ±', 'N', '95 % interval', 'against the best'];
  const number = (v: number | null) => (v === null ? '–' : three(v));
  return h('table', { class: 'figures' },
    h('thead', {}, h('tr', {}, ...heads.map((x) => h('th', { scope: 'col' }, x)))),
    h('tbody', {}, ...r.sides.filter((x) => shown(x.s)).map((x) => {
      const pair = r.pairs.find((p) => (p.a === x.s && p.b === best) || (p.b === x.s && p.a === best));
      const v = best === null || x.s === best ? undefined : versus(r, x.s, best);
      const words = x.s === best ? 'largest mean' : !v ? '–' : pair!.a === x.s ? pair!.words : level(v.cls) ? 'level' : `${undecided(v.cls) ? 'not decided: ' : ''}${v.times === null ? '–' : lag(v.times)}`;
      const cells = [number(x.mean), number(x.sd), number(x.se), x.failed ? `${x.n}, ${x.failed} failed` : String(x.n), x.lo === null ? '–' : `${three(x.lo)} to ${three(x.hi!)}`, x.s === best && !r.higher ? 'smallest mean' : words];
      return h('tr', {}, h('th', { scope: 'row' }, mark(x.s), D.schedulers[x.s]!.name), ...cells.map((c) => h('td', {}, c)));
    })));
}
