// Sets up the page. The parts that need no script are in the HTML already.
import { blocks } from './blocks';
import { closer } from './closer';
import { D } from './data';
import { $, $$, h, paper, say, set, state } from './dom';
import { redraw } from './lines';
import { mark } from './look';
import { map } from './map';
import { overall } from './overall';
import { prints } from './prints';
import { replay } from './replay';
import { tests } from './tests';

function theme() {
  const root = document.documentElement;
  const button = $('#theme');
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const now = () => root.dataset.theme ?? (dark.matches ? 'dark' : 'light');
  const again = () => {
    button.textContent = now() === 'dark' ? '☀ Light' : '☾ Dark';
    redraw();
  };
  const asked = state.get('theme');
  if (asked === 'dark' || asked === 'light') root.dataset.theme = asked;
  button.addEventListener('click', () => {
    root.dataset.theme = now() === 'dark' ? 'light' : 'dark';
    set({ theme: root.dataset.theme });
    again();
  });
  dark.addEventListener('change', again);
  let was: string | undefined;
  addEventListener('beforeprint', () => {
    was = root.dataset.theme;
    root.dataset.theme = 'light';
    $$<HTMLDetailsElement>('details.print').forEach((d) => { d.open = true; });
    paper(true);
    again();
  });
  addEventListener('afterprint', () => {
    if (was) root.dataset.theme = was;
    else delete root.dataset.theme;
    paper(false);
    again();
  });
  again();
}

function down(name: string, type: string, text: string) {
  h('a', { href: URL.createObjectURL(new Blob([text], { type })), download: name }).click();
  say(`${name} is saved.`);
}

/** Returns a field of CSV, quoted if necessary. */
const field = (x: string | number | null) => {
  const text = x === null ? '' : String(x);
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

function save() {
  $('#save-json').addEventListener('click', () => down('seekwell-report.json', 'application/json', JSON.stringify(D)));
  $('#save-csv').addEventListener('click', () => {
    const rows: (string | number | null)[][] = [['device', 'machine', 'test', 'metric', 'unit', 'scheduler', 'block', 'value']];
    for (const r of D.rows) {
      for (const x of r.sides) x.v.forEach((v, n) => rows.push([D.devices[r.device]!, r.machine, r.name, r.metric, r.unit, D.schedulers[x.s]!.name, n, v]));
    }
    down('seekwell-report.csv', 'text/csv', rows.map((x) => x.map(field).join(',')).join('\n') + '\n');
  });
}

/** Shows the keyboard shortcuts when `?` is pressed. */
function keys() {
  const dialog = $<HTMLDialogElement>('#keys');
  addEventListener('keydown', (e) => {
    const typing = (e.target as Element).closest('input, select, textarea');
    if (e.key === '?' && !typing) dialog.showModal();
  });
  $('#show-keys').addEventListener('click', () => dialog.showModal());
}

const begun = performance.now();
theme();
$$('[data-mark]').forEach((e) => e.prepend(mark(Number(e.dataset.mark))));
$$<HTMLAnchorElement>('a[data-row]').forEach((a) => a.addEventListener('click', (e) => {
  e.preventDefault();
  const id = D.rows[Number(a.dataset.row)]!.id;
  set({ test: id }, true);
}));
if (D.schedulers.length > 1) map();
else $('#map').hidden = true;
overall();
tests();
if (D.rows.some((r) => r.part)) closer();
if (D.scenes.length) {
  prints();
  replay();
  blocks();
}
save();
keys();
$('#print').addEventListener('click', () => print());
$$<HTMLAnchorElement>('nav.top a').forEach((a) => {
  a.hidden = !!document.querySelector<HTMLElement>(a.hash)?.hidden;
  // The address contains the selection, so a click on a section link only scrolls and keeps the address.
  a.addEventListener('click', (e) => {
    e.preventDefault();
    document.querySelector(a.hash)?.scrollIntoView();
  });
});
document.documentElement.dataset.ready = String(Math.round(performance.now() - begun));
