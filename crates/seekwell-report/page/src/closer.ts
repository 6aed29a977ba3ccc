// One test closer: percentiles of its operations, and its course of time.
import { D, open, type Columns, type Row } from './data';
import { h } from './dom';
import { lines } from './lines';
import { shown } from './look';
import { three, time } from './text';

/** Where a share stands on an axis of nines: 0.9 at 1, 0.99 at 2. */
const nines = (f: number) => -Math.log10(Math.max(1e-7, 1 - f));
const SHARES = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

function percentiles(c: Columns): HTMLElement | null {
  const kind = String(c.head.operation ?? '');
  const have = D.schedulers.map((_, i) => i).filter((i) => c.has(`${i}.latency`) && shown(i));
  if (!have.length) return null;
  const top = Math.max(...have.map((i) => c.column(`${i}.share`).reduce((a, b) => Math.max(a, nines(b / 1e7)), 0)));
  return lines({
    title: `How long ${/^[aeiou]/.test(kind) ? 'an' : 'a'} ${kind} took`, note: 'all runs together', x: 'latency, log scale', y: 'share done within, %', logX: 10, fx: time, height: 300,
    ymin: 0, ymax: top + 0.1, splitsY: SHARES.map(nines).filter((v) => v <= top + 0.01),
    fy: (v) => `${+((1 - 10 ** -v) * 100).toFixed(4)}`,
    lines: have.map((i) => ({ name: D.schedulers[i]!.name, i, x: c.column(`${i}.latency`), y: Array.from(c.column(`${i}.share`), (f) => nines(f / 1e7)) })),
  });
}

function course(c: Columns): HTMLElement | null {
  const kind = String(c.head.operation ?? '');
  const have = D.schedulers.map((_, i) => i).filter((i) => c.has(`${i}.mean`) && shown(i));
  if (!have.length) return null;
  return lines({
    title: `Second by second: ${kind}`, note: 'line: mean of the runs; band: lowest to highest', x: 'seconds', y: 'done a second', height: 280, fy: three,
    lines: have.map((i) => {
      const y = c.column(`${i}.mean`);
      return { name: D.schedulers[i]!.name, i, x: c.column(`${i}.second`), y: Array.from(y, (v) => v / 1000), lo: Array.from(c.column(`${i}.low`)), hi: Array.from(c.column(`${i}.high`)) };
    }),
  });
}

export function closer(r: Row): HTMLElement {
  const box = h('div', { class: 'closer' }, h('p', { class: 'params' }, 'unpacking …'));
  open(r.part!).then(
    (c) => {
      const parts = [percentiles(c), course(c)].filter((x): x is HTMLElement => !!x);
      box.replaceChildren(...(parts.length ? parts : [h('p', { class: 'params' }, 'Nothing was kept of it.')]));
    },
    (e: unknown) => box.replaceChildren(h('p', { class: 'params' }, `It cannot be shown in this browser: ${String(e)}`)),
  );
  return box;
}
