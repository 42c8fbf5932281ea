// The load of each worker against the floor: the best that a placement of whole keys can reach.

import { html } from "/static/vendor/htm-preact.module.js";
import { StageActions } from "/static/actions.js";
import { bytes, percent } from "/static/format.js";
import { WhatIf } from "/static/plans.js";

const KINDS = { idle: "idle", even: "even", better: "can be better", stuck: "can't be better" };

export function Loads({ store }) {
  const loads = Object.entries(store.newest.loads);
  return html`<div class="loads">${loads.map(([stage, load]) => html`<${Load} key=${stage} store=${store} stage=${stage} load=${load} />`)}</div>`;
}

const MOST = 64, HOTTEST = 32, COOLEST = 8;  // of more than `MOST` workers the hottest and the coolest are shown

// The workers to show, in their order, and the number of the others.
function shownOf(workers) {
  if (workers.length <= MOST) return [workers, 0];
  const order = [...workers.keys()].sort((a, b) => workers[b][1] - workers[a][1]);
  const shown = new Set([...order.slice(0, HOTTEST), ...order.slice(-COOLEST)]);
  return [workers.filter((_, index) => shown.has(index)), workers.length - shown.size];
}

function Load({ store, stage, load }) {
  const most = Math.max(load.floor, ...load.workers.map(([, useful]) => useful));
  const full = [0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1].find((each) => most <= each * 0.97) ?? Math.max(1, most);
  const at = (share) => `${Math.min(100, (share / full) * 100)}%`;
  const [workers, others] = shownOf(load.workers);
  const apart = load.floor > load.mean * 1.02;
  return html`<div class="load ${load.kind}">
    <h3>${stage} <span class="pill ${load.kind}">${KINDS[load.kind]}</span>
      <span class="pill">${load.balancer === "off" ? "not balanced automatically" : `balanced by ${load.balancer}`}</span></h3>
    <p>${load.text}</p>
    <div class="bars">
      ${workers.map(([worker, useful, state]) => html`
        <span class="name" title=${state ? `${bytes(state)} of state` : ""}>${worker}</span>
        <span class="track"><i class=${useful > load.floor * 1.02 ? "above" : ""} style=${{ width: at(useful) }}></i>
          ${apart && html`<span class="mark mean" style=${{ left: at(load.mean), height: "21px" }}></span>`}
          <span class="mark" style=${{ left: at(load.floor), height: "21px" }}></span></span>
        <span class="value">${percent(useful)}</span>`)}
      <span class="marks">
        ${apart && html`<span class="mark mean flip" style=${{ left: at(load.mean) }}><span>mean ${percent(load.mean)}</span></span>`}
        <span class="mark ${load.floor / full > 0.6 && !apart ? "flip" : ""}" style=${{ left: at(load.floor) }}><span>floor ${percent(load.floor)}${apart ? "" : " = mean"}</span></span>
      </span>
    </div>
    ${others > 0 && html`<p class="keys">the ${HOTTEST} hottest and the ${COOLEST} coolest workers; ${others} others are between them</p>`}
    ${load.hot.length > 0 && html`<p class="keys">hottest keys: ${load.hot.map(([key, share]) => `${key} ${percent(share)}`).join(", ")}</p>`}
    <${StageActions} store=${store} stage=${stage} kinds=${["rebalance", "migrate", "scale"]} />
    <${WhatIf} store=${store} path="balancers" operator=${stage} text="What would each balancer do?" />
  </div>`;
}
