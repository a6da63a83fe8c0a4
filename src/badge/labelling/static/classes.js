// The classes of the page: a button each, with keys; groups and a search where there are many.

import { $, breakable, element } from "./draw.js";
import { search } from "./find.js";
import { keysOf } from "./keys.js";

const MANY = 12;
const SHOWN = 12; // results of a search
const RECENT = 5;

let names = [];
let byKey = new Map();
let marked = -1; // the result that Enter takes, once an arrow was pressed; -1 before
let choose = () => {};

export const all = () => names;
export const keyed = (key) => byKey.get(key);

const button = ({ name, description, colour }, key) => {
  const words = element("span", { class: "words" }, breakable(name));
  if (description && names.length <= MANY) words.append(element("small", {}, description));
  const made = element("button", { type: "button", class: "class" }, key ? element("kbd", {}, key) : "", words);
  made.dataset.name = name;
  if (description) made.title = description;
  if (colour) made.style.setProperty("border-left", `.375rem solid ${colour}`);
  if (key) made.setAttribute("aria-keyshortcuts", key);
  made.addEventListener("click", () => choose(name));
  return made;
};

/** Classes by what stands before the first joint of their names; a class alone with its prefix goes to the others. */
const groupsOf = (classes) => {
  const groups = new Map();
  for (const one of classes) {
    const prefix = one.name.split(/[_./: -]/)[0];
    groups.set(prefix, [...(groups.get(prefix) ?? []), one]);
  }
  const large = [...groups].filter(([, members]) => members.length > 1);
  const others = [...groups.values()].filter((members) => members.length === 1).flat();
  return large.length < 2 ? [] : [...large, ...(others.length ? [["Others", others]] : [])];
};

export const showClasses = (classes, onChoice) => {
  choose = onChoice;
  if (classes.map((one) => one.name).join("\n") === names.join("\n")) return;
  names = classes.map((one) => one.name);
  byKey = keysOf(classes);
  const keyOf = new Map([...byKey].map(([key, name]) => [name, key]));
  const many = names.length > MANY;
  $("find-row").hidden = !many;
  document.body.classList.toggle("many", many);
  const made = (some) => some.map((one) => button(one, keyOf.get(one.name)));
  const groups = many ? groupsOf(classes) : [];
  $("classes").classList.toggle("grouped", groups.length > 0);
  $("classes").replaceChildren(...(groups.length ? groups.map(([prefix, members]) =>
    element("section", { class: "group", "aria-label": prefix }, element("h3", {}, prefix), ...made(members))) : made(classes)));
};

/** Mark the classes that the item has, or would get. */
export const press = (chosen, suggested = []) => {
  for (const one of document.querySelectorAll("#classes .class, #results .class")) {
    one.setAttribute("aria-pressed", String(chosen.includes(one.dataset.name)));
    one.classList.toggle("suggested", suggested.includes(one.dataset.name));
  }
};

// -- recently used -----------------------------------------------------------------------------------------------

const kept = JSON.parse(sessionStorage.getItem("badge-recent") ?? "[]");
export const recent = () => kept.filter((name) => names.includes(name));
export const used = (labels) => {
  for (const label of labels) {
    if (kept.includes(label)) kept.splice(kept.indexOf(label), 1);
    kept.unshift(label);
  }
  kept.splice(RECENT);
  sessionStorage.setItem("badge-recent", JSON.stringify(kept));
};

// -- search ------------------------------------------------------------------------------------------------------

const takenNow = () => {
  const { fits, best } = search($("find").value, names);
  return marked >= 0 ? fits[marked] : best;
};

const showFound = () => {
  const query = $("find").value.trim();
  const { fits } = search(query, names);
  marked = Math.min(marked, Math.min(fits.length, SHOWN) - 1);
  const taken = takenNow();
  $("classes").hidden = query !== "";
  $("results").hidden = query === "";
  $("results").replaceChildren(...fits.slice(0, SHOWN).map((name) => {
    const made = button({ name }, "");
    made.classList.toggle("taken", name === taken);
    return made;
  }));
  $("takes").hidden = query === "";
  $("takes").textContent = taken ? `Enter takes ${taken}` : fits.length
    ? `${fits.length} classes fit: type more, or choose one with ↓` : "No class fits.";
};

export const clearFind = () => {
  $("find").value = "";
  marked = -1;
  showFound();
};

$("find").addEventListener("input", () => { marked = -1; showFound(); });
$("find").addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    clearFind();
    $("item").focus();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    marked = Math.max(0, marked + (event.key === "ArrowDown" ? 1 : -1));
    showFound();
  } else if (event.key === "Enter" && !event.repeat) {
    event.preventDefault();
    const taken = takenNow();
    if (!taken) return;
    clearFind();
    $("item").focus({ preventScroll: true }); // typing ends here, not when the reply arrives
    choose(taken);
  }
});
