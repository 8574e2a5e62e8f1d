// Asking the server, and hearing from it. A browser that is new is told to ask for all, one that was away what it missed:
// asked for before the news are followed, what happens in between would be missed.
export const ask = async (path) => {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
};

const KINDS = ["tick", "decision", "fleet", "what_if", "control", "failures", "outcome"];
const AGAIN_MS = 2000;

export const listen = ({ onEvent, onRefetch, onState }) => {
  const events = new EventSource("/api/events");
  events.onopen = () => onState(true);
  events.onerror = () => {
    onState(false);
    // a server that answers with an error ends the browser's own attempts
    if (events.readyState === EventSource.CLOSED) {
      setTimeout(() => listen({ onEvent, onRefetch, onState }), AGAIN_MS);
    }
  };
  events.addEventListener("refetch", onRefetch);
  for (const kind of KINDS) {
    events.addEventListener(kind, (event) => onEvent(kind, JSON.parse(event.data)));
  }
};
