"use strict";
// The studio: joins server, editor, panel and the drives that come of it. `studio` is there for tests and the curious.
const studio = (() => {
  const find = (id) => document.getElementById(id), camera = new Camera();
  camera.follow = false;
  const canvas = element("canvas", { "aria-label": "Top view; drag what you want to change" });
  const latency = element("div", { className: "latency", text: "…" });
  const stage = element("div", { className: "view" }, canvas, latency);
  const state = { ready: false, number: 0, step: 0, answers: 0, dropped: null, latencies: [], errors: 0, drive: null, known: null };
  const editor = new Editor(canvas, camera, changed), panel = new Panel(editor, changed);
  const plans = new Newest(plan), fans = new Newest(fan);

  const question = (edits = editor.edits) => ({
    scenario: state.number, planner: find("planner").value, step: state.step, edits, rules: panel.choice(),
    agents: find("agents").value, seed: whole("seed"), fan: whole("fan"), noise: Math.max(0, Math.min(4, Number(find("noise").value) || 0)),
  });
  const whole = (id) => Math.max(0, Math.min(Number(find(id).max), Math.round(Number(find(id).value)) || 0));

  // Something was changed: by a drag that goes on (live), by a drop, or in the panel.
  function changed({ live, dropped, selection }) {
    panel.showPlacing();
    if (selection) { panel.showSelected(); return; }
    if (dropped) state.dropped = dropped;
    editor.fan = null;
    const next = { asked: question(live), dropped };
    if (live) plans.askSoon(next); else plans.ask(next);
    if (!live) panel.showChanges();
  }

  async function plan({ asked, dropped }) {
    const text = JSON.stringify(asked);
    try {
      const known = dropped && text === state.known;  // what is let go without another move was planned while it was held
      const answer = known ? editor.answer : await ask.post("plan", asked);
      if (asked.scenario !== state.number) return;
      state.known = null;
      editor.show(answer, asked.step);
      state.known = text;
      panel.showPressures();
      if (!editor.grabbed) panel.showSelected();
      panel.say("");
      await new Promise(requestAnimationFrame);
      if (dropped) state.latencies.push(performance.now() - dropped);
      state.answers += 1;
      latency.textContent = dropped ? `plan ${Math.round(performance.now() - dropped)} ms after the drop` : `planned in ${Math.round(answer.milliseconds)} ms`;
      if (asked.fan && plans.waiting === null && !editor.grabbed) fans.ask(asked);
    } catch (error) {
      state.errors += 1;
      panel.say(error.message, true);
    }
  }

  async function fan(asked) {
    try {
      const answer = await ask.post("fan", asked);
      if (asked.scenario !== state.number || asked.step !== state.step) return;
      editor.fan = answer.plans ? { ...answer, xy: unpackScaled(answer.xy, editor.page.step) } : null;
      if (!answer.plans) panel.say("This planner always plans the same.");
      editor.draw();
    } catch (error) { panel.say(error.message, true); }
  }

  async function open(number) {
    Object.assign(state, { number, step: 0, known: null });
    panel.say("Opening …");
    try {
      editor.open(await ask.get(`scenario/${number}`));
      find("scrub").max = editor.page.samples - 1;
      const expert = unpackScaled(editor.page.expert, editor.page.step);
      [camera.x, camera.y, camera.zoom] = [expert[0], expert[1], 8];
      panel.showChanges();
      panel.showSelected();
      seek(0);
      panel.say("Planning; the first plan on a machine compiles for a minute.");
    } catch (error) { panel.say(error.message, true); }
  }

  async function choosePlanner() {
    panel.say("Loading the planner …");
    try {
      panel.setRules(await ask.post("rules", { planner: find("planner").value }));
      changed({});
    } catch (error) { panel.say(error.message, true); }
  }

  function seek(step) {
    const last = editor.page.samples - 1, before = editor.drive?.ego(0);
    state.step = Math.max(0, Math.min(last, step));
    find("scrub").value = state.step;
    find("clock").textContent = `${(state.step * editor.page.dt).toFixed(1)} / ${(last * editor.page.dt).toFixed(1)} s`;
    const expert = unpackScaled(editor.page.expert, editor.page.step), at = 2 * state.step;
    if (before) {
      camera.x += expert[at] - (state.seen?.[0] ?? expert[at]);
      camera.y += expert[at + 1] - (state.seen?.[1] ?? expert[at + 1]);
    }
    state.seen = [expert[at], expert[at + 1]];
    changed({});
  }

  // ---- driving on ----

  async function driveOn() {
    find("drive").disabled = true;
    try {
      const { job } = await ask.post("drive", question());
      state.job = job;
      for (;;) {
        const { done, total, over, error, result } = await ask.get(`drive/${job}`);
        if (error) throw new Error(`the drive ended: ${error}`);
        if (over) { showDrives(result); panel.say(""); break; }
        panel.say(`Driving: ${Math.round(100 * done / total)} %`);
        await new Promise((wake) => setTimeout(wake, 250));
      }
    } catch (error) { panel.say(error.message, true); }
    find("drive").disabled = false;
  }

  function showDrives(result) {
    const rules = result.rules.map((name) => ({ name })), page = { ...editor.page, ...result, rules, calibrated: panel.calibrated };
    const drives = result.drives.map((data) => new Drive(data, page)), both = new Camera();
    both.zoom = drives.length > 1 ? 6 : 8;
    const longest = drives.reduce((a, b) => (b.samples > a.samples ? b : a));
    const player = new Player(result.samples, longest.time[longest.samples - 1]);
    const names = ["as it was", "with your changes"];
    find("views").replaceChildren();
    const views = drives.map((drive, i) => {
      const own = element("canvas", { "aria-label": `Top view of the drive ${names[i]}` });
      const badge = element("div", { className: "badge" }, element("span", { text: "AB"[i], className: `letter ${"ab"[i]}` }), element("b", { text: names[i] }),
        element("span", { text: `score ${percent(drive.score)}` }));
      const speed = element("b"), note = element("small", { text: drive.failure ?? drive.planner });
      find("views").append(element("div", { className: "view" }, own, badge, element("div", { className: "dial" }, speed, note)));
      const view = new SceneView(own, drive, page, both, "ab"[i]);
      return Object.assign(view, { speed, road: { ...editor.road, lights: unpack(result.lights[i]) } });
    });
    for (const view of views) {
      view.canvas.addEventListener("wheel", (event) => {
        event.preventDefault();
        both.zoom = Math.max(1, Math.min(60, both.zoom * Math.exp(-event.deltaY / 400)));
        player.refresh();
      }, { passive: false });
    }
    find("edit-bar").hidden = true;
    for (const id of ["drive-bar", "drive-curves", "card"]) find(id).hidden = false;
    find("edit-panel").hidden = true;
    find("card").replaceChildren();
    find("curves").replaceWith(find("curves").cloneNode());  // without what listened for drives before
    const curves = new Curves(find("curves"), find("fold"), drives, page, player);
    const card = new Card(find("card"), drives, (frame) => { player.pause(); player.seek(frame); });
    find("drive-scrub").max = player.last;
    state.drive = { drives, views, player, curves, card };
    player.onChange(() => {
      for (const view of views) {
        view.draw(view.road, player.time);
        view.shownTime = player.time;
        view.speed.textContent = `${view.drive.ego(player.time).speed.toFixed(1)} m/s`;
      }
      curves.draw();
      find("drive-scrub").value = player.frame;
      find("drive-clock").textContent = `${(player.time / player.rate).toFixed(1)} / ${(player.last / player.rate).toFixed(1)} s`;
      find("play").textContent = player.playing ? "❚❚" : "▶";
    });
    player.seek(0);
    player.play();
  }

  function backToEditing() {
    state.drive?.player.pause();
    state.drive = null;
    find("edit-bar").hidden = false;
    for (const id of ["drive-bar", "drive-curves", "card"]) find(id).hidden = true;
    find("edit-panel").hidden = false;
    find("views").replaceChildren(stage);
    editor.draw();
  }

  // ---- files ----

  async function save() {
    try {
      const text = await ask.text("save", question());
      const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "application/json" })), download: `${editor.page.token.replace(/[^\w-]+/g, "-")}-edited.json` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
      state.saved = text;
      panel.say(`Saved; radp simulate --scenarios ${link.download} drives it.`);
    } catch (error) { panel.say(error.message, true); }
  }

  async function load(text) {
    try {
      const { scenario, token, kind } = await ask.load(text);
      find("scenario").append(element("option", { value: scenario, text: `${kind} · ${token}` }));
      find("scenario").value = scenario;
      await open(scenario);
    } catch (error) { panel.say(error.message, true); }
  }

  // ---- begin ----

  function listen() {
    find("scenario").addEventListener("change", () => open(Number(find("scenario").value)));
    find("planner").addEventListener("change", choosePlanner);
    find("scrub").addEventListener("input", () => seek(Number(find("scrub").value)));
    for (const id of ["fan", "noise", "seed"]) find(id).addEventListener("change", () => changed({}));
    find("drive").addEventListener("click", driveOn);
    find("back").addEventListener("click", backToEditing);
    find("play").addEventListener("click", () => state.drive?.player.toggle());
    find("drive-scrub").addEventListener("input", () => { state.drive.player.pause(); state.drive.player.seek(Number(find("drive-scrub").value)); });
    find("undo").addEventListener("click", () => editor.take(editor.edits.slice(0, -1)));
    find("reset").addEventListener("click", () => editor.take([]));
    find("save").addEventListener("click", save);
    find("load").addEventListener("click", () => find("file").click());
    find("file").addEventListener("change", async () => { if (find("file").files[0]) await load(await find("file").files[0].text()); find("file").value = ""; });
    find("theme").addEventListener("click", theme.toggle);
    theme.onChange(() => { editor.view?.readColors(); editor.draw(); state.drive?.views.forEach((view) => view.readColors()); state.drive?.curves.readColors(); state.drive?.player.refresh(); });
    new ResizeObserver(() => { editor.draw(); state.drive?.player.refresh(); }).observe(find("views"));
    addEventListener("keydown", (event) => {
      if (event.target.matches("input, select")) return;
      const { key } = event;
      if (key === "z" && (event.ctrlKey || event.metaKey)) editor.take(editor.edits.slice(0, -1));
      else if (key === " " && state.drive) { event.preventDefault(); state.drive.player.toggle(); }
      else if (key === "ArrowRight" || key === "ArrowLeft") {
        const count = (key === "ArrowRight" ? 1 : -1) * (event.shiftKey ? 10 : 1);
        if (state.drive) state.drive.player.step(count); else seek(state.step + count);
      } else if ((key === "Delete" || key === "Backspace") && editor.selected !== null) editor.remove(editor.selected);
      else if (key === "Escape") { editor.placing = null; editor.select(null); panel.showPlacing(); }
    });
  }

  async function begin() {
    find("views").append(stage);
    listen();
    try {
      const start = await ask.get("start");
      find("title").textContent = start.title;
      const option = (text, value) => element("option", { text, value });
      find("scenario").append(...start.scenarios.map(({ token, kind }, i) => option(`${kind} · ${token}`, i)));
      find("planner").append(...start.planners.map((name) => option(name, name)));
      find("planner").value = start.planner;
      find("agents").append(...start.agents.map((name) => option(`${name} traffic`, name)));
      panel.setRules(await ask.post("rules", { planner: start.planner }));
      await open(0);
      state.ready = true;
    } catch (error) { panel.say(error.message, true); }
  }

  begin();
  return { state, editor, panel, camera, plans, fans, open, seek, load, question };
})();
