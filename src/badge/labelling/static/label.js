// The page that labels: one item, its classes, what is known so far.

import { client, connect, noticeOf, randomId } from "./api.js";
import { breakable, drawCurve, element, itemView, number, percent } from "./draw.js";

const $ = (id) => document.getElementById(id);
const KEYS = [..."123456789", ..."abcdefghijklmnopqrtvwxyz"]; // without s and u, which do something else
const REASONS = ["I cannot tell", "None of the classes", "Broken or unreadable"];
const POLL_MS = 1500;
const STAY_MS = 60_000;

const server = connect(noticeOf($("notice")));
let person = "";
let task = null; // the item on the page
let classes = [];
let busy = false;
let guessShown = sessionStorage.getItem("badge-guess") === "shown";

const say = (text) => { $("said").textContent = text; };

// -- showing -----------------------------------------------------------------------------------------------------

const showClasses = (found) => {
  const names = found.map((one) => one.name);
  if (names.join("\n") === classes.join("\n")) return;
  classes = names;
  const many = names.length > 12;
  $("find-row").hidden = !many;
  document.body.classList.toggle("many", many);
  $("classes").replaceChildren(...names.map((name, i) => {
    const key = KEYS[i];
    const button = element("button", { type: "button", class: "class" },
      key ? element("kbd", {}, key) : "", breakable(name));
    if (key) button.setAttribute("aria-keyshortcuts", key);
    button.addEventListener("click", () => answer(name));
    return button;
  }));
};

const adviceOf = (seen) => {
  if (seen.trouble) return `The next batch could not be chosen: ${seen.trouble}`;
  if (seen.stop) return "The predictions have settled: more labels of this kind change little. You can stop.";
  if (seen.changed === null) return "Whether you can stop is known after a few batches.";
  return `The last model changed its mind about ${percent(seen.changed)} of the items: go on.`;
};

const showOverview = (seen) => {
  showClasses(seen.classes);
  const most = Math.max(1, ...seen.classes.map((one) => one.count));
  const counted = classes.length > 12 ? seen.classes.filter((one) => one.count).sort((a, b) => b.count - a.count) : seen.classes;
  $("counts").replaceChildren(...counted.map(({ name, count }) => element("li", {},
    element("span", { class: "name" }, name), element("span", { class: "count" }, number(count)),
    element("meter", { min: 0, max: most, value: count, "aria-hidden": "true" }))));
  const skipped = seen.skipped ? `, ${number(seen.skipped)} skipped` : "";
  $("total").textContent = `${number(seen.labelled)} of ${number(seen.size)}${skipped}`;
  $("whole").max = seen.size;
  $("whole").value = seen.labelled + seen.skipped;
  $("accuracy").textContent = seen.accuracy === null ? "not known yet"
    : `${percent(seen.accuracy)} of the last ${seen.predictions}`;
  drawCurve($("curve"), seen.curve);
  $("advice").textContent = adviceOf(seen);
  $("advice-text").textContent = seen.advice;
  $("advice").classList.toggle("stop", seen.stop);
};

const showGuess = () => {
  const guess = task?.guess;
  $("guess-toggle").hidden = !guess;
  $("guess-toggle").setAttribute("aria-expanded", String(guessShown));
  $("guess-toggle").textContent = guessShown ? "Hide the model’s guess" : "Show the model’s guess";
  $("guess").hidden = !guess || !guessShown;
  $("guess").textContent = guess ? `${guess.label}, with ${percent(guess.confidence)}` : "";
};

const showTask = (next) => {
  showOverview(next.overview);
  task = next.id === undefined ? null : next;
  $("work").setAttribute("aria-busy", "false");
  document.body.classList.toggle("idle", task === null);
  $("was").hidden = !task?.was;
  if (task === null) return showNothing(next);
  $("item").replaceChildren(...itemView(task.item, task.id));
  $("why").textContent = task.why;
  const batch = task.batch;
  $("batch-text").textContent = batch ? `Batch ${batch.number}: ${batch.done} of ${batch.size}` : "Between two batches";
  $("batch").max = batch?.size ?? 1;
  $("batch").value = batch?.done ?? 0;
  if (task.was) $("was").textContent = `You said “${task.was}”. That stands until you choose again.`;
  for (const button of $("classes").children) {
    button.toggleAttribute("aria-pressed", false);
    if (task.was) button.setAttribute("aria-pressed", String(button.lastChild.textContent === task.was));
    else button.removeAttribute("aria-pressed");
  }
  showGuess();
  scrollTo({ top: 0 });
  if (!document.querySelector("dialog[open]")) $("item").focus({ preventScroll: true });
};

const showNothing = (next) => {
  $("why").textContent = "";
  showGuess();
  $("batch-text").textContent = "";
  if (next.done) {
    $("item").replaceChildren(element("h1", {}, "All done"),
      element("p", {}, "Every item has its answer. Thank you."),
      element("p", {}, element("a", { href: "/labels" }, "Look through the labels"), " or take them out as ",
        element("a", { href: "/export/labels.csv", download: "" }, "CSV"), "."));
    say("All done.");
    return;
  }
  $("item").replaceChildren(element("p", { class: "dim" }, next.overview.picking
    ? "The next batch is being chosen …" : "The items that are left are with other people. They come back after a while."));
  setTimeout(() => { if (task === null && !busy) load(); }, POLL_MS);
};

// -- doing -------------------------------------------------------------------------------------------------------

const during = async (work) => {
  if (busy) return; // a double click, a key held down
  busy = true;
  $("work").setAttribute("aria-busy", "true");
  try {
    await work();
  } finally {
    busy = false;
    $("work").setAttribute("aria-busy", "false");
  }
};

const fetchNext = async () => {
  const { data, refused } = await server.post("/api/next", { client, name: person });
  if (data) showTask(data);
  else complain(refused);
};

const load = () => during(fetchNext);

const complain = (text) => {
  say(text);
  $("saved").textContent = text;
  $("saved").className = "refused";
};

const confirm = (text) => {
  say(text);
  $("saved").textContent = text;
  $("saved").className = "";
  $("saved").getAnimations().forEach((one) => one.cancel());
  $("saved").animate([{ opacity: 1 }, { opacity: 1 }, { opacity: 0.85 }], { duration: 1600, fill: "forwards" });
};

const act = (path, body, text) => during(async () => {
  const { data, refused } = await server.post(path, { request: randomId(), client, name: person, ...body });
  if (refused) {
    await fetchNext();
    complain(refused);
    return;
  }
  showTask(data.next);
  confirm(text);
});

const answer = (label) => task && act("/api/answer", { id: task.id, label }, `Saved: ${label}`);
const undo = () => act("/api/undo", {}, "Back to your last item");
const skip = (reason) => task && act("/api/skip", { id: task.id, reason }, "Skipped");

// -- dialogs -----------------------------------------------------------------------------------------------------

const askSkip = () => {
  if (!task || task.was) return complain("This item has a label; it can be corrected, not skipped.");
  $("reason").value = "";
  $("skipping").returnValue = "";
  $("skipping").showModal();
  $("reasons").firstChild.focus();
};

$("reasons").append(...REASONS.map((reason, i) => {
  const button = element("button", { type: "button" }, element("kbd", {}, String(i + 1)), element("span", {}, reason));
  button.addEventListener("click", () => { $("reason").value = reason; $("skipping").close("skip"); });
  return button;
}));
$("skipping").addEventListener("close", () => {
  if ($("skipping").returnValue === "skip") skip($("reason").value.trim());
  else $("item").focus();
});
$("skipping").addEventListener("keydown", (event) => {
  const chosen = REASONS[Number(event.key) - 1];
  if (!chosen || event.target === $("reason") || event.repeat) return;
  event.preventDefault();
  $("reason").value = chosen;
  $("skipping").close("skip");
});

const askName = () => new Promise((resolve) => {
  $("naming-name").value = person;
  $("naming").showModal();
  $("naming").addEventListener("close", () => {
    person = $("naming-name").value.trim() || person;
    localStorage.setItem("badge-name", person);
    $("name").textContent = person;
    resolve();
  }, { once: true });
});
$("naming").addEventListener("cancel", (event) => { if (!person) event.preventDefault(); });

// -- keys --------------------------------------------------------------------------------------------------------

const filterClasses = () => {
  const wanted = $("find").value.trim().toLowerCase();
  for (const button of $("classes").children) button.hidden = !button.lastChild.textContent.toLowerCase().includes(wanted);
};
const clearFind = () => { $("find").value = ""; filterClasses(); };

$("find").addEventListener("input", filterClasses);
$("find").addEventListener("keydown", (event) => {
  if (event.key === "Escape") { clearFind(); $("item").focus(); }
  if (event.key !== "Enter") return;
  event.preventDefault();
  const first = [...$("classes").children].find((button) => !button.hidden);
  if (!first || !$("find").value.trim()) return;
  clearFind();
  first.click();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return;
  if (document.querySelector("dialog[open]") || event.target.matches("input, select, textarea")) return;
  const key = event.key.toLowerCase();
  const commands = { u: undo, s: askSkip, "?": () => $("help").showModal(), "/": () => $("find").focus() };
  const chosen = classes[KEYS.indexOf(key)];
  if (!(key in commands) && chosen === undefined) return;
  if (key === "/" && $("find-row").hidden) return;
  event.preventDefault();
  if (key in commands) commands[key]();
  else answer(chosen);
});

$("undo").addEventListener("click", undo);
$("skip").addEventListener("click", askSkip);
$("show-help").addEventListener("click", () => $("help").showModal());
$("who").addEventListener("click", () => askName().then(load));
$("guess-toggle").addEventListener("click", () => {
  guessShown = !guessShown;
  sessionStorage.setItem("badge-guess", guessShown ? "shown" : "hidden");
  showGuess();
});

// -- start -------------------------------------------------------------------------------------------------------

history.replaceState(null, "", location.pathname); // the token has done its work
const { data: first } = await server.get(`/api/state?client=${client}`);
person = localStorage.getItem("badge-name") ?? first?.person ?? "";
if (first) showOverview(first.overview);
if (!person) await askName();
$("name").textContent = person;
await load();
setInterval(() => { if (!document.hidden && !busy) server.get(`/api/state?client=${client}`); }, STAY_MS);
