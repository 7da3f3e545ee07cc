"use strict";
// The panel beside the canvas: who is selected, which rules press and pull, what was changed.
const ADDABLE = [["VEHICLE", "car"], ["PEDESTRIAN", "pedestrian"], ["BICYCLE", "bicycle"], ["TRAFFIC_CONE", "cone"], ["BARRIER", "barrier"]];
const MOST_TIMES = 20, USUAL_PLACE = 0.3;  // of a bar's width: where a rule presses as usual

// Pressure -> how many times its usual level.
const times = (pressure) => Math.expm1(pressure);
const timesWords = (value) => (value >= MOST_TIMES ? `more than ${MOST_TIMES}× usual` : `${value.toFixed(value < 10 ? 1 : 0)}× usual`);

class Panel {
  constructor(editor, changed) {
    Object.assign(this, { editor, changed, rules: [], off: new Set(), weights: new Map(), strength: 0, steerable: false, calibrated: false });
    this.find = (id) => document.getElementById(id);
    this.#fillAdders();
  }

  #button(text, act, more = {}) {
    const button = element("button", { text, type: "button", ...more });
    button.addEventListener("click", act);
    return button;
  }

  #fillAdders() {
    this.find("adders").replaceChildren(...ADDABLE.map(([type, text]) => this.#button(text, () => {
      this.editor.placing = this.editor.placing === type ? null : type;
      this.showPlacing();
    }, { "data-type": type, "aria-pressed": "false" })));
  }

  showPlacing() {
    for (const button of this.find("adders").children) button.setAttribute("aria-pressed", button.dataset.type === this.editor.placing);
    this.editor.canvas.classList.toggle("placing", this.editor.placing !== null);
  }

  setRules({ rules, steerable, calibrated }) {
    Object.assign(this, { rules, steerable, calibrated, off: new Set(), weights: new Map(rules.map(({ name, weight }) => [name, weight])), strength: 0 });
    this.find("rules-note").textContent = steerable ? "pressure, and weight when they pull" : "pressure; this planner cannot be pulled";
    const rows = rules.map((rule) => this.#ruleRow(rule));
    if (steerable) rows.push(this.#strengthRow());
    this.find("rules").replaceChildren(...rows);
  }

  #ruleRow({ name, describes, weight }) {
    const box = element("input", { type: "checkbox", "aria-label": `Rule ${name}`, title: describes });
    box.checked = true;
    const fill = element("i"), level = element("div", { className: "level" }, fill), words = element("output");
    fill.style.background = `var(--rule-${name}, var(--ink))`;
    const number = element("input", { type: "number", min: 0, max: 100, step: "any", value: weight, "aria-label": `Weight of ${name}` });
    number.hidden = !this.steerable;
    const row = element("div", { className: "rule", "data-rule": name }, box, element("span", { text: name, title: describes }), level, number, words);
    box.addEventListener("change", () => {
      if (box.checked) this.off.delete(name); else this.off.add(name);
      row.classList.toggle("off", !box.checked);
      this.changed({});
    });
    number.addEventListener("change", () => {
      if (!number.checkValidity() || number.value === "") { number.value = this.weights.get(name); return; }
      this.weights.set(name, Number(number.value));
      this.changed({});
    });
    return row;
  }

  #strengthRow() {
    const value = element("output", { text: "0" });
    const slider = element("input", { type: "range", id: "strength", min: 0, max: 2, step: 0.05, value: 0, "aria-label": "How hard rules pull at the plan" });
    slider.addEventListener("input", () => {
      this.strength = Number(slider.value);
      value.textContent = slider.value;
      this.changed({});
    });
    return element("label", { className: "row", title: "0: the planner as it was trained" }, "Rules pull at the plan", slider, value);
  }

  // For a question.
  choice() {
    return { off: [...this.off], weights: Object.fromEntries(this.weights), strength: this.strength };
  }

  showPressures() {
    const { drive, answer } = this.editor;
    for (const row of this.find("rules").querySelectorAll("[data-rule]")) {
      const rule = answer.rules.indexOf(row.dataset.rule);
      const value = rule < 0 ? NaN : drive.pressureOf(rule, 0, answer.rules.length), level = times(value);
      const share = Number.isNaN(value) ? 0 : Math.min(1, USUAL_PLACE * value / Math.LN2);
      row.querySelector("i").style.width = `${100 * share}%`;
      row.querySelector("output").textContent = Number.isNaN(value) ? "" : this.calibrated ? timesWords(level) : value.toFixed(2);
    }
  }

  showSelected() {
    const { editor } = this, who = editor.selected, pose = who === null || !editor.drive ? null : editor.pose(who), root = this.find("selected");
    if (!pose) { root.replaceChildren(element("h2", { text: "Nobody selected" })); return; }
    const track = who === EGO ? null : editor.drive.tracks[editor.index(who)], moves = !track || track.type <= BICYCLE;
    const speed = element("input", { type: "number", id: "speed", min: 0, max: 60, step: 0.5, value: pose.speed.toFixed(1), "aria-label": "Speed, m/s" });
    speed.addEventListener("change", () => { if (speed.checkValidity() && speed.value !== "") editor.setSpeed(who, Number(speed.value)); });
    const move = [
      element("label", { className: "row" }, "Speed, m/s", speed),
      element("div", { className: "row" }, this.#button("Stop", () => editor.setSpeed(who, 0), { id: "stop" }), this.#button("Slower", () => editor.setSpeed(who, pose.speed - 2)),
        this.#button("Faster", () => editor.setSpeed(who, pose.speed + 2), { id: "faster" })),
    ];
    const turn = [this.#button("⟲ 15°", () => editor.turn(who, Math.PI / 12)), this.#button("⟳ 15°", () => editor.turn(who, -Math.PI / 12))];
    if (track) turn.push(this.#button("Delete", () => editor.remove(who), { id: "delete" }));
    const share = track ? editor.drive.shareOf(editor.index(who), 0) : null;
    const note = share === null ? [] : [element("p", { className: "hint", text: `${(100 * share).toFixed(0)} % of the collision pressure` })];
    root.replaceChildren(element("h2", { text: track ? `${track.kind} ${who}` : "The ego" }), ...(moves ? move : []), element("div", { className: "row" }, ...turn), ...note);
  }

  showChanges() {
    const { editor } = this, words = (edit) => {
      const when = ` at ${(edit.at * editor.page.dt).toFixed(1)} s`;
      if (edit.kind === "light") return `light ${edit.light} ${edit.state.toLowerCase()}${when}`;
      if (edit.kind === "speed") return `${edit.who}: ${edit.speed.toFixed(1)} m/s${when}`;
      return `${edit.who} ${{ move: "moved", add: "added", remove: "deleted" }[edit.kind]}${edit.kind === "remove" ? "" : when}`;
    };
    this.find("changes").replaceChildren(...editor.edits.map((edit, i) => element("li", {}, words(edit),
      this.#button("✕", () => editor.take(editor.edits.filter((_, k) => k !== i)), { title: "Take this back" }))));
    this.find("undo").disabled = this.find("reset").disabled = !editor.edits.length;
  }

  say(text, bad = false) {
    this.find("status").textContent = text;
    this.find("status").classList.toggle("bad", bad);
  }
}
