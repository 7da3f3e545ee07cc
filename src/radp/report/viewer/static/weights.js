"use strict";
// Sliders for weights of rules: each stored drive has its weights, and the sliders choose among what is stored.
class WeightSliders {
  constructor(root, weights, choose) {
    Object.assign(this, { root, weights, choose, chosen: 0 });
    this.rules = Object.keys(weights[0]);
    this.values = this.rules.map((rule) => [...new Set(weights.map((one) => one[rule]))].sort((a, b) => a - b));
    this.inputs = this.rules.map((rule, i) => this.#slider(rule, i));
    root.hidden = false;
    this.set(0);
  }

  #slider(rule, i) {
    const input = element("input", { type: "range", id: `weight-${rule}`, min: 0, max: this.values[i].length - 1, step: 1, "aria-label": `Weight of ${rule}` });
    const said = element("output");
    input.addEventListener("input", () => this.choose(this.nearest(i, this.values[i][Number(input.value)])));
    this.root.append(element("label", {}, element("span", { text: rule }), input, said));
    return { input, said };
  }

  // The stored drive with this weight of rule i whose other weights are nearest to those that are shown now.
  nearest(i, value) {
    const now = this.weights[this.chosen], apart = (one) => this.rules.reduce((sum, rule) => sum + Math.abs(Math.log(one[rule] / now[rule])), 0);
    const fitting = this.weights.map((one, k) => [k, one]).filter(([, one]) => one[this.rules[i]] === value);
    return fitting.reduce((best, next) => (apart(next[1]) < apart(best[1]) ? next : best))[0];
  }

  set(k) {
    this.chosen = k;
    this.rules.forEach((rule, i) => {
      const value = this.weights[k][rule], { input, said } = this.inputs[i];
      input.value = this.values[i].indexOf(value);
      said.textContent = `${+value.toFixed(3)}×`;
      input.setAttribute("aria-valuetext", `${value} times the default`);
    });
  }
}
