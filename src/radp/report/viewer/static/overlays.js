"use strict";
// What the rules look at, drawn on the map where it is switched on, and marks of incidents.
const LAYERS = [
  ["labels", "Labels", "the id of every road user"],
  ["envelope", "Clearance", "the clearance that the collision rule asks for around those that come closer"],
  ["corridor", "Corridor", "the borders that the lane rule sees along the plan"],
  ["arrows", "Arrows", "where the rule that presses most would move the plan"],
  ["speed", "Overspeed", "where the plan and the drive are above the speed limit"],
];
// Of the collision rule: clearance at a standstill [m], headway [s], braking [m/s2], reach [m].
const CLEARANCE = 0.5, HEADWAY = 0.8, RULE_BRAKING = 4, ACTIVE = 20;
const LONGEST_ARROW = 44;  // px

class Overlays {
  constructor(view, page) {
    Object.assign(this, { view, rules: page.rules });
    this.on = { labels: true, envelope: false, corridor: false, arrows: false, speed: false };
  }

  get drive() { return this.view.drive; }

  // The rule that presses most on the plan of a frame, or -1. Jumps at the plan's beginning count only if all are.
  strongest(frame) {
    const values = this.rules.map((_, rule) => this.drive.pressureOf(rule, frame, this.rules.length));
    const highest = (of) => of.reduce((best, value, i) => (value > (of[best] ?? 0) ? i : best), -1);
    const calm = highest(values.map((value, rule) => (this.drive.jumps(rule, frame) ? NaN : value)));
    return calm >= 0 && values[calm] >= USUAL ? calm : highest(values);
  }

  drawBelow(time) {
    if (this.on.corridor) this.#corridor(this.drive.frame(time));
    if (this.on.envelope) this.drive.tracks.forEach((track) => this.#envelope(track, time));
  }

  drawAbove(time) {
    const frame = this.drive.frame(time);
    if (this.on.speed) this.#overspeed(frame);
    if (this.on.arrows) this.#arrows(frame);
  }

  #corridor(frame) {
    const { overlay } = this.drive, c = this.view.context;
    if (!overlay || frame >= this.drive.explained) return;
    for (const side of [0, 2]) {
      let drawing = false;
      c.beginPath();
      for (let k = 0; k < overlay.points; k++) {
        const at = 4 * (frame * overlay.points + k) + side, x = overlay.borders[at], y = overlay.borders[at + 1];
        if (Number.isNaN(x)) { drawing = false; continue; }
        if (drawing) c.lineTo(x, y); else c.moveTo(x, y);
        drawing = true;
      }
      this.view.stroke(null, this.view.color["rule-lane"], 2.5 * this.view.pixel);
    }
  }

  #envelope(track, time) {
    const { drive, view } = this, c = view.context, now = drive.pose(track, time), before = drive.pose(track, time - 1);
    if (!now || !before) return;
    const ego = drive.ego(time), past = drive.ego(time - 1);
    const gap = Math.hypot(now.x - ego.x, now.y - ego.y), was = Math.hypot(before.x - past.x, before.y - past.y);
    const closing = Math.max(0, (was - gap) * drive.rate);
    if (gap > ACTIVE + 8 || (closing < 0.1 && gap > 8)) return;
    const safe = CLEARANCE + HEADWAY * closing + closing ** 2 / (2 * RULE_BRAKING);
    view.inPose(now, () => {
      c.beginPath();
      c.roundRect(-now.length / 2 - safe, -now.width / 2 - safe, now.length + 2 * safe, now.width + 2 * safe, safe);
      c.globalAlpha = 0.1;
      c.fillStyle = view.color["rule-collision"];
      c.fill();
      c.globalAlpha = 0.8;
      view.stroke(null, view.color["rule-collision"], 1.2 * view.pixel, [0.6, 0.4]);
      c.globalAlpha = 1;
    });
  }

  #overspeed(frame) {
    const { drive, view } = this, c = view.context, { overlay } = drive;
    for (let i = 1; i <= frame; i++) {
      if (!drive.over[i]) continue;
      c.beginPath();
      c.moveTo(drive.center[2 * i - 2], drive.center[2 * i - 1]);
      c.lineTo(drive.center[2 * i], drive.center[2 * i + 1]);
      view.stroke(null, view.color["rule-speed"], 0.9);
    }
    if (!overlay || frame >= drive.explained) return;
    for (let k = 0; k < overlay.points; k++) {
      const over = overlay.over[frame * overlay.points + k];
      if (!over) continue;
      const [x, y] = this.#planPoint(frame, k);
      c.beginPath();
      c.arc(x, y, Math.max(0.5, 3 * view.pixel), 0, 7);
      c.globalAlpha = Math.min(1, 0.35 + over / 40);
      c.fillStyle = view.color["rule-speed"];
      c.fill();
      c.globalAlpha = 1;
    }
  }

  // Where the plan of a frame is at the overlay's place k; plans are thinned otherwise.
  #planPoint(frame, k) {
    const { plans, overlay } = this.drive;
    const place = Math.min(plans.points - 1, Math.round(((k + 1) * overlay.every) / plans.every) - 1);
    const at = 2 * (frame * plans.points + place);
    return [plans.xy[at], plans.xy[at + 1]];
  }

  #arrows(frame) {
    const { drive, view } = this, c = view.context, { overlay } = drive, rule = this.strongest(frame);
    const place = overlay ? overlay.of.indexOf(rule) : -1;
    if (place < 0 || frame >= drive.explained) return;
    const color = view.ruleColor(rule);
    for (let k = 0; k < overlay.points; k++) {
      const at = 2 * ((frame * overlay.of.length + place) * overlay.points + k);
      const dx = overlay.arrows[at] / 127, dy = overlay.arrows[at + 1] / 127, size = Math.hypot(dx, dy);
      if (size < 0.05) continue;
      const [x, y] = this.#planPoint(frame, k), length = LONGEST_ARROW * view.pixel, head = Math.min(6 * view.pixel, 0.5 * length * size);
      const [tx, ty] = [x + length * dx, y + length * dy], [ux, uy] = [dx / size, dy / size];
      c.beginPath();
      c.moveTo(x, y);
      c.lineTo(tx, ty);
      c.moveTo(tx - head * (ux - 0.6 * uy), ty - head * (uy + 0.6 * ux));
      c.lineTo(tx, ty);
      c.lineTo(tx - head * (ux + 0.6 * uy), ty - head * (uy - 0.6 * ux));
      view.stroke(null, color, 2 * view.pixel);
    }
  }

  // Incidents of now: a ring around the one that is met, a star where they touch.
  drawMarks(time) {
    const { drive, view } = this, c = view.context, frame = drive.frame(time);
    for (const incident of drive.incidents) {
      if (frame < incident.frame - 30 || frame > incident.end + 20) continue;
      const track = incident.track === null ? null : drive.tracks[incident.track], pose = track && drive.pose(track, time);
      if (pose) {
        view.inPose(pose, () => {
          c.beginPath();
          c.roundRect(-pose.length / 2 - 0.5, -pose.width / 2 - 0.5, pose.length + 1, pose.width + 1, 0.8);
          view.stroke(null, view.color.bad, 2.5 * view.pixel);
        });
      }
      if (incident.impact && frame >= incident.frame) this.#star(incident.impact, 11 * view.pixel);
    }
  }

  #star([x, y], size) {
    const c = this.view.context;
    c.beginPath();
    for (let k = 0; k < 16; k++) {
      const r = k % 2 ? 0.45 * size : size, angle = (k * Math.PI) / 8;
      c.lineTo(x + r * Math.cos(angle), y + r * Math.sin(angle));
    }
    c.closePath();
    c.fillStyle = this.view.color.bad;
    c.fill();
    this.view.stroke(null, this.view.color.panel, 1.5 * this.view.pixel);
  }

  drawLabels(time, ratio) {
    const { drive, view } = this, c = view.context, frame = drive.frame(time);
    const met = new Set(drive.incidents.filter((one) => frame >= one.frame - 30 && frame <= one.end + 20).map((one) => one.track));
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.textAlign = "center";
    c.textBaseline = "middle";
    drive.tracks.forEach((track, i) => {
      if (!met.has(i) && (!this.on.labels || track.type > BICYCLE || view.camera.zoom < 3.5)) return;
      const pose = drive.pose(track, time);
      if (!pose) return;
      const [x, y] = view.toCanvas(pose.x, pose.y);
      if (x < 0 || y < 0 || x > view.width || y > view.height) return;
      const above = y - 9 - (view.camera.zoom * Math.max(pose.width, Math.abs(Math.sin(pose.heading)) * pose.length)) / 2;
      c.font = `${met.has(i) ? 700 : 500} ${met.has(i) ? 12 : 10.5}px system-ui, sans-serif`;
      c.lineWidth = 3;
      c.lineJoin = "round";
      c.strokeStyle = view.color.panel;
      c.strokeText(track.id, x, above);
      c.fillStyle = met.has(i) ? view.color.bad : view.color.ink;
      c.fillText(track.id, x, above);
    });
    c.textAlign = "left";
    c.textBaseline = "alphabetic";
  }
}
