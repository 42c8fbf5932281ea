// The nodes of the cluster, with their workers.

import { html } from "/static/vendor/htm-preact.module.js";
import { NodeActions } from "/static/actions.js";
import { count } from "/static/format.js";

export function Nodes({ store }) {
  const nodes = store.newest.nodes;
  return nodes && html`<section id="nodes"><div class="head"><h2>Nodes</h2><${NodeActions} store=${store} /></div>
    <div class="scroll"><table>
      <thead><tr><th>node</th><th class="number">CPUs</th><th class="number">free</th><th class="number">workers</th><th></th></tr></thead>
      <tbody>${nodes.map((node) => html`<tr key=${node.name}><td>${node.name}</td><td class="number">${count(node.cpus)}</td><td class="number">${count(node.free)}</td>
        <td class="number">${node.workers.length}</td><td class="wide">${node.workers.join(", ")}</td></tr>`)}</tbody>
    </table></div></section>`;
}
