// Requests to the server. One that finds no server is sent again, with the same id, until it is answered:
// the server takes a request once, however often it comes.

const RETRY_MS = [300, 700, 1500, 3000];

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export const randomId = () =>
  [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/** This tab; a reload keeps it, another tab is another client. */
export const client = (() => {
  const kept = sessionStorage.getItem("badge-client") ?? randomId();
  sessionStorage.setItem("badge-client", kept);
  return kept;
})();

/** What a request came to: `data`, or `refused`, a sentence for the person. */
const read = async (response) => {
  const json = (response.headers.get("content-type") ?? "").includes("json");
  const data = json ? await response.json() : { error: (await response.text()).trim() };
  if (response.ok) return { data };
  return { refused: data.refused ?? data.error ?? `The server answered with an error (${response.status}).` };
};

const send = async (path, options, online) => {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await fetch(path, { cache: "no-store", ...options });
      if (response.status < 500) {
        online(true);
        return await read(response);
      }
      if (attempt > 8) return { refused: `The server failed (${response.status}).` };
    } catch {
      // no server: the same again
    }
    online(false);
    await sleep(RETRY_MS[Math.min(attempt, RETRY_MS.length - 1)]);
  }
};

/** `online(yes)` is told when the server goes away and when it is back. */
export const connect = (online) => ({
  get: (path) => send(path, {}, online),
  post: (path, body) =>
    send(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }, online),
});

/** Says in the notice bar that the server is away, and takes that back. */
export const noticeOf = (notice) => {
  let away = false;
  return (online) => {
    if (online === !away) return;
    away = !online;
    notice.hidden = online;
    notice.textContent = online ? "" : "The server does not answer. Your last action is sent as soon as it is back.";
  };
};
