// Shared by all pictures on a canvas: their size, the page's colours, and the time axis.

import { useEffect, useState } from "/static/vendor/htm-preact.module.js";
import { time } from "/static/format.js";

export const AXIS = 20;

// A pen that draws in CSS pixels on the empty canvas; `colour` reads the page's colours.
export function penOf(canvas) {
  const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  const pen = canvas.getContext("2d"), css = getComputedStyle(canvas);
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = `11.5px ${css.fontFamily}`;
  return { pen, width, height, colour: (name) => css.getPropertyValue(`--${name}`) };
}

// The position of a time on a plot whose columns are seconds, the last of them `until`.
export const across = ({ left, width, span, until }, at) => left + ((at - until + span - 1) / span) * width;

export function axis(pen, plot, soft) {
  const every = [10, 20, 30, 60, 120].find((each) => (each / plot.span) * plot.width > 80) ?? 300;
  pen.fillStyle = soft;
  pen.textBaseline = "bottom";
  for (let at = Math.ceil((plot.until - plot.span + 1) / every) * every; at <= plot.until; at += every) {
    const x = across(plot, at + 0.5);
    pen.textAlign = x > plot.left + plot.width - 30 ? "right" : x < plot.left + 30 ? "left" : "center";
    pen.fillText(time(at), x, plot.height + AXIS);
  }
}

// True if colours are dark. The component is drawn again when they or the window's size change.
export function useDark() {
  const query = matchMedia("(prefers-color-scheme: dark)"), [, setLook] = useState("");
  useEffect(() => {
    const look = () => setLook(`${query.matches} ${innerWidth}`);
    query.addEventListener("change", look);
    addEventListener("resize", look);
    return () => {
      query.removeEventListener("change", look);
      removeEventListener("resize", look);
    };
  }, []);
  return query.matches;
}
