// Errors: why the job has ended, what it waits for, the failures after which it restored its checkpoint, and problems despite which it continues.

import { html } from "/static/vendor/htm-preact.module.js";
import { time } from "/static/format.js";

export function Errors({ store }) {
  const { error, waits, problems, failures } = store.newest.status;
  return html`${error && html`<p class="banner bad">${error}</p>`}${waits.length > 0 && html`<section id="waits">
    <h2>Waits for</h2>
    <ul class="problems">${waits.map(([text, stack]) => html`<li>${text}${stack.length > 0 && html`<details><summary>stack</summary><pre>${stack.join("\n")}</pre></details>`}</li>`)}</ul></section>`}${(problems.length > 0 || failures.length > 0) && html`<section id="problems">
    <h2>Problems</h2>
    ${failures.length > 0 && html`<div class="scroll"><table>
      <thead><tr><th>at</th><th>operator</th><th>what</th><th>key</th><th>record</th></tr></thead>
      <tbody>${[...failures].reverse().map((failure) => html`<tr key=${failure.time}><td>${time(failure.time)}</td><td>${failure.operator || "–"}</td>
        <td class="wide">${failure.kind}: ${failure.text}</td><td class="wide">${failure.key || "–"}</td><td class="wide">${failure.record || "–"}</td></tr>`)}</tbody></table></div>`}
    ${problems.length > 0 && html`<ul class="problems">${problems.map((problem) => html`<li>${problem}</li>`)}</ul>`}</section>`}`;
}
