"use strict";
// The prefix cache over a session: a chart with its breaks, who is behind them, and the same as tables.

const WIDTH = 960, HEIGHT = 240, LEFT = 52, TOP = 26, BOTTOM = 26;

function cachePart(cache) {
  const breaks = cache.requests.filter((each) => each.break);
  return lane("Prefix cache", `${count(cache.requests.length, "request")}, ${count(breaks.length, "break")}`, () => [
    h("p", { class: "facts" }, Object.entries(cache.models).map(([name, model]) =>
      h("span", {}, h("b", {}, name), ` in units of ${model.unit}, rendered as ${model.order.join(", ")}`)),
      cache.cost > 0 && h("span", {}, "cost ", h("b", {}, cache.cost.toFixed(4)))),
    chart(cache.requests), cache.growth.map((each) => h("div", { class: "problem" }, h("b", {}, "Growth: "), each)),
    ranking(cache.ranking), requestTable(cache.requests),
  ], true);
}

function chart(requests) {
  const detail = h("div", { class: "detail", "aria-live": "polite" }, h("span", { class: "note" }, "Hover over a request, or reach it with the Tab and arrow keys."));
  const highest = requests.reduce((most, each) => Math.max(most, each.tokens, lostTop(each)), 1);
  const tickStep = roundStep(highest / 4);
  const most = Math.ceil(highest / tickStep) * tickStep;
  const step = (WIDTH - LEFT) / Math.max(1, requests.length);
  const width = Math.max(1, Math.min(36, step * 0.72));
  const y = (tokens) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - tokens / most);
  const svg = s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "group", "aria-label": "Tokens of each request" });
  for (let tokens = 0; tokens <= most; tokens += tickStep) {
    svg.append(s("line", { class: tokens ? "grid" : "axis", x1: LEFT, x2: WIDTH, y1: y(tokens), y2: y(tokens) }),
      s("text", { x: LEFT - 6, y: y(tokens) + 4, "text-anchor": "end" }, short(tokens)));
  }
  const every = Math.ceil(requests.length / 24);
  requests.forEach((each, index) => {
    const x = LEFT + step * index + (step - width) / 2;
    const group = s("g", { class: "request", tabindex: index ? "-1" : "0", role: "img", "aria-label": spoken(each) },
      s("rect", { class: "old", x, width, y: y(each.predicted_cached_tokens), height: y(0) - y(each.predicted_cached_tokens) }),
      s("rect", { class: "new", x, width, y: y(each.tokens), height: y(each.predicted_cached_tokens) - y(each.tokens) }));
    if (each.reported_cached_tokens !== null) {
      const at = y(each.reported_cached_tokens);
      group.append(s("line", { class: "tick", x1: x - 2, x2: x + width + 2, y1: at, y2: at }));
    }
    if (each.break) {
      const middle = x + width / 2;
      group.append(s("rect", { class: "lost", x, width, y: y(lostTop(each)), height: y(each.predicted_cached_tokens) - y(lostTop(each)) }),
        s("path", { class: "break", d: `M${middle - 6},${TOP - 18} h12 l-6,10 z` }));
    }
    group.append(s("rect", { class: "frame", x: x - 2, width: width + 4, y: TOP - 20, height: HEIGHT - TOP - BOTTOM + 22 }));
    if (index % every === 0) svg.append(s("text", { x: x + width / 2, y: HEIGHT - 8, "text-anchor": "middle" }, each.number));
    const show = () => detail.replaceChildren(...requestDetail(each));
    group.addEventListener("mouseenter", show);
    group.addEventListener("focus", show);
    svg.append(group);
  });
  svg.addEventListener("focusin", (event) => {
    svg.querySelector(".request[tabindex='0']").setAttribute("tabindex", "-1");
    event.target.setAttribute("tabindex", "0");
  });
  svg.addEventListener("keydown", (event) => steer(event, [...svg.querySelectorAll(".request")]));
  const keys = h("div", { class: "keys" }, h("span", {}, h("i", { class: "k-old" }), "repeated, predicted to be cached"), h("span", {}, h("i", { class: "k-new" }), "new to the cache"),
    h("span", {}, h("i", { class: "k-tick" }), "cached as the service reported it"), h("span", {}, h("i", { class: "k-break" }), "the prefix broke; dashed: what that lost"));
  return [keys, svg, detail];
}

// One stop for the Tab key; the arrow keys go from request to request, with Shift from break to break.
function steer(event, groups) {
  const at = groups.indexOf(document.activeElement);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  let to = { Home: 0, End: groups.length - 1 }[event.key];
  if (step) {
    to = at + step;
    while (event.shiftKey && groups[to] && !groups[to].querySelector(".break")) to += step;
  }
  if (at < 0 || to === undefined || !groups[to]) return;
  event.preventDefault();
  groups[to].focus();
}

// The next of 1, 2, 5, 10, 20, ... that is not smaller.
function roundStep(size) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, size)));
  return [1, 2, 5, 10].map((each) => each * power).find((each) => each >= size);
}
const lostTop = (each) => each.predicted_cached_tokens + (each.break ? each.break.lost_tokens : 0);
const short = (tokens) => (tokens >= 10000 ? `${Math.round(tokens / 1000)}k` : Math.round(tokens));
const where = (each) => `Request ${each.number} (turn ${each.turn}, step ${each.step}${each.attempt > 1 ? `, attempt ${each.attempt}` : ""})`;

function spoken(each) {
  const reported = each.reported_cached_tokens === null ? "" : `, ${each.reported_cached_tokens} reported as cached`;
  const broken = each.break ? `. The prefix broke: ${each.cause}, ${each.break.lost_tokens} tokens lost` : "";
  return `${where(each)}: ${each.tokens} tokens, ${each.predicted_cached_tokens} predicted to be cached${reported}${broken}`;
}

function requestDetail(each) {
  const rows = [h("div", {}, spoken(each))];
  if (each.break) {
    const cause = each.break.cause;
    rows.push(h("div", { class: "diff" }, h("del", {}, cause.before), "\n", h("ins", {}, cause.after)),
      h("div", { class: "note" }, `First difference at byte ${each.break.offset.toLocaleString("en")}, in ${each.break.lane}.`,
        each.break.also.length ? ` Also different: ${each.break.also.map((other) => `${other.kind} ${other.name}`).join(", ")}.` : ""));
  }
  return rows;
}

function ranking(rows) {
  if (!rows.length) return h("p", { class: "note" }, "Nothing broke the prefix.");
  const advised = rows.some((each) => each.advice);
  const columns = ["Plugin", "Breaks", "Tokens lost", "Cost", "What", ...(advised ? ["What would help"] : [])];
  return h("div", { class: "scroll" }, h("table", {}, h("caption", {}, "Plugins by what their changes cost"),
    h("thead", {}, h("tr", {}, columns.map((name, index) => h("th", { class: index > 0 && index < 4 ? "number" : "", scope: "col" }, name)))),
    h("tbody", {}, rows.map((each) => h("tr", {}, h("td", {}, each.plugin, each.version ? ` ${each.version}` : ""), h("td", { class: "number" }, each.breaks),
      h("td", { class: "number" }, each.lost_tokens.toLocaleString("en")), h("td", { class: "number" }, each.lost ? each.lost.toFixed(5) : ""),
      h("td", {}, each.things.join(", ")), advised && h("td", {}, each.advice))))));
}

function requestTable(requests) {
  const details = h("details", { class: "item" }, h("summary", {}, "All requests as a table"));
  return lazy(details, () => h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["#", "Turn", "Step", "Bytes", "Repeated", "Tokens", "Predicted", "Reported", "Break"].map((name, index) =>
    h("th", { class: index < 8 ? "number" : "", scope: "col" }, name)))), h("tbody", {}, requests.map((each) => {
    const cells = [each.number, each.turn, each.step, each.bytes, each.repeated_bytes, each.tokens, each.predicted_cached_tokens, each.reported_cached_tokens ?? ""];
    const row = h("tr", {}, cells.map((cell) => h("td", { class: "number" }, cell.toLocaleString("en"))), h("td", {}, each.cause || ""));
    return row;
  })))));
}
