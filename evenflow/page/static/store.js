// The state of the page: the newest message, and the last ten minutes second by second.

const KEPT = 600;
const LEAST = 30;

export class Store {
  constructor(changed) {
    this.changed = changed;
    this.clear();
    this.jobs = [];
    this.link = { state: "waiting", text: "connecting" };
    const source = new EventSource(`/events${location.search}`);
    source.onmessage = (event) => this.take(JSON.parse(event.data));
    source.onerror = () => {
      this.link = { state: "lost", text: "the process of this page has ended, or can't be reached: run `evenflow ui` again" };
      changed();
    };
  }

  clear() {
    this.newest = null;
    this.seconds = new Map();
    this.decisions = new Map();
    this.checkpoints = new Map();
  }

  take(message) {
    if (message.whole) this.clear();
    this.jobs = message.jobs;
    if (message.link) this.link = message.link;
    if (message.replay) {
      this.replay = message.replay;
      this.position ??= message.replay.at;
    }
    if ("actions" in message) this.actions = message.actions;
    if (message.job) this.job = message.job;
    if (message.status) {
      this.newest = message;
      for (const second of message.seconds) this.seconds.set(second.t, unpacked(second));
      for (const entry of message.decisions) this.decisions.set(entry.id, entry);
      for (const entry of message.checkpoints) this.checkpoints.set(entry.id, entry);
      for (const at of this.seconds.keys()) if (at <= message.until - KEPT) this.seconds.delete(at);
    }
    this.changed();
  }

  // Go to another time of a recording, `position`; the page shows the newest view at that time, `replay.at`, which may be seconds older.
  // While a request is pending, only the newest position is kept.
  async seek(at) {
    this.wanted = this.position = at;
    this.changed();
    if (this.seeking) return;
    this.seeking = true;
    while (this.wanted != null) {
      const time = this.wanted;
      const message = await this.ask("at", { time, known: this.replay.at });
      if (this.wanted === time) this.wanted = null;
      if (message.problem) this.link = { state: "lost", text: message.problem };
      else this.take(message);
    }
    this.seeking = false;
    this.changed();
  }

  // Query the server, which asks no job but for a look at its state. An answer that isn't JSON is a problem.
  ask(path, values) {
    const time = this.replay ? { time: this.replay.at } : {};
    return answer(fetch(`/${path}?${new URLSearchParams({ job: this.job, ...time, ...values })}`));
  }

  // Send an action, or request its preview.
  send(path, values) {
    const headers = { "Content-Type": "application/json", "X-Evenflow-Action": this.actions };
    return answer(fetch(`/${path}`, { method: "POST", headers, body: JSON.stringify({ job: this.job, ...values }) }));
  }

  // The seconds in (until - span, until], null where unknown.
  range(span) {
    const until = this.newest ? this.newest.until : 0;
    return Array.from({ length: span }, (_, index) => this.seconds.get(until - span + 1 + index) ?? null);
  }

  // The known seconds of the newest `most`.
  span(most) {
    const first = Math.min(...this.seconds.keys());
    return Math.max(LEAST, Math.min(most, this.newest.until - first + 1));
  }
}

async function answer(fetched) {
  try {
    const response = await fetched;
    return response.ok ? await response.json() : { problem: (await response.text()).trim() };
  } catch {
    return { problem: "the process of this page has ended, or can't be reached" };
  }
}

function unpacked(second) {
  for (const stage of Object.values(second.stages)) {
    if (typeof stage.load !== "string") continue;
    stage.load = new Float32Array(bytes(stage.load));
    stage.groups = new Uint16Array(bytes(stage.groups));
  }
  return second;
}

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;
}
