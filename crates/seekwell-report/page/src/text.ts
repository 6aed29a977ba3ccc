// Formats numbers as the tables of the program do.

/** Three significant digits. */
export function three(v: number): string {
  if (!Number.isFinite(v)) return '–';
  if (v === 0) return '0';
  const a = Math.abs(v);
  if (a >= 1000) return Math.round(v).toLocaleString('en');
  const text = v.toFixed(Math.min(20, Math.max(0, 2 - Math.floor(Math.log10(a)))));
  return a < 1e-4 ? v.toExponential(2) : text;
}

/** Returns a scheduler's name for a sentence. The name "none" is quoted, because the word means "nothing". */
export const inProse = (name: string) => (/^none(?![\p{L}\p{N}])/iu.test(name) ? `\`${name}\`` : name);

const two = (v: number) => (v >= 9.95 ? Math.round(v).toLocaleString('en') : v.toFixed(1));

/** Returns a value with its unit. Times above a second are in seconds, times below a millisecond in microseconds. */
export function amount(v: number, unit: string): string {
  if (unit === 'ms') {
    if (v >= 1000) return `${three(v / 1000)} s`;
    return v >= 1 || v === 0 ? `${three(v)} ms` : `${three(v * 1000)} us`;
  }
  return unit ? `${three(v)} ${unit}` : three(v);
}

export const valueOf = (v: number, unit: string) => (unit === 'ms' ? amount(v, unit) : three(v));

export function time(ns: number): string {
  const of: [number, string][] = [[1e9, 's'], [1e6, 'ms'], [1e3, 'us']];
  for (const [f, u] of of) if (ns >= f) return `${three(ns / f)} ${u}`;
  return `${three(ns)} ns`;
}

/** From this factor on, differences are shown as factors. */
export const FACTOR = 1.95;

/** Formats a difference as `2.1×` or `12 %`, better or worse. */
export function size(times: number): string {
  const r = times >= 1 ? times : 1 / times;
  if (r >= FACTOR) return `${two(r)}×`;
  const percent = 100 * (r - 1);
  return percent < 0.05 ? '0 %' : `${two(percent)} %`;
}
/** Formats a difference as `12 % behind` or `12 % ahead`. */
export const lag = (times: number) => `${size(times)} ${times >= 1 ? 'ahead' : 'behind'}`;

/** Formats bytes in powers of ten. */
export function bytes(v: number): string {
  const of: [number, string][] = [[1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB']];
  for (const [f, u] of of) if (v >= f) return `${three(v / f)} ${u}`;
  return `${Math.round(v)} B`;
}
