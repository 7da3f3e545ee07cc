"use strict";
// The score card: what the drive is worth, and why.
const LETTERS = ["A", "B"];
const percent = (value) => (value === null ? "n/a" : `${(100 * value).toFixed(value === 1 || value === 0 ? 0 : 1)}`);

class Card {
  constructor(root, drives, jump) {
    Object.assign(this, { root, drives, jump });
    root.append(this.#head(), this.#legendOfRows());
    drives[0].card.forEach((row, i) => root.append(this.#row(i)));
    drives.forEach((drive, i) => {
      for (const contact of drive.harmless) root.append(this.#moment(contact, i));
    });
  }

  #letter(i) {
    return this.drives.length > 1 ? element("span", { text: LETTERS[i], className: `letter ${LETTERS[i].toLowerCase()}` }) : null;
  }

  #head() {
    const scores = this.drives.map((drive, i) => {
      const ring = element("div", { className: "ring" }, element("b", { text: percent(drive.score) }));
      ring.style.setProperty("--share", drive.score ?? 0);
      ring.style.setProperty("--own", `var(--ego-${LETTERS[i].toLowerCase()})`);
      const name = element("div", { className: "who" }, this.#letter(i), element("span", { text: drive.planner }));
      const note = drive.failure ? `the planner failed: ${drive.failure}` : `${drive.agents} traffic`;
      return element("div", { className: "score" }, ring, element("div", {}, name, element("small", { text: note })));
    });
    return element("div", { className: "scores" }, ...scores);
  }

  #legendOfRows() {
    const text = "Gates multiply the score; the others are averaged by weight.";
    return element("p", { className: "hint", text });
  }

  #row(i) {
    const rows = this.drives.map((drive) => drive.card[i]), { title, gate, weight } = rows[0];
    const values = rows.map((row, k) => {
      const mark = row.value === null ? "none" : row.value >= 0.9995 ? "good" : "bad";
      const text = gate && row.value !== null ? (row.value === 1 ? "✓" : row.value === 0 ? "✗" : percent(row.value)) : percent(row.value);
      return element("span", { className: `value ${mark}` }, this.#letter(k), text);
    });
    const role = gate ? "gate" : `weight ${weight}`;
    const head = element("div", { className: "metric" }, element("span", { text: title }), element("em", { text: role }), ...values);
    const notes = rows.flatMap((row, k) => {
      const lines = row.moments.map((moment) => this.#moment(moment, k));
      if (row.cost > 0.0005) lines.unshift(element("p", { className: "cost" }, this.#letter(k), `costs ${(100 * row.cost).toFixed(1)} points`));
      return lines;
    });
    const about = element("details", {}, element("summary", {}, head, this.#bar(rows)), ...notes);
    about.open = this.drives.length === 1 || rows.some((row) => row.cost > 0.0005);
    return about;
  }

  #bar(rows) {
    const bars = rows.map((row, k) => {
      const bar = element("i");
      bar.style.width = `${100 * (row.value ?? 0)}%`;
      bar.style.background = `var(--ego-${LETTERS[k].toLowerCase()})`;
      return bar;
    });
    return element("div", { className: "bar" }, ...bars);
  }

  #moment({ frame, time, text }, i) {
    const button = element("button", { className: "moment", type: "button" }, this.#letter(i), element("time", { text: `${time.toFixed(1)} s` }), text);
    button.addEventListener("click", () => this.jump(frame));
    return button;
  }
}
