// The colours of the heat map: a ramp from idle to hottest for each version of the code, in hues that colour-blind eyes tell apart too.

import { html, useEffect, useRef } from "/static/vendor/htm-preact.module.js";

const LIGHT = [
  ["#f1f4f5", "#fbe3b8", "#f6b04e", "#e0692a", "#a8231c", "#4f0a1c"],
  ["#d3e5f6", "#a9cdee", "#6aa5dc", "#2f74bd", "#174a8b", "#0a2350"],
  ["#d3d8d6", "#b4bbb9", "#8b9391", "#6d7574", "#555d5e", "#454c4e"],
];
const DARK = [
  ["#1b2429", "#3b2a5c", "#8a2a6b", "#d8475a", "#f79550", "#fdf0a8"],
  ["#12465a", "#17617c", "#2083a6", "#3ea9cc", "#86cfe3", "#d9f3fc"],
  ["#3f4a43", "#5a6a5e", "#7b8f80", "#9fb3a3", "#b9cbb9", "#cfe0c4"],
];

const made = new Map();

// 256 shades, each [red, green, blue, alpha]. `hue` counts the versions that are shown, the oldest first.
export function palette(dark, hue) {
  const ramps = dark ? DARK : LIGHT, ramp = ramps[hue % ramps.length];
  if (!made.has(ramp)) {
    const stops = ramp.map((hex) => [1, 3, 5].map((from) => parseInt(hex.slice(from, from + 2), 16)));
    made.set(ramp, Array.from({ length: 256 }, (_, shade) => {
      const place = (shade / 255) * (stops.length - 1), stop = Math.min(Math.floor(place), stops.length - 2), part = place - stop;
      return [...stops[stop].map((value, at) => Math.round(value + part * (stops[stop + 1][at] - value))), 255];
    }));
  }
  return made.get(ramp);
}

// The shade of a load relative to the hottest.
export const shade = (part) => Math.min(255, Math.round(255 * Math.sqrt(part)));

export function Ramp({ dark, hue = 0 }) {
  const canvas = useRef();
  useEffect(() => {
    const image = new ImageData(110, 1), colours = palette(dark, hue);
    for (let x = 0; x < 110; x++) image.data.set(colours[shade(x / 109)], 4 * x);
    canvas.current.getContext("2d").putImageData(image, 0, 0);
  }, [dark, hue]);
  return html`<canvas ref=${canvas} width="110" height="1"></canvas>`;
}
