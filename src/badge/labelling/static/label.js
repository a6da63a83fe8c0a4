// The page that labels: one item, its classes, what is known so far.

import { client, randomId } from "./api.js";
import { all, keyed, press, recent, showClasses, used } from "./classes.js";
import { askComment, askName, askOne, askSkip, showHelp } from "./dialogs.js";
import { $, element, itemView, markdown, percent, words } from "./draw.js";
import { showOverview } from "./overview.js";
import { begin, server } from "./start.js";

const POLL_MS = 1500;
const STAY_MS = 60_000;
const LONGEST_SECONDS = 600; // an item that lay open for longer says nothing about the person

let person = "";
let several = false; // whether an item may have several classes
let task = null; // the item on the page
let shownAt = 0; // when it came, in the time of events
let awayMs = 0; // how long the page was hidden since
let hiddenAt = null;
let chosen = []; // classes of the item, where it may have several
let noneSure = false; // Enter was pressed once without a class
let busy = false;
let guessShown = sessionStorage.getItem("badge-guess") === "shown";

const say = (text) => { $("said").textContent = text; };
const listed = (label) => (label === null || label === undefined ? [] : [label].flat());

// -- showing -----------------------------------------------------------------------------------------------------

const around = (seen) => {
  several = seen.several;
  document.body.classList.toggle("several", several);
  showClasses(seen.classes, choose);
  showOverview(seen);
};

const showGuess = () => {
  const guess = task?.guesses?.[0];
  $("guess-toggle").hidden = !guess;
  $("guess-toggle").setAttribute("aria-expanded", String(guessShown));
  $("guess-toggle").textContent = guessShown ? "Hide the model’s guess" : "Show the model’s guess";
  $("guess").hidden = !guess || !guessShown;
  $("guess").textContent = guess ? `${guess.label}, with ${percent(guess.confidence)}` : "";
};

const typing = () => document.activeElement?.matches("input, textarea, select");

const showTask = (next) => {
  around(next.overview);
  task = next.id === undefined ? null : next;
  document.body.classList.toggle("idle", task === null);
  if (task === null) return showNothing(next);
  $("item").replaceChildren(...itemView(task.item, task.id));
  $("why").textContent = task.why;
  $("batch-text").textContent = task.batch ? `Batch ${task.batch.number}: ${task.batch.done} of ${task.batch.size}` : task.between;
  $("batch").max = task.batch?.size ?? 1;
  $("batch").value = task.batch?.done ?? 0;
  const suggested = listed(task.suggested);
  chosen = task.was !== null ? listed(task.was) : several ? [...suggested] : [];
  noneSure = false;
  press(chosen, suggested);
  $("was").hidden = task.was === null && !suggested.length;
  $("was").textContent = task.was !== null ? `You said “${words(task.was)}”. It stays until you choose again.`
    : `Suggested: ${words(task.suggested)}. Press Enter to accept it.`;
  $("remarks").replaceChildren(...task.remarks.map(({ by, text }) =>
    element("li", {}, element("b", {}, by), `: ${text}`)));
  $("flagged").hidden = !task.flagged;
  showGuess();
  scrollTo({ top: 0 });
  if (!document.querySelector("dialog[open]") && !typing()) $("item").focus({ preventScroll: true });
  shownAt = performance.now();
  awayMs = 0;
};

const showNothing = (next) => {
  $("why").textContent = $("batch-text").textContent = "";
  $("was").hidden = $("flagged").hidden = true;
  $("remarks").replaceChildren();
  showGuess();
  if (next.done) {
    $("item").replaceChildren(element("h1", {}, "All done"),
      element("p", {}, "Every item has its label. Thank you."),
      element("p", {}, element("a", { href: "/labels" }, "Review the labels"), " or export them as ",
        element("a", { href: "/export/labels.csv", download: "" }, "CSV"), "."));
    say("All done.");
    const { labelled, skipped, size } = next.overview;
    if (labelled + skipped < size) setTimeout(load, POLL_MS); // the numbers may be a moment behind
    return;
  }
  const many = next.overview.ties;
  $("item").replaceChildren(next.tied
    ? element("p", {}, `You have labelled everything. ${many === 1 ? "One item is" : `${many} items are`} tied: another person, or somebody on `,
      element("a", { href: "/disagreements" }, "Disagreements"), ", decides.")
    : element("p", { class: "dim" }, next.overview.picking
      ? "The next batch is being picked …" : "Other people have the remaining items. Items that they do not label come back after a while."));
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

/** Every answer names the item, what of it was shown, and what it had been before. */
const about = () => ({ id: task.id, shown: task.shown, was: task.was });

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

const send = (label) => {
  const seconds = Math.min(LONGEST_SECONDS, (performance.now() - shownAt - awayMs) / 1000);
  used(listed(label));
  return act("/api/answer", { ...about(), label, seconds: Math.max(0, seconds) }, `Saved: ${words(label)}`);
};

const choose = (name) => {
  if (!task || busy) return;
  if (!several) { send(name); return; }
  chosen = chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name];
  noneSure = false;
  press(chosen, listed(task.suggested));
  say(`${name}: ${chosen.includes(name) ? "chosen" : "not chosen"}`);
};

const finish = () => {
  if (!task || busy) return;
  if (!several) {
    if (task.suggested !== null && task.was === null) send(task.suggested);
    return;
  }
  if (!chosen.length && !noneSure) {
    noneSure = true;
    complain("No class is chosen. Press Enter again if none fits.");
    return;
  }
  send(all().filter((name) => chosen.includes(name)));
};

const undo = () => act("/api/undo", {}, "Back to your last item");

const skip = () => {
  if (!task) return;
  const mine = about();
  askSkip((reason) => act("/api/skip", { ...mine, reason }, "Skipped"));
};

const guesses = () => {
  if (!task) return;
  if (!task.guesses?.length) { complain("The model has no guess for this item."); return; }
  const found = task.guesses;
  askOne("The model’s best guesses", found.map((one) => `${one.label} (${percent(one.confidence)})`), (i) => choose(found[i].label));
};

const recents = () => {
  const found = recent();
  if (!task || !found.length) { complain("You have not used a class yet."); return; }
  askOne("Recently used", found, (i) => choose(found[i]));
};

const comment = () => {
  if (!task) return;
  const mine = task;
  askComment(mine.flagged, (text, flag) => during(async () => {
    if (!text && flag === mine.flagged) return;
    const { data, refused } = await server.post("/api/remark", { request: randomId(), name: person, id: mine.id, text, flag });
    if (refused) { complain(refused); return; }
    mine.flagged = data.flagged;
    mine.remarks = data.remarks;
    $("remarks").replaceChildren(...mine.remarks.map((one) => element("li", {}, element("b", {}, one.by), `: ${one.text}`)));
    $("flagged").hidden = !mine.flagged;
    confirm("Saved");
    $("item").focus({ preventScroll: true });
  }));
};

const rename = async (must) => {
  person = await askName(person, must);
  localStorage.setItem("badge-name", person);
  $("name").textContent = person;
};

// -- keys --------------------------------------------------------------------------------------------------------

const COMMANDS = { u: undo, s: skip, g: guesses, r: recents, c: comment, "?": showHelp, "/": () => $("find").focus() };

/** Space turns a long text over, as a page of a book. */
const scrollText = () => {
  const text = document.querySelector("#item .long");
  text?.scrollBy({ top: text.clientHeight * 0.9 });
  return Boolean(text);
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.defaultPrevented) return;
  if (document.querySelector("dialog[open]") || event.target.matches("input, select, textarea")) return;
  if (event.timeStamp < shownAt) return; // pressed before this item was on the screen
  const key = event.key.toLowerCase();
  const onButton = event.target.matches("button, a, summary");
  const onClass = event.target.matches(".class");
  if (key === "enter" && (!onButton || (several && onClass))) { event.preventDefault(); finish(); return; }
  if (key === " " && !onButton && scrollText()) { event.preventDefault(); return; }
  if (!(key in COMMANDS) && !keyed(key)) return;
  if (key === "/" && $("find-row").hidden) return;
  event.preventDefault();
  if (key in COMMANDS) COMMANDS[key]();
  else choose(keyed(key));
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) hiddenAt = performance.now();
  else if (hiddenAt !== null) { awayMs += performance.now() - hiddenAt; hiddenAt = null; }
});

$("undo").addEventListener("click", undo);
$("skip").addEventListener("click", skip);
$("remark").addEventListener("click", comment);
$("send").addEventListener("click", finish);
$("who").addEventListener("click", () => rename(false).then(load));
$("guess-toggle").addEventListener("click", () => {
  guessShown = !guessShown;
  sessionStorage.setItem("badge-guess", guessShown ? "shown" : "hidden");
  showGuess();
});

// -- start -------------------------------------------------------------------------------------------------------

const first = await begin();
if (first) {
  around(first.overview);
  $("guidelines").hidden = !first.guidelines;
  $("guidelines-text").replaceChildren(...markdown(first.guidelines ?? ""), ...first.overview.classes
    .filter((one) => one.description).map((one) => element("p", {}, element("b", {}, one.name), `: ${one.description}`)));
}
person = first?.visitor.name ?? localStorage.getItem("badge-name") ?? "";
$("who").disabled = Boolean(first?.visitor.name); // the link says who it is
if (!person) { person = first?.visitor.suggested ?? ""; await rename(true); }
$("name").textContent = person;
await load();
setInterval(() => { if (!document.hidden && !busy) server.get(`/api/state?client=${client}`); }, STAY_MS);
