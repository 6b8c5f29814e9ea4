/* The page without this script is whole; with it, what changes is shown as it changes. */
"use strict";
(() => {
  const body = document.body;
  const root = body.dataset.root;
  const link = document.getElementById("link");
  let at = Number(body.dataset.at) || 0;
  let lost = false;
  let frozen = false;

  const age = () => {
    if (!link) return;
    const seconds = at ? Math.max(0, Math.round(Date.now() / 1000 - at)) : null;
    const old = seconds === null ? "not read yet" : `${seconds} s old`;
    const text = lost ? `✖ connection lost, figures are ${old}` : frozen ? `◐ frozen, ${old}` : `● live, ${old}`;
    if (link.textContent !== text) link.textContent = text;
    link.dataset.kind = lost ? "error" : frozen ? "waits" : "fine";
  };

  const live = () => document.getElementById("live");
  if (live() && window.EventSource) {
    let first = true;
    const source = new EventSource(`${root}stream`);
    const read = (event) => { at = JSON.parse(event.data).at; lost = false; age(); };
    source.addEventListener("alive", read);
    source.addEventListener("state", (event) => {
      read(event);
      if (!first && !frozen && live()) htmx.trigger(live(), "refresh");
      first = false;
    });
    source.onerror = () => { lost = true; age(); };
    setInterval(age, 1000);
    const button = document.getElementById("freeze");
    button.hidden = false;
    button.addEventListener("click", () => {
      frozen = !frozen;
      button.setAttribute("aria-pressed", String(frozen));
      if (!frozen) htmx.trigger(live(), "refresh");
      age();
    });
  }

  /* What the reader has opened stays open, and what is typed stays typed. */
  if (window.Idiomorph) {
    Idiomorph.defaults.ignoreActiveValue = true;
    Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) => !(name === "open" && node.tagName === "DETAILS");
    Idiomorph.defaults.callbacks.beforeNodeMorphed = (node) => !(node.classList && node.classList.contains("chart"));
  }

  let awaits = "";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const go = { t: "./", e: "errors", l: "locks", c: "cluster" };
    if (awaits === "g" && go[event.key]) location.href = root + go[event.key];
    else if (event.key === "/" && document.querySelector("input[type=search]")) {
      event.preventDefault();
      document.querySelector("input[type=search]").focus();
    } else if (event.key === "?") document.getElementById("keys").showModal();
    else if (event.key === "j" || event.key === "k") {
      const links = [...document.querySelectorAll("#live tbody a:first-of-type")];
      const next = links.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
      if (links.length) links[Math.min(Math.max(next, 0), links.length - 1)].focus();
    }
    awaits = event.key;
  });

  const hues = () => getComputedStyle(document.documentElement);
  const strokes = ["--line1", "--line2", "--line3", "--line4"];
  const dashes = [[], [6, 4], [2, 3], [8, 3, 2, 3]];
  const draw = async (place) => {
    const answer = await fetch(place.dataset.from, { headers: { accept: "application/json" } });
    if (!answer.ok) return;
    const found = await answer.json();
    const names = Object.keys(found).sort();
    const which = Number(place.dataset.column);
    const times = [...new Set(names.flatMap((name) => found[name].map((point) => point[0])))].sort((a, b) => a - b);
    const columns = names.map((name) => {
      const by = new Map(found[name].map((point) => [point[0], point[which]]));
      return times.map((time) => by.get(time) ?? null);
    });
    const axis = { stroke: hues().getPropertyValue("--quiet"), grid: { stroke: hues().getPropertyValue("--rule") } };
    const clock = (time) => new Date(time * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false });
    const along = { ...axis, values: (_, splits) => splits.map(clock) };
    const options = {
      width: place.clientWidth, height: 190, axes: [along, { ...axis, size: 60 }],
      scales: { y: { range: (_, low, high) => [0, Math.max(high || 0, 1) * 1.1] } },
      series: [{ value: (_, time) => (time ? clock(time) : "") }, ...names.map((name, at) => ({
        label: name, stroke: hues().getPropertyValue(strokes[at % 4]), width: 2, dash: dashes[at % 4], spanGaps: false,
      }))],
    };
    if (place.plot) place.plot.destroy();
    place.textContent = "";
    if (times.length < 2) place.textContent = "Not enough points yet: one is kept every 10 s, for two hours.";
    else place.plot = new uPlot(options, [times, ...columns], place);
  };
  const charts = () => document.querySelectorAll(".chart").forEach((place) => { if (!frozen) draw(place).catch(() => {}); });
  charts();
  setInterval(charts, 10000);
})();
