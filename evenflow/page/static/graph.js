// The dataflow: a box per stage, in layers from the sources on.

import { html } from "/static/vendor/htm-preact.module.js";
import { bytes, count, duration, percent } from "/static/format.js";

const WIDE = 236, HIGH = 156, GAP_X = 74, GAP_Y = 18;

export function Graph({ store }) {
  const graph = store.newest.graph, places = placed(graph.stages);
  const width = Math.max(...[...places.values()].map(([x]) => x)) + WIDE + 4, height = Math.max(...[...places.values()].map(([, y]) => y)) + HIGH + 4;
  const edges = graph.stages.flatMap((stage) => stage.outputs.filter((to) => places.has(to)).map((to) => [stage, to]));
  return html`<div>
    <p class="note"><b>${graph.text}</b></p>
    <div class="graph"><svg width=${width} height=${height} viewBox="0 0 ${width} ${height}" role="img" aria-label="the dataflow">
      ${edges.map(([stage, to]) => edge(stage, places.get(stage.name), places.get(to)))}
      ${graph.stages.map((stage) => box(stage, places.get(stage.name), stage.name === graph.bottleneck))}
    </svg></div>
    <p class="note swatches"><span><span class="swatch busy"></span>busy</span><span><span class="swatch credit"></span>waits for credit</span>
      <span><span class="swatch"></span>idle</span><span>(means of the workers)</span>
      <span>An edge is as wide as its rate, and orange where the sender waits.</span></p>
  </div>`;
}

// A stage's layer is the longest way from a source; within a layer, in the plan's order.
function placed(stages) {
  const layer = new Map(stages.map((stage) => [stage.name, 0])), filled = [], places = new Map();
  for (const stage of stages) for (const to of stage.outputs) if (layer.has(to)) layer.set(to, Math.max(layer.get(to), layer.get(stage.name) + 1));
  for (const [name, x] of layer) {
    filled[x] = (filled[x] ?? 0) + 1;
    places.set(name, [2 + x * (WIDE + GAP_X), 2 + (filled[x] - 1) * (HIGH + GAP_Y)]);
  }
  const most = Math.max(...filled);
  for (const [name, place] of places) place[1] += ((most - filled[layer.get(name)]) * (HIGH + GAP_Y)) / 2;
  return places;
}

function edge(stage, [x, y], [tx, ty]) {
  const from = [x + WIDE, y + HIGH / 2], to = [tx, ty + HIGH / 2], middle = (from[0] + to[0]) / 2;
  return html`<path class=${stage.credit > 0.1 ? "waits" : ""} stroke-width=${1 + Math.log10(1 + stage.out)} d="M${from} C${[middle, from[1]]} ${[middle, to[1]]} ${to}" />`;
}

function box(stage, [x, y], slow) {
  const [busy, credit] = stage.shares, bar = WIDE - 24;
  const rest = stage.operators.filter((name) => name !== stage.name).join(" → ");
  const lines = [
    rest ? short(`with ${rest}`, 32) : stage.keyed ? "keyed state" : "",
    `in ${count(stage.in)}/s, out ${count(stage.out)}/s`,
    stage.lag == null ? "" : `watermark lag ${duration(stage.lag)}`,
    placement(stage),
    [`busiest ${percent(stage.busy)}`, stage.bytes ? `state ${bytes(stage.bytes)}` : "", stage.late ? `${count(stage.late)} late` : "", stage.skipped ? `${count(stage.skipped)} refused` : ""].filter(Boolean).join(", "),
  ];
  return html`<g class=${slow ? "slow" : ""} transform="translate(${x} ${y})">
    <rect class="box" width=${WIDE} height=${HIGH} rx="9" />
    <text class="name" x="12" y="22">${short(stage.name, 24)}</text><text x=${WIDE - 12} y="22" text-anchor="end">× ${stage.workers}</text>
    <title>${stage.operators.join(" → ")}</title>${lines.filter(Boolean).map((text, row) => html`<text x="12" y=${40 + row * 18}>${text}</text>`)}
    <rect class="trackbar" x="12" y=${HIGH - 22} width=${bar} height="9" rx="2" />
    <rect class="busy" x="12" y=${HIGH - 22} width=${bar * Math.min(1, busy)} height="9" rx="2" />
    <rect class="credit" x=${12 + bar * Math.min(1, busy)} y=${HIGH - 22} width=${bar * Math.min(credit, 1 - Math.min(1, busy))} height="9" />
  </g>`;
}

const placement = ({ nodes }) => (nodes.length ? short(`on ${nodes.map(([node, workers]) => (nodes.length > 1 ? `${node} (${workers})` : node)).join(", ")}`, 36) : "");

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
