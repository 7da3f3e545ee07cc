"use strict";
// Packed arrays back into numbers: metres, radians, m/s. A missing value is NaN.
const MISSING = -32768;
const ARRAYS = { i1: Int8Array, i2: Int16Array, u2: Uint16Array, u1: Uint8Array, f4: Float32Array };

function unpack({ t, b }) {
  const text = atob(b);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new ARRAYS[t](bytes.buffer);
}

function unpackScaled(packed, step) {
  return Float32Array.from(unpack(packed), (value) => (value === MISSING ? NaN : value * step));
}

// Rings or lines as one path, in metres.
function unpackPath({ n, xy }, step, closed) {
  const counts = unpack(n), points = unpackScaled(xy, step), text = [];
  let i = 0;
  for (const count of counts) {
    for (let k = 0; k < count; k++, i += 2) text.push(`${k ? "L" : "M"}${+points[i].toFixed(2)} ${+points[i + 1].toFixed(2)}`);
    if (closed) text.push("Z");
  }
  const path = new Path2D(text.join(""));
  path.text = text.join("");  // for SVG
  return path;
}

function unpackRoad(road, step) {
  const path = (name, closed) => unpackPath(road[name], step, closed);
  return {
    road: path("road", true), route: path("route", true), crosswalks: path("crosswalks", true),
    stopLines: path("stop_lines", true), edges: path("edges", false), dividers: path("dividers", false),
    connectors: path("connectors", false),
    bars: unpackScaled(road.bars, step), lights: unpack(road.lights),
  };
}

const lerp = (a, b, share) => a + (b - a) * share;
function lerpAngle(a, b, share) {
  let turn = (b - a) % (2 * Math.PI);
  if (turn > Math.PI) turn -= 2 * Math.PI;
  if (turn < -Math.PI) turn += 2 * Math.PI;
  return a + turn * share;
}

// One drive. Times are in samples; between samples things move evenly.
class Drive {
  constructor(data, page) {
    const { step, angle } = page;
    Object.assign(this, {
      planner: data.planner, agents: data.agents, failure: data.failure, score: data.score, card: data.card,
      harmless: data.harmless, trades: data.trades ?? [], over: unpack(data.over), rate: page.rate,
      collision: page.rules.findIndex((rule) => rule.name === "collision"), rules: page.rules.length, full: Math.log1p(page.most),
      incidents: data.incidents.map((one) => ({ ...one, impact: one.impact && one.impact.map((value) => value * step) })), samples: data.samples, types: page.types, car: page.car,
      time: unpack(data.time), events: unpack(data.events),
      center: unpackScaled(data.ego.xy, step), axle: unpackScaled(data.ego.axle, step),
      heading: unpackScaled(data.ego.heading, angle), motion: unpackScaled(data.ego.motion, 0.01),
    });
    this.tracks = this.#readTracks(data.tracks, step, angle);
    if (data.plans) this.plans = { ...data.plans, xy: unpackScaled(data.plans.xy, step) };
    if (data.forecasts) {
      const { track, xy } = data.forecasts;
      this.forecasts = { ...data.forecasts, track: unpack(track), xy: unpackScaled(xy, step) };
    }
    if (data.overlay) {
      const { borders, over, arrows } = data.overlay;
      this.overlay = { ...data.overlay, borders: unpackScaled(borders, step), over: unpack(over), arrows: unpack(arrows) };
    }
    if (data.why) {
      this.pressure = unpack(data.why.pressure);
      this.share = unpack(data.why.share);
      this.jump = data.why.jump && unpack(data.why.jump);
      this.explained = this.pressure.length / page.rules.length;
    }
  }

  #readTracks({ id, type, size, span, xy, heading, speed }, step, angle) {
    const points = unpackScaled(xy, step), turns = unpackScaled(heading, angle), speeds = unpackScaled(speed, 0.01);
    let at = 0;
    return id.map((name, i) => {
      const [first, count] = span[i];
      const track = {
        id: name, type: type[i], kind: this.types[type[i]], length: size[i][0], width: size[i][1], first, count,
        xy: points.subarray(2 * at, 2 * (at + count)), heading: turns.subarray(at, at + count),
        speed: speeds.subarray(at, at + count),
      };
      at += count;
      return track;
    });
  }

  clamp(time) { return Math.max(0, Math.min(time, this.samples - 1)); }
  frame(time) { return Math.floor(this.clamp(time) + 1e-6); }

  ego(time) {
    const at = this.clamp(time), i = this.frame(time), k = Math.min(i + 1, this.samples - 1), share = at - i;
    return {
      x: lerp(this.center[2 * i], this.center[2 * k], share), y: lerp(this.center[2 * i + 1], this.center[2 * k + 1], share),
      heading: lerpAngle(this.heading[i], this.heading[k], share), length: this.car[0], width: this.car[1],
      speed: lerp(this.motion[2 * i], this.motion[2 * k], share), acceleration: this.motion[2 * i + 1],
    };
  }

  // The pose of a track, or null where it is not seen.
  pose(track, time) {
    const at = this.clamp(time), frame = this.frame(time), i = frame - track.first;
    if (i < 0 || i >= track.count || Number.isNaN(track.xy[2 * i])) return null;
    const share = at - frame, next = i + 1 < track.count && !Number.isNaN(track.xy[2 * i + 2]) ? i + 1 : i;
    return {
      x: lerp(track.xy[2 * i], track.xy[2 * next], share), y: lerp(track.xy[2 * i + 1], track.xy[2 * next + 1], share),
      heading: lerpAngle(track.heading[i], track.heading[next], share), speed: track.speed[i],
      length: track.length, width: track.width,
    };
  }

  // Share of a track in the collision pressure: 0 to 1, or null where nothing is known.
  shareOf(index, time) {
    const frame = this.frame(time);
    return this.share && frame < this.explained ? this.share[frame * this.tracks.length + index] / 255 : null;
  }

  // How strongly somebody is tinted, 0 to 1: share times the height of the collision pressure.
  tintOf(index, time) {
    const share = this.shareOf(index, time) ?? 0, pressure = this.collision < 0 ? 0 : this.pressureOf(this.collision, this.frame(time), this.rules);
    return share * Math.min(1, (pressure || 0) / this.full);
  }

  pressureOf(rule, frame, rules) {
    return this.pressure && frame < this.explained ? this.pressure[frame * rules + rule] : NaN;
  }

  // Whether most of a pressure is that the plan's first step does not begin as the car moves.
  jumps(rule, frame) { return Boolean(this.jump && frame < this.explained && this.jump[frame * this.rules + rule]); }

  happens(risk, frame) { return frame < this.samples && (this.events[frame] >> risk) & 1; }
}
