"use strict";
// Puts the page together, and owns the search, the buttons and printing.

const page = document.getElementById("page");
const input = document.getElementById("search");
const hits = document.getElementById("hits");

function build() {
  const facts = h("p", { class: "facts" }, DATA.facts.map(([name, value]) => h("span", {}, `${name} `, h("b", {}, value))));
  put(page, {}, [facts, DATA.cache ? cachePart(DATA.cache) : [], DATA.trace ? tracePart(DATA.trace) : []]);
}

// --- opening and closing ------------------------------------------------------------------------------------------------
function openDetails(element) {
  const around = element.around && element.around();
  if (around) openDetails(around);
  for (let each = element; each && each !== page; each = each.parentElement) {
    if (each instanceof HTMLDetailsElement) { if (each.ensure) each.ensure(); each.open = true; }
  }
}
function openAll(root) {
  for (const each of root.querySelectorAll(":scope details")) {
    if (each.ensure) each.ensure();
    each.open = true;
  }
}
function everything() {
  let before = -1; // opening fills parts that may hold further ones
  let all = page.querySelectorAll("details");
  while (all.length !== before) {
    before = all.length;
    openAll(page);
    all = page.querySelectorAll("details");
  }
}
document.getElementById("open-all").addEventListener("click", everything);
document.getElementById("close-all").addEventListener("click", () => {
  for (const each of page.querySelectorAll("details[open]")) each.open = false;
});

let openBefore = null;
addEventListener("beforeprint", () => {
  openBefore = new Set(page.querySelectorAll("details[open]"));
  everything();
});
addEventListener("afterprint", () => {
  if (openBefore) for (const each of page.querySelectorAll("details[open]")) if (!openBefore.has(each)) each.open = false;
  openBefore = null;
});

// --- colours ------------------------------------------------------------------------------------------------------------
const THEMES = ["system", "light", "dark"];
const theme = document.getElementById("theme");
theme.addEventListener("click", () => {
  const next = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme || "system") + 1) % THEMES.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  theme.textContent = `Colours: ${next}`;
  theme.setAttribute("aria-label", `Colours: ${next === "system" ? "as the system has them" : next}`);
});

// --- search -------------------------------------------------------------------------------------------------------------
let found = [];
let current = -1;
let waiting = 0;

function fillLanes() {
  for (const each of page.querySelectorAll("details.lane")) each.ensure(); // what can be found is made with its lane
}

function search() {
  const words = input.value.trim().toLowerCase();
  clearMarks();
  if (!words) {
    for (const each of searchable) each.element.hidden = false;
    found = [];
    current = -1;
    hits.value = "";
    return;
  }
  fillLanes();
  found = searchable.filter((each) => each.text.includes(words));
  const shown = new Set(found.map((each) => each.element));
  for (const each of searchable) {
    const nested = each.element.classList.contains("run");
    const who = each.element.classList.contains("text") ? each.element.previousElementSibling : null;
    const visible = shown.has(each.element) || nested;
    each.element.hidden = !visible;
    if (who) who.hidden = !visible;
  }
  const lanes = new Set(found.map((each) => each.lane));
  for (const each of lanes) each.open = true;
  for (const each of found) if (each.element.classList.contains("run")) openDetails(each.element);
  hits.value = found.length ? `${count(found.length, "hit")} in ${count(lanes.size, "lane")}` : "nothing found";
  current = -1;
  mark(words);
}

function clearMarks() {
  if (globalThis.CSS && CSS.highlights) CSS.highlights.delete("found");
  for (const each of searchable) {
    each.element.hidden = false;
    if (each.element.classList.contains("text")) each.element.previousElementSibling.hidden = false;
  }
}

const MARKED = 2000; // ranges: enough for every screen, few enough to stay quick
function mark(words) {
  if (!globalThis.CSS || !CSS.highlights) return;
  const ranges = [];
  for (const each of found) {
    const walker = document.createTreeWalker(each.element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node && ranges.length < MARKED; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) continue; // offsets would not fit
      for (let at = text.indexOf(words); at >= 0 && ranges.length < MARKED; at = text.indexOf(words, at + words.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + words.length);
        ranges.push(range);
      }
    }
    if (ranges.length >= MARKED) break;
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}

function next(direction) {
  if (!found.length) return;
  current = (current + direction + found.length) % found.length;
  const element = found[current].element;
  openDetails(element);
  element.scrollIntoView({ block: "center" });
  const target = element.querySelector(":scope > summary") || element.querySelector(".piece") || element;
  target.focus({ preventScroll: true });
  hits.value = `${current + 1} of ${count(found.length, "hit")}`;
  mark(input.value.trim().toLowerCase());
}

input.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(search, 120);
});
input.form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(waiting);
  search();
  next(1);
});
addEventListener("keydown", (event) => {
  const typing = event.target === input;
  if (event.key === "/" && !typing) {
    event.preventDefault();
    input.focus();
    input.select();
  } else if (event.key === "Escape") {
    hideTip();
    if (typing) { input.value = ""; search(); }
  } else if ((event.key === "n" || event.key === "N") && !typing && found.length && !event.ctrlKey && !event.metaKey) {
    next(event.key === "n" ? 1 : -1);
  }
});

build();
document.documentElement.dataset.ready = "true";
