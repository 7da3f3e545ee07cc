"use strict";
// The canvas on which a moment is edited: picks, drags, turns, places. What was changed goes to `edits`, in order.
const EGO = "ego", HANDLE = 3.2;  // m from the nose to the handle that turns
const LIGHT_CYCLE = { GREEN: "YELLOW", YELLOW: "RED", RED: "GREEN", ABSENT: "RED", UNKNOWN: "RED" };
const LIGHT_STATES = ["ABSENT", "GREEN", "YELLOW", "RED", "UNKNOWN"];

class Editor {
  constructor(canvas, camera, changed) {
    Object.assign(this, { canvas, camera, changed, edits: [], selected: null, placing: null, grabbed: null, fan: null, count: 0 });
    this.#listen();
  }

  // A new scenario.
  open(page) {
    Object.assign(this, { page, road: unpackRoad(page.road, page.step), view: null, drive: null, edits: [], selected: null, fan: null });
  }

  // A new answer about the moment; while something is dragged it stays under the pointer.
  show(answer, at) {
    const page = { ...this.page, rules: answer.rules.map((name) => ({ name })) };
    this.drive = new Drive(answer.drive, page);
    this.answer = answer;
    this.at = at;
    this.road.lights = unpack(answer.lights);
    if (this.view) this.view.drive = this.drive;
    else this.view = new SceneView(this.canvas, this.drive, page, this.camera, "a");
    if (this.grabbed?.pose) this.#put(this.grabbed.who, this.grabbed.pose);
    if (this.selected !== null && !this.pose(this.selected)) this.selected = null;
    this.draw();
  }

  index(who) { return this.drive.tracks.findIndex((track) => track.id === who); }

  pose(who) {
    if (who === EGO) return this.drive.ego(0);
    const index = this.index(who);
    return index < 0 ? null : this.drive.pose(this.drive.tracks[index], 0);
  }

  #put(who, { x, y, heading }) {
    if (who === EGO) {
      [this.drive.center[0], this.drive.center[1], this.drive.heading[0]] = [x, y, heading];
      return;
    }
    const track = this.drive.tracks[this.index(who)];
    if (track) [track.xy[0], track.xy[1], track.heading[0]] = [x, y, heading];
  }

  draw() {
    if (!this.view) return;
    this.view.draw(this.road, 0);
    this.#drawFan();
    this.#drawSelection();
  }

  // The last transform of the view: metres, y upwards.
  #inMetres(paint) {
    const c = this.view.context;
    c.save();
    c.setTransform(this.view.matrix);
    c.lineJoin = c.lineCap = "round";
    paint(c, 1 / this.camera.zoom);
    c.restore();
  }

  #drawFan() {
    if (!this.fan) return;
    const { plans, points, xy } = this.fan;
    this.#inMetres((c, pixel) => {
      c.strokeStyle = c.fillStyle = this.view.color.ink;
      c.globalAlpha = 0.5;
      c.lineWidth = Math.max(0.1, 1.2 * pixel);
      for (let k = 0; k < plans; k++) {
        c.beginPath();
        for (let i = 0; i < points; i++) c.lineTo(xy[2 * (k * points + i)], xy[2 * (k * points + i) + 1]);
        c.stroke();
        const last = 2 * ((k + 1) * points - 1);
        c.beginPath();
        c.arc(xy[last], xy[last + 1], Math.max(0.25, 2.5 * pixel), 0, 7);
        c.fill();
      }
    });
  }

  #handle(pose) {
    const reach = pose.length / 2 + HANDLE;
    return [pose.x + reach * Math.cos(pose.heading), pose.y + reach * Math.sin(pose.heading)];
  }

  #drawSelection() {
    const pose = this.selected === null ? null : this.pose(this.selected);
    if (!pose) return;
    const [hx, hy] = this.#handle(pose);
    this.#inMetres((c, pixel) => {
      c.strokeStyle = this.view.color.ink;
      c.lineWidth = 1.5 * pixel;
      c.setLineDash([4 * pixel, 3 * pixel]);
      c.beginPath();
      c.arc(pose.x, pose.y, pose.length / 2 + 0.8, 0, 7);
      c.moveTo(pose.x, pose.y);
      c.lineTo(hx, hy);
      c.stroke();
      c.setLineDash([]);
      c.fillStyle = this.view.color.panel;
      c.beginPath();
      c.arc(hx, hy, Math.max(0.6, 6 * pixel), 0, 7);
      c.fill();
      c.stroke();
    });
  }

  // What is under a place on the canvas: the handle of what is selected, somebody, a light, or the ground.
  find(px, py) {
    const [x, y] = this.view.toWorld(px, py), slack = 8 / this.camera.zoom;
    const chosen = this.selected === null ? null : this.pose(this.selected);
    if (chosen && Math.hypot(...this.#handle(chosen).map((value, i) => value - [x, y][i])) < Math.max(0.8, slack)) {
      return { what: "handle", who: this.selected };
    }
    const ego = this.drive.ego(0), dx = x - ego.x, dy = y - ego.y, cos = Math.cos(ego.heading), sin = Math.sin(ego.heading);
    if (Math.abs(dx * cos + dy * sin) < ego.length / 2 && Math.abs(dy * cos - dx * sin) < ego.width / 2) return { what: "user", who: EGO };
    const index = this.view.pick(px, py, 0);
    if (index !== null) return { what: "user", who: this.drive.tracks[index].id };
    const { bars } = this.road;
    for (let i = 0; i < bars.length / 4; i++) {
      const [x0, y0, x1, y1] = bars.subarray(4 * i, 4 * i + 4), long = Math.hypot(x1 - x0, y1 - y0) || 1;
      const along = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / long, beside = ((y - y0) * (x1 - x0) - (x - x0) * (y1 - y0)) / long;
      if (along >= 0 && along <= long && Math.abs(beside) < Math.max(0.8, slack)) return { what: "light", bar: i };
    }
    return { what: "ground" };
  }

  #listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => { if (this.view) this.#press(event); });
    canvas.addEventListener("pointermove", (event) => { if (this.view && this.grabbed) this.#drag(event); });
    canvas.addEventListener("pointerup", (event) => { if (this.view && this.grabbed) this.#drop(event); });
    canvas.addEventListener("pointercancel", () => { this.grabbed = null; });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (this.view) this.zoomAt(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
  }

  zoomAt(factor, px, py) {
    const { camera } = this, zoom = Math.max(1, Math.min(60, camera.zoom * factor)), [x, y] = this.view.toWorld(px, py);
    camera.x = x + (camera.x - x) * (camera.zoom / zoom);
    camera.y = y + (camera.y - y) * (camera.zoom / zoom);
    camera.zoom = zoom;
    this.draw();
  }

  #press(event) {
    const { offsetX: px, offsetY: py } = event, world = this.view.toWorld(px, py);
    if (this.placing) { this.add(this.placing, ...world); return; }
    const found = this.find(px, py);
    if (found.what === "light") { this.switchLight(found.bar); return; }
    this.canvas.setPointerCapture(event.pointerId);
    this.grabbed = { ...found, from: world, start: found.who ? this.pose(found.who) : null };
    if (found.what === "user") this.select(found.who);
    else if (found.what === "ground") this.select(null);
  }

  #drag(event) {
    const { what, who, from, start } = this.grabbed, [x, y] = this.view.toWorld(event.offsetX, event.offsetY);
    if (what === "ground") {
      this.camera.x -= x - from[0];
      this.camera.y -= y - from[1];
      this.draw();
      return;
    }
    const pose = what === "handle"
      ? { x: start.x, y: start.y, heading: Math.atan2(y - start.y, x - start.x) }
      : { x: start.x + x - from[0], y: start.y + y - from[1], heading: start.heading };
    this.grabbed.pose = pose;
    this.#put(who, pose);
    this.draw();
    this.changed({ live: this.#with(this.#moveOf(who, pose)) });
  }

  #drop() {
    const { who, pose } = this.grabbed;
    this.grabbed = null;
    if (pose) this.edit(this.#moveOf(who, pose));
  }

  #moveOf(who, { x, y, heading }) { return { kind: "move", who, at: this.at, x, y, heading }; }

  // The edits with one more; of the same kind about the same thing at the same moment the last one counts.
  #with(edit) {
    const last = this.edits.at(-1);
    const same = last && last.kind === edit.kind && last.at === edit.at && last.who === edit.who && last.light === edit.light && edit.kind !== "add";
    return same ? [...this.edits.slice(0, -1), edit] : [...this.edits, edit];
  }

  edit(edit) {
    this.edits = this.#with(edit);
    this.changed({ dropped: performance.now() });
  }

  take(edits) {
    this.edits = edits;
    this.changed({});
  }

  select(who) {
    this.selected = who;
    this.changed({ selection: true });
    this.draw();
  }

  add(type, x, y) {
    const known = new Set([...this.drive.tracks.map((track) => track.id), ...this.edits.map((edit) => edit.who)]);
    let who;
    do who = `added ${++this.count}`; while (known.has(who));
    this.placing = null;
    this.selected = who;
    this.edit({ kind: "add", who, at: this.at, type, x, y, heading: null, speed: 0 });
  }

  remove(who) {
    if (who === EGO) return;
    this.selected = null;
    const own = this.edits.some((edit) => edit.kind === "add" && edit.who === who);
    if (own) this.take(this.edits.filter((edit) => edit.who !== who));
    else this.edit({ kind: "remove", who, at: this.at });
  }

  setSpeed(who, speed) { this.edit({ kind: "speed", who, at: this.at, speed: Math.max(0, Math.min(60, speed)) }); }

  turn(who, angle) {
    const pose = this.pose(who);
    this.edit(this.#moveOf(who, { ...pose, heading: pose.heading + angle }));
  }

  switchLight(bar) {
    const state = LIGHT_CYCLE[LIGHT_STATES[this.road.lights[bar]]];
    this.edit({ kind: "light", light: this.page.columns[bar], at: this.at, state });
  }
}
