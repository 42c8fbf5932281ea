// The page: the views of one job, from top to bottom.

import { html, render, useState } from "/static/vendor/htm-preact.module.js";
import { Dialog, JobActions } from "/static/actions.js";
import { Charts } from "/static/charts.js";
import { Checkpoints } from "/static/checkpoints.js";
import { Decisions } from "/static/decisions.js";
import { Errors } from "/static/errors.js";
import { count, duration, milliseconds } from "/static/format.js";
import { Graph } from "/static/graph.js";
import { Heat } from "/static/heat.js";
import { Loads } from "/static/loads.js";
import { Nodes } from "/static/nodes.js";
import { Operators } from "/static/operators.js";
import { WhatIf } from "/static/plans.js";
import { Slider } from "/static/replay.js";
import { Store } from "/static/store.js";
import { Upgrades } from "/static/upgrades.js";

const SPANS = [[60, "1 min"], [180, "3 min"], [600, "10 min"]];

const store = new Store(() => render(html`<${Page} />`, document.getElementById("page")));

function Page() {
  const [most, setSpan] = useState(180), [chosen, setChosen] = useState(null), [all, setAll] = useState(true);
  document.title = store.job ? `${store.job} · evenflow` : "evenflow";
  if (!store.newest) return html`<${Head} /><${Link} />`;
  const keyed = Object.keys(store.newest.loads), stage = keyed.includes(chosen) ? chosen : keyed[0], span = store.span(most);
  return html`<${Head} /><${Link} />${store.replay && html`<${Slider} store=${store} />`}<${Errors} store=${store} />
    <section id="heat">
      <div class="head"><h2>Key groups over time</h2>
        ${keyed.length > 1 && html`<${Tabs} all=${keyed.map((name) => [name, name])} chosen=${stage} choose=${setChosen} />`}
        <div class="right"><${Tabs} all=${SPANS} chosen=${most} choose=${setSpan} /></div></div>
      ${stage ? html`<p class="note">Each row is a key group of <b>${stage}</b>, ordered by the worker that owns it at that time. Arrows are moves; the lines part the workers.</p>
        <${Heat} store=${store} stage=${stage} span=${span} />` : html`<p class="note">No operator of this job has keyed state.</p>`}
    </section>
    <${Upgrades} store=${store} />
    ${stage && html`<section id="loads"><div class="head"><h2>Load of the workers against the floor</h2></div>
      <p class="note">Useful time, a mean of the last 5 seconds. The floor is the least load that any placement of whole keys can give the hottest worker: the mean, or the hottest key.</p>
      <${Loads} store=${store} /></section>`}
    <section id="decisions">
      <div class="head"><h2>Decisions</h2>
        <div class="right"><${Tabs} all=${[[true, "all"], [false, "without “no”"]]} chosen=${all} choose=${setAll} /></div></div>
      <${Charts} store=${store} span=${span} /><${Decisions} store=${store} all=${all} />
      <${WhatIf} store=${store} path="scalers" text="What would each scaling policy do?" />
    </section>
    <section id="graph"><div class="head"><h2>Dataflow</h2></div><${Graph} store=${store} /></section>
    <${Nodes} store=${store} />
    <section id="operators"><${Operators} store=${store} /></section>
    <section id="checkpoints"><div class="head"><h2>Checkpoints</h2></div><${Checkpoints} store=${store} /></section>
    <${Dialog} store=${store} />`;
}

function Tabs({ all, chosen, choose }) {
  return html`<span class="tabs">${all.map(([value, name]) => html`<button aria-pressed=${String(value === chosen)} onClick=${() => choose(value)}>${name}</button>`)}</span>`;
}

function Head() {
  const newest = store.newest, status = newest?.status, last = newest && store.range(5).filter(Boolean);
  const mean = last?.length ? last.reduce((sum, second) => sum + second.rate, 0) / last.length : null;
  const p99 = last?.length ? Math.max(...last.map((second) => second.p99 ?? -1)) : -1;
  const state = store.link.state === "live" ? status?.state : store.link.state === "ended" ? "ended" : store.link.state;
  return html`<header>
    <h1><img src="/static/icon.svg" alt="" />${store.jobs.length > 1
      ? html`<select aria-label="job" onChange=${(event) => location.assign(`/?job=${encodeURIComponent(event.target.value)}`)}>
          ${store.jobs.map((name) => html`<option selected=${name === store.job}>${name}</option>`)}</select>`
      : store.job || "evenflow"} ${state && html`<span class="pill ${state}">${state}</span>`}</h1>
    ${status && html`<dl class="facts">
      <${Fact} name="running for" value=${duration(Math.floor(status.seconds))} /><${Fact} name="rate" value=${`${count(mean)}/s`} />
      <${Fact} name="p99" value=${p99 < 0 ? "–" : milliseconds(p99)} /><${Fact} name="workers" value=${status.workers} />
      <${Fact} name="checkpoints" value=${status.checkpoints} />
      ${status.again && html`<${Fact} name="restarts" value=${status.again} />`}
      ${status.skipped > 0 && html`<${Fact} name="refused records" value=${count(status.skipped)} />`}
      ${status.late > 0 && html`<${Fact} name="late records" value=${count(status.late)} />`}</dl>`}
    <${JobActions} store=${store} />
  </header>`;
}

const Fact = ({ name, value }) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`;

function Link() {
  const { state, text } = store.link;
  return state === "live" || state === "replay" ? null : html`<p class="banner" role="status">${text}. What is shown is the last that was heard.</p>`;
}
