"use strict";
// What went wrong, in sentences, beside the film: click to go there.
class IncidentList {
  constructor(root, drives, jump) {
    Object.assign(this, { root, drives, jump, entries: [] });
    const count = drives.reduce((sum, drive) => sum + drive.incidents.length, 0);
    root.append(element("h2", { text: count ? (count === 1 ? "1 incident" : `${count} incidents`) : "No incident" }));
    drives.forEach((drive, i) => drive.incidents.forEach((incident) => root.append(this.#entry(incident, i))));
  }

  #entry(incident, i) {
    const letter = this.drives.length > 1 ? element("span", { text: LETTERS[i], className: `letter ${LETTERS[i].toLowerCase()}` }) : null;
    const whom = incident.name === null ? null : element("span", { text: incident.name, className: "whom" });
    const cost = incident.cost > 0.0005 ? `−${(100 * incident.cost).toFixed(1)}` : "";
    const head = element("button", { className: "incident", type: "button" }, letter, element("b", { text: incident.title }), whom,
      element("time", { text: `${incident.time.toFixed(1)} s` }), element("em", { text: cost, title: "points lost" }));
    head.addEventListener("click", () => this.jump(incident.frame));
    const [what, ...rest] = incident.sentences;
    const more = element("details", {}, element("summary", { text: this.#short(what) }), ...rest.map((text) => element("p", { text })));
    more.open = incident.cost >= 0.05 && this.drives.length === 1;
    const links = incident.lost === null ? [] : [this.#link("last chance", Math.max(0, incident.lost - 1))];
    const box = element("div", { className: "entry" }, head, more,
      element("p", { className: "jumps" }, this.#link("3 s before", Math.max(0, incident.frame - 30)), ...links));
    this.entries.push({ box, incident, drive: i });
    return box;
  }

  // The first sentence without what the head says already.
  #short(text) { return text.slice(text.indexOf(": ") + 2); }

  #link(text, frame) {
    const button = element("button", { text, type: "button", className: "jump" });
    button.addEventListener("click", () => this.jump(frame));
    return button;
  }

  draw(frame) {
    for (const { box, incident } of this.entries) box.classList.toggle("now", frame >= incident.frame - 30 && frame <= incident.end + 10);
  }
}
