// Colours, dashes and marks of schedulers. Colour is never the only distinction.
import { D } from './data';
import { s, set, state } from './dom';

const COLORS = 8;
export const color = (i: number) => `var(--s${i % COLORS})`;
export const colorName = (i: number) => `--s${i % COLORS}`;
const DASHES: number[][] = [[], [7, 3], [], [2, 3], [9, 3, 2, 3], [4, 2], [], [1, 3]];
export const dash = (i: number): number[] => DASHES[i % COLORS]!;

/** Returns a scheduler's mark as an SVG path around 0,0. If colours repeat, the marks differ. */
export function markPath(i: number, r: number): string {
  switch ((i + Math.floor(i / COLORS)) % 5) {
    case 0: return `M${-r},0a${r},${r} 0 1,0 ${2 * r},0a${r},${r} 0 1,0 ${-2 * r},0`;
    case 1: return `M${-r},${-r}h${2 * r}v${2 * r}h${-2 * r}z`;
    case 2: return `M0,${-1.2 * r}L${1.15 * r},${0.9 * r}H${-1.15 * r}z`;
    case 3: return `M0,${-1.3 * r}L${1.3 * r},0L0,${1.3 * r}L${-1.3 * r},0z`;
    default: {
      const [a, b, c] = [1.1 * r, 0.5 * r, 0.6 * r];
      return `M${-a},${-b}L${-b},${-a}L0,${-c}L${b},${-a}L${a},${-b}L${c},0L${a},${b}L${b},${a}L0,${c}L${-b},${a}L${-a},${b}L${-c},0z`;
    }
  }
}

export function mark(i: number, size = 12): SVGElement {
  return s('svg', { class: 'mark', width: size, height: size, viewBox: '-7 -7 14 14', 'aria-hidden': 'true' },
    s('path', { d: markPath(i, 5), fill: color(i) }));
}

const hidden = () => new Set((state.get('hide') ?? '').split('|').filter(Boolean));
/** Returns whether the scheduler or the device is shown. The selection applies to the whole page. */
export const shown = (i: number) => !hidden().has(D.schedulers[i]!.name);
export const shownDevice = (d: number) => !hidden().has(D.devices[d]!);

/** Hides or shows the item with this name. Returns true if it is shown afterwards. */
export function toggle(name: string): boolean {
  const all = hidden();
  if (!all.delete(name)) all.add(name);
  set({ hide: all.size ? [...all].join('|') : null });
  return !all.has(name);
}
