"use strict";
// What all parts of the page share: making elements, lanes that are filled when they are opened, tips, colours.
// Text goes in as text nodes only; nothing that comes from a prompt is ever parsed as HTML.

const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function put(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    else if (name === "vars") for (const [key, text] of Object.entries(value)) element.style.setProperty(key, text);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}
const h = (tag, attributes, ...children) => put(document.createElement(tag), attributes, children);
const s = (tag, attributes, ...children) => put(document.createElementNS(SVG, tag), attributes, children);

const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`.replace(/ys$/, "ies");
const time = (ns) => (ns < 1e6 ? `${(ns / 1e3).toFixed(1)} µs` : `${(ns / 1e6).toFixed(2)} ms`);
const place = (thing) => (thing.file ? `${thing.file}:${thing.line}` : "");
const badge = (text, kind) => h("span", { class: `badge ${kind || ""}` }, text);

// --- colours: one hue for each plugin, far apart for the first dozen --------------------------------------------------
const HUES = [212, 28, 140, 275, 350, 178, 48, 310, 95, 235, 12, 160];
const hues = new Map();
function hue(plugin) {
  if (!hues.has(plugin)) hues.set(plugin, (HUES[hues.size % HUES.length] + 17 * Math.floor(hues.size / HUES.length)) % 360);
  return hues.get(plugin);
}
const swatch = (plugin) => h("span", { class: "swatch", vars: { "--hue": hue(plugin) }, "aria-hidden": "true" });

// --- parts that are made when somebody looks -------------------------------------------------------------------------
const searchable = []; // {lane, element, text, open}: everything that can be found

function lazy(details, fill) {
  let filled = false;
  const ensure = () => {
    if (filled) return;
    filled = true;
    details.append(h("div", { class: "inside" }, fill()));
  };
  details.firstElementChild.addEventListener("click", ensure); // at once; "toggle" comes after the empty part was drawn
  details.addEventListener("toggle", () => { if (details.open) ensure(); });
  details.ensure = ensure;
  return details;
}

function lane(title, note, fill, open) {
  const details = h("details", { class: "lane" }, h("summary", {}, title, h("span", { class: "count" }, note || "")));
  lazy(details, () => fill(details));
  if (open) { details.open = true; details.ensure(); }
  return details;
}

// An item of a lane: a line, and more of it when it is opened. `text` is what a search looks in.
function item(owner, line, text, fill, classes) {
  const details = h("details", { class: `item ${classes || ""}` }, h("summary", {}, h("span", { class: "row" }, line)));
  lazy(details, fill);
  searchable.push({ lane: owner, element: details, text: text.toLowerCase() });
  return details;
}

// --- differences ------------------------------------------------------------------------------------------------------
const SIGNS = { "=": "span", "-": "del", "+": "ins" };
const diff = (stretches) => h("div", { class: "diff" }, stretches.map(([sign, text]) => h(SIGNS[sign], {}, text)));

function change(each, by) {
  const moved = each.kind === "moved" ? ` from place ${each.places[0] + 1} to ${each.places[1] + 1}` : "";
  return h("div", { class: "change" },
    h("span", {}, `${each.lane}: `, h("b", {}, each.name), ` ${each.kind}${moved}`, by ? ` by ${by}` : ""),
    Object.entries(each.fields || {}).map(([name, stretches]) => [h("div", { class: "field" }, name), diff(stretches)]));
}
const changeText = (each) => `${each.lane} ${each.name} ${each.kind} ` +
  Object.values(each.fields || {}).flat().map((stretch) => stretch[1]).join(" ");

const failure = (label, found) => found && h("div", { class: "problem" }, h("b", {}, `${label} ${found.type}: `), found.message,
  (found.notes || []).map((note) => h("div", {}, note)), place(found) && h("div", { class: "mono" }, place(found)));

// --- tips: shown on hover and on focus, closed with Escape ---------------------------------------------------------------
const tip = document.getElementById("tip");
function showTip(element, content) {
  tip.replaceChildren(...content);
  tip.hidden = false;
  const box = element.getClientRects()[0] || element.getBoundingClientRect();
  const size = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(box.left, innerWidth - size.width - 8));
  const below = box.bottom + 6;
  const top = below + size.height > innerHeight - 8 ? Math.max(8, box.top - size.height - 6) : below;
  tip.style.setProperty("left", `${left}px`);
  tip.style.setProperty("top", `${top}px`);
  element.setAttribute("aria-describedby", "tip");
}
function hideTip(element) {
  tip.hidden = true;
  if (element) element.removeAttribute("aria-describedby");
}
function withTip(element, content) {
  element.addEventListener("mouseenter", () => showTip(element, content()));
  element.addEventListener("focus", () => showTip(element, content()));
  element.addEventListener("mouseleave", () => hideTip(element));
  element.addEventListener("blur", () => hideTip(element));
  return element;
}
