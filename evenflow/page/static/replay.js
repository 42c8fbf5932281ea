// The slider over a recording.

import { html, useEffect, useState } from "/static/vendor/htm-preact.module.js";
import { duration, time } from "/static/format.js";

const SPEEDS = [1, 5, 20];

export function Slider({ store }) {
  const { begin, end, problem } = store.replay, [playing, setPlaying] = useState(false), [speed, setSpeed] = useState(1);
  const at = store.position, step = Math.max(1, (end - begin) / 2000);
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setInterval(() => {
      const next = store.position + speed;
      store.seek(Math.min(end, next));
      if (next >= end) setPlaying(false);
    }, 1000);
    return () => clearInterval(timer);
  }, [playing, speed]);
  const play = () => {
    if (!playing && at >= end) store.seek(begin);
    setPlaying(!playing);
  };
  return html`<section id="replay">
    <button class="act" onClick=${play}>${playing ? "Pause" : "Play"}</button>
    <select aria-label="speed" onChange=${(event) => setSpeed(Number(event.target.value))}>
      ${SPEEDS.map((each) => html`<option value=${each} selected=${each === speed}>${each} ×</option>`)}</select>
    <input type="range" aria-label="time" min=${begin} max=${end} step=${step} value=${at} onInput=${(event) => store.seek(Number(event.target.value))} />
    <output>${time(at)}, ${duration(Math.round(at - begin))} of ${duration(Math.round(end - begin))}</output>
    ${problem && html`<p class="note">The recording is not complete: ${problem}.</p>`}
  </section>`;
}
