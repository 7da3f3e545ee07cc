"use strict";
// Questions to the studio's server. Addresses are relative: the token is in the page's own.
const ask = (() => {
  async function send(path, options) {
    const answer = await fetch(path, { cache: "no-store", ...options });
    if (answer.ok) return answer;
    let reason = `${answer.status}`;
    try { reason = (await answer.json()).error ?? reason; } catch { /* no JSON: the number must do */ }
    throw new Error(reason);
  }
  const post = (path, body) => send(path, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  return {
    get: async (path) => (await send(`api/${path}`)).json(),
    post: async (path, data) => (await post(`api/${path}`, JSON.stringify(data))).json(),
    text: async (path, data) => (await post(`api/${path}`, JSON.stringify(data))).text(),
    load: async (text) => (await post("api/load", text)).json(),
  };
})();

// One question at a time: while it is under way only the newest of those that come is kept.
class Newest {
  constructor(work) { Object.assign(this, { work, busy: false, waiting: null, soon: null, since: 0, timer: 0 }); }

  // Ask when no other question has come for 50 ms, or after 200 ms: what is asked then finds nothing under way.
  askSoon(question) {
    const now = performance.now();
    if (this.soon === null) this.since = now;
    this.soon = question;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(this.soon), Math.max(0, Math.min(50, this.since + 200 - now)));
  }

  ask(question) {
    clearTimeout(this.timer);
    this.soon = null;
    if (this.busy) { this.waiting = question; return; }
    this.busy = true;
    this.work(question).finally(() => {
      this.busy = false;
      const next = this.waiting;
      this.waiting = null;
      if (next !== null) this.ask(next);
    });
  }

  get idle() { return !this.busy && this.soon === null; }
}
