// Rate and latency over time, with a mark where something was changed.

import { html, useEffect, useRef } from "/static/vendor/htm-preact.module.js";
import { count, milliseconds, time } from "/static/format.js";

const HEIGHT = 170;

export function Charts({ store, span }) {
  const marks = [...store.decisions.values()].filter((entry) => entry.answer !== "no");
  const seconds = store.range(span), times = seconds.map((_, index) => store.newest.until - span + 1 + index);
  const of = (name) => seconds.map((second) => second?.[name] ?? null);
  const rate = of("rate").map((rows, index) => (seconds[index] ? rows : null));
  return html`<div class="plots">
    <div><h3>rate: records read per second</h3><${Plot} data=${[times, rate]} names=${["--accent"]} marks=${marks} unit=${count} /></div>
    <div>
      <h3>latency from source to sink: <b class="p50">p50</b> and <b class="p99">p99</b></h3>
      <${Plot} data=${[times, of("p50"), of("p99")]} names=${["--p50", "--p99"]} marks=${marks} unit=${milliseconds} />
    </div>
  </div>`;
}

function Plot({ data, names, marks, unit }) {
  const place = useRef(), plot = useRef(null), newest = useRef(null);
  newest.current = { data, marks };
  useEffect(() => {
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(place.current, names, unit, newest), newest.current.data, place.current);
    };
    make();
    const colours = matchMedia("(prefers-color-scheme: dark)"), resized = new ResizeObserver(() => plot.current.setSize({ width: place.current.clientWidth, height: HEIGHT }));
    resized.observe(place.current);
    colours.addEventListener("change", make);
    return () => {
      resized.disconnect();
      colours.removeEventListener("change", make);
      plot.current.destroy();
    };
  }, []);
  useEffect(() => plot.current.setData(data));
  return html`<div ref=${place}></div>`;
}

function options(place, names, unit, newest) {
  const css = getComputedStyle(place), colour = (name) => css.getPropertyValue(name).trim();
  const line = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: `11px ${css.fontFamily}` };
  return {
    width: place.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: { y: { range: (_, low, high) => [0, Math.max(high ?? 0, 1e-3) * 1.1] } },
    axes: [
      { ...line, size: 26, space: 90, values: (_, ticks) => ticks.map((at) => time(at)) },
      { ...line, size: 58, values: (_, ticks) => ticks.map((value) => unit(value)) },
    ],
    series: [{}, ...names.map((name, at) => ({ stroke: colour(name), width: 1.6, points: { show: false }, fill: at || names.length > 1 ? undefined : `${colour(name)}1f` }))],
    hooks: { draw: [(plot) => drawMarks(plot, newest.current.marks, colour("--ink"))] },
  };
}

function drawMarks(plot, marks, ink) {
  const pen = plot.ctx, { left, top, width, height } = plot.bbox;
  pen.save();
  pen.strokeStyle = pen.fillStyle = ink;
  pen.lineWidth = devicePixelRatio;
  pen.globalAlpha = 0.75;
  for (const { begin, end } of marks) {
    const x = Math.round(plot.valToPos(begin, "x", true));
    if (x < left || x > left + width) continue;
    pen.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    pen.beginPath();
    pen.moveTo(x, top);
    pen.lineTo(x, top + height);
    pen.stroke();
    pen.beginPath();
    pen.arc(x, top + 3 * devicePixelRatio, 3 * devicePixelRatio, 0, 7);
    pen.fill();
    const wide = end == null ? 0 : plot.valToPos(end, "x", true) - x;
    pen.globalAlpha = 0.08;
    pen.fillRect(x, top, Math.min(wide, left + width - x), height);
    pen.globalAlpha = 0.75;
  }
  pen.restore();
}
