"use strict";
// Pressures over time, one row a rule, with what really happened marked under each row and one cursor through all.
// Heights are log(1 + level); the level, times the usual one, is what is written. A row shows at least 1.5 times the
// usual level, so that its line is always there and calm rows look calm; without levels at least a pressure of 0.05.
// Of many rules, those that stay calm all the time are folded, and named on the button that unfolds them. Rows that do
// not fit scroll; the axis stays in view.
const VALUE_WIDTH = 62, NAME_AT = 24, TOP_WIDTH = 34, AXIS_HEIGHT = 18, STRIP = 5, USUAL = Math.log(2), LEAST_TOP = 0.05, MANY = 8, ROW = 27;
const NAME_FONT = "600 12px system-ui, sans-serif";

class Curves {
  constructor(canvas, fold, drives, page, player, stored = drives) {
    Object.assign(this, { canvas, fold, drives, page, player, rules: page.rules, context: canvas.getContext("2d"), box: canvas.parentElement });
    this.common = false;
    this.least = page.calibrated ? Math.log1p(1.5) : LEAST_TOP;
    this.shown = drives.map(() => true);
    this.hover = null;
    const peaks = this.rules.map((_, rule) => Math.max(...stored.map((drive) => this.#peak(drive, rule))));
    this.peaks = peaks.map((peak) => Math.max(this.least, peak));
    const felt = (rule) => (page.calibrated ? peaks[rule] >= USUAL : peaks[rule] > 0) || stored.some((drive) => this.#happened(drive, rule));
    this.calm = this.rules.flatMap((_, rule) => (felt(rule) ? [] : [rule]));
    this.readColors();
    this.unfold(this.rules.length <= MANY);
    this.#listen();
  }

  #peak(drive, rule) {
    let top = 0;
    for (let frame = 0; frame < (drive.explained ?? 0); frame++) top = Math.max(top, drive.pressureOf(rule, frame, this.rules.length) || 0);
    return top;
  }

  // Whether a risk of this rule happened anywhere.
  #happened(drive, rule) {
    return this.page.risks.some((risk, bit) => risk.rule === this.rules[rule].name && drive.events.some((events) => (events >> bit) & 1));
  }

  // Show all rules, or only those that were felt.
  unfold(all) {
    const folds = this.rules.length > MANY && this.calm.length > 0 && this.calm.length < this.rules.length;
    this.all = all || !folds;
    this.rows = this.rules.flatMap((_, rule) => (this.all || !this.calm.includes(rule) ? [rule] : []));
    this.context.font = NAME_FONT;
    this.widest = Math.max(...this.rows.map((rule) => this.context.measureText(this.rules[rule].name).width));
    this.canvas.style.minHeight = `${ROW * this.rows.length + AXIS_HEIGHT}px`;
    this.fold.hidden = !folds;
    this.fold.setAttribute("aria-expanded", this.all);
    const calm = this.page.calibrated ? "never above their usual level" : "never felt";
    this.fold.textContent = `${this.all ? "▾ Fold" : "▸"} ${this.calm.length} rules ${calm}: ${this.calm.map((rule) => this.rules[rule].name).join(", ")}`;
    this.player.refresh();
  }

  readColors() {
    this.color = Object.fromEntries(["panel", "ink", "muted", "line", "ego-a", "ego-b", "pressure", "bad"].map((n) => [n, theme.color(n)]));
    this.rowColor = this.rules.map(({ name }) => theme.color(`rule-${name}`) || theme.color("ink"));
  }

  get left() { return NAME_AT + this.widest + TOP_WIDTH; }
  get right() { return this.canvas.clientWidth - VALUE_WIDTH; }
  get rowHeight() { return (this.canvas.clientHeight - AXIS_HEIGHT) / this.rows.length; }
  get bottom() { return this.rowHeight * this.rows.length; }
  get above() { return this.whole ? 0 : this.box.scrollTop; }  // what is scrolled away
  get axis() { return this.whole ? this.bottom : Math.min(this.bottom, this.above + this.box.clientHeight - AXIS_HEIGHT); }
  x(time) { return this.left + (this.right - this.left) * (this.player.last ? time / this.player.last : 0); }
  timeAt(x) { return ((x - this.left) / (this.right - this.left)) * this.player.last; }
  top(rule) { return this.common ? Math.max(...this.peaks) : this.peaks[rule]; }

  #listen() {
    const place = (event) => event.clientX - this.canvas.getBoundingClientRect().left;
    this.canvas.addEventListener("pointerdown", (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      this.dragging = true;
      this.player.seek(Math.round(this.timeAt(place(event))));
    });
    this.canvas.addEventListener("pointermove", (event) => {
      const x = place(event);
      this.hover = x >= this.left && x <= this.right ? { x, y: event.offsetY } : null;
      if (this.dragging) this.player.seek(Math.round(this.timeAt(x)));
      this.player.refresh();
    });
    const end = () => { this.dragging = false; };
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
    this.canvas.addEventListener("pointerleave", () => { this.hover = null; this.player.refresh(); });
    this.box.onscroll = () => this.player.refresh();
    this.fold.onclick = () => this.unfold(!this.all);
  }

  // whole: also what is scrolled away, for pictures.
  draw(whole = false) {
    this.whole = whole;
    const ratio = devicePixelRatio || 1, c = this.context, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== h) Object.assign(this.canvas, { width: w, height: h });
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.textBaseline = "middle";
    this.#drawGrid();
    this.rows.forEach((rule, row) => this.#drawRow(rule, row * this.rowHeight));
    this.#drawAxis();
    this.#drawIncidents();
    this.#drawCursor();
  }

  // A pressure in words: times the usual level, or as it is where no level is known.
  wordsOf(value) {
    if (Number.isNaN(value)) return "–";
    if (!this.page.calibrated) return value.toFixed(2);
    return levelWords(value, this.page.most);
  }

  // Flags at incidents, and where the last chance to avoid them was.
  #drawIncidents() {
    const c = this.context, bottom = this.axis;
    this.drives.forEach((drive, i) => {
      if (!this.shown[i]) return;
      for (const { frame, end, lost } of drive.incidents) {
        const x = this.x(frame);
        c.globalAlpha = 0.07;
        c.fillStyle = this.color.bad;
        c.fillRect(x, 0, Math.max(2, this.x(end) - x), bottom);
        c.globalAlpha = 0.85;
        c.fillRect(x - 0.5, 0, 1, bottom);
        c.beginPath();
        c.moveTo(x, bottom);
        c.lineTo(x + 5, bottom + 8);
        c.lineTo(x - 5, bottom + 8);
        c.fill();
        if (lost !== null) {
          c.setLineDash([2, 3]);
          c.strokeStyle = this.color.bad;
          c.lineWidth = 1;
          c.beginPath();
          c.moveTo(this.x(lost), 0);
          c.lineTo(this.x(lost), bottom);
          c.stroke();
          c.setLineDash([]);
        }
        c.globalAlpha = 1;
      }
    });
  }

  // Seconds that are written on the axis.
  #ticks() {
    const seconds = this.player.last / this.player.rate;
    const every = [0.5, 1, 2, 5, 10, 20, 60].find((step) => (seconds / step) * 34 <= this.right - this.left) ?? 120;
    return Array.from({ length: Math.floor((seconds + 1e-6) / every) + 1 }, (_, i) => i * every);
  }

  #drawGrid() {
    this.context.fillStyle = this.color.line;
    for (const t of this.#ticks()) this.context.fillRect(this.x(t * this.player.rate), 0, 1, this.bottom);
  }

  #drawAxis() {
    const c = this.context, top = this.axis;
    c.fillStyle = this.color.panel;
    c.fillRect(0, top, this.canvas.clientWidth, AXIS_HEIGHT);
    c.font = "11px system-ui, sans-serif";
    c.textAlign = "center";
    c.fillStyle = this.color.muted;
    for (const t of this.#ticks()) c.fillText(`${+t.toFixed(1)}${t === 0 ? " s" : ""}`, this.x(t * this.player.rate), top + AXIS_HEIGHT / 2 + 1);
  }

  #drawRow(rule, y0) {
    const c = this.context, base = y0 + this.rowHeight - STRIP - 3;
    c.fillStyle = this.color.line;
    c.fillRect(this.left, Math.round(base), this.right - this.left, 1);
    c.font = NAME_FONT;
    c.textAlign = "left";
    c.fillStyle = this.color.ink;
    c.fillText(this.rules[rule].name, NAME_AT, y0 + this.rowHeight / 2);
    c.font = "9.5px system-ui, sans-serif";
    c.textAlign = "right";
    c.fillStyle = this.color.muted;
    c.fillText(this.wordsOf(this.top(rule)), this.left - 4, y0 + 9);
    this.#drawUsual(base, y0 + 4, this.top(rule));
    c.fillStyle = this.rowColor[rule];
    c.beginPath();
    c.roundRect(8, y0 + this.rowHeight / 2 - 5, 10, 10, 3);
    c.fill();
    this.drives.forEach((drive, i) => {
      if (!this.shown[i]) return;
      this.#drawCurve(drive, rule, base, y0 + 4, i);
      this.#drawEvents(drive, rule, base + 2, i);
    });
    this.#drawValue(rule, y0 + this.rowHeight / 2);
  }

  // The usual level, which a quarter of the moments in which the rule is felt reaches.
  #drawUsual(base, ceiling, top) {
    if (!this.page.calibrated || USUAL > top) return;
    const c = this.context, y = Math.round(base - ((base - ceiling) * USUAL) / top) + 0.5;
    c.strokeStyle = this.color.muted;
    c.lineWidth = 1;
    c.setLineDash([4, 3]);
    c.beginPath();
    c.moveTo(this.left, y);
    c.lineTo(this.right, y);
    c.stroke();
    c.setLineDash([]);
  }

  #drawCurve(drive, rule, base, ceiling, i) {
    const c = this.context, top = this.top(rule), count = drive.explained ?? 0, first = !this.shown[0] || i === 0;
    if (!count) return;
    c.beginPath();
    for (let frame = 0; frame < count; frame++) {
      const value = drive.pressureOf(rule, frame, this.rules.length);
      c.lineTo(this.x(frame), base - (base - ceiling) * Math.min(1, value / top));
    }
    c.strokeStyle = first ? this.rowColor[rule] : this.color.ink;
    c.lineWidth = first ? 1.6 : 1.2;
    c.setLineDash(first ? [] : [3, 3]);
    c.stroke();
    c.setLineDash([]);
    if (!first) return;
    c.lineTo(this.x(count - 1), base);
    c.lineTo(this.x(0), base);
    c.globalAlpha = 0.22;
    c.fillStyle = this.rowColor[rule];
    c.fill();
    c.globalAlpha = 1;
  }

  // Marks under the curve where a risk of this rule happened, from the executed states.
  #drawEvents(drive, rule, y, i) {
    const c = this.context, two = this.shown.filter(Boolean).length > 1, height = two ? STRIP / 2 - 0.25 : STRIP;
    const name = this.rules[rule].name, top = two && i === 1 ? y + STRIP / 2 + 0.25 : y;
    c.fillStyle = two ? this.color[i === 0 ? "ego-a" : "ego-b"] : this.color.ink;
    this.page.risks.forEach((risk, bit) => {
      if (risk.rule !== name) return;
      for (let frame = 0; frame < drive.samples; frame++) {
        if (!drive.happens(bit, frame)) continue;
        let end = frame;
        while (end + 1 < drive.samples && drive.happens(bit, end + 1)) end++;
        const from = Math.max(this.x(frame - 0.5), this.left), to = Math.min(this.x(end + 0.5), this.right);
        c.fillRect(from, top, Math.max(2, to - from), height);
        frame = end;
      }
    });
  }

  #drawValue(rule, y) {
    const c = this.context, known = this.drives.filter((drive, i) => this.shown[i] && drive.explained);
    const values = known.map((drive) => drive.pressureOf(rule, this.player.frame, this.rules.length));
    c.font = "11px ui-monospace, monospace";
    c.textAlign = "right";
    c.fillStyle = this.color.ink;
    const text = values.map((value) => this.wordsOf(value));
    text.forEach((value, i) => {
      const at = y + (i - (text.length - 1) / 2) * 12;
      c.fillText(value, this.canvas.clientWidth - 10, at);
      if (text.length < 2) return;
      c.save();
      c.fillStyle = this.color[i === 0 ? "ego-a" : "ego-b"];
      c.fillRect(this.canvas.clientWidth - 6, at - 5, 3, 10);
      c.restore();
    });
  }

  #drawCursor() {
    const c = this.context, top = this.above, bottom = this.axis, x = this.x(this.player.time);
    if (this.hover && !this.dragging) {
      c.fillStyle = this.color.muted;
      c.globalAlpha = 0.5;
      c.fillRect(this.hover.x, 0, 1, bottom);
      c.globalAlpha = 1;
    }
    c.fillStyle = this.color.ink;
    c.fillRect(x - 0.75, 0, 1.5, bottom);
    c.beginPath();
    c.moveTo(x - 5, top);
    c.lineTo(x + 5, top);
    c.lineTo(x, top + 7);
    c.fill();
  }

  // What is under the pointer, in words: the rule's pressure and the risks of that moment.
  words() {
    if (!this.hover) return null;
    const rule = this.hover.y < this.axis ? this.rows[Math.floor(this.hover.y / this.rowHeight)] : undefined;
    if (rule === undefined) return null;
    const frame = Math.round(this.timeAt(this.hover.x)), { name, describes } = this.rules[rule];
    const lines = [`${name} at ${(frame / this.player.rate).toFixed(1)} s: pressure on the plan's ${describes}`];
    this.drives.forEach((drive, i) => {
      if (!this.shown[i]) return;
      const value = drive.pressureOf(rule, frame, this.rules.length), who = this.drives.length > 1 ? `${drive.planner}: ` : "";
      const risks = this.page.risks.filter((risk, bit) => risk.rule === name && drive.happens(bit, frame));
      const level = this.page.calibrated ? `${this.wordsOf(value)} its usual level (height ${value.toFixed(2)})` : `${value.toFixed(3)}, not calibrated`;
      lines.push(`${who}${Number.isNaN(value) ? "no pressure known" : level}`);
      if (drive.jumps(rule, frame)) lines.push(`${who}a jump: the plan's first step does not begin as the car moves`);
      for (const risk of risks) lines.push(`${who}happened: ${risk.words}`);
    });
    return lines;
  }
}
