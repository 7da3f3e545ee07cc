"use strict";
// The top view: what the road, the lights and everybody on it look like at one moment.
const LIGHT_NAMES = ["", "green", "yellow", "red", "unknown"];
const PALETTE = [
  "ground", "road", "route", "walk", "edge", "divider", "connector", "stop", "ink", "muted", "panel", "vehicle", "pedestrian", "bicycle",
  "static", "outline", "pressure", "ego-a", "ego-b", "bad", "rule-collision", "rule-lane", "rule-speed", "light-green", "light-yellow", "light-red", "light-unknown", "expert",
];
const VEHICLE = 0, PEDESTRIAN = 1, BICYCLE = 2, CONE = 3, SIGN = 5;

class Camera {
  constructor() { Object.assign(this, { zoom: 8, follow: true, headingUp: false, x: 0, y: 0 }); }
}

class SceneView {
  constructor(canvas, drive, page, camera, letter) {
    Object.assign(this, { canvas, drive, camera, letter, rules: page.rules.length });
    this.context = canvas.getContext("2d");
    this.expert = unpackScaled(page.expert, page.step);
    this.goal = page.goal ? page.goal.map((value) => value * page.step) : null;
    this.hovered = null;
    this.ruleNames = page.rules.map(({ name }) => name);
    this.overlays = new Overlays(this, page);
    this.readColors();
  }

  ruleColor(rule) { return theme.color(`rule-${this.ruleNames[rule]}`) || this.color.ink; }

  readColors() {
    this.color = Object.fromEntries(PALETTE.map((name) => [name, theme.color(name)]));
    this.own = this.color[`ego-${this.letter}`];
  }

  get width() { return this.canvas.clientWidth; }
  get height() { return this.canvas.clientHeight; }

  #fit() {
    const ratio = devicePixelRatio || 1, width = Math.round(this.width * ratio), height = Math.round(this.height * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    return ratio;
  }

  // Where the camera looks: centre [m], turn [rad].
  #aim(time) {
    const ego = this.drive.ego(time), { follow, headingUp, x, y } = this.camera;
    return { x: follow ? ego.x : x, y: follow ? ego.y : y, turn: headingUp ? Math.PI / 2 - ego.heading : 0 };
  }

  draw(road, time) {
    const ratio = this.#fit(), c = this.context, { zoom } = this.camera, aim = this.#aim(time);
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = this.color.ground;
    c.fillRect(0, 0, this.canvas.width, this.canvas.height);
    c.translate(this.canvas.width / 2, this.canvas.height / 2);
    c.scale(zoom * ratio, -zoom * ratio);
    c.rotate(aim.turn);
    c.translate(-aim.x, -aim.y);
    this.matrix = c.getTransform();
    c.lineJoin = c.lineCap = "round";
    this.pixel = 1 / zoom;
    this.#drawRoad(road);
    this.#drawLights(road, time);
    this.#drawGoal();
    this.overlays.drawBelow(time);
    this.#drawPaths(time);
    this.#drawForecasts(time);
    this.#drawPlan(time);
    this.overlays.drawAbove(time);
    this.drive.tracks.forEach((track, i) => this.#drawTrack(track, i, time));
    this.#drawEgo(time);
    this.overlays.drawMarks(time);
    this.overlays.drawLabels(time, ratio);
    this.#drawScale(ratio);
  }

  stroke(path, color, width, dash = []) {
    const c = this.context;
    c.strokeStyle = color;
    c.lineWidth = Math.max(width, 0.8 * this.pixel);
    c.setLineDash(dash);
    if (path) c.stroke(path); else c.stroke();
    c.setLineDash([]);
  }

  #drawRoad(road) {
    const c = this.context, color = this.color;
    c.fillStyle = color.road;
    c.fill(road.road, "evenodd");
    c.fillStyle = color.route;
    c.fill(road.route, "evenodd");
    c.fillStyle = this.#zebra();
    c.fill(road.crosswalks, "evenodd");
    c.fillStyle = color.stop;
    c.fill(road.stopLines, "evenodd");
    this.stroke(road.connectors, color.connector, 0.1, [0.8, 1.2]);
    this.stroke(road.dividers, color.divider, 0.14, [3, 3]);
    this.stroke(road.edges, color.edge, 0.18);
  }

  #zebra() {
    if (this.context.isSvg) return this.color.walk;
    if (this.zebra?.color !== this.color.walk) {
      const tile = document.createElement("canvas");
      tile.width = tile.height = 12;
      const c = tile.getContext("2d");
      c.fillStyle = this.color.walk;
      c.fillRect(0, 0, 7, 12);
      const pattern = this.context.createPattern(tile, "repeat");
      pattern.setTransform(new DOMMatrix().scale(1 / 12));
      this.zebra = { color: this.color.walk, pattern };
    }
    return this.zebra.pattern;
  }

  // Red is a thick bar, yellow a broken one, green a thin line: colour alone never tells.
  #drawLights(road, time) {
    const count = road.bars.length / 4, frame = this.drive.frame(time), c = this.context;
    c.lineCap = "butt";
    for (const wanted of [4, 1, 2, 3]) {
      c.beginPath();
      for (let i = 0; i < count; i++) {
        if (road.lights[frame * count + i] !== wanted) continue;
        const [x0, y0, x1, y1] = road.bars.subarray(4 * i, 4 * i + 4);
        c.moveTo(lerp(x0, x1, 0.06), lerp(y0, y1, 0.06));
        c.lineTo(lerp(x0, x1, 0.94), lerp(y0, y1, 0.94));
      }
      const width = wanted === 3 ? 0.8 : wanted === 2 ? 0.8 : 0.4;
      this.stroke(null, this.color[`light-${LIGHT_NAMES[wanted]}`], width, wanted === 2 ? [0.5, 0.35] : []);
    }
    c.lineCap = "round";
  }

  #drawGoal() {
    if (!this.goal) return;
    const c = this.context, [x, y] = this.goal, size = Math.max(1.1, 7 * this.pixel);
    c.beginPath();
    c.arc(x, y, size, 0, 7);
    this.stroke(null, this.color.muted, 0.2, [0.6, 0.5]);
    c.beginPath();
    c.arc(x, y, size / 3, 0, 7);
    c.fillStyle = this.color.muted;
    c.fill();
  }

  #line(points, from, to) {
    const c = this.context;
    c.beginPath();
    for (let i = from; i <= to; i++) c.lineTo(points[2 * i], points[2 * i + 1]);
  }

  #drawPaths(time) {
    const c = this.context, drive = this.drive, frame = drive.frame(time), ego = drive.ego(time);
    this.#line(this.expert, 0, this.expert.length / 2 - 1);
    this.stroke(null, this.color.expert, 0.16, [0.2, 0.9]);
    this.#line(drive.center, frame, drive.samples - 1);
    c.globalAlpha = 0.4;
    this.stroke(null, this.own, 0.14, [0.5, 0.7]);
    c.globalAlpha = 0.8;
    this.#line(drive.center, 0, frame);
    c.lineTo(ego.x, ego.y);
    this.stroke(null, this.own, 0.35);
    c.globalAlpha = 1;
  }

  #drawForecasts(time) {
    const { forecasts } = this.drive, frame = this.drive.frame(time);
    if (!forecasts) return;
    const { rows, points, track, xy } = forecasts, c = this.context;
    for (let row = 0; row < rows && (frame + 1) * rows <= track.length; row++) {
      const index = track[frame * rows + row];
      const pose = index >= 0 ? this.drive.pose(this.drive.tracks[index], time) : null;
      if (!pose) continue;
      const at = 2 * points * (frame * rows + row);
      c.beginPath();
      c.moveTo(pose.x, pose.y);
      for (let k = 0; k < points; k++) c.lineTo(xy[at + 2 * k], xy[at + 2 * k + 1]);
      c.globalAlpha = 0.6;
      this.stroke(null, this.color.ink, 0.2, [0.7, 0.6]);
      c.globalAlpha = 1;
    }
  }

  #drawPlan(time) {
    const { plans } = this.drive, frame = this.drive.frame(time), c = this.context;
    if (!plans || (frame + 1) * plans.points * 2 > plans.xy.length) return;
    const points = plans.xy.subarray(2 * frame * plans.points, 2 * (frame + 1) * plans.points), ego = this.drive.ego(time);
    const ahead = (k) => (points[2 * k] - ego.x) * Math.cos(ego.heading) + (points[2 * k + 1] - ego.y) * Math.sin(ego.heading);
    let first = 0;
    while (first < plans.points - 1 && ahead(first) < 0.5) first++;
    c.beginPath();
    c.moveTo(ego.x, ego.y);
    for (let k = first; k < plans.points; k++) c.lineTo(points[2 * k], points[2 * k + 1]);
    c.lineCap = "butt";
    c.globalAlpha = 0.3;
    this.stroke(null, this.own, 1.9);
    c.globalAlpha = 1;
    c.lineCap = "round";
    this.stroke(null, this.own, 0.3);
    const second = Math.max(1, Math.round(10 / plans.every));
    c.fillStyle = this.color.ground;
    for (let k = second - 1; k < plans.points; k += second) {
      if (k < first) continue;
      c.beginPath();
      c.arc(points[2 * k], points[2 * k + 1], Math.max(0.3, 2.2 * this.pixel), 0, 7);
      c.fill();
      this.stroke(null, this.own, 0.16);
    }
  }

  inPose(pose, paint) {
    const c = this.context;
    c.save();
    c.translate(pose.x, pose.y);
    c.rotate(pose.heading);
    paint(c);
    c.restore();
  }

  #drawTrack(track, index, time) {
    const pose = this.drive.pose(track, time);
    if (!pose) return;
    const share = this.drive.tintOf(index, time), hovered = this.hovered === index;
    const color = this.color[["vehicle", "pedestrian", "bicycle"][track.type] ?? "static"];
    this.inPose(pose, (c) => {
      this.#outline(c, track, pose);
      if (share > 0.01) {
        c.globalAlpha = 0.25 + 0.75 * share;
        this.stroke(null, this.color.pressure, 0.5 + 1.1 * share);
        c.globalAlpha = 1;
      }
      c.fillStyle = color;
      c.fill();
      if (share > 0.01) {
        c.globalAlpha = share;
        c.fillStyle = this.color.pressure;
        c.fill();
        c.globalAlpha = 1;
      }
      this.stroke(null, hovered ? this.color.ink : this.color.outline, hovered ? 2.5 * this.pixel : 0.1);
      if (track.type === VEHICLE) this.#windscreen(c, pose);
    });
  }

  // The shape says what kind of object it is.
  #outline(c, track, pose) {
    const length = Math.max(pose.length, 5 * this.pixel), width = Math.max(pose.width, 5 * this.pixel);
    c.beginPath();
    if (track.type === PEDESTRIAN) {
      c.arc(0, 0, Math.max(0.45, width / 2), 0, 7);
    } else if (track.type === CONE || track.type === SIGN) {
      const size = Math.max(0.5, width / 2);
      c.moveTo(size, 0);
      c.lineTo(-size, track.type === CONE ? size : 0.6 * size);
      c.lineTo(-size, track.type === CONE ? -size : -0.6 * size);
      c.closePath();
    } else if (track.type === BICYCLE) {
      c.ellipse(0, 0, length / 2, Math.max(width / 2, 0.35), 0, 0, 7);
    } else {
      c.roundRect(-length / 2, -width / 2, length, width, track.type === VEHICLE ? Math.min(0.5, width / 4) : 0);
    }
  }

  #windscreen(c, pose) {
    const front = 0.22 * pose.length, side = 0.36 * pose.width;
    c.beginPath();
    c.moveTo(front, side);
    c.lineTo(front + 0.09 * pose.length, 0.8 * side);
    c.lineTo(front + 0.09 * pose.length, -0.8 * side);
    c.lineTo(front, -side);
    c.closePath();
    c.fillStyle = this.color.outline;
    c.globalAlpha = 0.55;
    c.fill();
    c.globalAlpha = 1;
  }

  #drawEgo(time) {
    const ego = this.drive.ego(time);
    this.inPose(ego, (c) => {
      c.beginPath();
      c.roundRect(-ego.length / 2, -ego.width / 2, ego.length, ego.width, 0.55);
      this.stroke(null, this.color.ground, 0.7);
      c.fillStyle = this.own;
      c.fill();
      this.stroke(null, this.color.ink, 0.16);
      this.#windscreen(c, ego);
    });
  }

  #drawScale(ratio) {
    const c = this.context, metres = [5, 10, 20, 50, 100].find((m) => m * this.camera.zoom > 60) ?? 200;
    const width = metres * this.camera.zoom, y = this.height - 14;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.font = "11px system-ui, sans-serif";
    c.fillStyle = this.color.panel;
    c.beginPath();
    c.roundRect(8, y - 10, width + 18 + c.measureText(`${metres} m`).width, 18, 6);
    c.fill();
    c.strokeStyle = c.fillStyle = this.color.muted;
    c.lineWidth = 1.5;
    c.beginPath();
    c.moveTo(14, y - 4);
    c.lineTo(14, y);
    c.lineTo(14 + width, y);
    c.lineTo(14 + width, y - 4);
    c.stroke();
    c.fillText(`${metres} m`, 20 + width, y + 1);
  }

  // Place on the canvas [CSS px] -> world [m].
  toWorld(px, py) {
    const ratio = devicePixelRatio || 1, point = this.matrix.inverse().transformPoint({ x: px * ratio, y: py * ratio });
    return [point.x, point.y];
  }

  toCanvas(x, y) {
    const ratio = devicePixelRatio || 1, point = this.matrix.transformPoint({ x, y });
    return [point.x / ratio, point.y / ratio];
  }

  // The track under a place on the canvas, or null; small ones may be missed by a few pixels.
  pick(px, py, time) {
    const [x, y] = this.toWorld(px, py), slack = 4 / this.camera.zoom;
    let best = null, least = Infinity;
    this.drive.tracks.forEach((track, i) => {
      const pose = this.drive.pose(track, time);
      if (!pose) return;
      const dx = x - pose.x, dy = y - pose.y, cos = Math.cos(pose.heading), sin = Math.sin(pose.heading);
      const outside = Math.max(Math.abs(dx * cos + dy * sin) - pose.length / 2, Math.abs(dy * cos - dx * sin) - pose.width / 2);
      if (outside < slack && outside < least) [best, least] = [i, outside];
    });
    return best;
  }
}
