// Scores over all tests of a device: how many times better than the reference, with intervals.
import { D, type Group } from './data';
import { $, h, onChange, onWidth, s } from './dom';
import { color, markPath, shown, shownDevice } from './look';
import { three } from './text';

const LINES = [0.1, 0.2, 0.5, 0.8, 1, 1.25, 2, 5, 10, 20, 50];

function forest(g: Group): HTMLElement {
  const rows = g.scores.filter((x) => shown(x.s)).sort((a, b) => b.times - a.times);
  const ends = rows.flatMap((x) => [x.times, x.lo ?? x.times, x.hi ?? x.times]).map(Math.log);
  const far = Math.max(Math.log(1.05), ...ends.map(Math.abs)) * 1.06;
  const reference = D.schedulers[g.reference]!.name;
  const box = h('div', { class: 'chart' });
  onWidth(box, (W) => {
    const [L, R, RH] = [118, 66, 26];
    const H = rows.length * RH + 22;
    const X = (v: number) => L + ((Math.max(-far, Math.min(far, v)) + far) / (2 * far)) * (W - L - R);
    const svg = s('svg', { width: W, height: H, role: 'img', 'aria-label': `Over all tests, times as good as ${reference}: ` + rows.map((x) => `${D.schedulers[x.s]!.name} ${three(x.times)}`).join(', ') });
    for (const t of LINES) {
      if (Math.abs(Math.log(t)) >= far) continue;
      svg.append(s('path', { d: `M${X(Math.log(t))},0V${H - 20}`, class: 'grid', 'stroke-width': t === 1 ? 2 : 1 }),
        s('text', { x: X(Math.log(t)), y: H - 6, class: 'tick', 'text-anchor': 'middle' }, `${t}×`));
    }
    rows.forEach((x, k) => {
      const y = k * RH + RH / 2;
      const name = D.schedulers[x.s]!.name;
      const [lo, hi] = [Math.log(x.lo ?? x.times), Math.log(x.hi ?? x.times)];
      svg.append(s('g', {}, s('title', {}, `${name}: ${three(x.times)} times as good as ${reference}${x.lo === null ? '' : ` (${three(x.lo)} to ${three(x.hi!)})`}`),
        s('text', { x: L - 10, y: y + 4, class: 'name', 'text-anchor': 'end' }, name.length > 15 ? `${name.slice(0, 14)}…` : name),
        s('path', { d: `M${X(lo)},${y}H${X(hi)}m0,-4v8M${X(lo)},${y - 4}v8`, stroke: color(x.s), 'stroke-width': 2, fill: 'none' }),
        s('path', { d: markPath(x.s, 5), transform: `translate(${X(Math.log(x.times))},${y})`, fill: color(x.s), stroke: 'var(--paper)', 'stroke-width': 1 }),
        s('text', { x: W - R + 10, y: y + 4, class: 'val' }, `${three(x.times)}×`)));
    });
    box.replaceChildren(svg);
  });
  const where = g.machine ? `${D.devices[g.device]}, ${g.machine}` : D.devices[g.device]!;
  return h('figure', { class: 'panel' }, h('figcaption', {}, h('b', {}, where), ` against ${reference}`), box);
}

export function overall() {
  const root = $('#overall-out');
  const draw = () => {
    const of = D.groups.filter((g) => g.scores.length > 1 && shownDevice(g.device));
    root.replaceChildren(...of.map(forest));
    $('#overall').hidden = !of.length;
  };
  onChange((k) => { if (k.has('hide')) draw(); });
  draw();
}
