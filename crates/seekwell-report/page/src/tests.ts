// The tests, one card each. Tests without a difference are in one closed section.
import { D, type Row, type Sweep } from './data';
import { $, $$, h, onChange, state } from './dom';
import { bars, figures, order } from './bars';
import { look } from './closer';
import { lines } from './lines';
import { shown, shownDevice } from './look';
import { valueOf } from './text';

const id = (r: Row) => `test-${D.rows.indexOf(r)}`;

/** Returns the metric and its unit. */
const measure = (r: Row) => (r.unit.startsWith(r.metric) ? r.unit : `${r.metric}, ${r.unit}`);

function card(r: Row): HTMLElement {
  const el = h('article', { class: `card ${r.kind}`, id: id(r), tabindex: -1 });
  const way = r.higher ? 'more is better →' : '← less is better';
  el.append(h('header', {}, h('h4', { title: r.name }, r.name), h('p', { class: 'what' }, r.machine),
    h('p', { class: 'unit' }, measure(r), h('span', {}, way))));
  el.append(h('p', { class: 'verdict' }, r.words));
  const why = r.sides.flatMap((x) => x.why.map((w) => `${D.schedulers[x.s]!.name}: ${w}`));
  if (why.length) el.append(h('ul', { class: 'why' }, ...why.map((w) => h('li', {}, w))));
  if (r.kind !== 'failed') el.append(bars(r));
  if (r.flags.length) {
    el.append(h('p', { class: 'flag' }, h('span', { 'aria-hidden': 'true' }, '⚑ '), r.flags.slice(0, 3).join('; ') + (r.flags.length > 3 ? ` and ${r.flags.length - 3} more` : '')));
  }
  const drift = r.flags.some((f) => /trend|drift/.test(f));
  const fold = (title: string, open: boolean, make: () => (HTMLElement | null)[]) => {
    const d = h('details', { class: 'print', open }, h('summary', {}, title)) as HTMLDetailsElement;
    // The content of a closed section is made when the section is opened.
    const make1 = () => { if (d.childElementCount === 1) d.append(...make().filter((x): x is HTMLElement => !!x)); };
    d.addEventListener('toggle', () => { if (d.open) make1(); });
    addEventListener('beforeprint', make1);
    if (open) make1();
    return d;
  };
  const foot = h('footer', {}, fold('Figures', false, () => [h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': `Figures of ${r.name}` }, figures(r))]));
  const ran = order(r);
  if (ran) foot.append(fold('Order of runs', drift, () => [ran]));
  if (r.part) foot.append(h('a', { class: 'closer-link', href: `#look=${encodeURIComponent(r.id)}`, onclick: (e: Event) => { e.preventDefault(); look(r); } }, 'Details'));
  el.append(foot);
  return el;
}

/** Draws a swept axis as lines with intervals. */
function swept(w: Sweep): HTMLElement {
  const rows = w.rows.map((k) => D.rows[k]!).sort((a, b) => a.sweep![1] - b.sweep![1]);
  const first = rows[0]!;
  const x = rows.map((r) => r.sweep![1]);
  const doubles = x.every((v, k) => k === 0 || v === 2 * x[k - 1]!) || (x[0]! > 0 && x[x.length - 1]! / x[0]! > 20);
  const of = D.schedulers.map((S, i) => {
    const sides = rows.map((r) => r.sides.find((y) => y.s === i));
    return { name: S.name, i, x, y: sides.map((y) => y?.mean ?? null), lo: sides.map((y) => y?.lo ?? y?.mean ?? null), hi: sides.map((y) => y?.hi ?? y?.mean ?? null) };
  }).filter((l) => shown(l.i) && l.y.some((v) => v !== null));
  const el = h('article', { class: 'card sweep' });
  const win = rows.filter((r) => r.kind === 'win').length;
  el.append(h('header', {}, h('h4', {}, w.name), h('p', { class: 'what' }, first.machine), h('p', { class: 'unit' }, measure(first), h('span', {}, first.higher ? 'more is better ↑' : 'less is better ↓'))),
    h('p', { class: 'verdict' }, win ? `Schedulers differ in ${win} of ${rows.length} points.` : `No difference in any of ${rows.length} points.`),
    lines({ title: `${first.metric} by ${w.axis}`, x: doubles ? `${w.axis}, log scale` : w.axis, y: first.unit, logX: doubles ? 2 : undefined, splitsX: x, points: true, lines: of, fx: (v) => String(v), fy: (v) => valueOf(v, first.unit) }));
  const fold = h('details', { class: 'quiet' }, h('summary', {}, 'Point by point')) as HTMLDetailsElement;
  const fill = () => { if (!fold.querySelector('.cards')) fold.append(h('div', { class: 'cards' }, ...rows.map(card))); };
  fold.addEventListener('toggle', fill);
  addEventListener('beforeprint', fill);
  el.append(fold);
  return el;
}

/** Number of cards that are made at once. The others are made when they come near the visible part. */
const AT_ONCE = 24;
const waiting = new Set<() => void>();

/** Makes cards, a few at a time. */
function slowly(cards: HTMLElement, rows: Row[]) {
  let made = 0;
  const more = (n: number) => {
    cards.append(...rows.slice(made, made + n).map(card));
    made += n;
  };
  more(AT_ONCE);
  if (made >= rows.length) return;
  const end = h('div', { class: 'more' });
  const all = () => {
    waiting.delete(all);
    seen.disconnect();
    end.remove();
    more(rows.length);
  };
  const seen = new IntersectionObserver((e) => {
    if (!e.some((x) => x.isIntersecting)) return;
    more(AT_ONCE);
    if (made >= rows.length) all();
    else {
      // The end of the list may still be near, so it is observed again.
      seen.unobserve(end);
      seen.observe(end);
    }
  }, { rootMargin: '1200px' });
  waiting.add(all);
  cards.after(end);
  seen.observe(end);
}
const makeAll = () => { for (const all of [...waiting]) all(); };
addEventListener('beforeprint', makeAll);

export function tests() {
  const root = $('#tests-out');
  const draw = () => {
    root.replaceChildren();
    waiting.clear();
    D.devices.forEach((name, d) => {
      if (!shownDevice(d)) return;
      const own = D.rows.filter((r) => r.device === d && !r.sweep);
      const quiet = own.filter((r) => r.kind === 'none');
      const loud = own.filter((r) => r.kind !== 'none');
      const section = h('section', { class: 'device', 'aria-label': name }, h('h3', {}, name));
      const cards = h('div', { class: 'cards' }, ...D.sweeps.filter((w) => w.device === d).map(swept));
      section.append(cards);
      slowly(cards, loud);
      if (quiet.length) {
        const fold = h('details', { class: 'quiet', 'data-rows': quiet.map(id).join(' ') }, h('summary', {}, h('b', {}, `No difference in ${quiet.length}: `), quiet.map((r) => r.name).join('; '))) as HTMLDetailsElement;
        const fill = () => { if (!fold.querySelector('.cards')) fold.append(h('div', { class: 'cards' }, ...quiet.map(card))); };
        fold.addEventListener('toggle', fill);
        addEventListener('beforeprint', fill);
        section.append(fold);
      }
      root.append(section);
    });
  };
  const jump = (name: string) => {
    const r = D.rows.find((x) => x.id === name);
    if (!r) return;
    const target = () => document.getElementById(id(r));
    if (!target()) makeAll();
    if (!target()) {
      // The card is in a closed section: that of tests without a difference, or that of its sweep.
      for (const f of $$<HTMLDetailsElement>('#tests-out details.quiet')) {
        if (target()) break;
        const was = f.open;
        f.open = true;
        f.dispatchEvent(new Event('toggle'));
        if (!target()) f.open = was;
      }
    }
    const of = target();
    of?.scrollIntoView();
    of?.focus({ preventScroll: true });
  };
  addEventListener('go', (e) => jump((e as CustomEvent<string>).detail));
  onChange((k) => {
    if (k.has('hide')) draw();
    if (k.has('test') && state.get('test')) jump(state.get('test')!);
  });
  draw();
  if (state.get('test')) jump(state.get('test')!);
}
