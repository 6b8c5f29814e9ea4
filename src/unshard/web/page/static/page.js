/* The page without this script is whole; with it, what changes is shown as it changes. */
"use strict";
(() => {
  const body = document.body;
  const root = body.dataset.root;
  const link = document.getElementById("link");
  let at = Number(body.dataset.at) || 0;
  let heard = Date.now();
  const SILENCE = 4000;  /* A master sends something every two seconds. */
  let lost = false;
  let frozen = false;

  const clock = (time) => new Date(time * 1000).toISOString().slice(11, 16);
  const second = (time) => new Date(time * 1000).toISOString().slice(11, 19);
  const span = (seconds) => seconds < 90 ? `${seconds} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min`
    : seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
  const ago = () => document.querySelectorAll("time.since").forEach((time) => {
    const seconds = Math.round((Date.now() - Date.parse(time.dateTime)) / 1000);
    if (seconds >= 0) time.dataset.ago = time.dataset.words ? `${time.dataset.words} ${span(seconds)}` : ` (${span(seconds)} ago)`;
  });
  ago();
  setInterval(ago, 10000);
  document.addEventListener("htmx:afterSettle", ago);

  const age = () => {
    if (!link) return;
    if (live() && Date.now() - heard > SILENCE) lost = true;
    const seconds = at ? Math.max(0, Math.round(Date.now() / 1000 - at)) : null;
    const old = seconds === null ? "not read yet" : `${seconds} s old`;
    const text = lost ? `✖ connection lost, figures are ${old}` : frozen ? `◐ frozen, ${old}` : `● live, ${old}`;
    if (link.textContent !== text) link.textContent = text;
    link.dataset.kind = lost ? "error" : frozen ? "waits" : "fine";
    const told = document.getElementById("lost");
    if (told.hidden === lost) {
      told.textContent = lost ? `✖ The master does not answer. The figures below are of ${clock(at)} UTC. The page tries again by itself.` : "";
      told.hidden = !lost;
    }
  };

  const live = () => document.getElementById("live");
  if (live() && window.EventSource) {
    let shown = body.dataset.number;
    const source = new EventSource(`${root}stream?${body.dataset.watches}`);
    const rest = location.pathname.slice(new URL(root, location.href).pathname.length) + location.search;
    const moveTo = (master) => location.replace(`${location.protocol}//${master}/ui/${rest}`);
    const read = (event) => {
      const told = JSON.parse(event.data);
      heard = Date.now();
      if (told.leader && !frozen) moveTo(told.leader);
      at = told.at; lost = false; age();
    };
    source.addEventListener("alive", read);
    source.addEventListener("over", () => { lost = true; age(); if (!frozen) location.reload(); });
    source.addEventListener("state", (event) => {
      read(event);
      if (event.lastEventId !== shown && !frozen && live()) htmx.trigger(live(), "refresh");
      shown = event.lastEventId;
    });
    source.onerror = () => { lost = true; age(); };
    setInterval(age, 1000);
    /* A master that is gone is asked again by the browser itself; meanwhile the one that leads now is looked for.
       What answers here may be another master behind the same proxy, or this one with a form to log in. */
    const leads = async (where) => {
      try {
        const options = { cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(2000) };
        return (await fetch(`${where}leads`, options)).status === 204;
      } catch { return false; }
    };
    const masters = body.dataset.masters.split(" ").filter(Boolean);
    let seeking = false;
    setInterval(async () => {
      if (!lost || frozen || seeking) return;
      seeking = true;
      const [here, ...found] = await Promise.all([root, ...masters.map((master) => `${location.protocol}//${master}/ui/`)].map(leads));
      const next = found.indexOf(true);
      if (lost && here && source.readyState === EventSource.CLOSED) location.reload();
      else if (lost && !here && next >= 0) moveTo(masters[next]);
      seeking = false;
    }, 2000);
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
    Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) => name !== "data-ago" && !(name === "open" && node.tagName === "DETAILS");
    Idiomorph.defaults.callbacks.beforeNodeMorphed = (node) => !(node.classList && node.classList.contains("chart"));
  }

  /* The command of a form is made by the server, which knows how to quote. Texts of files never go into an address. */
  const command = document.getElementById("command"), told = document.querySelectorAll("form [data-told]");
  const tell = async () => {
    const form = command.closest("form"), given = new URLSearchParams();
    form.querySelectorAll("input[type=hidden]:not([name=csrf]), [data-told]").forEach((one) => given.set(one.name, one.value));
    const answer = await fetch(`${form.getAttribute("action")}?${given}`);
    if (!answer.ok) return;
    const made = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("command");
    if (made) command.replaceChildren(...made.childNodes);
  };
  let typing = 0;
  if (command) told.forEach((one) => one.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => tell().catch(() => {}), 200);
  }));

  const help = document.getElementById("help");
  help.hidden = false;
  help.addEventListener("click", () => document.getElementById("keys").showModal());
  let awaits = "";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const go = { t: "./", e: "errors", l: "locks", c: "cluster" };
    if (awaits === "g" && go[event.key]) location.href = root + go[event.key];
    else if (event.key === "/" && document.querySelector("input[type=search]")) {
      event.preventDefault();
      document.querySelector("input[type=search]").focus();
    } else if (event.key === "?") document.getElementById("keys").showModal();
    else if (event.key === "f" && live()) document.getElementById("freeze").click();
    else if (event.key === "j" || event.key === "k") {
      const links = [...document.querySelectorAll("#live tbody a:first-of-type")];
      const next = links.indexOf(document.activeElement) + (event.key === "j" ? 1 : -1);
      if (links.length) links[Math.min(Math.max(next, 0), links.length - 1)].focus();
    }
    awaits = event.key;
  });

  const hues = () => getComputedStyle(document.documentElement);
  const strokes = ["--line1", "--line2", "--line3", "--line4", "--line5", "--line6"];
  const dashes = [[], [6, 4], [2, 3], [8, 3, 2, 3], [12, 4], [1, 5]];
  const theme = matchMedia("(prefers-color-scheme: dark)");
  const draw = async (place) => {
    const answer = await fetch(place.dataset.from, { headers: { accept: "application/json" } });
    if (!answer.ok) return;
    const found = await answer.json();
    const { names: only, without, column: which, least } = place.dataset;
    const from = Date.now() / 1000 - 60 * Number(document.getElementById("charts").dataset.minutes);
    const names = Object.keys(found).filter((name) => (!only || name === only) && name !== without).sort();
    const points = (name) => found[name].filter((point) => point[0] >= from);
    const times = [...new Set(names.flatMap((name) => points(name).map((point) => point[0])))].sort((a, b) => a - b);
    const columns = names.map((name) => {
      const by = new Map(points(name).map((point) => [point[0], point[which]]));
      return times.map((time) => by.get(time) ?? null);
    });
    if (times.length < 2 || columns.every((column) => column.every((value) => value === null))) {
      if (!place.plot) place.textContent = `No data yet${place.dataset.until}. A point is kept every 10 s, for two hours.`;
      return;
    }
    const shape = [names.join("\n"), place.clientWidth, theme.matches].join("\n");
    const data = [times, ...columns];
    if (place.plot && place.shape === shape) {
      const { min, max } = place.plot.scales.x, old = place.plot.data[0];
      const zoomed = min > old[0] || max < old[old.length - 1];
      place.plot.setData(data, !zoomed);
      if (zoomed) place.plot.setScale("x", { min, max });
      return;
    }
    const axis = { stroke: hues().getPropertyValue("--quiet"), grid: { stroke: hues().getPropertyValue("--rule"), width: 1 } };
    const along = { ...axis, values: (_, splits) => splits.map(splits.length > 1 && splits[1] - splits[0] < 60 ? second : clock) };
    const last = (plot) => { if (plot.cursor.idx == null) plot.setLegend({ idx: plot.data[0].length - 1 }, false); };
    const options = {
      width: place.clientWidth, height: 190, axes: [along, { ...axis, size: 60 }],
      tzDate: (time) => uPlot.tzDate(new Date(time * 1000), "Etc/UTC"),
      scales: { y: { range: (_, low, high) => [0, Math.max(high || 0, Number(least || 1)) * 1.1] } },
      series: [{ label: "At", value: (_, time) => (time ? clock(time) : "") }, ...names.map((name, at) => ({
        label: name, value: (_, value) => (value == null ? "unknown" : value.toLocaleString()), stroke: hues().getPropertyValue(strokes[at % 6]), width: 2, dash: dashes[at % 6], spanGaps: false,
      }))],
      hooks: { draw: [last], setCursor: [last] },
    };
    if (place.plot) place.plot.destroy();
    place.textContent = "";
    place.classList.add("drawn");
    place.plot = new uPlot(options, data, place);
    place.shape = shape;
  };
  const charts = () => document.querySelectorAll(".chart").forEach((place) => { if (!frozen) draw(place).catch(() => {}); });
  charts();
  setInterval(charts, 10000);
})();
