// The plans of all policies, side by side. The server computes them from its views.

import { html, useEffect, useState } from "/static/vendor/htm-preact.module.js";
import { bytes } from "/static/format.js";

export function WhatIf({ store, path, operator, text }) {
  const [shown, setShown] = useState(null);
  const look = async () => setShown(await store.ask(path, operator ? { operator } : {}));
  useEffect(() => {
    if (shown) look();
  }, [store.replay?.at]);
  return html`<div class="whatif"><button class="link" onClick=${shown ? () => setShown(null) : look}>${shown ? "Hide" : text}</button>
    ${shown && html`<${Plans} shown=${shown} />`}</div>`;
}

// `choose` is called with the chosen policy. The reason has a line of its own, so that the table fits into a column.
export function Plans({ shown, chosen, choose }) {
  if (shown.problem) return html`<p class="note">${shown.problem}</p>`;
  const moves = shown.plans.some((plan) => "before" in plan), columns = moves ? 5 : 2;
  const name = (plan) => (choose && !plan.problem ? html`<label><input type="radio" name="policy" checked=${plan.policy === chosen} onChange=${() => choose(plan.policy)} /> ${plan.policy}</label>` : plan.policy);
  const facts = (plan) => moves
    ? html`<td class="number">${plan.before.toFixed(2)} → ${plan.after.toFixed(2)}</td><td class="number less">${plan.floor.toFixed(2)}</td>
      <td class="number">${moved(plan)}</td><td class="number less">${bytes(plan.bytes)}</td>`
    : html`<td>${plan.changes}</td>`;
  return html`<div class="plain scroll"><table class="plans">
    <thead><tr><th>policy</th>${moves ? html`<th class="number">max / mean</th><th class="number less">floor</th><th class="number">moves</th><th class="number less">state</th>` : html`<th>would change</th>`}</tr></thead>
    ${shown.plans.map((plan) => html`<tbody key=${plan.policy} class=${plan.policy === chosen ? "chosen" : ""}>
      <tr><td>${name(plan)}</td>${plan.problem ? html`<td colspan=${columns - 1}>–</td>` : facts(plan)}</tr>
      <tr class="why"><td colspan=${columns} class="wide">${plan.problem ?? plan.reason}${plan.moves?.length ? html` <br /><span>Hottest moves: ${plan.moves.join(", ")}${plan.groups + plan.keys > plan.moves.length ? ", …" : "."}</span>` : ""}</td></tr></tbody>`)}
  </table></div>`;
}

const counted = (number, what) => (number ? [`${number} ${what}${number === 1 ? "" : "s"}`] : []);

const moved = ({ groups, keys }) => [...counted(groups, "group"), ...counted(keys, "key")].join(", ") || "none";
