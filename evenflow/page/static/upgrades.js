// Upgrades of the job's code: the one under way and the newest that is over, with what the old and the new code did side by side.

import { html } from "/static/vendor/htm-preact.module.js";
import { bytes, count, duration, number, percent, time } from "/static/format.js";

const FIGURES = [["rows", count], ["errors", count], ["rows out per row", ratio, "selectivity"], ["µs per row", ratio, "microseconds"], ["state", bytes, "bytes"]];

export function Upgrades({ store }) {
  const upgrades = store.newest.upgrades ?? [];
  return upgrades.length === 0 ? null : html`<section id="upgrades"><div class="head"><h2>Upgrades</h2></div>
    ${upgrades.map((upgrade) => html`<${Upgrade} key=${upgrade.number} upgrade=${upgrade} />`)}</section>`;
}

function Upgrade({ upgrade }) {
  const { version, operators, state, over, begin, seconds, problem, canary, keys, details, watched, compared } = upgrade;
  const kind = !over ? "warn" : state === "done" ? "good" : "bad";
  return html`<div class="upgrade ${over ? "over" : ""}">
    <h3>upgrade ${upgrade.number} of ${operators.join(", ")} to version ${version} <span class="pill ${kind}">${state}</span></h3>
    <p class="note">began ${time(begin)}${over && seconds != null ? `, took ${duration(seconds)}` : ""}${details && !problem ? `, ${details}` : ""}, ${canary ? `${percent(canary)} of the load got the new code first` : "no canary"}, ${count(keys)} keys and ${bytes(upgrade.bytes)} have moved</p>
    ${watched != null && html`<div class="track" role="progressbar" aria-valuenow=${Math.round(100 * watched)}><i style=${{ width: percent(watched) }}></i></div>`}
    ${problem && html`<p class="banner ${state === "done" ? "" : "bad"}">${problem}</p>`}
    ${compared.length > 0 && html`<${Compared} compared=${compared} version=${version} />`}
  </div>`;
}

function Compared({ compared, version }) {
  return html`<div class="plain scroll"><table>
    <thead><tr><th>operator</th><th>code</th>${FIGURES.map(([name]) => html`<th class="number">${name}</th>`)}</tr></thead>
    <tbody>${compared.flatMap((one) => [["old", one.old], [`new, version ${version}`, one.new]].map(([code, figures], place) => html`<tr key=${one.operator + code}>
      <td>${place ? "" : one.operator}</td><td>${code}</td>
      ${FIGURES.map(([name, format, field]) => html`<td class="number">${format(figures[field ?? name])}</td>`)}</tr>`))}</tbody>
  </table></div>`;
}

function ratio(value) {
  return value == null ? "–" : number(value);
}
