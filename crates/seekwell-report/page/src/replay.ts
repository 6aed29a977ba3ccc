// The replay: which requests wait, where the head is, and which request the scheduler selects for which reason.
import { D, type Scene } from './data';
import { $, css, h, onChange, onWidth, say, set, state, whenSeen } from './dom';
import { at, axisOf, before, gb, headAt, lane, sceneName, taskColors, type Axis, type Lane, type Req } from './lane';
import { mark } from './look';
import { amount, bytes, three } from './text';

const ms = (t: number) => (Math.abs(t) >= 1000 ? `${three(t / 1000)} s` : Math.abs(t) < 1 ? `${three(t * 1000)} us` : `${t.toFixed(1)} ms`);
const length = (n: number) => (n >= 2048 ? `${+(n / 2048).toPrecision(3)} MiB` : `${+(n / 2).toPrecision(3)} KiB`);
const OPS = ['read', 'write', 'flush', 'discard', 'zeroes'];
const VARS = ['--ink', '--dim', '--line', '--line2', '--paper', '--shade', '--warn', ...Array.from({ length: 8 }, (_, i) => `--t${i}`)];
const FONT = 'system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif';
type Palette = Record<string, string>;

/** One lane: waiting requests above the line, the head on the line, and past requests below it. */
class View {
  readonly el = h('div', { class: 'lane' });
  readonly canvas = document.createElement('canvas');
  private readonly why = h('div', { class: 'why' });
  private readonly log = h('ol', { class: 'why-log', 'aria-label': 'Earlier decisions' });
  private readonly count = h('div', { class: 'lane-count' });
  private W = 0;
  private told = -2;

  constructor(readonly l: Lane, private readonly axis: (W: number, pad: number) => Axis, private readonly H: number, private readonly colors: Map<string, number>, scene: Scene) {
    this.canvas.setAttribute('aria-hidden', 'true');
    const row = D.rows[scene.row]!;
    const mean = row.sides.find((x) => x.s === l.of.s)?.mean;
    const part = l.member === null ? '' : `; ${l.member || 'the top'}, one of ${l.members} queues`;
    this.el.append(h('div', { class: 'lane-title' }, mark(l.of.s, 14), h('b', {}, l.name),
      h('span', {}, `${mean == null ? '' : `${amount(mean, row.unit)} in the mean of all runs`}${part}`)),
      this.canvas, this.count, this.why, this.log);
  }

  size(w: number) {
    const r = devicePixelRatio || 1;
    this.W = w;
    [this.canvas.width, this.canvas.height] = [w * r, this.H * r];
    [this.canvas.style.width, this.canvas.style.height] = [`${w}px`, `${this.H}px`];
  }

  private color(r: Req, pal: Palette) { return pal[`--t${this.colors.get(this.l.task(r.task)) ?? 5}`]!; }

  draw(t: number, pal: Palette) {
    const g = this.canvas.getContext('2d')!;
    const { W, H } = this;
    if (!W) return;
    const r = devicePixelRatio || 1;
    g.setTransform(r, 0, 0, r, 0, 0);
    g.clearRect(0, 0, W, H);
    const pad = 14;
    const axis = this.axis(W, pad);
    const disk = Math.round(H * 0.56);
    this.ground(g, axis, disk, pal, pad);
    this.past(g, axis, disk, t, pal);
    this.line(g, axis, disk, pal);
    const { waiting, inside } = this.requests(g, axis, disk, t, pal);
    this.head(g, axis, disk, t, pal, pad);
    this.tally(t, waiting, inside);
    this.say(t);
  }

  private ground(g: CanvasRenderingContext2D, { parts }: Axis, disk: number, pal: Palette, pad: number) {
    const { W, H } = this;
    g.fillStyle = pal['--shade']!;
    g.fillRect(0, 0, W, disk);
    g.fillStyle = pal['--dim']!;
    g.font = `11px ${FONT}`;
    [g.textAlign, g.textBaseline] = ['left', 'top'];
    g.fillText(W > 380 ? 'waiting in the scheduler: new above, old below' : 'waiting: new above, old below', pad, 5);
    g.fillText('served, older below', pad, H - 15);
    const span = (p: Axis['parts'][0]) => `${gb(p.lo).toFixed(2)} to ${gb(p.hi).toFixed(2)} GB`;
    if (parts.length === 1) {
      g.textAlign = 'right';
      g.fillText(span(parts[0]!), W - pad, H - 15);
      return;
    }
    g.textAlign = 'center';
    for (const p of parts) {
      const text = p.x1 - p.x0 > 110 ? span(p) : `${gb(p.lo).toFixed(1)} GB`;
      const half = g.measureText(text).width / 2 + 2;
      g.fillText(text, Math.min(Math.max((p.x0 + p.x1) / 2, half), W - half), disk + 18);
    }
  }

  /** Draws past requests, which move down and fade, and the path of the head as a thin line through them. */
  private past(g: CanvasRenderingContext2D, { X, parts }: Axis, disk: number, t: number, pal: Palette) {
    const { l, W, H } = this;
    const top = disk + (parts.length > 1 ? 38 : 28);
    const span = Math.min(400, l.length / 3);
    const Y = (tt: number) => top + ((t - tt) / span) * (H - 18 - top);
    g.save();
    g.beginPath();
    g.rect(0, top - 2, W, H - top - 14);
    g.clip();
    [g.strokeStyle, g.lineWidth] = [pal['--line2']!, 1];
    g.beginPath();
    let begun = false;
    const go = (x: number, y: number) => {
      if (begun) g.lineTo(x, y);
      else g.moveTo(x, y);
      begun = true;
    };
    for (let k = Math.max(0, before(l.head, t - span - 50, (p) => p[0])); k < l.head.length && l.head[k]![0] <= t; k++) go(X(l.head[k]![1]), Y(l.head[k]![0]));
    const now = headAt(l, t);
    if (begun && now !== null) go(X(now), top);
    g.stroke();
    for (let k = before(l.done, t, (d) => d.tC); k >= 0; k--) {
      const d = l.done[k]!;
      if (d.tC < t - span) break;
      const [, s, n] = at(d, d.tC);
      g.fillStyle = this.color(d, pal);
      g.globalAlpha = 1 - 0.7 * ((t - d.tC) / span);
      const w = Math.max(3, X(s + n) - X(s));
      if (d.op) g.fillRect(X(s), Y(d.tC) - 2, w, 4);
      else {
        g.beginPath();
        g.arc(X(s) + w / 2, Y(d.tC), 3, 0, 7);
        g.fill();
      }
    }
    g.restore();
    g.globalAlpha = 1;
  }

  private line(g: CanvasRenderingContext2D, { parts }: Axis, disk: number, pal: Palette) {
    g.fillStyle = g.strokeStyle = pal['--ink']!;
    g.lineWidth = 1.5;
    parts.forEach((p, k) => {
      g.fillRect(p.x0 - 2, disk - 1, p.x1 - p.x0 + 4, 2);
      if (!k) return;
      // Parts of the disk without requests are left out.
      const x = p.x0 - 8;
      g.beginPath();
      g.moveTo(x - 4, disk + 5);
      g.lineTo(x - 1, disk - 5);
      g.moveTo(x + 1, disk + 5);
      g.lineTo(x + 4, disk - 5);
      g.stroke();
    });
  }

  private shape(g: CanvasRenderingContext2D, r: Req, x: number, y: number, w: number) {
    if (r.op) g.fillRect(x, y - 3, w, 6);
    else {
      g.beginPath();
      g.arc(x + w / 2, y, 4.5, 0, 7);
      g.fill();
    }
  }

  private requests(g: CanvasRenderingContext2D, { X }: Axis, disk: number, t: number, pal: Palette) {
    const [top, drive] = [20, disk + 9];
    let [waiting, inside] = [0, 0];
    const boxes: [number, number][] = [];
    // Position and width of a request that grew by merges.
    const place = (q: Req): [number, number] => {
      const [, s, n] = at(q, t);
      return [X(s), Math.max(q.op ? 4 : 7, X(s + n) - X(s))];
    };
    for (const q of this.l.reqs) {
      if (q.tI > t) break;
      if (t >= q.tC) continue;
      const [x, w] = place(q);
      g.fillStyle = this.color(q, pal);
      if (t < q.tD) {
        waiting++;
        // Requests sink with their age on a logarithmic scale, so starving requests are at the bottom.
        const age = Math.min(1, Math.log10(1 + (t - q.tI) / 0.5) / Math.log10(1 + 4000 / 0.5));
        const y = top + age * (disk - top - 14);
        g.globalAlpha = 0.28;
        g.fillRect(x + w / 2 - 0.5, y, 1, disk - y);
        g.globalAlpha = 1;
        this.shape(g, q, x, y, w);
        if (t >= q.tE) {
          [g.lineWidth, g.strokeStyle] = [1.5, pal['--ink']!];
          g.strokeRect(x - 3, y - 6, w + 6, 12);
        }
      } else {
        inside++;
        this.shape(g, q, x, drive, w);
        boxes.push([x - 2.5, x + w + 2.5]);
      }
    }
    // Requests in the drive's cache have a frame. Frames that would touch are merged.
    boxes.sort((a, b) => a[0] - b[0]);
    [g.lineWidth, g.strokeStyle] = [1.5, pal['--ink']!];
    for (let k = 0; k < boxes.length;) {
      const a = boxes[k]![0];
      let b = boxes[k++]![1];
      while (k < boxes.length && boxes[k]![0] <= b + 1) b = Math.max(b, boxes[k++]![1]);
      g.strokeRect(a, drive - 6.5, b - a, 13);
    }
    return { waiting, inside };
  }

  private head(g: CanvasRenderingContext2D, { X }: Axis, disk: number, t: number, pal: Palette, pad: number) {
    const { l, W } = this;
    const flush = l.flushes.find((f) => f.tD <= t && t < f.tC);
    const k = before(l.idle, t, (i) => i[0]);
    const idle = k >= 0 && t < l.idle[k]![1] && !flush ? l.idle[k] : undefined;
    const sector = headAt(l, t);
    const hx = sector === null ? W / 2 : X(sector);
    if (sector !== null) {
      g.fillStyle = idle ? pal['--warn']! : pal['--ink']!;
      g.beginPath();
      g.moveTo(hx, disk - 2);
      g.lineTo(hx - 7, disk - 15);
      g.lineTo(hx + 7, disk - 15);
      g.closePath();
      g.fill();
    }
    g.font = `600 12px ${FONT}`;
    g.textBaseline = 'bottom';
    if (idle) {
      const text = `holds back: ${ms(t - idle[0])}`;
      const wide = g.measureText(text).width;
      const x = Math.min(Math.max(pad, hx - wide / 2), W - pad - wide);
      g.fillStyle = pal['--paper']!;
      g.fillRect(x - 4, disk - 34, wide + 8, 17);
      g.fillStyle = pal['--warn']!;
      g.textAlign = 'left';
      g.fillText(text, x, disk - 19);
    }
    if (flush) {
      g.textAlign = 'right';
      g.fillStyle = pal['--dim']!;
      g.fillText(`the drive empties its cache: ${ms(t - flush.tD)}`, W - pad, disk - 4);
    }
  }

  private tally(t: number, waiting: number, inside: number) {
    const { l } = this;
    let [moved, n, travel] = [0, 0, 0];
    for (const d of l.done) {
      if (d.tC > t) break;
      moved += at(d, d.tC)[2] * 512;
      n++;
    }
    for (let k = 1; k < l.head.length && l.head[k]![0] <= t; k++) travel += Math.abs(l.head[k]![1] - l.head[k - 1]![1]);
    const held = l.idle.reduce((a, [x, y]) => a + Math.max(0, Math.min(y, t) - x), 0);
    this.count.textContent = [`${bytes(moved)} served in ${n} requests`, `${waiting} waiting, ${inside} in the drive`,
      l.head.length ? `head moved ${bytes(travel * 512)}` : 'no head', ...(held > 0.05 ? [`held back ${ms(held)}`] : [])].join(' · ');
  }

  /** Writes the last decision, and the three decisions before it. */
  private say(t: number) {
    const k = before(this.l.decisions, t, (d) => d.t);
    if (k === this.told) return;
    this.told = k;
    this.why.replaceChildren(...(k < 0 ? [this.undecided()] : this.tell(k)));
    this.log.replaceChildren(...[1, 2, 3].filter((n) => k - n >= 0).map((n) => h('li', {}, ...this.tell(k - n))));
  }

  /** Text before the first decision: requests that are served by then were dispatched before the window. */
  private undecided(): string {
    const n = this.l.reqs.filter((r) => r.tE <= 0).length;
    return n ? `no dispatch yet in this excerpt; ${n} ${n === 1 ? 'request was' : 'requests were'} dispatched before it begins` : 'no dispatch yet';
  }

  private tell(k: number): (Node | string)[] {
    const { l } = this;
    const d = l.decisions[k]!;
    const [, s, n] = at(d.req, d.t);
    const name = l.task(d.req.task);
    const waited = Math.max(0, d.t - d.req.tI);
    const out: (Node | string)[] = [h('span', { class: 'when' }, ms(d.t), ' '),
      h('i', { class: 'dot', css: { '--c': `var(--t${this.colors.get(name) ?? 5})` } }), h('b', {}, `${OPS[d.req.op]} of ${name}`),
      ` at ${gb(s).toFixed(3)} GB, ${length(n)}, ${waited > 0.001 ? `waited ${ms(waited)}` : 'at once'} `];
    const why = [...new Set(d.why)].slice(-3);
    why.forEach((w, i) => {
      const [rule, text] = l.reasons[w]!;
      out.push(h('span', { class: 'reason' }, h('em', {}, i ? '; ' : 'because: '), text, ' ', rule ? h('small', { title: `the scheduler's rule ${rule}: seekwell schedulers ${l.name}` }, rule) : null));
    });
    if (!why.length) out.push(h('span', { class: 'reason none' }, 'no reason given: the request was passed on directly'));
    return out;
  }

  words(t: number): string {
    this.say(t);
    return `${this.l.name}: ${this.why.textContent}`;
  }
}

/** Finds moments of interest. */
function momentsOf(l: Lane): [string, number][] {
  const out: [string, number][] = [];
  const longest = l.idle.reduce<[number, number] | null>((a, b) => (!a || b[1] - b[0] > a[1] - a[0] ? b : a), null);
  if (longest && longest[1] - longest[0] > 0.3) out.push([`holds back for ${ms(longest[1] - longest[0])}`, longest[0]]);
  let [far, when] = [0, 0];
  for (let k = 1; k < l.done.length; k++) {
    const [a, b] = [l.done[k - 1]!, l.done[k]!];
    const [, s, n] = at(a, a.tC);
    const gap = Math.abs(at(b, b.tC)[1] - s - n);
    if (gap > far) [far, when] = [gap, Math.max(b.tD, a.tC)];
  }
  if (far) out.push([`longest seek, ${bytes(far * 512)}`, when]);
  const waited = (r: Req) => r.tD - r.tI;
  const late = l.done.reduce<Req | null>((a, r) => (r.op || r.tI < 0 || (a && waited(a) >= waited(r)) ? a : r), null);
  if (late && waited(late) > 0.5) out.push([`a read that waits ${ms(waited(late))}`, late.tI]);
  for (const [word, what] of [['preempt', 'the first preemption'], ['expire', 'the first expiry']] as const) {
    const is = (w: number) => l.reasons[w]![1].includes(word) || l.reasons[w]![0].includes(word);
    const all = [...l.notes.filter((n) => is(n.why)).map((n) => n.t), ...l.decisions.filter((d) => d.why.some(is)).map((d) => d.t)].filter((t) => t > 0);
    if (all.length) out.push([what, Math.min(...all)]);
  }
  return out;
}

export function replay() {
  const box = $('#replay');
  const [pick, A, B] = ['#r-scene', '#r-a', '#r-b'].map((q) => $<HTMLSelectElement>(q)) as [HTMLSelectElement, HTMLSelectElement, HTMLSelectElement];
  const play = $<HTMLButtonElement>('#r-play');
  const slide = $<HTMLInputElement>('#r-time');
  const speed = $<HTMLSelectElement>('#r-speed');
  const [clock, stage, strip, moments, key, link] = ['#r-clock', '#r-stage', '#r-strip', '#r-moments', '#r-key', '#r-link'].map((q) => $(q)) as HTMLElement[];
  const nameOf = (s: Scene) => D.rows[s.row]!.id;
  for (const s of D.scenes) pick.append(h('option', { value: nameOf(s) }, sceneName(s)));
  let views: View[] = [];
  let [t, end, running, last, turn] = [0, 1, false, 0, 0];
  let pal: Palette = {};
  let colors = new Map<string, number>();
  const readPalette = () => { for (const v of VARS) pal[v] = css(v); };

  const drawStrip = () => {
    const [W, r, RH] = [strip!.clientWidth, devicePixelRatio || 1, 26];
    const c = $<HTMLCanvasElement>('canvas', strip);
    [c.width, c.height] = [W * r, views.length * RH * r];
    [c.style.width, c.style.height] = [`${W}px`, `${views.length * RH}px`];
    const g = c.getContext('2d')!;
    g.setTransform(r, 0, 0, r, 0, 0);
    const top = views.reduce((a, v) => v.l.depth.wait.reduce((x, y) => Math.max(x, y), a), 4);
    views.forEach((v, k) => {
      const { l } = v;
      const X = (tt: number) => (tt / end) * W;
      const [y, tall] = [k * RH + 2, RH - 6];
      g.fillStyle = pal['--shade']!;
      g.fillRect(0, y, W, tall);
      g.fillStyle = pal['--line2']!;
      g.globalAlpha = 0.55;
      l.depth.t.forEach((from, i) => {
        const high = (l.depth.wait[i]! / top) * tall;
        g.fillRect(X(from), y + tall - high, Math.max(0.6, X(l.depth.t[i + 1] ?? end) - X(from)), high);
      });
      g.globalAlpha = 1;
      g.fillStyle = pal['--warn']!;
      for (const [a, b] of l.idle) g.fillRect(X(a), y + tall - 3, Math.max(0.7, X(b) - X(a)), 3);
      for (const d of l.decisions) {
        g.fillStyle = pal[`--t${colors.get(l.task(d.req.task)) ?? 5}`]!;
        g.fillRect(X(d.t), y, 1.2, 7);
      }
    });
    $('#r-cursor').style.height = `${views.length * RH}px`;
  };
  const frame = () => {
    for (const v of views) v.draw(t, pal);
    slide.value = String(t);
    slide.setAttribute('aria-valuetext', ms(t));
    clock!.textContent = ms(t);
    $('#r-cursor').style.left = `${(t / end) * 100}%`;
  };
  const stop = () => {
    running = false;
    play.setAttribute('aria-pressed', 'false');
    play.textContent = t >= end ? '↺ Again' : '▶ Play';
  };
  const run = (now: number) => {
    if (!running) return;
    t = Math.min(end, t + Math.min(80, now - last) * Number(speed.value));
    last = now;
    frame();
    if (t < end) requestAnimationFrame(run);
    else stop();
  };
  const start = () => {
    if (t >= end) t = 0;
    running = true;
    play.setAttribute('aria-pressed', 'true');
    play.textContent = '❚❚ Pause';
    last = performance.now();
    requestAnimationFrame(run);
  };
  /** Times are whole nanoseconds, so that the address shows the same decision again. */
  const moment = () => String(+t.toFixed(6));
  /** Writes the time of the shown moment to the address. */
  const settle = () => {
    set({ at: moment() });
    link!.setAttribute('href', location.hash);
  };
  const go = (to: number, tell = true) => {
    stop();
    t = Math.max(0, Math.min(end, to));
    frame();
    settle();
    if (tell) say(`${ms(t)}. ${views.map((v) => v.words(t)).join('. ')}`);
  };
  const toggle = () => {
    if (!running) return start();
    stop();
    settle();
  };
  /** Goes to the next or previous decision of any lane. */
  const step = (way: 1 | -1) => {
    let to: number | null = null;
    for (const v of views) {
      for (const d of v.l.decisions) {
        if (way > 0 ? d.t > t + 1e-6 && (to === null || d.t < to) : d.t < t - 1e-6 && (to === null || d.t > to)) to = d.t;
      }
    }
    if (to !== null) go(to);
  };
  const load = async () => {
    const mine = ++turn;
    const scene = D.scenes.find((s) => nameOf(s) === state.get('scene')) ?? D.scenes[0]!;
    pick.value = nameOf(scene);
    const name = (s: number) => D.schedulers[s]!.name;
    const options = () => scene.lanes.map((l) => h('option', { value: name(l.s) }, name(l.s)));
    A.replaceChildren(...options());
    B.replaceChildren(h('option', { value: '-' }, 'no second lane'), ...options());
    const has = (n: string | null) => (n === '-' || scene.lanes.some((l) => name(l.s) === n) ? n : null);
    const [first, second] = contrast(scene);
    A.value = has(state.get('a')) ?? name(first);
    B.value = has(state.get('b')) ?? (second === null ? '-' : name(second));
    const chosen = [A.value, B.value].map((n) => scene.lanes.find((l) => name(l.s) === n)).filter((l) => l !== undefined);
    const lanes = await Promise.all(chosen.map(lane));
    if (mine !== turn) return;
    colors = taskColors(lanes);
    key!.replaceChildren(...[...colors].map(([n, c]) => h('span', {}, h('i', { class: 'dot', css: { '--c': `var(--t${c})` } }), n)), h('span', {}, '● read  ▬ write  ☐ in the drive, or on its way'));
    const axis = axisOf(lanes);
    end = Math.max(0.001, Math.min(...lanes.map((l) => l.length)));
    slide.max = String(end);
    slide.step = String(end / 2000);
    const wide = stage!.clientWidth >= 700 || innerWidth >= 900;
    views = lanes.map((l) => new View(l, axis, wide ? 430 : 300, colors, scene));
    stage!.replaceChildren(...views.map((v) => v.el));
    stage!.classList.toggle('two', views.length === 2);
    moments!.replaceChildren(...views.flatMap((v) => momentsOf(v.l).map(([w, tt]) => h('button', { class: 'small', type: 'button', onclick: () => go(tt) }, h('b', {}, v.l.name), ' ', w))));
    readPalette();
    const asked = Number(state.get('at'));
    t = state.has('at') && Number.isFinite(asked) ? Math.max(0, Math.min(end, asked)) : end * 0.25;
    for (const v of views) v.size(v.el.clientWidth);
    drawStrip();
    stop();
    frame();
    link!.setAttribute('href', location.hash || '#');
    box.dataset.loaded = nameOf(scene);
  };
  pick.addEventListener('change', () => set({ scene: pick.value, a: null, b: null, at: null }));
  A.addEventListener('change', () => set({ a: A.value }));
  B.addEventListener('change', () => set({ b: B.value }));
  play.addEventListener('click', toggle);
  $('#r-back').addEventListener('click', () => step(-1));
  $('#r-step').addEventListener('click', () => step(1));
  slide.addEventListener('input', () => go(Number(slide.value), false));
  strip!.addEventListener('pointerdown', (e) => {
    const b = strip!.getBoundingClientRect();
    const move = (x: PointerEvent) => go(((x.clientX - b.left) / b.width) * end, false);
    move(e);
    strip!.setPointerCapture(e.pointerId);
    strip!.onpointermove = move;
    strip!.onpointerup = () => { strip!.onpointermove = null; };
  });
  link!.addEventListener('click', (e) => {
    e.preventDefault();
    settle();
    navigator.clipboard?.writeText(location.href).then(() => say('The link is copied.'), () => say('The link is in the address.'));
    link!.dataset.done = '1';
  });
  stage!.addEventListener('keydown', (e) => {
    const acts: Record<string, () => void> = { ' ': toggle, ArrowRight: () => step(1), ArrowLeft: () => step(-1), Home: () => go(0), End: () => go(end) };
    const act = acts[e.key];
    if (!act) return;
    e.preventDefault();
    act();
  });
  onChange((k) => {
    if (k.has('scene') || k.has('a') || k.has('b')) void load();
    else if (k.has('at') && views.length && state.get('at') !== moment()) {
      stop();
      t = Math.max(0, Math.min(end, Number(state.get('at')) || 0));
      frame();
    }
  });
  whenSeen(box, () => {
    void load();
    onWidth(stage!, () => {
      for (const v of views) v.canvas.style.width = '0';
      for (const v of views) v.size(v.el.clientWidth);
      drawStrip();
      frame();
    });
  });
  addEventListener('retheme', () => {
    if (!views.length) return;
    readPalette();
    drawStrip();
    frame();
  });
}

/** Returns the best and the worst scheduler of the scene's test, which are shown first. */
function contrast(scene: Scene): [number, number | null] {
  const r = D.rows[scene.row]!;
  const mean = (s: number) => r.sides.find((x) => x.s === s)?.mean ?? 0;
  const all = scene.lanes.map((l) => l.s).sort((a, b) => (r.higher ? mean(b) - mean(a) : mean(a) - mean(b)));
  return [all[0]!, all.length > 1 ? all[all.length - 1]! : null];
}
