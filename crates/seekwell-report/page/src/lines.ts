// A chart of lines over a numeric axis: uPlot with an additional legend, texts and a table.
import uPlot from 'uplot';
import { $, css, h, onWidth, s, say } from './dom';
import { dash } from './look';

export interface Line {
  name: string;
  /** Index of the scheduler, for colour and dashes. */
  i: number;
  x: ArrayLike<number>;
  y: ArrayLike<number | null>;
  lo?: ArrayLike<number | null>;
  hi?: ArrayLike<number | null>;
}

export interface Chart {
  title: string;
  note?: string;
  x: string;
  y: string;
  lines: Line[];
  logX?: 2 | 10;
  logY?: boolean;
  height?: number;
  points?: boolean;
  ymin?: number;
  ymax?: number;
  splitsX?: number[];
  splitsY?: number[];
  fx?: (v: number) => string;
  fy?: (v: number) => string;
}

const drawn: [HTMLElement, () => void][] = [];
/** Draws all charts again after the theme has changed. */
export function redraw() {
  for (const [el, f] of drawn) if (el.isConnected) f();
  dispatchEvent(new Event('retheme'));
}
export const onRedraw = (el: HTMLElement, draw: () => void) => { drawn.push([el, draw]); };

/** Returns round ticks of a logarithmic axis: powers of ten, or values between them if there is only one power. */
function powers(a: number, b: number): number[] {
  for (const marks of [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9]]) {
    const out: number[] = [];
    for (let k = Math.floor(Math.log10(a)); k <= Math.ceil(Math.log10(b)); k++) for (const m of marks) out.push(m * 10 ** k);
    const seen = out.filter((v) => v >= a * 0.999 && v <= b * 1.001);
    if (seen.length > 1) return seen;
  }
  // The range is so narrow that linear ticks are used.
  const step = [1, 2, 5, 10].map((m) => m * 10 ** Math.floor(Math.log10((b - a) / 4))).find((v) => v >= (b - a) / 4)!;
  return Array.from({ length: 6 }, (_, k) => (Math.ceil(a / step) + k) * step).filter((v) => v <= b);
}

const plain = (v: number) => (Math.abs(v) >= 10000 ? `${+(v / 1000).toPrecision(3)}k` : String(+v.toPrecision(3)));

export function lines(c: Chart): HTMLElement {
  const [fx, fy] = [c.fx ?? plain, c.fy ?? plain];
  const readout = h('output', { class: 'readout', 'aria-live': 'off' });
  const keys = h('div', { class: 'keys', hidden: c.lines.length < 2 });
  const plot = h('div', { class: 'plot' });
  const stage = h('div', { class: 'stage', tabindex: 0, role: 'group', 'aria-roledescription': 'chart', 'aria-label': `${c.title}. Arrow keys move the cursor, Shift by ten, plus and minus zoom, Escape shows all.` }, plot);
  const box = h('figure', { class: 'lines' }, h('figcaption', {}, h('b', {}, c.title), c.note ? ` ${c.note}` : '', readout), keys, stage);
  // Each line has the two edges of its band as invisible lines.
  const tables = c.lines.flatMap((l) => [[l.x, l.y], ...(l.lo ? [[l.x, l.lo], [l.x, l.hi!]] : [])]);
  const data = uPlot.join(tables.map((t) => t.map((v) => Array.from(v as ArrayLike<number>))) as uPlot.AlignedData[]) as (number | null)[][];
  if (c.logY) for (let k = 1; k < data.length; k++) data[k] = data[k]!.map((v) => (v && v > 0 ? v : null));
  const on = c.lines.map(() => true);
  let u: uPlot | undefined;
  let width = 0;
  let zoom: [number, number] | null = null;
  const xs = data[0] as number[];
  const build = () => {
    if (!width || !xs.length) return;
    u?.destroy();
    const [ink, grid] = [css('--dim'), css('--line')];
    const series: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    c.lines.forEach((l, k) => {
      const stroke = css(`--s${l.i % 8}`);
      series.push({ label: l.name, stroke, width: 2, dash: dash(l.i), spanGaps: true, show: on[k], points: { show: !!c.points, size: 7, fill: stroke, stroke: css('--paper'), width: 1.5 } });
      if (!l.lo) return;
      const at = series.length;
      const edge = { stroke: 'transparent', points: { show: false }, spanGaps: true, show: on[k] };
      series.push({ ...edge }, { ...edge });
      bands.push({ series: [at + 1, at], fill: `${stroke}26` });
    });
    const axis = (more: uPlot.Axis): uPlot.Axis => ({ stroke: ink, font: '12px system-ui, sans-serif', labelFont: '12px system-ui, sans-serif', labelSize: 18, grid: { stroke: grid, width: 1 }, ticks: { show: false }, filter: (_u, all) => all, ...more });
    u = new uPlot({
      width, height: c.height ?? 260, padding: [10, 26, 0, 0], legend: { show: false },
      cursor: { drag: { x: true, y: false }, points: { size: 7 } },
      scales: {
        x: { time: false, distr: c.logX ? 3 : 1, log: c.logX === 2 ? 2 : 10, range: (_u, a, b) => zoom ?? (a === b ? (c.logX ? [a / 1.1, b * 1.1] : [a * 0.9 - 0.1, b * 1.1 + 0.1]) : [a, b]) },
        y: { distr: c.logY ? 3 : 1, range: c.logY ? undefined : (_u, a, b) => [c.ymin ?? Math.min(0, a), c.ymax ?? (b || 1) * 1.06] },
      },
      axes: [
        axis({ label: c.x, size: 28, labelGap: 0, space: 56, values: (_u, v) => v.map((x) => (x == null ? '' : fx(x))), splits: c.splitsX ? () => c.splitsX! : c.logX === 10 ? (_u, _i, a, b) => powers(a, b) : undefined }),
        axis({ label: c.y, size: 62, values: (_u, v) => v.map((x) => (x == null ? '' : fy(x))), splits: c.splitsY ? () => c.splitsY! : c.logY ? (_u, _i, a, b) => powers(a, b) : undefined }),
      ],
      series, bands,
      hooks: {
        setCursor: [(p) => { readout.textContent = p.cursor.idx == null ? '' : words(p.cursor.idx); }],
        setSelect: [(p) => { zoom = [p.posToVal(p.select.left, 'x'), p.posToVal(p.select.left + p.select.width, 'x')]; }],
        setScale: [(p, key) => { if (key === 'x' && p.scales.x!.min === xs[0] && p.scales.x!.max === xs[xs.length - 1]) zoom = null; }],
      },
    }, data as uPlot.AlignedData, plot);
    $('canvas', plot).setAttribute('aria-hidden', 'true');
  };
  const words = (at: number) => {
    let k = 1;
    const parts = c.lines.map((l, n) => {
      const of = data[k]!;
      k += l.lo ? 3 : 1;
      let j = at;
      while (j > 0 && of[j] == null) j--;
      return on[n] && of[j] != null ? `${l.name} ${fy(of[j]!)}` : null;
    });
    return `${fx(xs[at]!)}: ${parts.filter(Boolean).join(' · ')}`;
  };
  stage.addEventListener('keydown', (e) => {
    if (!u || !xs.length) return;
    const last = xs.length - 1;
    let at = u.cursor.idx ?? 0;
    const wide = (f: number) => {
      const { min, max } = u!.scales.x!;
      const mid = xs[at]!;
      zoom = [Math.max(xs[0]!, mid - (mid - min!) * f), Math.min(xs[last]!, mid + (max! - mid) * f)];
      u!.setScale('x', { min: zoom[0], max: zoom[1] });
    };
    const step = e.shiftKey ? 10 : 1;
    if (e.key === 'ArrowRight') at = Math.min(last, at + step);
    else if (e.key === 'ArrowLeft') at = Math.max(0, at - step);
    else if (e.key === 'Home') at = 0;
    else if (e.key === 'End') at = last;
    else if (e.key === '+' || e.key === '=') return wide(0.5);
    else if (e.key === '-') return wide(2);
    else if (e.key === 'Escape') {
      zoom = null;
      u.setScale('x', { min: xs[0]!, max: xs[last]! });
      return;
    } else return;
    e.preventDefault();
    u.setCursor({ left: u.valToPos(xs[at]!, 'x'), top: u.over.clientHeight / 2 });
    say(`${c.x} ${words(at)}`);
  });
  c.lines.forEach((l, k) => {
    const b = h('button', { 'aria-pressed': 'true', onclick: () => {
      on[k] = !on[k];
      b.setAttribute('aria-pressed', String(on[k]));
      build();
    } }, s('svg', { width: 26, height: 12, 'aria-hidden': 'true' }, s('path', { d: 'M1,6H25', stroke: `var(--s${l.i % 8})`, 'stroke-width': 2.2, 'stroke-dasharray': dash(l.i).join(' ') })), l.name);
    keys.append(b);
  });
  box.append(table(c, fx, fy));
  onWidth(stage, (w) => { width = w; build(); });
  drawn.push([box, build]);
  return box;
}

const ROWS = 30;

/** Returns the data as a table, with only as many rows as one can read. */
function table(c: Chart, fx: (v: number) => string, fy: (v: number) => string): HTMLElement {
  const box = h('details', { class: 'astable' }, h('summary', {}, 'As a table'));
  box.addEventListener('toggle', () => {
    if (box.querySelector('table')) return;
    const long = c.lines.reduce((a, b) => (b.x.length > a.x.length ? b : a));
    const n = long.x.length;
    const want = Math.min(n, ROWS);
    const at = Array.from({ length: want }, (_, k) => Math.round((k * (n - 1)) / Math.max(1, want - 1)));
    const near = (l: Line, x: number) => {
      let j = 0;
      while (j + 1 < l.x.length && l.x[j + 1]! <= x) j++;
      return l.y[j];
    };
    box.append(h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': c.title },
      n > want ? h('p', { class: 'params' }, `${want} of ${n} points`) : null,
      h('table', { class: 'figures' }, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, c.x), ...c.lines.map((l) => h('th', { scope: 'col' }, l.name)))),
        h('tbody', {}, ...at.map((j) => h('tr', {}, h('th', { scope: 'row' }, fx(long.x[j]!)), ...c.lines.map((l) => {
          const v = near(l, long.x[j]!);
          return h('td', {}, v == null ? '–' : fy(v));
        })))))));
  });
  return box;
}
