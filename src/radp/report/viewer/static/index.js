"use strict";
// The start page: every scenario of the run, sorted by what the reader wants to know.
(() => {
  const page = readData(), find = (id) => document.getElementById(id), two = page.runs.length > 1;
  const state = { column: "score", down: false, by: 0, words: "" };
  const wordsOf = (value, { words, digits }) => (value === null || value === undefined ? "–" : words ? words(value) : value.toFixed(digits));
  const drive = (row, i) => row.drives[i];

  // Each column: a name, and what a drive is worth in it.
  const columns = [
    { key: "score", title: "Score of the drive, 0 to 100", short: "score", value: (d) => (d.score === null ? null : 100 * d.score), digits: 1 },
    ...page.metrics.map(({ name, short, title }, i) => ({
      key: `metric-${name}`, short, title, value: (d) => (d.metrics[i] === null ? null : 100 * d.metrics[i]), digits: 0, group: "metrics",
    })),
    ...page.rules.map(({ name, describes }, i) => ({
      key: `pressure-${name}`, rule: name, short: name.replaceAll("_", " "), group: "pressures", value: (d) => d.pressures?.[i] ?? null,
      title: `Highest pressure of the rule ${name} on a plan (${describes})`, words: (value) => (page.calibrated ? levelWords(value, page.most) : value.toFixed(2)),
    })),
    { key: "risky", short: "risky samples", title: "Samples in which a risk happened", value: (d) => d.risky, digits: 0, group: "" },
  ];
  const peaks = new Map(columns.map((column) => [column.key, Math.max(0.05, ...page.rows.flatMap((row) => row.drives.map((d) => (d ? column.value(d) : 0) ?? 0)))]));

  function valueOf(row, column) {
    const [a, b] = [0, 1].map((i) => (drive(row, i) ? column.value(drive(row, i)) : null));
    if (state.by === "difference") return a === null || b === null ? null : b - a;
    return state.by === 0 ? a : b;
  }

  function sorted() {
    const wanted = state.words.toLowerCase(), sign = state.down ? -1 : 1;
    const rows = page.rows.filter((row) => `${row.kind} ${row.token}`.toLowerCase().includes(wanted));
    const column = columns.find(({ key }) => key === state.column);
    const key = column ? (row) => valueOf(row, column) : (row) => `${row.kind} ${row.token}`;
    // Rows without a value stay at the end, whatever the direction.
    return rows.map((row) => [key(row), row]).sort(([a], [b]) => (a === null) - (b === null) || sign * (a < b ? -1 : a > b ? 1 : 0)).map(([, row]) => row);
  }

  function thumb({ road, paths, ends }) {
    const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), [width, height] = page.thumb;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-hidden", "true");
    const draw = (d, style) => {
      const path = document.createElementNS(ns, "path");
      path.setAttribute("d", d);
      for (const [name, value] of Object.entries(style)) path.style.setProperty(name, value);
      svg.append(path);
    };
    draw(road, { fill: "var(--road)", "fill-rule": "evenodd" });
    paths.forEach((d, i) => draw(d, { fill: "none", stroke: `var(--ego-${"ab"[i]})`, "stroke-width": i ? 3 : 5, "stroke-linecap": "round", "stroke-dasharray": i ? "6 6" : "none" }));
    ends.forEach(([cx, cy], i) => {
      const end = document.createElementNS(ns, "circle");
      for (const [name, value] of Object.entries({ cx, cy, r: 6 })) end.setAttribute(name, value);
      end.style.fill = `var(--ego-${"ab"[i]})`;
      svg.append(end);
    });
    return svg;
  }

  function cell(row, column) {
    const lines = page.runs.map((_, i) => {
      const d = drive(row, i), value = d ? column.value(d) : null, chip = element("span", { className: "chip", text: wordsOf(value, column) });
      if (value !== null && column.group === "metrics") chip.classList.add(value === 0 ? "zero" : value === 100 ? "full" : "some");
      if (value !== null && column.group === "pressures") chip.style.background = `color-mix(in srgb, var(--rule-${column.rule}, var(--ink)) ${Math.round(55 * value / peaks.get(column.key))}%, transparent)`;
      if (column.key === "score" && d?.failure) chip.title = d.failure;
      const letter = two && column.key === "score" ? element("span", { text: "AB"[i], className: `letter ${"ab"[i]}` }) : null;
      return element("div", { className: two ? "two" : "" }, letter, chip);
    });
    return element("td", { className: column.key === "score" ? "score" : "" }, ...lines);
  }

  function line(row) {
    const link = element("a", { text: row.kind, href: row.page });
    const failures = row.drives.filter((d) => d?.failure).map((d) => element("small", { text: ` failed: ${d.failure}`, className: "failed" }));
    const name = element("td", { className: "name" }, link, element("small", { text: row.token }), ...failures);
    const tr = element("tr", {}, element("td", { className: "thumb" }, thumb(row.thumb)), name, ...columns.map((column) => cell(row, column)));
    tr.addEventListener("click", (event) => { if (event.target !== link) location.href = row.page; });
    return tr;
  }

  function header() {
    const sorter = (key, text, title, wide) => {
      const button = element("button", { text, title, type: "button" });
      button.addEventListener("click", () => {
        state.down = state.column === key ? !state.down : !(key === "score" || key === "name" || key.startsWith("metric-"));
        state.column = key;
        show();
      });
      const th = element("th", { "data-key": key, className: wide ? "wide" : "" }, button);
      if (state.column === key) {
        th.setAttribute("aria-sort", state.down ? "descending" : "ascending");
        button.textContent = `${text} ${state.down ? "↓" : "↑"}`;
      }
      return th;
    };
    const count = (group) => columns.filter((column) => column.group === group).length;
    const groups = element("tr", {}, element("th", { className: "span", colspan: 3 }), element("th", { className: "span", colspan: count("metrics"), text: "metrics, %" }),
      element("th", { className: "span", colspan: count("pressures"), text: page.calibrated ? "highest pressure, times its usual level" : "highest pressure, not calibrated" }), element("th", { className: "span" }));
    const names = element("tr", {}, element("th", {}), sorter("name", "scenario", "Kind and token", true), ...columns.map(({ key, short, title }) => sorter(key, short, title)));
    find("head").replaceChildren(groups, names);
  }

  function show() {
    header();
    const rows = sorted();
    find("body").replaceChildren(...rows.map(line));
    find("foot").textContent = `${rows.length} of ${page.rows.length} scenarios · radp ${page.version}`;
    [...find("by").children].forEach((button) => button.setAttribute("aria-pressed", button.dataset.by === String(state.by)));
  }

  function runs() {
    page.runs.forEach((run, i) => {
      const driven = page.rows.map((row) => drive(row, i)).filter(Boolean), scored = driven.filter((d) => d.score !== null);
      const mean = scored.length ? (100 * scored.reduce((sum, d) => sum + d.score, 0) / scored.length).toFixed(1) : "–";
      const letter = two ? [element("span", { text: "AB"[i], className: `letter ${"ab"[i]}` })] : [];
      const failed = driven.filter((d) => d.failure).length;
      find("runs").append(element("div", { className: "run", title: run.folder }, ...letter, element("b", { text: run.planner }), element("strong", { text: mean }),
        element("small", { text: `mean score of ${scored.length} drives${failed ? `, ${failed} failed` : ""} · ${run.agents} traffic · ${run.scenarios} · seed ${run.seed}` })));
    });
    find("heading").textContent = two ? "Two planners on the same scenarios" : "Drives";
    if (!two) return;
    find("by").hidden = false;
    for (const [by, text] of [[0, "Sort by A"], [1, "B"], ["difference", "B − A"]]) {
      const button = element("button", { text, type: "button", "data-by": by });
      button.addEventListener("click", () => { state.by = by; show(); });
      find("by").append(button);
    }
  }

  find("filter").addEventListener("input", (event) => { state.words = event.target.value; show(); });
  find("theme").addEventListener("click", theme.toggle);
  runs();
  show();
})();
