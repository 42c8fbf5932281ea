// What each policy would do, side by side. The server computes it from what it has heard.

import { html, useEffect, useState } from "/static/vendor/htm-preact.module.js";
import { bytes } from "/static/format.js";

export function WhatIf({ store, path, operator, text }) {
  const [shown, setShown] = useState(null);
  const look = async () => setShown(await store.ask(path, operator ? { operator } : {}));
  useEffect(() => setShown(null), [store.replay?.at]);
  return html`<div class="whatif"><button class="link" onClick=${shown ? () => setShown(null) : look}>${shown ? "Close" : text}</button>
    ${shown && html`<${Plans} shown=${shown} />`}</div>`;
}

// `choose`: called with the policy that somebody picks.
export function Plans({ shown, chosen, choose }) {
  if (shown.problem) return html`<p class="note">${shown.problem}</p>`;
  const moves = shown.plans.some((plan) => "before" in plan);
  return html`<div class="scroll"><table class="plans">
    <thead><tr><th>policy</th>${moves ? html`<th class="number">max / mean</th><th class="number">floor</th><th class="number">moves</th><th class="number">state</th>` : html`<th>would change</th>`}<th>why</th></tr></thead>
    <tbody>${shown.plans.map((plan) => html`<tr key=${plan.policy} class=${plan.policy === chosen ? "chosen" : ""}>
      <td>${choose && !plan.problem ? html`<label><input type="radio" name="policy" checked=${plan.policy === chosen} onChange=${() => choose(plan.policy)} /> ${plan.policy}</label>` : plan.policy}</td>
      ${plan.problem ? html`<td colspan=${moves ? 5 : 2} class="wide">${plan.problem}</td>` : html`${moves
        ? html`<td class="number">${plan.before.toFixed(2)} → ${plan.after.toFixed(2)}</td><td class="number">${plan.floor.toFixed(2)}</td>
          <td class="number">${plan.groups} groups, ${plan.keys} keys</td><td class="number">${bytes(plan.bytes)}</td>`
        : html`<td>${plan.changes}</td>`}<td class="wide">${plan.reason}</td>`}</tr>`)}</tbody>
  </table></div>`;
}
