"use strict";
// page.js - the graph's page: pan, zoom, search, and the fields of what is chosen. No library, no network.
const data = JSON.parse(document.getElementById("data").textContent);
const view = document.getElementById("view");
const svg = view.querySelector("svg");
const panel = document.querySelector("aside");
const search = document.getElementById("search");
const whole = svg.viewBox.baseVal;
const home = { x: whole.x, y: whole.y, w: whole.width, h: whole.height };
let box = { ...home };

function show() {
  svg.setAttribute("viewBox", [box.x, box.y, box.w, box.h].join(" "));
}
// Zoom by a factor around a point of the picture, given as shares of the view.
function zoom(factor, sx = 0.5, sy = 0.5) {
  const w = Math.min(home.w * 4, Math.max(60, box.w * factor));
  const h = box.h * (w / box.w);
  box = { x: box.x + (box.w - w) * sx, y: box.y + (box.h - h) * sy, w, h };
  show();
}
function pan(dx, dy) {
  box.x += dx * box.w;
  box.y += dy * box.h;
  show();
}
function fit() {
  box = { ...home };
  show();
}
// On a narrow screen begin at the left, large enough to read.
function begin() {
  const w = Math.min(home.w, view.clientWidth * 1.5);
  const h = home.h * (w / home.w);
  box = w < home.w / 1.4 ? { x: home.x, y: home.y + (home.h - h) / 2, w, h } : { ...home };
  show();
}
begin();

// --- pointers: drag to pan, two fingers to zoom
const pointers = new Map();
let moved = 0;
function spread() {
  const [a, b] = [...pointers.values()];
  return Math.hypot(a.x - b.x, a.y - b.y);
}
view.addEventListener("pointerdown", (e) => {
  pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
  moved = 0;
});
window.addEventListener("pointermove", (e) => {
  const from = pointers.get(e.pointerId);
  if (!from) return;
  const before = pointers.size === 2 ? spread() : 0;
  pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
  moved += Math.abs(e.clientX - from.x) + Math.abs(e.clientY - from.y);
  if (pointers.size === 2) {
    zoom(before / Math.max(1, spread()));
  } else {
    view.classList.add("drag");
    const scale = Math.max(box.w / view.clientWidth, box.h / view.clientHeight);
    box.x -= (e.clientX - from.x) * scale;
    box.y -= (e.clientY - from.y) * scale;
    show();
  }
});
for (const end of ["pointerup", "pointercancel"])
  window.addEventListener(end, (e) => {
    pointers.delete(e.pointerId);
    view.classList.remove("drag");
  });
view.addEventListener("wheel", (e) => {
  e.preventDefault();
  const r = view.getBoundingClientRect();
  zoom(e.deltaY > 0 ? 1.15 : 1 / 1.15, (e.clientX - r.left) / r.width, (e.clientY - r.top) / r.height);
}, { passive: false });

// --- what is chosen
function row(list, name, value) {
  const dt = document.createElement("dt"), dd = document.createElement("dd");
  dt.textContent = name;
  dd.textContent = typeof value === "object" ? JSON.stringify(value) : String(value);
  list.append(dt, dd);
}
function choose(id) {
  for (const g of svg.querySelectorAll(".item")) g.classList.toggle("chosen", g.id === id);
  panel.replaceChildren();
  const item = data.items.find((x) => x.id === id);
  if (!item) return;
  const title = document.createElement("h2"), list = document.createElement("dl");
  title.textContent = item.name;
  row(list, "kind", item.word);
  if (item.p50_ms !== undefined) {
    row(list, "measured", item.p50_ms.toFixed(3) + " ms (p50)");
    if (item.p99_ms !== undefined) row(list, "p99", item.p99_ms.toFixed(3) + " ms");
    if (item.share !== undefined) row(list, "of the time", (100 * item.share).toFixed(1) + " %");
  }
  for (const [name, value] of Object.entries(item.fields || {})) row(list, name, value);
  for (const link of data.links) {
    if (link.from === id) row(list, link.word + " to", data.items.find((x) => x.id === link.to).name);
    if (link.to === id) row(list, link.word + " from", data.items.find((x) => x.id === link.from).name);
  }
  panel.append(title, list);
}
for (const g of svg.querySelectorAll(".item")) {
  g.addEventListener("click", () => moved < 6 && choose(g.id));
  g.addEventListener("keydown", (e) => {
    if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      choose(g.id);
    }
  });
}

// --- search: what does not match fades, and parts without a match fold
function find() {
  const words = search.value.trim().toLowerCase();
  for (const item of data.items) {
    const text = JSON.stringify(item).toLowerCase();
    document.getElementById(item.id).classList.toggle("dim", words !== "" && !text.includes(words));
  }
  for (const part of document.querySelectorAll("details.part"))
    part.open = words !== "" && part.textContent.toLowerCase().includes(words);
}
search.addEventListener("input", find);

// --- buttons and keys
const actions = {
  in: () => zoom(1 / 1.3),
  out: () => zoom(1.3),
  fit,
};
for (const b of document.querySelectorAll("button[data-do]"))
  b.addEventListener("click", actions[b.dataset.do]);
const keys = {
  "+": actions.in, "=": actions.in, "-": actions.out, "0": fit,
  ArrowLeft: () => pan(-0.1, 0), ArrowRight: () => pan(0.1, 0),
  ArrowUp: () => pan(0, -0.1), ArrowDown: () => pan(0, 0.1),
  "/": () => search.focus(),
};
document.addEventListener("keydown", (e) => {
  if (e.key === "Escape") {
    search.value = "";
    find();
    choose("");
    search.blur();
  } else if (e.target !== search && keys[e.key]) {
    e.preventDefault();
    keys[e.key]();
  }
});
