"use strict";
// The page of a scenario: joins clock, top views, curves and card. `viewer` is there for tests and the curious.
const viewer = (() => {
  const page = readData(), find = (id) => document.getElementById(id);
  const stored = page.drives.map((drive) => new Drive(drive, page)), weighted = Boolean(page.weights);
  const drives = weighted ? stored.slice(0, 1) : stored;  // what is shown; of a planner at several weights one at a time
  const longest = stored.reduce((a, b) => (b.samples > a.samples ? b : a));
  const player = new Player(page.samples, longest.time[longest.samples - 1]);
  const camera = new Camera(), road = unpackRoad(page.road, page.step);
  const views = drives.map(makeView);
  const curves = new Curves(find("curves"), find("fold"), drives, page, player, stored);
  const jump = (frame) => { player.pause(); player.seek(frame); };
  let list = new IncidentList(find("incidents"), drives, jump), card = new Card(find("card"), drives, jump);
  const sliders = weighted && Object.keys(page.weights[0]).length ? new WeightSliders(find("weights"), page.weights, showStored) : null;
  const layers = views[0].overlays.on;  // one set of switches for all views
  for (const view of views) view.overlays.on = layers;
  let showing = drives.length > 1 ? "both" : null;
  const TRADE_SHOWN = 10;  // samples for which a trade is shown: until the next plan that was asked
  const SPEEDS = [0.25, 0.5, 1, 2, 4];

  function makeView(drive, i) {
    const canvas = element("canvas", { "aria-label": `Top view of ${drive.planner}` });
    const name = element("div", { className: "badge" }, ...(drives.length > 1 ? [element("span", { text: "AB"[i], className: `letter ${"ab"[i]}` })] : []),
      element("b", { text: drive.planner }));
    const score = element("span", { text: `score ${percent(drive.score)}` });
    name.append(score);
    const speed = element("b"), note = element("small"), loud = element("div", { className: "loud", hidden: "" });
    const trade = element("div", { className: "trade", hidden: "" });
    const box = element("div", { className: "view" }, canvas, name, element("div", { className: "dial" }, speed, note), loud, trade);
    find("views").append(box);
    const view = new SceneView(canvas, drive, page, camera, "ab"[i]);
    Object.assign(view, { box, speed, note, loud, trade, score });
    listenToCanvas(view);
    return view;
  }

  // Another stored drive in place of the one that is shown: time, camera and layers stay.
  function showStored(k) {
    drives[0] = views[0].drive = stored[k];
    views[0].hovered = null;
    views[0].score.textContent = `score ${percent(stored[k].score)}`;
    find("incidents").replaceChildren();
    find("card").replaceChildren();
    list = new IncidentList(find("incidents"), drives, jump);
    card = new Card(find("card"), drives, jump);
    sliders.set(k);
    player.refresh();
  }

  // Pan, zoom, hover. Both views share the camera.
  function listenToCanvas(view) {
    const { canvas } = view;
    let grabbed = null;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      grabbed = [event.offsetX, event.offsetY];
      canvas.classList.add("dragged");
    });
    canvas.addEventListener("pointermove", (event) => {
      if (grabbed) pan(view, grabbed, [event.offsetX, event.offsetY]);
      if (grabbed) grabbed = [event.offsetX, event.offsetY];
      view.hovered = grabbed ? null : view.pick(event.offsetX, event.offsetY, player.time);
      tip(view.hovered === null ? null : trackWords(view, view.hovered), event);
      player.refresh();
    });
    const release = () => { grabbed = null; canvas.classList.remove("dragged"); };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => { view.hovered = null; tip(null); player.refresh(); });
    canvas.addEventListener("dblclick", () => setFollow(true));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoomAt(view, Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
  }

  function pan(view, from, to) {
    const [x0, y0] = view.toWorld(...from), [x1, y1] = view.toWorld(...to);
    if (camera.follow) {
      const ego = view.drive.ego(player.time);
      [camera.x, camera.y] = [ego.x, ego.y];
      setFollow(false);
    }
    camera.x -= x1 - x0;
    camera.y -= y1 - y0;
  }

  function zoomAt(view, factor, px, py) {
    const zoom = Math.max(1, Math.min(60, camera.zoom * factor));
    if (!camera.follow) {
      const [x, y] = view.toWorld(px, py), keep = camera.zoom / zoom;
      camera.x = x + (camera.x - x) * keep;
      camera.y = y + (camera.y - y) * keep;
    }
    camera.zoom = zoom;
    player.refresh();
  }

  function trackWords(view, index) {
    const track = view.drive.tracks[index], pose = view.drive.pose(track, player.time), share = view.drive.shareOf(index, player.time);
    if (!pose) return null;
    const ego = view.drive.ego(player.time), lines = [`${track.kind} ${track.id}`], frame = view.drive.frame(player.time);
    if (track.type <= BICYCLE) lines.push(`${pose.speed.toFixed(1)} m/s (${(3.6 * pose.speed).toFixed(0)} km/h)`);
    lines.push(`${Math.hypot(pose.x - ego.x, pose.y - ego.y).toFixed(1)} m between centres`);
    const pressure = view.drive.pressureOf(view.drive.collision, frame, page.rules.length);
    if (share !== null) lines.push(`${(100 * share).toFixed(0)} % of the collision pressure (${curves.wordsOf(pressure)}${page.calibrated ? " usual" : ""})`);
    return lines;
  }

  function tip(lines, event) {
    const box = find("tip");
    box.hidden = !lines;
    if (!lines) return;
    box.replaceChildren(...lines.map((text) => element("p", { text })));
    const { width, height } = box.getBoundingClientRect();
    box.style.left = `${Math.min(event.clientX + 14, innerWidth - width - 8)}px`;
    box.style.top = `${Math.min(event.clientY + 14, innerHeight - height - 8)}px`;
  }

  function setFollow(on) {
    if (!on && camera.follow) {
      const ego = views[0].drive.ego(player.time);
      if (camera.x === 0 && camera.y === 0) [camera.x, camera.y] = [ego.x, ego.y];
    }
    camera.follow = on;
    find("follow").setAttribute("aria-pressed", on);
    player.refresh();
  }

  function setHeadingUp(on) {
    camera.headingUp = on;
    find("heading-up").setAttribute("aria-pressed", on);
    player.refresh();
  }

  function setSpeed(speed) {
    player.speed = speed;
    for (const button of find("speeds").children) button.setAttribute("aria-pressed", Number(button.dataset.speed) === speed);
  }

  function show(which) {
    showing = which;
    views.forEach((view, i) => { view.box.hidden = which !== "both" && which !== i; });
    curves.shown = views.map((view) => !view.box.hidden);
    [...find("which").children].forEach((button) => button.setAttribute("aria-pressed", button.dataset.which === String(which)));
    player.refresh();
  }

  // The rule that presses most, in words; without a calibration rules cannot be compared, and nothing is said.
  function tellPressure(view) {
    const { drive } = view, frame = drive.frame(player.time);
    const active = page.risks.filter((_, bit) => drive.happens(bit, frame)).map((risk) => risk.words);
    view.loud.hidden = !active.length;
    view.loud.textContent = active[0] ?? "";
    const ego = drive.ego(player.time);
    const traded = drive.trades.findLast((one) => one.frame <= frame && frame < one.frame + TRADE_SHOWN);
    view.trade.hidden = !traded;
    view.trade.textContent = traded?.text ?? "";
    view.speed.textContent = `${ego.speed.toFixed(1)} m/s`;
    const acceleration = `${ego.acceleration >= 0 ? "+" : "−"}${Math.abs(ego.acceleration).toFixed(1)} m/s²`;
    const most = page.calibrated ? view.overlays.strongest(frame) : -1;
    const value = most < 0 ? 0 : drive.pressureOf(most, frame, page.rules.length);
    const jump = drive.jumps(most, frame) ? " (a jump)" : "";
    const strongest = value >= USUAL ? ` · ${page.rules[most].name} ${curves.wordsOf(value)} usual${jump}` : "";
    view.note.textContent = acceleration + strongest;
  }

  function draw() {
    const seconds = player.time / player.rate;
    for (const view of views) {
      if (view.box.hidden) continue;
      view.draw(road, player.time);
      view.shownTime = player.time;
      tellPressure(view);
    }
    curves.draw();
    list.draw(player.frame);
    if (!player.playing) keepAddress(seconds);
    find("scrub").value = player.frame;
    find("clock").textContent = `${seconds.toFixed(1)} / ${(player.last / player.rate).toFixed(1)} s`;
    find("play").textContent = player.playing ? "❚❚" : "▶";
    find("play").setAttribute("aria-label", player.playing ? "Pause" : "Play");
  }

  function fillHeader() {
    find("kind").textContent = page.kind;
    find("token").textContent = page.token;
    if (page.links.index) find("home").href = page.links.index;
    for (const name of ["before", "after"]) {
      if (page.links[name]) find(name).href = page.links[name];
      else find(name).setAttribute("aria-disabled", "true");
    }
    if (drives.length < 2) return;
    find("which").hidden = false;
    for (const [which, text] of [["both", "Both"], [0, `A  ${drives[0].planner}`], [1, `B  ${drives[1].planner}`]]) {
      const button = element("button", { text, type: "button", "data-which": which });
      button.addEventListener("click", () => show(which));
      find("which").append(button);
    }
  }

  function listenToControls() {
    find("scrub").max = player.last;
    find("scrub").addEventListener("input", (event) => { player.pause(); player.seek(Number(event.target.value)); });
    find("play").addEventListener("click", () => player.toggle());
    find("follow").addEventListener("click", () => setFollow(!camera.follow));
    find("heading-up").addEventListener("click", () => setHeadingUp(!camera.headingUp));
    find("closer").addEventListener("click", () => zoomAt(views[0], 1.3, views[0].width / 2, views[0].height / 2));
    find("further").addEventListener("click", () => zoomAt(views[0], 1 / 1.3, views[0].width / 2, views[0].height / 2));
    find("theme").addEventListener("click", theme.toggle);
    find("legend-button").addEventListener("click", () => toggle("legend"));
    find("layers-button").addEventListener("click", () => toggle("layers"));
    find("export-button").addEventListener("click", () => toggle("export"));
    find("save-png").addEventListener("click", () => exporting.png(views, curves).then((blob) => exporting.save(`${fileName()}.png`, blob)));
    find("save-svg").addEventListener("click", () => exporting.save(`${fileName()}.svg`, new Blob([exporting.svg(seen(), road, player.time)], { type: "image/svg+xml" })));
    find("save-csv").addEventListener("click", () => exporting.save(`${fileName()}.csv`, new Blob([exporting.csv(drives, page)], { type: "text/csv" })));
    addEventListener("hashchange", goToAddress);
    find("curves").addEventListener("pointermove", (event) => tip(curves.words(), event));
    find("curves").addEventListener("pointerleave", () => tip(null));
    find("scale").addEventListener("click", () => setCommonScale(!curves.common));
    for (const speed of SPEEDS) {
      const button = element("button", { text: `${speed}×`, type: "button", "data-speed": speed });
      button.addEventListener("click", () => setSpeed(speed));
      find("speeds").append(button);
    }
  }

  const seen = () => views.find((view) => !view.box.hidden);
  const fileName = () => `${page.token.replaceAll(/[^A-Za-z0-9_-]+/g, "-").slice(0, 60)}-${(player.time / player.rate).toFixed(1)}s`;

  function fillLayers() {
    find("layers").replaceChildren(...LAYERS.map(([name, title, words]) => {
      const box = element("input", { type: "checkbox", id: `layer-${name}` });
      box.checked = layers[name];
      box.addEventListener("change", () => { layers[name] = box.checked; player.refresh(); });
      return element("label", {}, box, element("span", { text: title }, element("small", { text: words })));
    }));
  }

  function keepAddress(seconds) {
    const { zoom, follow, x, y, headingUp } = camera, on = LAYERS.map(([name]) => name).filter((name) => layers[name]);
    address.write(address.text({ time: seconds, zoom, follow, x, y, up: headingUp, show: drives.length > 1 ? showing : null, layers: on, common: curves.common, all: curves.all && !find("fold").hidden, drive: sliders ? sliders.chosen : null }));
  }

  function goToAddress() {
    const wanted = address.read();
    if (wanted.zoom !== null) camera.zoom = Math.max(1, Math.min(60, wanted.zoom));
    if (wanted.x !== null && wanted.y !== null) {
      Object.assign(camera, { x: wanted.x, y: wanted.y });
      setFollow(false);
    }
    if (wanted.up) setHeadingUp(true);
    if (wanted.show !== null && drives.length > 1) show(["0", "1"].includes(wanted.show) ? Number(wanted.show) : "both");
    if (wanted.layers !== null) for (const [name] of LAYERS) layers[name] = wanted.layers.includes(name);
    fillLayers();
    if (sliders && wanted.drive !== null && stored[wanted.drive]) showStored(wanted.drive);
    if (wanted.common !== null) setCommonScale(wanted.common);
    if (wanted.all) curves.unfold(true);
    player.seek(wanted.time === null ? 0 : Math.round(wanted.time * player.rate));
  }

  function setCommonScale(on) {
    curves.common = on;
    find("scale").setAttribute("aria-pressed", on);
    const scale = page.calibrated ? `× its usual level (dashed line), ${on ? "one scale for all" : "each rule on its own scale"}` : "each rule on its own scale";
    const missing = drives.some((drive) => drive.explained) ? "" : "not known for this run: drive it with --attribution teacher · ";
    find("pressure-note").textContent = `${missing}${page.calibrated ? "" : "not calibrated · "}${scale}`;
    find("scale").hidden = !page.calibrated;
    player.refresh();
  }

  const KEYS = {
    " ": () => player.toggle(), ArrowRight: (event) => player.step(event.shiftKey ? 10 : 1),
    ArrowLeft: (event) => player.step(event.shiftKey ? -10 : -1), Home: () => player.seek(0), End: () => player.seek(player.last),
    f: () => setFollow(!camera.follow), r: () => setHeadingUp(!camera.headingUp), d: () => theme.toggle(), "?": () => toggle("legend"), l: () => toggle("layers"), e: () => toggle("export"),
    n: () => nextIncident(),
    "+": () => setSpeed(SPEEDS[Math.min(SPEEDS.length - 1, SPEEDS.indexOf(player.speed) + 1)]),
    "-": () => setSpeed(SPEEDS[Math.max(0, SPEEDS.indexOf(player.speed) - 1)]),
    "[": () => find("before").href && find("before").click(), "]": () => find("after").href && find("after").click(),
    Escape: () => { for (const name of POPOVERS) close(name); },
  };

  function listenToKeys() {
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("#weights")) return;
      const act = KEYS[event.key.length === 1 ? event.key.toLowerCase() : event.key];
      if (!act) return;
      event.preventDefault();
      act(event);
    });
    // A focused button would take the space bar for itself.
    addEventListener("keyup", (event) => { if (event.key === " ") event.preventDefault(); });
  }

  const POPOVERS = ["legend", "layers", "export"];

  function close(name) {
    find(name).hidden = true;
    find(`${name}-button`).setAttribute("aria-expanded", false);
  }

  function toggle(name) {
    const opens = find(name).hidden;
    POPOVERS.forEach(close);
    find(name).hidden = !opens;
    find(`${name}-button`).setAttribute("aria-expanded", opens);
    if (opens && name === "legend") fillLegend(find("legend"));
  }

  // The first incident after now, or the first of all.
  function nextIncident() {
    const frames = drives.flatMap((drive) => drive.incidents.map((one) => one.frame)).sort((a, b) => a - b);
    if (frames.length) jump(frames.find((frame) => frame > player.frame) ?? frames[0]);
  }

  function fillLegend(box) {
    const sign = (paint) => {
      const canvas = element("canvas", { width: 96, height: 36 }), c = canvas.getContext("2d");
      c.scale(2, 2);
      c.translate(24, 9);
      paint(c);
      return canvas;
    };
    const shape = (color, path) => sign((c) => { c.fillStyle = theme.color(color); c.beginPath(); path(c); c.fill(); });
    const line = (color, width, dash = []) => sign((c) => {
      c.strokeStyle = theme.color(color); c.lineWidth = width; c.setLineDash(dash); c.beginPath(); c.moveTo(-22, 0); c.lineTo(22, 0); c.stroke();
    });
    const entries = [
      [shape("ego-a", (c) => c.roundRect(-12, -5, 24, 10, 3)), "the ego; its path so far, and thin what it drives later"],
      [line("ego-a", 3), "plan, with a ring for each second"],
      [line("expert", 1.5, [1.5, 5]), "what the expert drove in the log"],
      [shape("vehicle", (c) => c.roundRect(-11, -5, 22, 10, 2)), "vehicle; dashed: where the planner expects it"],
      [shape("pedestrian", (c) => c.arc(0, 0, 5, 0, 7)), "pedestrian"],
      [shape("bicycle", (c) => c.ellipse(0, 0, 9, 3.5, 0, 0, 7)), "bicycle"],
      [shape("static", (c) => { c.moveTo(6, 0); c.lineTo(-5, 5); c.lineTo(-5, -5); }), "cone, sign, barrier"],
      [shape("pressure", (c) => c.roundRect(-11, -5, 22, 10, 2)), `the redder, the more it presses: its share of the collision pressure times that pressure, full at ${page.most} times the usual level`],
      [sign((c) => { c.strokeStyle = theme.color("bad"); c.lineWidth = 2; c.beginPath(); c.roundRect(-13, -7, 26, 14, 3); c.stroke(); }), "the one that an incident is about; a star marks the impact"],
      [line("light-red", 6), "red light"], [line("light-yellow", 6, [5, 3]), "yellow light"], [line("light-green", 3), "green light"],
    ];
    const curvesOf = [
      [sign((c) => { c.fillStyle = c.strokeStyle = theme.color("rule-collision"); c.lineWidth = 1.6; c.beginPath(); c.moveTo(-22, 7); c.lineTo(-6, 3); c.lineTo(4, -6); c.lineTo(22, 5); c.stroke(); c.globalAlpha = 0.22; c.lineTo(22, 9); c.lineTo(-22, 9); c.fill(); }),
        "how strongly a rule presses on the plan of that moment: the size of its cost's gradient as a multiple of the usual one (×), drawn as log(1 + ×)"],
      [line("muted", 1, [4, 3]), "the usual level, 1×: a quarter of the moments in which the rule is felt are above it"],
      ...(drives.length > 1 ? [[line("ink", 1.4, [3, 3]), "the second planner"]] : []),
      [line("ink", 5), "a risk of that kind happened, from executed states alone"],
      [line("bad", 1.5), "an incident begins; dotted: from there on nothing that was tried avoids it"],
    ];
    const keys = [["space", "play, pause"], ["← →", "one sample; with shift one second"], ["home end", "start, end"], ["− +", "speed"],
      ["F  R  D", "follow, heading up, dark"], ["N", "next incident"],
      ["L  E", "layers, export"], ["[ ]", "other scenarios"]];
    const list = (rows) => element("dl", {}, ...rows.flatMap(([what, text]) => [element("dt", {}, what), element("dd", { text })]));
    box.replaceChildren(element("h2", { text: "What is what" }), list(entries), element("h2", { text: "Rule pressure" }), list(curvesOf), element("h2", { text: "Keys" }),
      list(keys.map(([key, text]) => [element("kbd", { text: key }), text])), element("p", { className: "hint", text: "Drag to move, wheel to zoom, double click to follow again." }));
  }

  fillHeader();
  listenToControls();
  listenToKeys();
  setSpeed(1);
  setCommonScale(false);
  if (drives.length > 1) {
    camera.zoom = 6;
    show("both");
  }
  theme.onChange(() => {
    for (const view of views) view.readColors();
    curves.readColors();
    if (!find("legend").hidden) fillLegend(find("legend"));
    player.refresh();
  });
  new ResizeObserver(() => player.refresh()).observe(find("views"));
  player.onChange(draw);
  goToAddress();
  return { page, drives, player, camera, views, curves, road, layers, sliders, get card() { return card; }, get list() { return list; } };
})();
