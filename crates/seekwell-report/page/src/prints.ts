// Sector over time: one dot per request, and one small picture per scheduler.
import { D } from './data';
import { $, css, h, onWidth, set, whenSeen } from './dom';
import { at, axisOf, lane, sceneName, taskColors, type Axis, type Lane } from './lane';
import { mark } from './look';
import { amount, three } from './text';

const drawn: (() => void)[] = [];

function print(l: Lane, canvas: HTMLCanvasElement, W: number, H: number, axis: Axis, end: number, colors: Map<string, number>) {
  const r = devicePixelRatio || 1;
  const g = canvas.getContext('2d')!;
  [canvas.width, canvas.height] = [W * r, H * r];
  [canvas.style.width, canvas.style.height] = [`${W}px`, `${H}px`];
  g.setTransform(r, 0, 0, r, 0, 0);
  const X = (t: number) => (t / end) * W;
  const Y = (s: number) => H - axis.X(s);
  // Parts of the disk without requests are left out.
  g.fillStyle = css('--shade');
  for (const p of axis.parts.slice(1)) g.fillRect(0, H - p.x0 + 4, W, 8);
  [g.strokeStyle, g.lineWidth, g.globalAlpha] = [css('--line2'), 0.6, 0.6];
  g.beginPath();
  l.head.forEach(([t, s], k) => (k ? g.lineTo(X(t), Y(s)) : g.moveTo(X(t), Y(s))));
  g.stroke();
  g.globalAlpha = 1;
  const fill = new Map([...colors].map(([n, c]) => [n, css(`--t${c}`)]));
  for (const d of l.done) {
    const [, s, n] = at(d, d.tC);
    g.fillStyle = fill.get(l.task(d.task))!;
    g.fillRect(X(d.tC) - 1.2, Y(s + n), 2.4, Math.max(2.4, Y(s) - Y(s + n)));
  }
}

export function prints() {
  const row = $('#prints-out');
  const scene = D.scenes[0]!;
  const unit = D.rows[scene.row]!;
  whenSeen(row, async () => {
    const all = await Promise.all(scene.lanes.map(lane));
    const axis = axisOf(all);
    const end = Math.min(...all.map((l) => l.length));
    const colors = taskColors(all);
    $('#prints-lead').textContent = `${sceneName(scene)}: each dot is a request. The vertical axis is the place on the disk, the horizontal axis the time (${three(end / 1000)} s). One colour per process; the thin line is the head. Each scheduler got the same requests.`;
    for (const l of all) {
      const c = document.createElement('canvas');
      c.setAttribute('aria-hidden', 'true');
      const mean = unit.sides.find((x) => x.s === l.of.s)?.mean;
      const b = h('button', { class: 'print-of', type: 'button', onclick: () => {
        set({ scene: unit.id, a: l.name, b: null }, true);
        $('#elevator').scrollIntoView();
        $('#r-stage').focus({ preventScroll: true });
      } }, c, h('span', { class: 'cap' }, mark(l.of.s), h('b', {}, l.name), h('span', { class: 'sr' }, ': replay it'), h('span', {}, mean == null ? '' : amount(mean, unit.unit))));
      row.append(b);
      let width = 0;
      const draw = () => {
        const tall = Math.min(200, Math.round(width * 0.72));
        if (width) print(l, c, width, tall, axis(tall, 4), end, colors);
      };
      onWidth(b, (w) => {
        width = w;
        draw();
      });
      drawn.push(draw);
    }
    row.dataset.loaded = '1';
  });
  addEventListener('retheme', () => drawn.forEach((f) => f()));
}
