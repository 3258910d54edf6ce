// page_dom.js - runs the script of a page of frames over as much of a document as it uses, and prints what it drew:
// {id: [{name, class, title}]}, texts and titles of the panel.  node tests/page_dom.js PAGE.html [FRAME [ANSWER.json]]
// ANSWER.json: what a running robot answers behind that, which the page takes in.
"use strict";
const fs = require("fs");
const page = fs.readFileSync(process.argv[2], "utf8");
const scripts = [...page.matchAll(/<script([^>]*)>([\s\S]*?)<\/script>/g)].map((m) => m[2]);
const ids = {};

function element(name) {
  const e = { name, attributes: {}, children: [], listeners: {}, textContent: "", clientWidth: 1000, clientHeight: 100, style: {} };
  e.setAttribute = (k, v) => { e.attributes[k] = v; };
  e.append = (...more) => { e.children.push(...more); };
  e.replaceChildren = (...more) => { e.children = more; };
  e.addEventListener = (what, f) => { e.listeners[what] = f; };
  return e;
}
for (const m of page.matchAll(/id="([a-z]+)"/g)) ids[m[1]] = element(m[1]);
ids.data.textContent = scripts[0];
const document = {
  getElementById: (id) => ids[id], createElement: element, createElementNS: (_, name) => element(name),
  addEventListener: () => {}, body: element("body"),
};
const window = { addEventListener: () => {} };
const answer = process.argv[4] === undefined ? "" : `\ntake(${fs.readFileSync(process.argv[4], "utf8")});`;
const frame = process.argv[3] === undefined ? "" : `\nchoose(${Number(process.argv[3])});`;
new Function("document", "window", scripts[1] + answer + frame)(document, window);

const all = (e) => e.children.flatMap((c) => (c.children ? [c, ...all(c)] : []));
const out = {};
for (const id of ["frames", "decisions", "requests", "chunks", "ages"])
  out[id] = all(ids[id]).filter((e) => e.name !== "title").map((e) => ({ name: e.name, look: e.attributes.class ?? "",
    title: e.children.find((c) => c.name === "title")?.textContent ?? "", x: Number(e.attributes.x ?? 0),
    width: Number(e.attributes.width ?? 0) }));
out.launches = all(ids.frame).filter((e) => e.name === "rect").map((e) => e.children.find((c) => c.name === "title")?.textContent ?? "");
out.panel = all(ids.frame).map((e) => String(e.textContent)).filter((t) => t);
console.log(JSON.stringify(out));
