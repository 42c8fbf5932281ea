// Checkpoints: duration, size, and the workers that a pending one waits for.

import { html } from "/static/vendor/htm-preact.module.js";
import { bytes, count, duration, time } from "/static/format.js";

const SHOWN = 12;

export function Checkpoints({ store }) {
  const entries = [...store.checkpoints.values()].sort((a, b) => b.number - a.number).slice(0, SHOWN);
  if (!entries.length) return html`<p class="note">No checkpoint yet.</p>`;
  const most = Math.max(...entries.map((entry) => entry.seconds ?? 0), 1e-9);
  return html`<div class="scroll"><table>
    <thead><tr><th class="number">no.</th><th>began</th><th>state</th><th>took</th><th class="number">saved</th><th class="number">of state</th><th class="number">keys</th><th>why</th></tr></thead>
    <tbody>${entries.map((entry) => html`<tr key=${entry.id}>
      <td class="number">${entry.number}</td><td>${entry.begin == null ? "waits" : time(entry.begin)}</td>
      <td><span class="pill ${entry.state === "complete" ? "good" : ["failed", "unreadable"].includes(entry.state) ? "bad" : "warn"}">${entry.state}</span></td>
      <td><span class="meter" style=${{ width: `${(80 * (entry.seconds ?? 0)) / most}px` }}></span>${duration(entry.seconds)}</td>
      <td class="number">${bytes(entry.saved)}</td><td class="number">${bytes(entry.bytes)}</td><td class="number">${count(entry.keys)}</td>
      <td class="wide">${entry.why}${entry.waits.length ? `; waits for ${entry.waits.join(", ")}` : ""}</td></tr>`)}</tbody>
  </table></div>`;
}
