// The map: tests by schedulers. Each cell is compared with the best of its row, or with a selected scheduler.
import { D, level, side, undecided, versus, type Row, type Versus } from './data';
import { $, $$, h, onChange, say, set, state } from './dom';
import { look as closer } from './closer';
import { color, mark, shown, shownDevice, toggle } from './look';
import { amount, FACTOR, inProse, lag, size, valueOf } from './text';

/** Returns the shade: 1 below 20 %, 2 below a factor of two, 3 from a factor of two on. */
const shade = (times: number | null) => {
  if (times === null) return 1;
  const r = times >= 1 ? times : 1 / times;
  return r >= FACTOR ? 3 : r >= 1.2 ? 2 : 1;
};

/** Returns the best of the schedulers that are shown. */
export function bestShown(r: Row): number | null {
  let best: number | null = null;
  let at = 0;
  for (const x of r.sides) {
    if (x.mean === null || !shown(x.s)) continue;
    if (best === null || (r.higher ? x.mean > at : x.mean < at)) [best, at] = [x.s, x.mean];
  }
  return best;
}

interface Look { cls: string; sign: string }

function look(r: Row, s: number, v: Versus | undefined, base: number | null, against: number): Look {
  if (base === null) {
    // A row without a difference has no best scheduler, so it has no crown.
    if (r.kind === 'none') return { cls: 'level', sign: '=' };
    if (r.kind === 'open') return { cls: 'open', sign: '?' };
    if (r.tops.includes(s)) return { cls: 'win', sign: '★' };
  } else if (s === against) return { cls: 'ref', sign: '●' };
  if (!v || undecided(v.cls)) return { cls: 'open', sign: '?' };
  if (level(v.cls)) return { cls: 'level', sign: '=' };
  const ahead = v.cls === 'better' || v.cls === 'better_maybe_small';
  if (v.cls.endsWith('maybe_small')) return { cls: 'slight', sign: ahead ? '△' : '▽' };
  return { cls: `${ahead ? 'b' : 'w'}${shade(v.times)}`, sign: ahead ? '▲' : '▼' };
}

const spoken: Record<string, string> = {
  level: 'level with', open: 'not decided against', slight: 'perhaps too small to matter, compared with',
};

function cellOf(r: Row, s: number, base: number | null): HTMLElement {
  const own = side(r, s);
  const name = D.schedulers[s]!.name;
  const empty = (sign: string, words: string) =>
    h('td', { role: 'cell', class: 'none', 'data-s': s, title: words },
      h('span', { 'aria-hidden': 'true' }, sign), h('span', { class: 'sr' }, `${name}: ${words}`));
  if (!own) return empty('–', 'not run');
  if (own.mean === null) return empty('✕', own.why[0] ?? 'gave no value');
  const against = base ?? bestShown(r) ?? s;
  const v = s === against ? undefined : versus(r, s, against);
  const l = s === against && base === null && r.kind === 'win'
    ? { cls: r.tops.includes(s) ? 'win' : 'open', sign: r.tops.includes(s) ? '★' : '?' }
    : look(r, s, v, base, against);
  const value = valueOf(own.mean, r.unit);
  const plain = s === against || l.cls === 'win' || l.cls === 'level' || !v || v.times === null;
  const words = l.cls === 'win' ? 'the best, or level with it'
    : s === against ? (base === null ? 'the largest mean, not shown to be the best' : 'the reference of the comparison')
    : spoken[l.cls] ? `${spoken[l.cls]} ${inProse(D.schedulers[against]!.name)}`
    : `${v?.times ? lag(v.times) : 'differs'}, against ${inProse(D.schedulers[against]!.name)}`;
  return h('td', { role: 'cell', class: l.cls, 'data-s': s, title: `${name}: ${amount(own.mean, r.unit)}, ${words}` },
    h('button', { tabindex: -1, onclick: () => (r.part ? closer(r) : go(r)) },
      h('span', { class: 'sign', 'aria-hidden': 'true' }, own.failed ? `${l.sign}½` : l.sign),
      h('span', { class: 'big' }, plain ? value : size(v!.times!)),
      plain ? null : h('small', {}, value),
      h('span', { class: 'sr' }, `${name}: ${words}`)));
}

/** Shows a row's card, and opens the section that contains it. */
export function go(r: Row) {
  set({ test: r.id }, true);
  dispatchEvent(new CustomEvent('go', { detail: r.id }));
}

function line(r: Row, base: number | null, of: { kid: boolean; open: boolean }): HTMLElement {
  const label = r.sweep ? String(r.sweep[1]) : r.name;
  const tr = h('tr', { role: 'row', 'data-kind': r.kind, 'data-id': r.id, class: of.kid ? 'kid' : '', hidden: of.kid && !of.open });
  tr.append(h('th', { scope: 'row', role: 'rowheader' },
    h('a', { href: `#test=${encodeURIComponent(r.id)}`, title: r.words, onclick: (e: Event) => { e.preventDefault(); go(r); } }, of.kid ? `${label} ${D.sweeps[r.sweep![0]]!.axis}` : r.name),
    of.kid ? null : unit(r)));
  for (const [i] of D.schedulers.entries()) if (shown(i)) tr.append(cellOf(r, i, base));
  return tr;
}

const unit = (r: Row) =>
  h('small', {}, `${r.machine ? r.machine + '; ' : ''}${r.unit.startsWith(r.metric) ? '' : r.metric + ', '}${r.unit} ${r.higher ? '↑' : '↓'}`);

/** Returns the rows of a sweep: the number of points in which each scheduler is best, above the rows of the points. */
function sweep(n: number, base: number | null, opened: Set<number>): HTMLElement[] {
  const w = D.sweeps[n]!;
  const rows = w.rows.map((k) => D.rows[k]!);
  const open = opened.has(n);
  const tr = h('tr', { role: 'row', class: 'sweep', 'data-kind': rows.some((r) => r.kind === 'win') ? 'win' : 'none' });
  const fold = h('button', { class: 'fold', 'aria-expanded': String(open), 'aria-label': `Rows of ${w.name}`, onclick: () => {
    if (!opened.delete(n)) opened.add(n);
    const on = opened.has(n);
    fold.setAttribute('aria-expanded', String(on));
    for (const r of rows) {
      const at = $$('tr.kid', tr.parentElement!).find((k) => k.dataset.id === r.id);
      if (at) at.hidden = !on;
    }
  } }, '▸');
  tr.append(h('th', { scope: 'row', role: 'rowheader' }, fold, w.name, unit(rows[0]!)));
  for (const [i, S] of D.schedulers.entries()) {
    if (!shown(i)) continue;
    const best = rows.filter((r) => r.kind === 'win' && r.tops.includes(i)).length;
    const of = rows.filter((r) => r.kind === 'win').length;
    const text = of ? `${best} of ${of}` : '=';
    tr.append(h('td', { role: 'cell', class: 'sum', 'data-s': i },
      h('span', { title: of ? `${inProse(S.name)} is best, or level with the best, in ${best} of the ${of} points that differ` : 'no point differs' }, of ? '★ ' : '', text)));
  }
  return [tr, ...rows.map((r) => line(r, base, { kid: true, open }))];
}

const ORDERS: Record<string, (a: Row, b: Row) => number> = {
  file: () => 0,
  name: (a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }),
  spread: (a, b) => spread(b) - spread(a),
};

/** Returns the largest difference in a row among the decided ones. */
function spread(r: Row): number {
  const of = r.pairs.filter((p) => p.times !== null && !undecided(p.cls) && !level(p.cls));
  return Math.max(0, ...of.map((p) => Math.abs(Math.log(p.times!))));
}

export function map() {
  const root = $('#map-table');
  const opened = new Set<number>();
  const draw = () => {
    const named = state.get('base');
    const at = D.schedulers.findIndex((x) => x.name === named);
    const base = at < 0 ? null : at;
    const only = state.get('only') === '1';
    const find = (state.get('find') ?? '').toLowerCase();
    const order = ORDERS[state.get('order') ?? 'file'] ?? ORDERS.file!;
    const all = D.schedulers.map((_, i) => i).filter(shown);
    root.style.setProperty('--n', String(all.length));
    root.replaceChildren(h('caption', { class: 'sr' }, `Each cell: the scheduler compared with ${base === null ? 'the best of the row' : inProse(D.schedulers[base]!.name)}.`),
      h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, h('th', { scope: 'col', role: 'columnheader' }, 'Test'),
        ...all.map((i) => h('th', { scope: 'col', role: 'columnheader', css: { '--c': color(i) } }, mark(i), D.schedulers[i]!.name, h('small', {}, D.schedulers[i]!.layer))))));
    D.devices.forEach((name, d) => {
      if (!shownDevice(d)) return;
      const body = h('tbody', { role: 'rowgroup' },
        h('tr', { role: 'row', class: 'dev' }, h('th', { scope: 'rowgroup', role: 'rowheader', colspan: all.length + 1 }, name)));
      const want = (r: Row) => r.device === d && (!only || r.kind === 'win' || r.kind === 'failed') &&
        (!find || `${r.name} ${r.metric} ${r.machine}`.toLowerCase().includes(find));
      const rows = D.rows.filter(want).sort(order);
      const done = new Set<number>();
      for (const r of rows) {
        if (!r.sweep) body.append(line(r, base, { kid: false, open: false }));
        else if (!done.has(r.sweep[0])) {
          done.add(r.sweep[0]);
          body.append(...sweep(r.sweep[0], base, opened));
        }
      }
      if (!rows.length) body.append(h('tr', { role: 'row', class: 'left' }, h('td', { role: 'cell', colspan: all.length + 1 }, 'No row matches the filter.')));
      root.append(body);
    });
    const first = $<HTMLElement>('td button', root);
    if (first) first.tabIndex = 0;
  };
  root.addEventListener('keydown', (e) => {
    const moves: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[(e as KeyboardEvent).key];
    const td = (e.target as Element).closest('td');
    if (!move || !td) return;
    e.preventDefault();
    const rows = $$<HTMLTableRowElement>('tr', root).filter((r) => !r.hidden && r.querySelector('td button'));
    const at = rows.indexOf(td.parentElement as HTMLTableRowElement);
    const column = [...td.parentElement!.querySelectorAll('td')].indexOf(td as HTMLTableCellElement);
    const to = rows[at + move[0]]?.querySelectorAll('td')[column + move[1]]?.querySelector<HTMLElement>('button');
    if (!to) return;
    $$('td button', root).forEach((b) => { b.tabIndex = -1; });
    to.tabIndex = 0;
    to.focus();
  });
  controls();
  onChange((k) => { if (['base', 'only', 'hide', 'order', 'find'].some((x) => k.has(x))) { controls(); draw(); } });
  draw();
}

let wired = false;
function controls() {
  const pick = $<HTMLSelectElement>('#base');
  const order = $<HTMLSelectElement>('#order');
  const only = $<HTMLInputElement>('#only');
  const find = $<HTMLInputElement>('#find');
  pick.value = state.get('base') ?? '';
  order.value = state.get('order') ?? 'file';
  only.checked = state.get('only') === '1';
  if (document.activeElement !== find) find.value = state.get('find') ?? '';
  for (const b of $$('#chips button')) b.setAttribute('aria-pressed', String(!(state.get('hide') ?? '').split('|').includes(b.dataset.name!)));
  if (wired) return;
  wired = true;
  pick.addEventListener('change', () => { set({ base: pick.value || null }); say(`Cells are now compared with ${pick.selectedOptions[0]!.text}.`); });
  order.addEventListener('change', () => set({ order: order.value === 'file' ? null : order.value }));
  only.addEventListener('change', () => set({ only: only.checked ? '1' : null }));
  find.addEventListener('input', () => set({ find: find.value || null }));
  const chip = (name: string, m: SVGElement | null) => h('button', { type: 'button', class: 'small', 'data-name': name, 'aria-pressed': 'true', onclick: () => say(`${name} is ${toggle(name) ? 'shown' : 'hidden'}.`) }, m, name);
  const chips = $('#chips');
  if (D.schedulers.length > 1) chips.append(...D.schedulers.map((x, i) => chip(x.name, mark(i))));
  if (D.devices.length > 1) chips.append(h('span', { class: 'bar' }), ...D.devices.map((x) => chip(x, null)));
  controls();
}
