"use strict";
// A drawing context that writes SVG instead of pixels: as much of the canvas interface as the views use.
const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

class SvgContext {
  constructor(width, height) {
    this.root = document.createElementNS(SVG_NAMESPACE, "svg");
    this.#set(this.root, { xmlns: SVG_NAMESPACE, width, height, viewBox: `0 0 ${width} ${height}` });
    this.ruler = document.createElement("canvas").getContext("2d");
    this.matrix = new DOMMatrix();
    this.stack = [];
    this.isSvg = true;
    Object.assign(this, { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, lineJoin: "miter", lineCap: "butt", globalAlpha: 1,
      font: "10px sans-serif", textAlign: "left", textBaseline: "alphabetic", dash: [], d: "" });
  }

  #set(node, attributes) { for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value); }
  #number(value) { return +value.toFixed(3); }
  #add(tag, attributes) {
    const node = document.createElementNS(SVG_NAMESPACE, tag), { a, b, c, d, e, f } = this.matrix;
    const matrix = [a, b, c, d, e, f].map((value) => +value.toFixed(5)).join(" ");
    this.#set(node, { transform: `matrix(${matrix})`, ...attributes, ...(this.globalAlpha < 1 ? { opacity: this.globalAlpha } : {}) });
    this.root.append(node);
    return node;
  }

  save() { this.stack.push([new DOMMatrix(this.matrix.toString()), this.globalAlpha]); }
  restore() { [this.matrix, this.globalAlpha] = this.stack.pop(); }
  setTransform(a, b, c, d, e, f) { this.matrix = new DOMMatrix([a, b, c, d, e, f]); }
  getTransform() { return new DOMMatrix(this.matrix.toString()); }
  translate(x, y) { this.matrix = this.matrix.translate(x, y); }
  scale(x, y) { this.matrix = this.matrix.scale(x, y); }
  rotate(angle) { this.matrix = this.matrix.rotate((180 * angle) / Math.PI); }
  setLineDash(dash) { this.dash = dash; }
  clearRect() {}

  beginPath() { this.d = ""; }
  moveTo(x, y) { this.d += `M${this.#number(x)} ${this.#number(y)}`; }
  lineTo(x, y) { this.d += `${this.d ? "L" : "M"}${this.#number(x)} ${this.#number(y)}`; }
  closePath() { this.d += "Z"; }
  arc(x, y, r) { this.ellipse(x, y, r, r); }
  ellipse(x, y, rx, ry) {
    const [left, right, top, a, b] = [x - rx, x + rx, y, rx, ry].map((value) => this.#number(value));
    this.d += `M${left} ${top}A${a} ${b} 0 1 0 ${right} ${top}A${a} ${b} 0 1 0 ${left} ${top}Z`;
  }
  roundRect(x, y, width, height, radius) {
    const r = Math.min(radius, width / 2, height / 2), n = (value) => this.#number(value), arc = `A${n(r)} ${n(r)} 0 0 1 `;
    this.d += `M${n(x + r)} ${n(y)}H${n(x + width - r)}${arc}${n(x + width)} ${n(y + r)}V${n(y + height - r)}${arc}${n(x + width - r)} ${n(y + height)}`
      + `H${n(x + r)}${arc}${n(x)} ${n(y + height - r)}V${n(y + r)}${arc}${n(x + r)} ${n(y)}Z`;
  }

  fill(path, rule) {
    const d = path?.text ?? this.d;
    if (d) this.#add("path", { d, fill: this.fillStyle, ...(rule === "evenodd" || path === "evenodd" ? { "fill-rule": "evenodd" } : {}) });
  }
  stroke(path) {
    const d = path?.text ?? this.d, dash = this.dash.length ? { "stroke-dasharray": this.dash.join(" ") } : {};
    if (d) this.#add("path", { d, fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-linejoin": this.lineJoin, "stroke-linecap": this.lineCap, ...dash });
  }
  fillRect(x, y, width, height) { this.#add("rect", { x, y, width, height, fill: this.fillStyle }); }

  #text(text, x, y, paint) {
    const anchor = { center: "middle", right: "end", left: "start" }[this.textAlign] ?? "start";
    const base = this.textBaseline === "middle" ? "central" : "auto";
    this.#add("text", { x, y, style: `font: ${this.font}`, "text-anchor": anchor, "dominant-baseline": base, ...paint }).textContent = text;
  }
  fillText(text, x, y) { this.#text(text, x, y, { fill: this.fillStyle }); }
  strokeText(text, x, y) { this.#text(text, x, y, { fill: "none", stroke: this.strokeStyle, "stroke-width": this.lineWidth, "stroke-linejoin": "round" }); }
  measureText(text) { this.ruler.font = this.font; return this.ruler.measureText(text); }

  toString() { return new XMLSerializer().serializeToString(this.root); }
}
