// The state of an operator: the value of a key now, and the first rows of all keys as of the newest checkpoint.

import { html, useState } from "/static/vendor/htm-preact.module.js";
import { time } from "/static/format.js";

export function State({ store, operator }) {
  const [key, setKey] = useState(""), [found, setFound] = useState(null), [table, setTable] = useState(null), [busy, setBusy] = useState(false);
  const during = async (path, values, then) => {
    setBusy(true);
    then(await store.ask(path, { operator, ...values }));
    setBusy(false);
  };
  const lookUp = (event) => (event.preventDefault(), during("key", { key }, (answer) => setFound({ key, ...answer })));
  return html`<h3>State by key</h3>
    <form class="state" onSubmit=${lookUp}><input name="key" aria-label="key" placeholder='a key: 17, JFK, "17", ["JFK", 7]' value=${key} onInput=${(event) => setKey(event.target.value)} />
      <button class="act" disabled=${busy}>Look up</button><button type="button" class="act" disabled=${busy} onClick=${() => during("rows", {}, setTable)}>First rows</button></form>
    ${found && (found.problem ? html`<p class="note" role="status">${found.problem}</p>` : html`<p role="status"><b>${found.key}</b> <code>${found.value}</code></p>`)}
    ${table && (table.problem ? html`<p class="note" role="status">${table.problem}</p>` : html`<p class="note">${table.rows.length} keys as of checkpoint ${table.checkpoint}, ${time(Date.parse(table.created) / 1000)}.</p>
      <div class="scroll"><table class="state"><thead><tr>${table.columns.map((name) => html`<th>${name}</th>`)}</tr></thead>
        <tbody>${table.rows.map((row) => html`<tr>${row.map((value) => html`<td class="wide"><code>${value}</code></td>`)}</tr>`)}</tbody></table></div>`)}`;
}
