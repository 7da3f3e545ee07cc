"use strict";
// The address keeps the moment and the view: #t=6.2&zoom=8&show=both&layers=labels,arrows and so on.
const address = {
  read() {
    const found = new URLSearchParams(location.hash.slice(1)), number = (name) => (found.has(name) && Number.isFinite(Number(found.get(name))) ? Number(found.get(name)) : null);
    return {
      time: number("t"), zoom: number("zoom"), x: number("x"), y: number("y"), up: found.get("up") === "1", show: found.get("show"),
      layers: found.has("layers") ? found.get("layers").split(",") : null, common: found.has("scale") ? found.get("scale") === "common" : null, all: found.get("rules") === "all", drive: number("drive"),
    };
  },

  text({ time, zoom, follow, x, y, up, show, layers, common, all, drive = null }) {
    const parts = [`t=${+time.toFixed(2)}`, `zoom=${+zoom.toFixed(2)}`];
    if (!follow) parts.push(`x=${x.toFixed(1)}`, `y=${y.toFixed(1)}`);
    if (up) parts.push("up=1");
    if (show !== null) parts.push(`show=${show}`);
    parts.push(`layers=${layers.join(",")}`);
    if (common) parts.push("scale=common");
    if (all) parts.push("rules=all");
    if (drive) parts.push(`drive=${drive}`);
    return `#${parts.join("&")}`;
  },

  // Written when nothing has changed for a moment: browsers refuse to be told at every picture.
  later: null,
  write(text) {
    clearTimeout(address.later);
    if (text === location.hash) return;
    address.later = setTimeout(() => history.replaceState(null, "", text), 300);
  },
};
