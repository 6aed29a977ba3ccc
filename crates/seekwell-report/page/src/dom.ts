// Elements, SVG, the user's selection (kept in the address), and sizes.

export const $ = <T extends Element = HTMLElement>(q: string, root: ParentNode = document) =>
  root.querySelector<T>(q)!;
export const $$ = <T extends Element = HTMLElement>(q: string, root: ParentNode = document) =>
  [...root.querySelectorAll<T>(q)];

type Kid = Node | string | null | undefined | false;
type Props = Record<string, unknown>;

function fill(el: Element, props: Props, kids: Kid[]) {
  for (const [k, v] of Object.entries(props)) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith('on')) el.addEventListener(k.slice(2), v as EventListener);
    else if (k === 'css') {
      for (const [a, b] of Object.entries(v as Props)) (el as HTMLElement).style.setProperty(a, String(b));
    } else el.setAttribute(k, v === true ? '' : String(v));
  }
  // Strings become text nodes: no name from an experiment is ever markup.
  for (const kid of kids) if (kid) el.append(kid);
}

export function h(tag: string, props: Props = {}, ...kids: Kid[]): HTMLElement {
  const el = document.createElement(tag);
  fill(el, props, kids);
  return el;
}

export function s(tag: string, props: Props = {}, ...kids: Kid[]): SVGElement {
  const el = document.createElementNS('http://www.w3.org/2000/svg', tag);
  fill(el, props, kids);
  return el;
}

export const css = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const sized: [HTMLElement, (w: number) => void][] = [];

/** Calls `draw` with the current width, and again when the width changes. */
export function onWidth(el: HTMLElement, draw: (w: number) => void) {
  let last = 0;
  sized.push([el, (w) => { if (w > 0) { last = w; draw(w); } }]);
  new ResizeObserver((e) => {
    const w = Math.floor(e[0]!.contentRect.width);
    if (w > 0 && w !== last) { last = w; draw(w); }
  }).observe(el);
}

/** Prepares for print: paper has its own width and does not scroll, so everything is drawn at once. */
export function paper(on: boolean) {
  document.documentElement.classList.toggle('printing', on);
  for (const [el, draw] of sized) {
    if (!el.isConnected) continue;
    const c = getComputedStyle(el);
    draw(Math.floor(el.clientWidth - parseFloat(c.paddingLeft) - parseFloat(c.paddingRight)));
  }
}

/** Calls `act` once, when the element comes near the visible part. Before printing, calls it at once. */
export function whenSeen(el: HTMLElement, act: () => void) {
  let done = false;
  const now = () => {
    if (done) return;
    done = true;
    seen.disconnect();
    act();
  };
  const seen = new IntersectionObserver((all) => { if (all.some((e) => e.isIntersecting)) now(); }, { rootMargin: '600px' });
  seen.observe(el);
  addEventListener('beforeprint', now);
}

const changes: ((keys: Set<string>) => void)[] = [];

/** The user's selection by name. It is kept in the address, so that a link shows the same selection. */
export const state = new URLSearchParams(location.hash.slice(1));

export function set(values: Record<string, string | null>, step = false) {
  const keys = new Set<string>();
  for (const [k, v] of Object.entries(values)) {
    if (state.get(k) === v) continue;
    if (v === null) state.delete(k);
    else state.set(k, v);
    keys.add(k);
  }
  if (!keys.size) return;
  const to = '#' + state.toString();
  if (step) history.pushState(null, '', to);
  else history.replaceState(null, '', to);
  changes.forEach((f) => f(keys));
}

export const onChange = (f: (keys: Set<string>) => void) => { changes.push(f); };

addEventListener('popstate', () => {
  const now = new URLSearchParams(location.hash.slice(1));
  const keys = new Set([...state.keys(), ...now.keys()].filter((k) => state.get(k) !== now.get(k)));
  for (const k of keys) {
    const v = now.get(k);
    if (v === null) state.delete(k);
    else state.set(k, v);
  }
  if (keys.size) changes.forEach((f) => f(keys));
});

/** Sends a text to screen readers, without interrupting them. */
export function say(text: string) {
  $('#live').textContent = text;
}
