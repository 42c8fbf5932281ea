// An operator's workers one by one, with the splits that they read.

import { html, useEffect, useState } from "/static/vendor/htm-preact.module.js";
import { StageActions, WorkerActions } from "/static/actions.js";
import { State } from "/static/state.js";
import { bytes, count, duration, milliseconds, number, percent, time } from "/static/format.js";

const MOST = 100;

export function Operators({ store }) {
  const stages = store.newest.graph.stages, [chosen, setChosen] = useState(null), [opened, setOpened] = useState(false), [detail, setDetail] = useState(null);
  const stage = stages.find((each) => each.name === chosen) ?? stages[0];
  useEffect(() => {
    if (opened) store.ask("workers", { operator: stage.name }).then(setDetail);
  }, [opened, stage.name, store.newest.until]);
  return html`<details onToggle=${(event) => setOpened(event.target.open)}><summary><h2>Operators in detail</h2></summary>
    <div class="head"><span class="tabs">${stages.map(({ name }) => html`<button aria-pressed=${String(name === stage.name)} onClick=${() => setChosen(name)}>${name}</button>`)}</span>
      ${stage.keyed ? null : html`<${StageActions} store=${store} stage=${stage.name} kinds=${["scale"]} />`}</div>
    ${opened && detail && (detail.problem ? html`<p class="note">${detail.problem}</p>` : html`<${Detail} store=${store} detail=${detail} stage=${stage} />`)}
    ${opened && stage.keyed && store.link.state === "live" && html`<${State} key=${stage.name} store=${store} operator=${stage.name} />`}
  </details>`;
}

function Detail({ store, detail, stage }) {
  const workers = [...detail.workers].sort((a, b) => b.busy - a.busy), placed = workers.some((worker) => worker.node), sum = (name) => workers.reduce((all, worker) => all + worker[name], 0);
  return html`<p class="note">${detail.operators.join(" → ")}: ${stage.workers} worker${stage.workers === 1 ? "" : "s"}, ${bytes(sum("bytes"))} of state, ${count(sum("refused"))} refused records (dead letters, or dropped), ${count(sum("late"))} late rows. The busiest first.</p>
    <div class="scroll"><table>
      <thead><tr><th>worker</th>${placed && html`<th>node</th>`}<th>busy</th><th class="number">waits for credit</th><th class="number">in/s</th><th class="number">out/s</th><th class="number">batches wait</th><th class="number">lag</th>
        <th class="number">p99</th>${detail.keyed && html`<th class="number">key groups</th>`}<th class="number">state</th><th class="number">late</th><th class="number">refused</th><th></th></tr></thead>
      <tbody>${workers.slice(0, MOST).map((worker) => html`<tr key=${worker.name}><td>${worker.name}</td>${placed && html`<td>${worker.node ?? "–"}</td>`}
        <td><span class="meter" style=${{ width: `${60 * Math.min(1, worker.busy)}px` }}></span>${percent(worker.busy)}</td>
        <td class="number">${percent(worker.credit)}</td><td class="number">${count(worker.in)}</td><td class="number">${count(worker.out)}</td><td class="number">${worker.queued}</td>
        <td class="number">${duration(worker.lag)}</td><td class="number">${milliseconds(worker.p99)}</td>${detail.keyed && html`<td class="number">${worker.groups}</td>`}
        <td class="number">${bytes(worker.bytes)}</td><td class="number">${count(worker.late)}</td><td class="number">${count(worker.refused)}</td><td><${WorkerActions} store=${store} worker=${worker.name} /></td></tr>`)}</tbody>
    </table></div>${workers.length > MOST && html`<p class="note">and ${workers.length - MOST} more</p>`}
    ${detail.splits.length > 0 && html`<h3>Splits</h3><div class="scroll"><table>
      <thead><tr><th>split</th><th>worker</th><th class="number">not read yet</th><th>newest event time</th><th>state</th></tr></thead>
      <tbody>${[...detail.splits].sort((a, b) => (b[2] ?? 0) - (a[2] ?? 0)).slice(0, MOST).map(([worker, split, lag, newest, idle]) => html`<tr key=${split}><td>${split}</td><td>${worker}</td>
        <td class="number">${count(lag)}</td><td>${newest == null ? "–" : time(newest)}</td><td>${idle ? "idle" : "read"}</td></tr>`)}</tbody></table></div>`}
    ${detail.measured.length > 0 && html`<h3>Metrics of functions</h3><div class="scroll"><table>
      <thead><tr><th>metric</th><th>operator</th><th>worker</th><th class="number">value</th></tr></thead>
      <tbody>${detail.measured.slice(0, MOST).map((one) => html`<tr><td>${one.name}</td><td>${one.operator}</td><td>${one.worker}</td>
        <td class="number">${one.kind === "histogram" ? `${count(one.count)} values, mean ${one.value == null ? "–" : number(one.value)}` : number(one.value)}</td></tr>`)}</tbody></table></div>`}
    ${detail.dropped.length > 0 && html`<h3>Most recently dropped or failed records</h3><div class="scroll"><table class="left">
      <thead><tr><th>at</th><th>operator</th><th>record</th></tr></thead>
      <tbody>${[...detail.dropped].sort((a, b) => b.time - a.time).map((one) => html`<tr><td>${time(one.time)}<br /><span class="pill ${one.kind === "late" ? "warn" : "bad"}">${one.kind}</span></td>
        <td>${one.operator}<br />${one.worker}</td><td class="wide"><code>${one.record}</code><br />${one.key && html`key ${one.key}${one.error && ": "}`}${one.error}</td></tr>`)}</tbody></table></div>`}`;
}
