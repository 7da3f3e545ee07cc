"use strict";
// The one clock of the page. `time` counts samples; whoever draws listens to it and to nothing else.
class Player {
  constructor(samples, seconds) {
    this.last = samples - 1;
    this.rate = seconds > 0 ? this.last / seconds : 10;  // samples a second
    this.time = 0;
    this.speed = 1;
    this.playing = false;
    this.listeners = [];
    this.drawn = null;
    this.before = null;
  }

  get frame() { return Math.floor(this.time + 1e-6); }
  onChange(listener) { this.listeners.push(listener); }

  // Draw once before the next picture, however many things changed until then.
  refresh() {
    if (this.drawn === null) this.drawn = requestAnimationFrame((now) => this.#show(now));
  }

  #show(now) {
    this.drawn = null;
    if (this.playing) {
      if (this.before !== null) this.time += ((now - this.before) / 1000) * this.rate * this.speed;
      this.before = now;
      if (this.time >= this.last) {
        this.time = this.last;
        this.playing = false;
      }
    }
    for (const listener of this.listeners) listener(this);
    if (this.playing) this.refresh();
  }

  seek(time) {
    this.time = Math.max(0, Math.min(this.last, time));
    this.refresh();
  }

  step(count) {
    this.pause();
    this.seek(Math.round(this.frame + count));
  }

  play() {
    if (this.time >= this.last) this.time = 0;
    this.playing = true;
    this.before = null;
    this.refresh();
  }

  pause() {
    this.playing = false;
    this.refresh();
  }

  toggle() { if (this.playing) this.pause(); else this.play(); }
}
