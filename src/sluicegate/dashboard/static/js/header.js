// What runs, what it promises, and whether what is shown is fresh.
import { byId } from "./elements.js";
import { count, length, seconds, share } from "./format.js";

const SILENT_AFTER_LOOKS = 4;

const terms = (control) => {
  if (!control) return "no control file: an older run";
  const bounds = Object.entries(control.bounds ?? {}).map(([what, bound]) => `${what} ≤ ${length(bound)}`);
  for (const [query, slo] of Object.entries(control.query_slo ?? {})) if (slo !== "none") bounds.push(`${query} ${slo}`);
  return [
    `policy ${control.policy}`,
    bounds.length ? `promises ${bounds.join(", ")}` : "promises nothing",
    control.budget ? `budget ${count(control.budget, "processor")}` : null,
    control.interval_s ? `looks every ${length(control.interval_s)}` : null,
    control.dry_run ? "only advises" : null,
  ].filter(Boolean).join("  ·  ");
};

export const showHeader = (run) => {
  byId("name").textContent = run.name;
  byId("terms").textContent = terms(run.control);
  document.title = `${run.name} · sluicegate`;
};

const freshness = (run, connected) => {
  if (!connected) return ["bad", "reconnecting"];
  if (!run.caught_up) return ["warn", "reading the past"];
  if (run.outcome || run.over) return ["", "ended"];
  if (!run.tick) return ["warn", "no look yet"];
  return isSilent(run) ? ["warn", `silent for ${length(Math.round(silentS(run)))}`] : ["good", "live"];
};

const silentS = (run) => Date.now() / 1000 - run.tick.at_s;
export const isSilent = (run) =>
  Boolean(run.tick) && silentS(run) > Math.max(SILENT_AFTER_LOOKS * (run.control?.interval_s ?? 2), 6);

export const showState = (run, connected) => {
  const [kind, text] = freshness(run, connected);
  const state = byId("state");
  // a status that is written anew is read out anew
  if (state.textContent !== text) state.textContent = text;
  state.className = `pill ${kind}`;
};

// Whoever fails now, since when and when it is tried next; while anybody does, the promise is broken.
export const showFailures = ({ failures, outcome }) => {
  const line = byId("failures");
  const now = Date.now() / 1000;
  const told = (failures?.operators ?? []).map((one) => {
    if (one.next_try_s === null) return `${one.operator}: stopped at batch ${one.batch}, tried ${one.tries} times: ${one.why}`;
    const left = one.next_try_s - now;
    const then = left >= 0.5 ? `next try in ${length(Math.round(left))}` : "being tried again";
    const since = length(Math.round(Math.max(now - one.since_s, 0)));
    return `${one.operator}: batch ${one.batch} fails since ${since}, tried ${one.tries} times: ${one.why}, ${then}`;
  });
  line.hidden = !told.length || Boolean(outcome);
  line.textContent = told.join("\n");
};

export const showOutcome = ({ outcome }) => {
  const line = byId("outcome");
  line.hidden = !outcome;
  if (!outcome) return;
  line.classList.toggle("failures", outcome.answer_exact === false);
  const answer = outcome.answer_exact === null || outcome.answer_exact === undefined
    ? "answer not checked"
    : outcome.answer_exact ? "answer exact" : `answer WRONG: ${outcome.answer_note ?? ""}`;
  const kept = outcome.slo_kept === null || outcome.slo_kept === undefined ? null : `promise kept for ${share(outcome.slo_kept)} of rows`;
  const rows = [kept, answer, `mean ${seconds(outcome.mean_s)}`, `${count(outcome.rescales, "move")}`];
  line.textContent = `The run ended after ${length(outcome.seconds)}: ${rows.filter(Boolean).join(", ")}.`;
};
