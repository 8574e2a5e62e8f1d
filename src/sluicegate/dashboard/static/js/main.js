// The page: follows the news, which begin by asking for the run. Series are asked for anew, never patched together here, so
// a browser that slept, lost its connection or changed the time shown is right again with the next answer.
import { ask, listen } from "./api.js";
import { byId, html } from "./elements.js";
import { addToFeed, onOlder, showFeed, showHeld } from "./feed.js";
import { isSilent, showFailures, showHeader, showOutcome, showState } from "./header.js";
import { bindKeys } from "./keys.js";
import { showFleet, showNodes } from "./nodes.js";
import { OperatorDialog } from "./operator.js";
import { aheadOf, Plots } from "./plots.js";
import { toggleTheme } from "./theme.js";
import { showTiles } from "./tiles.js";
import { drawTopology, showOnTopology } from "./topology.js";
import { WhatIf } from "./what_if.js";

const RANGES = { "5 min": 300, "15 min": 900, "1 h": 3600, "6 h": 21_600, "24 h": 86_400 };
const POINTS = 600;
const SLOWEST_MS = 30_000;
const MOST_LAYERS_BESIDE = 5;
const AGAIN_MS = 2000;

let run = { decisions: [], fleet: [], slot_seconds: 0 };
let connected = false;
let topology = null;
let plan = null;
let shownS = RANGES["15 min"];
let askedMs = 0;
let fetchedMs = 0;
let asking = false;
let fetching = false;
let stale = false;

const plots = new Plots();
const dialog = new OperatorDialog();
const whatIf = new WhatIf((chosen) => {
  plan = chosen;
  if (topology && run.tick) showOnTopology(topology, run.tick, plan);
});

const span = () => {
  const now = run.tick?.at_s ?? Date.now() / 1000;
  const from = Math.max(now - shownS, run.kept_since_s ?? now - shownS);
  return [Math.min(from, now - 10), now + aheadOf(run.tick)];
};

const showSeries = async () => {
  const everyMs = Math.min(Math.max((shownS / POINTS) * 1000, 1000), SLOWEST_MS);
  if (asking || document.hidden || Date.now() - askedMs < everyMs) return;
  asking = true;
  try {
    const [from, to] = span();
    const series = await ask(`/api/series?from=${from}&to=${to}&points=${POINTS}`);
    askedMs = Date.now();
    plots.show(run, series, span());
  } finally {
    asking = false;
  }
};

const showNow = () => {
  showTiles(run);
  showNodes(run);
  showHeld(run);
  showState(run, connected);
  showFailures(run);
  if (run.tick) showOnTopology(topology, run.tick, plan);
};

const showAll = () => {
  showHeader(run);
  showOutcome(run);
  byId("main").classList.toggle("long", run.drawing.layers > MOST_LAYERS_BESIDE);
  topology = drawTopology(run.drawing, (name) => dialog.open(name, run, span()));
  showFeed(run);
  showFleet(run);
  whatIf.show(run);
  showNow();
};

// News that come while the run is asked for may or may not be in the answer: it is asked for again.
const newestRun = async () => {
  fetching = true;
  try {
    for (stale = true; stale; ) {
      stale = false;
      run = await ask("/api/run");
      fetchedMs = Date.now();
    }
  } finally {
    fetching = false;
  }
};

const refetch = async () => {
  if (fetching) {
    stale = true;
    return;
  }
  try {
    await newestRun();
    askedMs = 0;
    showAll();
    await showSeries();
    if (!run.caught_up) setTimeout(refetch, 1000);
  } catch {
    connected = false;
    showState(run, connected);
    setTimeout(refetch, AGAIN_MS); // a server that is just coming back may turn one question away
  }
};

const onNews = {
  tick: (tick) => {
    const before = run.tick;
    const running = Object.values(before?.running ?? {}).reduce((sum, k) => sum + k, 0);
    if (before) run.slot_seconds += running * (tick.at_s - before.at_s);
    run.tick = tick;
    run.kept_since_s ??= tick.at_s;
    showNow();
    showSeries();
  },
  decision: (decision) => {
    run.decisions.unshift(decision);
    run.decisions_made = decision.number;
    addToFeed(decision);
  },
  fleet: (change) => {
    run.fleet.unshift(change);
    showFleet(run);
  },
  what_if: (plans) => {
    run.what_if = plans;
    whatIf.show(run);
  },
  // who decides was started again: what an earlier run in this folder left, its outcome above all, holds no longer
  control: () => refetch(),
  failures: (failures) => {
    run.failures = failures;
    showFailures(run);
  },
  outcome: (outcome) => {
    run.outcome = outcome;
    showOutcome(run);
    showNow();
  },
};

const choose = (name) => {
  shownS = RANGES[name];
  askedMs = 0;
  for (const button of byId("ranges").children) button.setAttribute("aria-pressed", button.textContent === name);
  showSeries();
};

const addRanges = () => {
  for (const name of Object.keys(RANGES)) {
    const button = html("button", { type: "button", "aria-pressed": RANGES[name] === shownS }, name);
    button.addEventListener("click", () => choose(name));
    byId("ranges").append(button);
  }
};

const keys = {
  ...Object.fromEntries(Object.keys(RANGES).map((name, n) => [`${n + 1}`, { what: `show ${name}`, act: () => choose(name) }])),
  o: { what: "to the topology", act: () => document.querySelector("#topology .box")?.focus() },
  w: { what: "to the what-if slider", act: () => byId("rate")?.focus() },
  d: { what: "to the newest decision", act: () => document.querySelector("#feed summary")?.focus() },
  t: { what: "light or dark", act: toggleTheme },
};

const redraw = () => {
  if (!topology) return;
  topology = drawTopology(run.drawing, (name) => dialog.open(name, run, span()));
  if (run.tick) showOnTopology(topology, run.tick, plan);
};

const begin = () => {
  // the token of the address is in a cookie by now, and need not stay where others see it
  if (location.search) history.replaceState(null, "", location.pathname);
  addRanges();
  bindKeys(keys);
  byId("theme").addEventListener("click", toggleTheme);
  byId("older").addEventListener("click", () => onOlder(run));
  document.addEventListener("theme", () => ((askedMs = 0), showSeries()));
  document.addEventListener("visibilitychange", () => document.hidden || refetch());
  let width = byId("topology").clientWidth;
  new ResizeObserver(([{ contentRect }]) => {
    if (Math.abs(contentRect.width - width) < 2) return;
    width = contentRect.width;
    redraw();
  }).observe(byId("topology"));
  setInterval(() => {
    showState(run, connected);
    // an application that was killed says nothing: whether it is over has to be asked for
    if (connected && isSilent(run) && !run.outcome && !run.over && Date.now() - fetchedMs > SLOWEST_MS) refetch();
  }, 1000);
  listen({
    onEvent: (kind, document) => (fetching || !topology ? (stale = true) : onNews[kind](document)),
    onRefetch: refetch,
    onState: (open) => {
      connected = open;
      showState(run, connected);
    },
  });
};

begin();
