"use strict";
// A traced assembly: its waterfalls as nested lanes, the prompt in colours, and everything that it is made of.

function tracePart(trace) {
  const writers = trace.writers;
  const lanes = trace.waterfalls.length ? [waterfalls(trace)] : [];
  lanes.push(prompt(trace, writers));
  lanes.push(textLane("Sections", trace.lanes.sections, writers), textLane("Contexts", trace.lanes.contexts, writers));
  lanes.push(toolLane(trace.lanes.tools, writers), variableLane(trace.lanes.variables, writers));
  if (trace.lanes.messages.length) lanes.push(messageLane(trace.lanes.messages, writers));
  if (trace.providers.length) lanes.push(providerLane(trace.providers));
  return [failure("The assembly failed with", trace.failure), lanes];
}

// --- waterfalls ---------------------------------------------------------------------------------------------------------
const OPEN_RUNS = 40; // more listeners than this are shown closed
const DEEP = 12; // from this depth on, nesting takes less room

function waterfalls(trace) {
  const total = trace.waterfalls.reduce((sum, each) => sum + each.runs.length, 0);
  const details = lane("Listeners", count(total, "call"), (owner) => trace.waterfalls.map((each) => waterfall(each, owner)), true);
  const enforced = trace.enforced.changes;
  if (enforced.length) {
    details.lastElementChild.append(h("div", { class: "problem" }, h("b", {}, "Thrown away after the listeners: "), trace.enforced.why,
      enforced.map((each) => change(each))));
  }
  return details;
}

function waterfall(dispatch, owner) {
  const nodes = [];
  const roots = [];
  dispatch.runs.forEach((run, number) => {
    const depth = run.parent === null ? 0 : nodes[run.parent].depth + 1;
    const node = { run, depth, inner: [], element: null, around: run.parent === null ? null : nodes[run.parent] };
    nodes.push(node);
    (run.parent === null ? roots : nodes[run.parent].inner).push(node);
  });
  const open = nodes.length <= OPEN_RUNS;
  for (let number = nodes.length - 1; number >= 0; number -= 1) runElement(nodes[number], dispatch, owner, open);
  const rows = [h("p", { class: "facts" }, h("b", {}, dispatch.hook), h("span", {}, time(dispatch.total_ns)),
    h("span", {}, `${dispatch.given} → ${dispatch.result || "nothing"}`))];
  rows.push(failure("It failed with", dispatch.failure));
  for (const conflict of dispatch.conflicts) rows.push(h("div", { class: "problem" }, h("b", {}, "Conflict: "), conflict));
  rows.push(roots.map((node) => node.element));
  for (const each of dispatch.unreached) rows.push(silent(each, "not reached: the dispatch ended before it", owner));
  for (const each of dispatch.filtered) rows.push(silent(each, `filtered out: ${each.reason}`, owner));
  return h("section", { "aria-label": dispatch.hook }, rows);
}

function silent(listener, why, owner) {
  const element = h("div", { class: "run gone", vars: { "--hue": hue(listener.plugin) } }, h("span", { class: "row" },
    h("span", { class: "name" }, listener.plugin), h("span", { class: "by" }, why)));
  searchable.push({ lane: owner, element, text: `${listener.plugin} ${why}`.toLowerCase() });
  return element;
}

function badges(run) {
  const found = [];
  const changed = run.inward.length + run.outward.length;
  if (changed) found.push(badge(count(changed, "change"), "changed"));
  if (run.answered) found.push(badge("answered, nobody further in was asked", "warn"));
  if (run.handed_other) found.push(badge("handed another value inwards", "warn"));
  if (run.raised) found.push(badge(`raised ${run.raised.type}`, "bad"));
  if (run.caught) found.push(badge(`caught ${run.caught.type}`, "warn"));
  return found;
}

function runElement(node, dispatch, owner, open) {
  const { run, depth, inner } = node;
  const version = run.version ? ` ${run.version}` : "";
  const share = dispatch.total_ns ? Math.min(100, (100 * run.own_ns) / dispatch.total_ns) : 0;
  const line = h("span", { class: "row" },
    h("span", { class: "name" }, swatch(run.plugin), run.plugin, h("span", { class: "by" }, version)),
    h("span", { class: "by" }, `${run.style} in ${run.scope}`), badges(run),
    h("span", { class: "end" }, h("span", { class: "time", "aria-hidden": "true" }, h("i", { vars: { width: `${share}%` } })),
      ` ${time(run.own_ns)} own, ${time(run.total_ns)} in all`));
  const element = h("details", { class: `run ${depth > DEEP ? "deep" : ""}`, vars: { "--hue": hue(run.plugin) } }, h("summary", {}, line));
  lazy(element, () => [
    h("p", { class: "note" }, h("span", { class: "mono" }, `${run.function} ${place(run)}`), h("br", {}), run.why),
    phase("on the way in", run.inward), failure("caught", run.caught), inner.map((each) => each.element),
    phase("on the way out", run.outward), failure("raised", run.raised),
  ]);
  const text = [run.plugin, run.function, run.scope, ...run.inward.map(changeText), ...run.outward.map(changeText)].join(" ");
  searchable.push({ lane: owner, element, text: text.toLowerCase() });
  if (open) { element.open = true; element.ensure(); }
  element.around = () => node.around && node.around.element; // it may not be in there yet
  node.element = element;
}

const phase = (label, changes) => changes.length > 0 && h("div", { class: "phase" }, h("b", {}, label), changes.map((each) => change(each)));

// --- the prompt in colours ------------------------------------------------------------------------------------------------
function prompt(trace, writers) {
  const sections = trace.lanes.sections.filter((each) => each.pieces.length);
  const contexts = trace.lanes.contexts.filter((each) => each.pieces.length);
  const length = [...sections, ...contexts].reduce((sum, each) => sum + each.characters, 0);
  return lane("Prompt", `${count(length, "character")}, coloured by plugin`, (owner) => {
    const body = h("div", { class: "prompt" });
    const plugins = new Set();
    for (const entry of [...sections, ...contexts]) {
      for (const cut of entry.pieces) plugins.add(writers[cut[1]].name);
      body.append(...promptEntry(entry, writers, contexts.includes(entry), owner));
    }
    return [legend([...plugins], body), body];
  }, sections.length + contexts.length <= OPEN_RUNS);
}

function promptEntry(entry, writers, isContext, owner) {
  const first = writers[entry.pieces[0][1]];
  const text = h("div", { class: "text", "data-entry": entry.name });
  for (const [words, by, variable, via] of entry.pieces) {
    const writer = writers[by];
    const piece = h("span", { class: `piece ${variable ? "value" : ""}`, tabindex: "0", vars: { "--hue": hue(writer.name) }, "data-plugin": writer.name }, words);
    text.append(withTip(piece, () => tipOf(entry, writer, variable, via === undefined ? null : writers[via], writers)));
  }
  const who = h("div", { class: "who" }, h("b", {}, entry.name), isContext ? "context, " : "", first.name);
  searchable.push({ lane: owner, element: text, text: `${entry.name} ${entry.pieces.map((cut) => cut[0]).join("")}`.toLowerCase() });
  return [who, text];
}

function tipOf(entry, writer, variable, via, writers) {
  const head = variable ? `{{${variable}}} from ${writer.label}` : writer.label;
  return [h("b", {}, head), h("div", {}, `in ${entry.name}`), via && h("div", {}, `the reference was put there by ${via.label}`),
    entry.chain.length > 1 && h("ol", {}, entry.chain.map((by, index) => h("li", {}, `${index ? "changed by" : "registered by"} ${writers[by].label}`)))].filter(Boolean);
}

function legend(plugins, body) {
  let chosen = null;
  const buttons = plugins.map((plugin) => h("button", { type: "button", "aria-pressed": "false", on: { click: () => choose(plugin) } }, swatch(plugin), plugin));
  function choose(plugin) {
    chosen = chosen === plugin ? null : plugin;
    body.classList.toggle("dim", chosen !== null);
    buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(plugins[index] === chosen)));
    for (const piece of body.querySelectorAll(".piece")) piece.classList.toggle("lit", piece.dataset.plugin === chosen);
  }
  return h("div", { class: "legend", role: "group", "aria-label": "Show one plugin's text" }, buttons);
}

// --- lanes of elements ----------------------------------------------------------------------------------------------------
const names = (places, writers) => places.map((by) => writers[by].name).join(", ");
const history = (each, writers) => each.history.map((past) => change(past, writers[past.by].label));
const pastText = (each, writers) => each.history.map((past) => `${writers[past.by].name} ${changeText(past)}`).join(" ");

function registered(each, writers) {
  const last = each.registered.length - 1;
  return each.registered.length > 0 && h("ul", { class: "chain" }, each.registered.map((by, index) =>
    h("li", {}, writers[by].label, `, scope ${writers[by].scope}`, index < last ? " (shadowed by the next)" : "")));
}

function laneOf(title, word, entries, build) {
  return lane(title, count(entries.length, word), (owner) => entries.map((each) => build(each, owner)), false);
}

function textLane(title, entries, writers) {
  return laneOf(title, "entry", entries, (each, owner) => {
    const line = [h("span", { class: "name" }, each.name), h("span", { class: "by" }, names(each.registered, writers) || "a listener"),
      each.history.length > 0 && badge(count(each.history.length, "change"), "changed"), !each.standing && badge("not in the assembly", "warn"),
      h("span", { class: "end" }, `${each.order === null ? "" : `order ${each.order}, `}${count(each.characters, "character")}, ≈ ${each.tokens} tokens`)];
    const words = each.pieces.map((cut) => cut[0]).join("");
    const text = `${each.name} ${names(each.registered, writers)} ${words} ${pastText(each, writers)}`;
    return item(owner, line, text, () => [registered(each, writers), history(each, writers), words && h("pre", { class: "plain" }, words)], each.standing ? "" : "gone");
  });
}

function toolLane(tools, writers) {
  return laneOf("Tools", "tool", tools, (each, owner) => {
    const line = [h("span", { class: "name" }, each.name), h("span", { class: "by" }, names(each.registered, writers)),
      each.history.length > 0 && badge(count(each.history.length, "change"), "changed"), h("span", { class: "end" }, each.place === null ? "removed" : `place ${each.place}`)];
    const text = `${each.name} ${names(each.registered, writers)} ${each.description} ${pastText(each, writers)}`;
    return item(owner, line, text, () => [registered(each, writers), h("p", { class: "note" }, each.description), history(each, writers),
      each.parameters && h("pre", { class: "plain" }, each.parameters)], each.place === null ? "gone" : "");
  });
}

function variableLane(variables, writers) {
  return laneOf("Variables", "variable", variables, (each, owner) => {
    const value = each.value === null ? "(no value)" : each.value;
    const line = [h("span", { class: "name" }, each.name), h("span", { class: "by" }, names(each.registered, writers) || "a listener"),
      each.history.length > 0 && badge(count(each.history.length, "change"), "changed"), h("span", { class: "end" }, value.slice(0, 60))];
    return item(owner, line, `${each.name} ${names(each.registered, writers)} ${value} ${pastText(each, writers)}`,
      () => [registered(each, writers), history(each, writers), h("pre", { class: "plain" }, value)]);
  });
}

function messageLane(messages, writers) {
  return laneOf("Messages", "message", messages, (each, owner) => {
    const line = [h("span", { class: "name" }, each.source), h("span", { class: "by" }, each.name),
      each.changed.length > 0 && badge(`changed: ${each.changed.join(", ")}`, "changed"), each.history.length > 0 && badge(count(each.history.length, "change"), "changed"),
      h("span", { class: "end" }, each.entering ? count(each.text.length, "character") : "removed")];
    return item(owner, line, `${each.source} ${each.name} ${each.text} ${pastText(each, writers)}`,
      () => [history(each, writers), h("pre", { class: "plain" }, each.text)], each.entering ? "" : "gone");
  });
}

function providerLane(providers) {
  const slowest = [...providers].sort((one, two) => two.total_ns - one.total_ns);
  return laneOf("Providers, slowest first", "call", slowest, (each, owner) => {
    const line = [h("span", { class: "name" }, `${each.kind} ${each.name}`), h("span", { class: "by" }, each.plugin),
      each.failure && badge(`raised ${each.failure.type}`, "bad"), h("span", { class: "end" }, time(each.total_ns))];
    return item(owner, line, `${each.kind} ${each.name} ${each.plugin}`, () => [h("p", { class: "mono" }, place(each)), failure("raised", each.failure)]);
  });
}
