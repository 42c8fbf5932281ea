// A flame graph of stacks: each frame is as wide as its share of the samples, with its callees below it.

import { html, useState } from "/static/vendor/htm-preact.module.js";
import { percent } from "/static/format.js";

const LEAST = 0.003;

export function Flame({ stacks }) {
  const [path, setPath] = useState([]), all = tree(stacks);
  const shown = path.reduce((node, name) => node.below.get(name), all);
  if (!all.looks) return html`<p class="note">The process was idle: all its threads waited.</p>`;
  return html`<p class="note">${all.looks} samples; threads that sleep are omitted where py-spy can tell. ${path.length ? html`<button type="button" class="link" onClick=${() => setPath([])}>Show all</button>` : "Choose a frame to see it alone."}</p>
    <div class="flame"><${Frame} name=${path.at(-1) ?? "all threads"} node=${shown} share=${1} all=${all.looks} path=${path} choose=${setPath} /></div>`;
}

function Frame({ name, node, share, all, path, choose }) {
  const below = [...node.below].sort(([, a], [, b]) => b.looks - a.looks).filter(([, each]) => each.looks / all > LEAST);
  return html`<div class="frame" style=${{ width: `${100 * share}%` }}>
    <button type="button" class=${`hue${hue(name)}`} title="${name}: ${percent(node.looks / all)}" onClick=${() => choose(path)}>${name}</button>
    <div class="below">${below.map(([called, each]) => html`<${Frame} key=${called} name=${called} node=${each} share=${each.looks / node.looks} all=${all} path=${[...path, called]} choose=${choose} />`)}</div>
  </div>`;
}

// Lines such as `thread;outer;inner 12` as a tree.
function tree(stacks) {
  const all = { looks: 0, below: new Map() };
  for (const line of stacks.split("\n").filter(Boolean)) {
    const cut = line.lastIndexOf(" "), looks = Number(line.slice(cut + 1));
    let node = all;
    node.looks += looks;
    for (const name of line.slice(0, cut).split(";")) {
      if (!node.below.has(name)) node.below.set(name, { looks: 0, below: new Map() });
      node = node.below.get(name);
      node.looks += looks;
    }
  }
  return all;
}

// Each file has one of six shades.
const hue = (name) => [...name.replace(/^.*\(|:\d+\)$/g, "")].reduce((sum, letter) => (31 * sum + letter.codePointAt(0)) % 6007, 7) % 6;
