// Rate and latency over time, with a mark at each change.

import { html, useEffect, useRef, useState } from "/static/vendor/htm-preact.module.js";
import { AXIS, across, axis, penOf, useDark } from "/static/canvas.js";
import { count, milliseconds, time } from "/static/format.js";

const LEFT = 58;

export function Charts({ store, span }) {
  const seconds = store.range(span), of = (name) => seconds.map((second) => second?.[name] ?? null), until = store.newest.until;
  const marks = [...store.decisions.values()].filter((entry) => entry.answer !== "no");
  return html`<div class="plots">
    <div><h3>rate: records read per second</h3><${Plot} lines=${{ rate: of("rate") }} until=${until} marks=${marks} unit=${count} /></div>
    <div><h3>latency from source to sink: <b class="p50">p50</b> and <b class="p99">p99</b></h3>
      <${Plot} lines=${{ p50: of("p50"), p99: of("p99") }} until=${until} marks=${marks} unit=${milliseconds} /></div>
  </div>`;
}

// `lines`: values by name, a second each, null where unknown; the name is also that of the colour.
function Plot({ lines, until, marks, unit }) {
  const canvas = useRef(), [x, setX] = useState(null), span = Object.values(lines)[0].length;
  useDark();
  useEffect(() => draw(canvas.current, lines, { left: LEFT, span, until }, marks, unit));
  const width = canvas.current?.clientWidth ?? 0, index = x == null ? -1 : Math.floor(((x - LEFT) / (width - LEFT)) * span);
  const known = Object.entries(lines).map(([name, values]) => [name, values[index]]).filter(([, value]) => value != null);
  const point = (event) => setX(event.clientX - canvas.current.getBoundingClientRect().left);
  return html`<div class="picture"><canvas ref=${canvas} onPointerMove=${point} onPointerDown=${point} onPointerLeave=${() => setX(null)}></canvas>
    ${known.length > 0 && html`<div class="tip" style=${{ top: "8px", left: `${x > width / 2 ? x - 140 : x + 14}px` }}>${time(until - span + 1 + index)}<br />${known.map(([name, value]) => `${name} ${unit(value)}`).join(", ")}</div>`}
  </div>`;
}

function draw(canvas, lines, place, marks, unit) {
  const { pen, width, height, colour } = penOf(canvas), plot = { ...place, width: width - LEFT, height: height - AXIS };
  const names = Object.keys(lines), top = Math.max(...names.flatMap((name) => lines[name]), 1e-3) * 1.1;
  const y = (value) => plot.height * (1 - value / top);
  pen.strokeStyle = colour("line");
  pen.fillStyle = colour("soft");
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const value of ticks(top)) {
    pen.fillText(unit(value), LEFT - 8, Math.max(7, y(value)));
    line(pen, [[LEFT, y(value)], [width, y(value)]]);
  }
  axis(pen, plot, colour("soft"));
  for (const name of names) {
    pen.strokeStyle = pen.fillStyle = colour(name);
    pen.lineWidth = 1.6;
    for (const part of parts(lines[name])) {
      const points = part.map(([index, value]) => [across(plot, plot.until - plot.span + 1.5 + index), y(value)]);
      line(pen, points);
      if (names.length > 1) continue;
      pen.lineTo(points.at(-1)[0], plot.height);
      pen.lineTo(points[0][0], plot.height);
      pen.globalAlpha = 0.12;
      pen.fill();
      pen.globalAlpha = 1;
    }
  }
  drawMarks(pen, plot, marks, colour("ink"));
}

// Round values from 0 to `top`, five at most.
function ticks(top) {
  const rough = top / 4, power = 10 ** Math.floor(Math.log10(rough)), step = power * ([1, 2, 5].find((each) => each * power >= rough) ?? 10);
  return Array.from({ length: Math.floor(top / step) + 1 }, (_, index) => index * step);
}

// The known values with their indices, in runs without gaps.
function parts(values) {
  const found = [];
  values.forEach((value, index) => {
    if (value == null) return;
    if (index === 0 || values[index - 1] == null) found.push([]);
    found.at(-1).push([index, value]);
  });
  return found;
}

function line(pen, points) {
  pen.lineCap = pen.lineJoin = "round";
  pen.beginPath();
  pen.moveTo(...points[0]);
  for (const point of points) pen.lineTo(...point);
  pen.stroke();
}

function drawMarks(pen, plot, marks, ink) {
  const right = plot.left + plot.width;
  pen.strokeStyle = pen.fillStyle = ink;
  pen.lineWidth = 1;
  for (const { begin, end } of marks) {
    const x = Math.round(across(plot, begin));
    if (x < plot.left || x > right) continue;
    pen.globalAlpha = 0.75;
    pen.setLineDash([3, 3]);
    line(pen, [[x, 0], [x, plot.height]]);
    pen.setLineDash([]);
    pen.beginPath();
    pen.arc(x, 3, 3, 0, 7);
    pen.fill();
    pen.globalAlpha = 0.08;
    pen.fillRect(x, 0, Math.min(end == null ? 0 : across(plot, end) - x, right - x), plot.height);
  }
  pen.globalAlpha = 1;
}
