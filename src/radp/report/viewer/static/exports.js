"use strict";
// What can be taken away from the page: the moment as PNG or SVG, the curves as CSV.
const exporting = {
  // The views that are shown, and the curves under them, on one canvas.
  picture(views, curves) {
    const shown = views.filter((view) => !view.box.hidden).map((view) => view.canvas), below = curves.canvas;
    const width = Math.max(below.width, shown.reduce((sum, canvas) => sum + canvas.width, 0));
    const height = Math.max(...shown.map((canvas) => canvas.height));
    const sheet = element("canvas", { width, height: height + below.height }), c = sheet.getContext("2d");
    c.fillStyle = theme.color("panel");
    c.fillRect(0, 0, sheet.width, sheet.height);
    let x = 0;
    for (const canvas of shown) {
      c.drawImage(canvas, x, 0);
      x += canvas.width;
    }
    curves.draw(true);
    c.drawImage(below, 0, height);
    curves.draw();
    return sheet;
  },

  png: (views, curves) => new Promise((done) => exporting.picture(views, curves).toBlob(done, "image/png")),

  // One view as vectors.
  svg(view, road, time) {
    const own = view.context, paper = new SvgContext(view.canvas.width, view.canvas.height);
    view.context = paper;
    try { view.draw(road, time); } finally { view.context = own; }
    return paper.toString();
  },

  // One line a sample and drive. A cell that a spreadsheet would compute with is quoted text.
  csv(drives, page) {
    const cell = (value) => (typeof value === "number" ? (Number.isNaN(value) ? "" : String(+value.toFixed(5))) : `"${String(value).replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"`);
    const rules = page.rules.map(({ name }) => name);
    const head = ["planner", "time_s", "speed_m_s", "acceleration_m_s2", "overspeed_m_s", ...rules.map((name) => `pressure_${name}`),
      ...(page.calibrated ? rules.map((name) => `times_usual_${name}`) : []), "risks"];
    const lines = drives.flatMap((drive) => Array.from({ length: drive.samples }, (_, frame) => {
      const pressures = rules.map((_, rule) => drive.pressureOf(rule, frame, rules.length));
      const risks = page.risks.filter((_, bit) => drive.happens(bit, frame)).map((risk) => risk.name).join(" ");
      const levels = page.calibrated ? pressures.map(Math.expm1) : [];
      return [drive.planner, drive.time[frame], drive.motion[2 * frame], drive.motion[2 * frame + 1], drive.over[frame] / 10, ...pressures, ...levels, risks];
    }));
    return [head, ...lines].map((line) => line.map(cell).join(",")).join("\r\n") + "\r\n";
  },

  save(name, blob) {
    const link = element("a", { download: name, href: URL.createObjectURL(blob) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  },
};
