// The heat map: a column per second, a row per key group in the order of owners at that time; moves are arrows. Each version of the code
// that owners run has a hue.

import { html, useEffect, useRef, useState } from "/static/vendor/htm-preact.module.js";
import { AXIS, across, axis, penOf, useDark } from "/static/canvas.js";
import { bytes, count, duration, percent, time } from "/static/format.js";
import { Ramp, palette, shade } from "/static/palettes.js";

export function Heat({ store, stage, span }) {
  const canvas = useRef(), [tip, setTip] = useState(null), dark = useDark();
  const picture = useRef(null);
  const columns = store.range(span).map((second) => second?.stages[stage] ?? null);
  const known = versionsOf([...store.seconds.values()].map((second) => second.stages[stage])), seen = versionsOf(columns);
  const top = columns.reduce((most, column) => Math.max(most, ...(column?.load ?? [])), 1e-6);
  useEffect(() => {
    picture.current = draw(canvas.current, store, stage, columns, top, dark, known);
  });
  const workers = store.newest.loads[stage].workers;
  const point = (event) => setTip(at(event, canvas.current, picture.current, workers));
  return html`<div class="heat picture">
    <div class="legend">${seen.length > 1
      ? html`useful time per key group, 0 to ${percent(top)} of a second, by the version of the code:
        ${seen.map((version) => html`<span class="version"><${Ramp} dark=${dark} hue=${known.indexOf(version)} /> version ${version}</span>`)}`
      : html`useful time per key group: 0 <${Ramp} dark=${dark} hue=${Math.max(0, known.indexOf(seen[0]))} /> ${percent(top)} of a second`}
      ${store.newest.loads[stage].groups > 256 && html`<span>· a row is the hottest of ${store.newest.loads[stage].groups / 256} neighbours</span>`}</div>
    <canvas ref=${canvas} onPointerMove=${point} onPointerDown=${point} onPointerLeave=${() => setTip(null)}></canvas>
    ${tip && html`<div class="tip" style=${tip.style}>${tip.text}</div>`}
  </div>`;
}

// The versions of the code whose workers own key groups in these columns.
function versionsOf(columns) {
  const found = new Set();
  for (const column of columns) column?.bands?.forEach((groups, owner) => groups && found.add(versionOf(column, owner)));
  return [...found].sort((a, b) => a - b);
}

const versionOf = (column, owner) => column.codes?.[owner] ?? 1;

// The name of the worker with an index, at the time of a column.
const nameOf = (column, stage, owner) => `${stage}-${owner}${versionOf(column, owner) > 1 ? `v${versionOf(column, owner)}` : ""}`;

// The owner of each row of a column.
function ownersOf(column) {
  const rows = column.load.length, all = column.bands.reduce((sum, groups) => sum + groups, 0);
  let owner = 0, edge = column.bands[0];
  return Array.from({ length: rows }, (_, row) => {
    while (edge <= ((row + 0.5) / rows) * all && owner < column.bands.length - 1) edge += column.bands[++owner];
    return owner;
  });
}

function draw(canvas, store, stage, columns, top, dark, versions) {
  const { pen, width, height, colour } = penOf(canvas), ink = colour("ink"), card = colour("card"), soft = colour("soft");
  const rows = Math.max(0, ...columns.map((column) => column?.load?.length ?? 0));
  const left = width < 520 ? 26 : 12 + Math.ceil(Math.max(60, ...Object.keys(columns.findLast(Boolean)?.workers ?? {}).map((name) => pen.measureText(name).width)));
  const plot = { left, width: width - left, height: height - AXIS, rows, span: columns.length, columns, until: store.newest.until, stage, labels: [] };
  if (rows) {
    pen.imageSmoothingEnabled = false;
    pen.drawImage(cells(columns, rows, top, dark, versions), left, 0, plot.width, plot.height);
    lines(pen, plot, ink, card);
    hotRows(pen, plot, top, dark, versions);
    names(pen, plot, soft, width < 520);
    arrows(pen, plot, ink, card);
    for (const entry of store.decisions.values()) if (entry.stage === stage) keys(pen, plot, entry, ink, card);
  }
  axis(pen, plot, soft);
  return plot;
}

// A pixel per second and row.
function cells(columns, rows, top, dark, versions) {
  const image = new ImageData(columns.length, rows), hues = versions.map((_, hue) => palette(dark, hue));
  columns.forEach((column, x) => {
    if (!column?.load) return;
    const each = column.load.length, colours = ownersOf(column).map((owner) => hues[versions.indexOf(versionOf(column, owner))]);
    for (let y = 0; y < rows; y++) {
      const row = Math.floor((y * each) / rows);
      image.data.set(colours[row][shade(column.load[row] / top)], 4 * (y * columns.length + x));
    }
  });
  const canvas = document.createElement("canvas");
  canvas.width = columns.length;
  canvas.height = rows;
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}

// Hot rows again, not thinner than a line and not below one: a row of many has a pixel.
function hotRows(pen, plot, top, dark, versions) {
  const step = plot.width / plot.span;
  plot.columns.forEach((column, x) => {
    if (!column?.load) return;
    const owners = ownersOf(column), room = plot.height / owners.length, high = Math.max(room, 3);
    column.load.forEach((load, row) => {
      if (load < top / 4) return;
      const first = row > 0 && owners[row - 1] !== owners[row], last = row + 1 < owners.length && owners[row + 1] !== owners[row];
      const y = first ? row * room + 1.5 : last ? (row + 1) * room - high - 1.5 : (row + 0.5) * room - high / 2;
      const [red, green, blue] = palette(dark, versions.indexOf(versionOf(column, owners[row])))[shade(load / top)];
      pen.fillStyle = `rgb(${red} ${green} ${blue})`;
      pen.fillRect(plot.left + x * step, y, step + 0.5, high);
    });
  });
}

// The edge between two workers' groups, over time, unless there are so many that they would hide the loads.
function lines(pen, plot, ink, card) {
  const step = plot.width / plot.span;
  for (const [colour, thick] of [[card, 3.5], [ink, 1.2]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.beginPath();
    plot.columns.forEach((column, x) => {
      if (!column?.bands || column.bands.length > plot.height / 6) return;
      const all = column.bands.reduce((sum, groups) => sum + groups, 0), before = plot.columns[x - 1]?.bands;
      let edge = 0, last = 0;
      column.bands.slice(0, -1).forEach((groups, worker) => {
        edge += groups;
        const y = (edge / all) * plot.height;
        if (before && before.length === column.bands.length) {
          last += before[worker];
          pen.moveTo(plot.left + x * step, (last / all) * plot.height);
          pen.lineTo(plot.left + x * step, y);
        } else pen.moveTo(plot.left + x * step, y);
        pen.lineTo(plot.left + (x + 1) * step, y);
      });
    });
    pen.stroke();
  }
}

function names(pen, plot, soft, narrow) {
  const column = plot.columns.findLast((each) => each?.bands);
  if (!column) return;
  const all = column.bands.reduce((sum, groups) => sum + groups, 0);
  let edge = 0, free = 0;
  pen.fillStyle = soft;
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  column.bands.forEach((groups, worker) => {
    const y = ((edge + groups / 2) / all) * plot.height;
    edge += groups;
    if (!groups || y < free) return;
    pen.fillText(narrow ? worker : nameOf(column, plot.stage, worker), 2, y);
    free = y + 13;
  });
}

const MOST_PAIRS = 24;  // of workers between which a second's arrows are drawn

function arrows(pen, plot, ink, card) {
  const step = plot.width / plot.span, room = plot.height / plot.rows;
  plot.columns.forEach((column, x) => {
    const moves = [...(column?.moves ?? [])].sort((a, b) => b.count - a.count), left = moves.slice(MOST_PAIRS);
    if (left.length > 0) label(pen, plot, `moves between ${left.length} more pairs of workers`, plot.left + x * step, 10, ink, card);
    for (const move of moves.slice(0, MOST_PAIRS)) {
      const shown = move.groups.slice(0, move.count > 24 ? 3 : 6);
      for (const [, before, after] of shown) {
        const from = [plot.left + x * step, (before + 0.5) * room], to = [plot.left + (x + 0.7) * step, (after + 0.5) * room];
        arrow(pen, from, to, card, 4);
        arrow(pen, from, to, ink, 1.6);
      }
      if (move.count > shown.length) {
        const [, before, after] = shown[0];
        label(pen, plot, `${move.count} groups`, plot.left + x * step, (0.7 * before + 0.3 * after + 0.5) * room, ink, card);
      }
    }
  });
}

// Names of the hot keys that moved individually: at the arrows of their groups, which are drawn with them, or at dashed arrows.
function keys(pen, plot, entry, ink, card) {
  const index = Math.floor(entry.begin) - plot.until + plot.span - 1, bands = plot.columns[index]?.bands;
  if (!bands) return;
  const x = across(plot, Math.floor(entry.begin)), all = bands.reduce((sum, groups) => sum + groups, 0);
  const middle = (worker) => ((bands.slice(0, worker).reduce((sum, groups) => sum + groups, 0) + (bands[worker] ?? 0) / 2) / all) * plot.height;
  for (const [key, source, target] of entry.keys) {
    const rows = rowsOf(plot, index, key, source, target), room = plot.height / plot.rows;
    const from = [x, rows ? (rows[0] + 0.5) * room : middle(source)], to = [x + 4, rows ? (rows[1] + 0.5) * room : middle(target)];
    if (!rows) {
      pen.setLineDash([5, 4]);
      arrow(pen, from, to, card, 4);
      arrow(pen, from, to, ink, 1.6);
      pen.setLineDash([]);
    }
    label(pen, plot, key, x, (from[1] + to[1]) / 2, ink, card);
  }
}

// The rows of a key's group before and after its move near a column; undefined if no arrow shows it.
function rowsOf(plot, index, key, source, target) {
  const near = plot.columns.slice(Math.max(0, index - 1), index + 5), hot = near.flatMap((column) => column?.hot ?? []);
  const group = hot.find(([name]) => name === key)?.[1];
  const move = near.flatMap((column) => column?.moves ?? []).find((each) => each.from === source && each.to === target && each.groups.some(([of]) => of === group));
  return move?.groups.find(([of]) => of === group).slice(1);
}

// Next to an arrow, below earlier labels; left out if there is no room.
function label(pen, plot, text, x, y, ink, card) {
  while (plot.labels.some(([left, top]) => Math.abs(left - x) < 70 && Math.abs(top - y) < 14)) y += 14;
  if (y > plot.height) return;
  plot.labels.push([x, y]);
  pen.textAlign = x > plot.left + plot.width * 0.85 ? "right" : "left";
  pen.textBaseline = "middle";
  pen.lineWidth = 4;
  pen.strokeStyle = card;
  pen.fillStyle = ink;
  const side = x + (pen.textAlign === "left" ? 8 : -8);
  pen.strokeText(text, side, y);
  pen.fillText(text, side, y);
}

function arrow(pen, [x, y], [tx, ty], colour, thick) {
  const angle = Math.atan2(ty - y, tx - x), head = 6;
  pen.strokeStyle = pen.fillStyle = colour;
  pen.lineWidth = thick;
  pen.lineCap = "round";
  pen.beginPath();
  pen.arc(x, y, thick > 2 ? 3.2 : 2, 0, 7);
  pen.fill();
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(tx, ty);
  for (const side of [2.6, -2.6]) {
    pen.moveTo(tx, ty);
    pen.lineTo(tx + head * Math.cos(angle + side), ty + head * Math.sin(angle + side));
  }
  pen.stroke();
}

// The group and second under the pointer.
function at(event, canvas, plot, workers) {
  if (!plot || !plot.rows) return null;
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  const index = Math.floor(((x - plot.left) / plot.width) * plot.span), column = plot.columns[index];
  if (x < plot.left || y >= plot.height || !column?.load) return null;
  const row = Math.floor((y / plot.height) * column.load.length), all = column.bands.reduce((sum, groups) => sum + groups, 0);
  const owner = ownersOf(column)[row], group = column.groups[row], name = nameOf(column, plot.stage, owner), state = workers.find(([worker]) => worker === name)?.[2] ?? 0;
  const keys = column.hot.filter(([, of]) => of === group);
  return {
    style: { left: `${x > box.width / 2 ? Math.max(0, x - 312) : x + 14}px`, top: `${Math.min(y + 12, Math.max(0, box.height - 130))}px` },
    text: html`<b>key group ${group}</b> of ${name}, ${time(plot.until - plot.span + 1 + index)}<br />
      useful time <b>${duration(column.load[row])}</b> in this second${all > column.load.length ? ", the most of its row" : ""}<br />
      ${keys.length > 0 && html`hot keys: ${keys.map(([key, , records]) => `${key} (${count(records)} records)`).join(", ")}<br />`}
      <span class="soft">${name} was busy for ${percent(column.workers[name] ?? 0)}, owns ${column.bands[owner]} groups${state ? `, has ${bytes(state)} of state now` : ""}</span>`,
  };
}
