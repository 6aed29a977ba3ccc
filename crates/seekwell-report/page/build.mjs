// Bundles the script and the style into dist/. The first line of the script names the hash of all
// sources, so that a test without node sees an edit that was not built.
import { build } from 'esbuild';
import crypto from 'node:crypto';
import fs from 'node:fs';

const sources = ['package.json', 'package-lock.json', 'tsconfig.json', 'build.mjs',
  ...fs.readdirSync('src').sort().map((f) => `src/${f}`)];
const hash = crypto.createHash('sha256');
for (const f of sources) hash.update(fs.readFileSync(f));
const options = { bundle: true, minify: true, target: 'es2022', write: false, legalComments: 'none' };
const script = await build({ ...options, entryPoints: ['src/main.ts'], format: 'iife' });
const style = await build({ ...options, entryPoints: ['src/style.css'] });
const text = (r) => r.outputFiles[0].text.trim();
fs.mkdirSync('dist', { recursive: true });
// The end tag of a script ends it wherever it stands.
const js = text(script).replaceAll('</script', '<\\/script');
fs.writeFileSync('dist/page.js', `/* src ${hash.digest('hex')} */\n${js}\n`);
fs.writeFileSync('dist/page.css', `${text(style)}\n`);
fs.copyFileSync('node_modules/uplot/LICENSE', 'dist/uplot-license.txt');
