// Actions on the job, if the page was started with them: each shows its effect before it is carried out.

import { html, useEffect, useRef, useState } from "/static/vendor/htm-preact.module.js";
import { Flame } from "/static/flame.js";
import { Plans } from "/static/plans.js";

const number = (text) => (text === "" ? null : Number(text)), words = (text) => text;
const FORMS = {
  rebalance: { title: "Rebalance", fields: [] },
  migrate: {
    title: "Move keys",
    fields: [["groups", "key groups, such as 0-99,120", words], ["keys", "and single keys, with spaces between", words], ["to", "to the worker with this number", number]],
  },
  scale: { title: "Scale", fields: [["workers", "number of workers", number]] },
  add_nodes: { title: "Add nodes", fields: [["nodes", "how many more", number]] },
  give_back: { title: "Give a node back", fields: [] },
  checkpoint: { title: "Checkpoint", fields: [] },
  savepoint: { title: "Savepoint", fields: [["path", "folder or URL that does not exist yet", words]] },
  stop: { title: "Stop", fields: [] },
  drain: { title: "Drain", fields: [] },
  sample: { title: "Flame graph", fields: [] },
};

const may = (store) => store.actions && store.link.state === "live" && store.newest;

function open(store, action, of) {
  store.dialog = { action, ...of };
  store.changed();
}

// `of`: the operator or the worker concerned, if not the whole job.
function Buttons({ store, kinds, of }) {
  return may(store) && html`<div class="actions">${kinds.map((kind) => html`<button class="act" onClick=${() => open(store, kind, of)}>${FORMS[kind].title}…</button>`)}</div>`;
}

export const JobActions = ({ store }) => html`<${Buttons} store=${store} kinds=${["checkpoint", "savepoint", "stop", "drain"]} />`;
export const NodeActions = ({ store }) => html`<${Buttons} store=${store} kinds=${["add_nodes", "give_back"]} />`;
export const StageActions = ({ store, stage, kinds }) => html`<${Buttons} store=${store} kinds=${kinds} of=${{ operator: stage }} />`;
export const WorkerActions = ({ store, worker }) => html`<${Buttons} store=${store} kinds=${["sample"]} of=${{ worker }} />`;

export function Dialog({ store }) {
  const { action, operator, worker } = store.dialog ?? {};
  return action ? html`<${Form} key=${`${action} ${operator} ${worker}`} store=${store} action=${action} operator=${operator} worker=${worker} />` : null;
}

function Form({ store, action, operator, worker }) {
  const place = useRef(), { title, fields } = FORMS[action], rebalances = action === "rebalance";
  const [values, setValues] = useState({}), [plan, setPlan] = useState(null), [done, setDone] = useState(null), [busy, setBusy] = useState(false);
  const close = () => {
    store.dialog = null;
    store.changed();
  };
  const wish = () => ({ action, operator, worker, ...Object.fromEntries(fields.map(([name, , read]) => [name, read(values[name] ?? "")])), ...(rebalances ? { policy: values.policy } : {}) });
  const during = async (work, then) => {
    setBusy(true);
    then(await work);
    setBusy(false);
  };
  const show = () => during(rebalances ? store.ask("balancers", { operator }) : store.send("preview", wish()), setPlan);
  useEffect(() => {
    place.current.showModal();
    if (!fields.length) show();
  }, []);
  const change = (name, value) => {
    setValues({ ...values, [name]: value });
    if (!rebalances) setPlan(null);
  };
  const ready = plan && !plan.problem && (!rebalances || values.policy), name = rebalances ? `${title} by ${values.policy ?? "…"}` : title;
  return html`<dialog ref=${place} class=${done?.stacks == null ? "" : "broad"} onClose=${close} aria-label=${title}>
    <form onSubmit=${(event) => (event.preventDefault(), ready ? during(store.send("act", wish()), setDone) : show())}>
      <h2>${title}: ${worker ?? operator ?? store.job}</h2>
      ${done ? html`<p class=${done.problem ? "bad" : "good"} role="status">${done.problem ?? done.done}</p>${done.stacks != null && html`<${Flame} stacks=${done.stacks} />`}` : html`
        ${fields.map(([field, text], at) => html`<label>${text}<input name=${field} autofocus=${at === 0} value=${values[field] ?? ""} onInput=${(event) => change(field, event.target.value)} /></label>`)}
        ${plan?.problem && html`<p class="bad" role="status">${plan.problem}</p>`}
        ${plan?.text && html`<p class="plan">${plan.text}</p>`}
        ${plan?.plans && html`<p class="note">Choose a balancer: these are their plans now. The job plans by its newest figures when you confirm.</p><${Plans} shown=${plan} chosen=${values.policy} choose=${(policy) => change("policy", policy)} />`}`}
      <div class="buttons"><button type="button" class="act" onClick=${() => place.current.close()}>${done ? "Close" : "Cancel"}</button>
        ${!done && html`<button class="act go" disabled=${busy || (rebalances && !ready)}>${busy && ready ? "Please wait…" : ready ? name : "Show what it would do"}</button>`}</div>
    </form>
  </dialog>`;
}
