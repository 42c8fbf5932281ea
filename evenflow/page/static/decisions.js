// Every decision of balancer, autoscaler and people, also those to do nothing: why, the expected effect, and the effect.

import { html } from "/static/vendor/htm-preact.module.js";
import { duration, time } from "/static/format.js";

const ANSWERS = { yes: ["good", "yes"], no: ["", "no"], failed: ["bad", "failed"] };

export function Decisions({ store, all }) {
  const entries = [...store.decisions.values()].filter((entry) => all || entry.answer !== "no").sort((a, b) => b.begin - a.begin);
  const { advice } = store.newest.status, advised = advice && html`<p class="note">${advice}</p>`;
  if (!entries.length) return advised || html`<p class="note">Nothing has been decided yet.</p>`;
  return html`${advised}<ol class="decisions">${entries.map((entry) => html`<${Decision} key=${entry.id} entry=${entry} />`)}</ol>`;
}

function Decision({ entry }) {
  const [kind, word] = ANSWERS[entry.answer], looked = entry.answer === "no" && entry.end - entry.begin > 1;
  return html`<li class=${entry.answer}>
    <time>${time(entry.begin)}${looked ? ` – ${time(entry.end)}` : ""}${entry.answer !== "no" && entry.end > entry.begin ? html`<br />took ${duration(entry.end - entry.begin)}` : entry.end == null ? html`<br />under way` : ""}</time>
    <span><span class="pill ${kind}">${word}</span></span>
    <div>
      <span class="what">${entry.who}${entry.stage ? `, ${entry.stage}` : ""}: ${entry.what}</span> <span class="why">${entry.reason}</span>
      ${(entry.expected || entry.effect) && html`<dl>
        ${entry.expected && html`<dt>${entry.answer === "no" || entry.who === "autoscaler" ? "seen" : "expected"}</dt><dd>${entry.expected}</dd>`}
        ${entry.effect && html`<dt>effect</dt><dd>${entry.effect}</dd>`}
      </dl>`}
    </div>
  </li>`;
}
