"use strict";
// view.js - the page of a robot's frames: live, or of a recording. No library, no network but its own server.
const KEPT = 2000, SHOWN = 240, POLL_MS = 500;
const text = document.getElementById("data").textContent;
const live = text === "";
let data = live ? { frames: [], nodes: [] } : JSON.parse(text);
let frames = data.frames, chosen = -1, frozen = !live, end = frames.length;
const $ = (id) => document.getElementById(id);

function make(name, attributes, inside) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (inside !== undefined) e.textContent = inside;
  return e;
}
function line(svg, x1, y1, x2, y2, look) {
  svg.append(make("line", { x1, y1, x2, y2, class: look }));
}

// --- the timeline: a bar a frame, as high as it took; the budget above them
function window_of() {
  const to = Math.min(frames.length, Math.max(end, 1));
  return [Math.max(0, to - SHOWN), to];
}
function draw() {
  const [from, to] = window_of(), svg = $("frames"), w = svg.clientWidth, h = svg.clientHeight;
  const some = frames.slice(from, to), low = h - 18;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
  if (!some.length) {
    svg.append(make("text", { x: 8, y: 20 }, live ? "Waiting for frames" : "There are no frames"));
    return;
  }
  const budget = Math.max(...some.map((f) => f.due ?? 0), 0) || data.period_ms || 0;
  const most = Math.max(budget, ...some.map((f) => f.ms)) * 1.1 || 1;
  const step = (w - 46) / (live ? SHOWN : Math.max(40, some.length)), y = (ms) => low - (ms / most) * (low - 14);
  line(svg, 40, low, w, low, "axis");
  if (budget) {
    line(svg, 40, y(budget), w, y(budget), "budget");
    svg.append(make("text", { x: 2, y: y(budget) + 4 }, budget.toFixed(0) + " ms"));
  }
  some.forEach((f, i) => {
    const bar = make("rect", { x: 42 + i * step, y: y(f.ms), width: Math.max(1, step - 1), height: Math.max(1, low - y(f.ms)),
      class: "bar" + (f.missed ? " missed" : "") + (from + i === chosen ? " chosen" : "") });
    bar.append(make("title", {}, `frame ${f.frame}: ${f.ms.toFixed(2)} ms` + (f.missed ? `, missed (${f.cause})` : "")));
    bar.addEventListener("click", () => choose(from + i));
    svg.append(bar);
  });
  svg.append(make("text", { x: 42, y: h - 4 }, "frame " + some[0].frame));
  svg.append(make("text", { x: w - 70, y: h - 4 }, "frame " + some[some.length - 1].frame));
  draw_decisions(some, from, step);
  draw_requests(some, from, step);
  draw_chunks(some, from);
  draw_ages(some, step);
}
// What the policy decided: a mark for each line of it that decided something, by what that is.
const KINDS = ["decode", "pause", "shed", "skip", "node", "note"];
function say(d) {
  const of = d.request >= 0 && d.requests > 1 ? `request ${d.request} and ${d.requests - 1} more of ${d.node}` :
    d.request >= 0 ? `request ${d.request} of ${d.node}` : d.what === "note" ? d.note : d.node;
  return `${d.what} ${of}` + (d.what === "decode" ? `, k ${d.k}` : "") + (d.at ? ` (${d.at})` : "");
}
function draw_decisions(some, from, step) {
  const svg = $("decisions"), w = svg.clientWidth, h = svg.clientHeight, low = h - 16;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
  some.forEach((f, i) => {
    const each = low / Math.max(KINDS.length, f.decisions.length);
    f.decisions.forEach((d, at) => {
      const mark = make("rect", { x: 42 + i * step, y: low - (at + 1) * each, width: Math.max(1, step - 1),
        height: Math.max(1, each - 1), class: "d-" + d.what });
      mark.append(make("title", {}, `frame ${f.frame}: ` + say(d)));
      mark.addEventListener("click", () => choose(from + i));
      svg.append(mark);
    });
  });
  svg.append(make("text", { x: 42, y: h - 3 }, "decisions of the policy, a mark for each of its lines"));
}
// Chunks over time, each from its observation to its last row: passed when it left, executed until the next one left,
// dropped behind that; a line where it takes over, as high as the command jumps.
function chunks_of(some) {
  const shape = Object.fromEntries((data.chunks ?? []).map((c) => [data.nodes.indexOf(c.node), c]));
  const all = [];
  for (const f of some) for (const [node, left, seen, late, jump] of f.left) {
    const c = shape[node], row = (c?.row_us ?? 0) / 1e3;
    if (!row || !c.rows) continue;
    all.push({ f, node, key: node + 64 * f.session, left: f.start + left, seen: f.start + seen, late, jump, row, rows: c.rows });
  }
  const next = {};
  for (let i = all.length - 1; i >= 0; i--) {
    const c = all[i], end = c.seen + c.rows * c.row;
    const until = Math.min(end, next[c.key]?.left ?? end);
    c.end = end;
    c.until = Math.max(c.left, until);
    const rows = (a, b) => Math.max(0, Math.min(c.rows, Math.round((b - a) / c.row)));
    c.passed = rows(c.seen, Math.min(c.left, end));
    c.executed = rows(c.left, c.until);
    c.dropped = Math.max(0, c.rows - c.passed - c.executed);
    c.overlap = next[c.key] ? rows(Math.max(next[c.key].seen, c.seen), end) : 0;
    next[c.key] = c;
  }
  return all;
}
function draw_chunks(some, from) {
  const svg = $("chunks"), w = svg.clientWidth, h = svg.clientHeight, low = h - 16, all = chunks_of(some);
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
  if (!all.length) return;
  const first = all[0].seen, last = Math.max(...all.map((c) => Math.min(c.end, c.until + 8 * c.row)));
  const x = (t) => 42 + ((t - first) / Math.max(last - first, 0.001)) * (w - 46), lanes = 3, row = low / lanes;
  const most = Math.max(...all.map((c) => c.jump ?? 0)) || 1;
  all.forEach((c, i) => {
    const y = (i % lanes) * row, part = (a, b, look) => {
      if (b > a) svg.append(make("rect", { x: x(a), y: y + 3, width: Math.max(1, x(b) - x(a)), height: row - 6, class: look }));
    };
    part(c.seen, Math.min(c.left, c.end), "c-passed");
    part(c.left, c.until, c.late ? "c-late" : "c-executed");
    part(c.until, Math.min(c.end, last), "c-dropped");
    if (c.jump !== null) line(svg, x(c.left), y + row - 3, x(c.left), y + row - 3 - (c.jump / most) * (row - 6), "jump");
    const box = make("rect", { x: x(c.seen), y, width: Math.max(2, x(Math.min(c.end, last)) - x(c.seen)), height: row, class: "hit" });
    box.append(make("title", {}, `frame ${c.f.frame}, ${data.nodes[c.node]}: ${say_chunk(c)}`));
    box.addEventListener("click", () => choose(from + some.indexOf(c.f)));
    svg.append(box);
  });
  svg.append(make("text", { x: 42, y: h - 3 }, "chunks: passed when they left, executed, dropped; lines: jumps where they take over"));
}
function say_chunk(c) {
  return `${c.rows} rows, ${c.passed} passed when it left, ${c.executed} executed, ${c.dropped} dropped, ${c.overlap} overlap the next; ` +
    `its observation was ${(c.left - c.seen).toFixed(2)} ms old` + (c.jump === null ? "" : `; it jumps by ${c.jump.toPrecision(3)}`) +
    (c.late ? "; late" : "");
}
// Requests, each from the frame it came in to the last that did something for it, by node; what they say. Texts come from
// the recording, or as they are made by the robot's Foxglove channels.
const texts = data.texts ?? {}, key_of = (session, request) => `${session}:${request}`;
function requests_of(some) {
  const all = new Map();
  some.forEach((f, i) => {
    for (const [kind, request, node, tokens, reason] of f.requests) {
      const key = key_of(f.session, request), r = all.get(key) ?? { key, request, node, first: i, tokens: 0, state: "", frame: f };
      all.set(key, r);
      r.last = i;
      if (node >= 0) r.node = node;
      r.tokens = Math.max(r.tokens, tokens);
      r.state = { arrive: "asked", admit: "has a slot", tokens: "speaks", finish: "finished" }[kind] ?? kind;
      if (reason) r.state += ": " + reason;
      r.bad = kind === "refuse" || kind === "shed";
    }
  });
  return [...all.values()];
}
function say_request(r) {
  const said = texts[r.key]?.text;
  return `request ${r.request} of ${data.nodes[r.node] ?? "?"}` + (r.frame.session ? `, session ${r.frame.session}` : "") +
    `: ${r.tokens} tokens, ${r.state}` + (said ? `, "${said.trim()}"` : "");
}
function draw_requests(some, from, step) {
  const svg = $("requests"), w = svg.clientWidth, h = svg.clientHeight, low = h - 16, lanes = [], all = requests_of(some);
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
  if (!all.length) return;
  for (const r of all) {
    r.lane = lanes.findIndex((end) => end < r.first);
    if (r.lane < 0) r.lane = lanes.push(0) - 1;
    lanes[r.lane] = r.last;
  }
  const row = Math.min(10, low / lanes.length);
  for (const r of all) {
    const bar = make("rect", { x: 42 + r.first * step, y: r.lane * row, width: Math.max(1, (r.last - r.first + 1) * step - 1),
      height: Math.max(1, row - 1), class: r.bad ? "r-bad" : "n" + (Math.max(0, r.node) % 6) });
    bar.append(make("title", {}, say_request(r)));
    bar.addEventListener("click", () => choose(from + r.first));
    svg.append(bar);
  }
  svg.append(make("text", { x: 42, y: h - 3 }, "requests of texts, from the frame they came in to their end"));
}
function list_texts() {
  const [from, to] = window_of(), all = requests_of(frames.slice(from, to)).filter((r) => texts[r.key]?.text).slice(-12).reverse();
  $("texts").replaceChildren(...all.map((r) => {
    const li = document.createElement("li");
    li.textContent = say_request(r);
    return li;
  }));
}
// How old the observation was when its actions left.
function draw_ages(some, step) {
  const svg = $("ages"), w = svg.clientWidth, h = svg.clientHeight, ages = some.map((f) => f.age);
  const most = Math.max(...ages.map((a) => a ?? 0)) * 1.1 || 1, low = h - 16;
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${w} ${h}`);
  line(svg, 40, low, w, low, "axis");
  let path = "";
  ages.forEach((a, i) => {
    if (a === null) return;
    const x = 42 + i * step, y = low - (a / most) * (low - 8);
    path += `${path === "" || ages[i - 1] === null ? "M" : "L"}${x} ${y}L${x + step} ${y}`;
  });
  svg.append(make("path", { d: path || "M0 0", class: "age" }));
  svg.append(make("text", { x: 2, y: 14 }, most.toFixed(0)));
  svg.append(make("text", { x: 42, y: h - 3 }, "age of the actions' observation, ms"));
}

// --- a frame: its figures, its launches on a line for each stream, why it missed
function entry(list, name, value) {
  const div = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
  dt.textContent = name;
  dd.textContent = value;
  div.append(dt, dd);
  list.append(div);
}
function chart(f) {
  const lanes = 1 + Math.max(0, ...f.launches.map((l) => l[1])), w = 1000, row = 22;
  const svg = make("svg", { viewBox: `0 0 ${w} ${lanes * row + 16}`, style: "height:" + (lanes * row + 16) + "px" });
  const scale = w / Math.max(f.ms, f.due ?? 0, 0.001);
  for (const [node, lane, a, b, rows, k] of f.launches) {
    const x = a * scale, width = Math.max(1, (b - a) * scale);
    const box = make("rect", { x, y: lane * row + 2, width, height: row - 4, rx: 2, class: "n" + (node % 6) });
    const name = (data.nodes[node] ?? "?") + (k ? ` ${rows} rows, k ${k}` : "");
    box.append(make("title", {}, `${name}: ${(b - a).toFixed(3)} ms`));
    svg.append(box);
    if (width > 8 * name.length) svg.append(make("text", { x: x + 4, y: lane * row + 15 }, name));
  }
  if (f.due !== null) line(svg, f.due * scale, 0, f.due * scale, lanes * row, "budget");
  return svg;
}
// The pipeline with what its nodes took in this frame: their time, and a bar as long as that of the longest.
function graph_of(f) {
  const g = data.graph, svg = make("svg", { viewBox: `0 0 ${g.width} ${g.height}`, class: "graph",
    style: `max-width:${Math.max(600, g.width)}px` }), took = {};
  for (const [node, , a, b] of f.launches) took[data.nodes[node]] = (took[data.nodes[node]] ?? 0) + b - a;
  const most = Math.max(...Object.values(took), 0.001);
  for (const points of g.links) {
    let path = "";
    for (let k = 0; k + 1 < points.length; k += 2) path += (k ? "L" : "M") + points[k] + " " + points[k + 1];
    svg.append(make("path", { d: path + (path ? "h7" : ""), class: "g-link" }));
  }
  for (const [name, kind, x, y, w, h] of g.items) {
    const ms = kind === "node" ? took[name] : undefined;
    svg.append(make("rect", { x, y, width: w, height: h, rx: kind === "node" ? 3 : 10,
      class: "g-" + (kind === "node" && ms === undefined ? "rests" : "item") }));
    if (ms !== undefined) svg.append(make("rect", { x: x + 2, y: y + h - 9, width: (w - 4) * (ms / most), height: 6, class: "g-heat" }));
    svg.append(make("text", { x: x + 8, y: y + 16, class: "g-name" }, name));
    if (ms !== undefined) svg.append(make("text", { x: x + 8, y: y + 32 }, ms.toFixed(2) + " ms"));
  }
  return svg;
}
// A frame as Chrome's JSON, for ui.perfetto.dev: the frame, and its launches by node and by stream.
function trace_of(f) {
  const events = [], put = (tid, name, from, ms, args) =>
    events.push({ ph: "X", pid: 1, tid, name, ts: 1000 * (f.start + from), dur: 1000 * ms, args });
  const track = (tid, name) => events.push({ ph: "M", pid: 1, tid, name: "thread_name", args: { name } });
  track(1, "frames");
  put(1, `frame ${f.frame}` + (f.missed ? " missed" : ""), 0, f.ms, { cause: f.cause, words: f.words, policy: f.policy });
  for (const [node, lane, a, b, rows, k] of f.launches) {
    put(10 + node, data.nodes[node], a, b - a, { rows, k });
    put(200 + lane, data.nodes[node], a, b - a, { rows, k });
  }
  new Set(f.launches.map((l) => l[0])).forEach((node) => track(10 + node, "node " + data.nodes[node]));
  new Set(f.launches.map((l) => l[1])).forEach((lane) => track(200 + lane, "stream " + lane));
  return JSON.stringify({ traceEvents: events });
}
function save_trace(f) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([trace_of(f)], { type: "application/json" }));
  a.download = `frame-${f.frame}.json`;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 60000);
}
function choose(i) {
  const f = frames[i], panel = $("frame"), list = document.createElement("dl"), title = document.createElement("h3");
  if (!f) return;
  chosen = i;
  freeze(true);
  if (i >= end || i < end - SHOWN) end = Math.min(frames.length, i + SHOWN / 2);
  title.textContent = `Frame ${f.frame}` + (f.session ? `, session ${f.session}` : "") + `: ${f.ms.toFixed(2)} ms`;
  panel.replaceChildren(title);
  if (f.missed) {
    const words = document.createElement("p");
    words.className = "words";
    words.textContent = `Missed by ${f.over.toFixed(2)} ms, cause ${f.cause}: ${f.words}`;
    panel.append(words);
  }
  entry(list, "policy", `${f.policy}, ${f.policy_ms.toFixed(3)} ms`);
  entry(list, "host", f.host_ms.toFixed(3) + " ms");
  if (f.slack !== null) entry(list, "slack", f.slack.toFixed(2) + " ms");
  if (f.age !== null) entry(list, "age", f.age.toFixed(2) + " ms");
  entry(list, "inputs late", f.late.toFixed(2) + " ms");
  entry(list, "tokens", f.tokens);
  entry(list, "requests in flight", f.in_flight);
  for (const r of f.refused) entry(list, "refused", `request ${r.request} of ${r.node}: ${r.reason}`);
  for (const [name, value] of Object.entries(f.notes)) entry(list, "note " + name, value);
  for (const d of f.decisions) entry(list, "decided", say(d));
  for (const c of chunks_of(frames.slice(Math.max(0, i - 1), i + 40))) if (c.f === f) entry(list, "chunk of " + data.nodes[c.node], say_chunk(c));
  const kv = f.kv.map(([of, what, times, tokens]) => `${of} ${what}` + (times > 1 ? ` ${times} times` : "") + (tokens ? `, ${tokens} tokens` : ""));
  if (kv.length) entry(list, "keys and values", kv.join("; "));
  for (const r of requests_of([f])) entry(list, "request", say_request(r));
  const save = document.createElement("button");
  save.textContent = "Save its trace";
  save.addEventListener("click", () => save_trace(f));
  panel.append(save, list, chart(f));
  if (data.graph) panel.append(graph_of(f));
  draw();
}
function list_misses() {
  const missed = frames.map((f, i) => [f, i]).filter(([f]) => f.missed).slice(-30).reverse();
  $("misses").replaceChildren(...missed.map(([f, i]) => {
    const li = document.createElement("li");
    li.tabIndex = 0;
    li.textContent = `frame ${f.frame}: ${f.over.toFixed(2)} ms over, ${f.words}`;
    li.addEventListener("click", () => choose(i));
    li.addEventListener("keydown", (e) => e.key === "Enter" && choose(i));
    return li;
  }));
}

// --- what is new
function freeze(on) {
  frozen = on;
  $("freeze").setAttribute("aria-pressed", String(on));
  if (!on) end = frames.length;
}
// Launches of no node have their places behind the nodes, which change as the records behind an answer do: frames that
// came before keep their names.
function named(nodes) {
  const all = nodes.concat(data.nodes.filter((name) => !nodes.includes(name))), at = data.nodes.map((name) => all.indexOf(name));
  if (at.some((to, from) => to !== from)) for (const f of frames) for (const l of f.launches) l[0] = at[l[0]] ?? l[0];
  return all;
}
function take(more) {
  data = { ...more, nodes: named(more.nodes), frames: undefined };
  frames = frames.concat(more.frames);
  const over = frames.length - KEPT;
  if (over > 0 && !frozen) {
    frames = frames.slice(over);
    chosen -= over;
  }
  if (!frozen) end = frames.length;
}
async function poll() {
  try {
    const after = frames.length ? frames[frames.length - 1].start : -1;
    const answer = await fetch("/data?after=" + after);
    take(await answer.json());
    $("cadence").textContent = `policy ${data.policy}: ${data.cadence}`;
    if (!frozen) {
      draw();
      list_misses();
      list_texts();
    }
  } catch {
    $("cadence").textContent = "The robot does not answer.";
  }
  setTimeout(poll, POLL_MS);
}
// What is said as it is said: this page is a client of the channels that Foxglove reads, for texts alone.
function hear() {
  const socket = new WebSocket(location.origin.replace(/^http/, "ws"), ["foxglove.websocket.v1"]), topics = {};
  socket.binaryType = "arraybuffer";
  socket.onmessage = ({ data: message }) => {
    if (typeof message !== "string") {
      if (message.byteLength < 13 || new DataView(message).getUint8(0) !== 1) return;
      const m = JSON.parse(new TextDecoder().decode(new Uint8Array(message, 13)));
      texts[key_of(m.session ?? 0, m.request)] = { text: m.said, reason: m.reason };
      const kept = Object.keys(texts);
      if (kept.length > KEPT) delete texts[kept[0]];
      return;
    }
    const told = JSON.parse(message);
    if (told.op !== "advertise") return;
    const wanted = told.channels.filter((c) => c.topic.startsWith("/tectum/text/"));
    if (!wanted.length) return socket.close();
    wanted.forEach((c) => (topics[c.id] = c.topic));
    socket.send(JSON.stringify({ op: "subscribe", subscriptions: wanted.map((c) => ({ id: c.id, channelId: c.id })) }));
  };
  socket.onclose = () => Object.keys(topics).length && setTimeout(hear, 10 * POLL_MS);
}
function next_miss() {
  const i = frames.findIndex((f, at) => at > chosen && f.missed);
  choose(i >= 0 ? i : frames.findIndex((f) => f.missed));
}
$("freeze").addEventListener("click", () => freeze(!frozen));
$("back").addEventListener("click", () => choose(chosen < 0 ? frames.length - 1 : chosen - 1));
$("on").addEventListener("click", () => choose(chosen + 1));
$("miss").addEventListener("click", next_miss);
document.addEventListener("keydown", (e) => {
  if (e.key === " " && e.target === document.body) {
    e.preventDefault();
    freeze(!frozen);
  } else if (e.key === "ArrowLeft") choose(chosen - 1);
  else if (e.key === "ArrowRight") choose(chosen + 1);
  else if (e.key === "m") next_miss();
});
window.addEventListener("resize", draw);
if (live) {
  poll();
  hear();
} else {
  $("cadence").textContent = `policy ${data.policy}: ${data.cadence}` + (data.damage ? `; ${data.damage}` : "");
  $("freeze").hidden = true;
  list_misses();
  list_texts();
  draw();
  if (frames.some((f) => f.missed)) next_miss();
}
