// Asking the server, and hearing from it. A browser that was away is told what it missed, or to ask for all anew.
export const ask = async (path) => {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
};

const KINDS = ["tick", "decision", "fleet", "what_if", "control", "outcome"];
const AGAIN_MS = 2000;

export const listen = ({ onEvent, onRefetch, onState }) => {
  const events = new EventSource("/api/events");
  events.onopen = () => onState(true);
  events.onerror = () => {
    onState(false);
    // a server that answers with an error ends the browser's own attempts
    if (events.readyState === EventSource.CLOSED) {
      setTimeout(() => {
        listen({ onEvent, onRefetch, onState });
        onRefetch();
      }, AGAIN_MS);
    }
  };
  events.addEventListener("refetch", onRefetch);
  for (const kind of KINDS) {
    events.addEventListener(kind, (event) => onEvent(kind, JSON.parse(event.data)));
  }
};
