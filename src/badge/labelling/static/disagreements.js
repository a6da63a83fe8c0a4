// The page that decides where people disagree.

import { randomId } from "./api.js";
import { $, element, fillTable, itemView, number, pairRows, percent, words } from "./draw.js";
import { keysOf } from "./keys.js";
import { begin, server } from "./start.js";

let name = "";
let several = false; // whether an item may have several classes
let classes = []; // in the order of the page Label
let keyOf = new Map(); // class -> its key on the page Label
let rows = [];
let marked = 0;
let busy = false;

const decide = async (row, label) => {
  if (busy || !row) return;
  busy = true;
  const { refused } = await server.post("/api/change", { request: randomId(), name, ids: [row.id], labels: [label] });
  busy = false;
  if (refused) { $("found").textContent = refused; return; }
  await load(`Decided: ${words(label)}.`);
};

/** What an item can be decided as: every class, or the sets of classes that people gave. */
const choicesOf = (row) => {
  if (!several) return classes.map((label) => ({ label, key: keyOf.get(label) }));
  const said = new Map(row.votes.map(({ label }) => [words(label), label]));
  return [...said.keys()].sort().map((text, i) => ({ label: said.get(text), key: String(i + 1) }));
};

const rowView = (row, i) => {
  const choices = choicesOf(row).map(({ label, key }) => {
    const by = row.votes.filter((vote) => words(vote.label) === words(label)).map((vote) => vote.by);
    const button = element("button", { type: "button" }, key ? element("kbd", {}, key) : "", ` ${words(label)}`,
      by.length ? element("small", {}, ` ${by.join(", ")}`) : "");
    button.addEventListener("click", () => decide(row, label));
    return button;
  });
  const about = row.tie ? "A tie: this item has no label yet." : `The majority chose: ${words(row.label)}.`;
  return element("li", { class: i === marked ? "marked" : "", ...(i === marked ? { "aria-current": "true" } : {}) },
    element("div", { class: "item" }, ...itemView(row.item, row.id)),
    element("ul", { class: "votes" }, ...row.votes.map((vote) => element("li", {}, element("b", {}, vote.by), `: ${words(vote.label)}`))),
    element("div", { class: "choices" }, ...choices),
    element("p", { class: "dim about" }, `${row.id} · ${about}`));
};

const draw = () => {
  marked = Math.max(0, Math.min(marked, rows.length - 1));
  $("rows").replaceChildren(...rows.map(rowView));
};

const load = async (said = "") => {
  const { data, refused } = await server.get("/api/disagreements");
  if (!data) { $("found").textContent = refused; return; }
  rows = data.rows;
  several = data.overview.several;
  const names = data.overview.classes.map((one) => one.name);
  if (names.join("\n") !== classes.join("\n")) { // keys stay while the page is open
    classes = names;
    keyOf = new Map([...keysOf(data.overview.classes)].map(([key, label]) => [label, key]));
  }
  const ties = data.ties ? `, ${number(data.ties)} of them tied` : "";
  $("found").textContent = `${said} ${data.total ? `${number(data.total)} open${ties}` : "No disagreements are open."}`.trim();
  draw();
  fillTable($("pairs"), pairRows(data.pairs));
  fillTable($("per-class"), data.classes.map((one) => [one.name, number(one.pairs), percent(one.agreement)]));
  fillTable($("confused"), data.confused.map((one) => [one.one, one.other, number(one.count)]));
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.matches("input, select")) return;
  const key = event.key.toLowerCase();
  const row = rows[marked];
  const choice = row && choicesOf(row).find((one) => one.key === key);
  if (choice) {
    event.preventDefault();
    decide(row, choice.label);
  } else if (["j", "k", "arrowdown", "arrowup"].includes(key)) {
    event.preventDefault();
    marked += key === "j" || key === "arrowdown" ? 1 : -1;
    draw();
    $("rows").children[marked]?.scrollIntoView({ block: "nearest" });
  }
});

const first = await begin();
name = first?.visitor.name ?? localStorage.getItem("badge-name") ?? "adjudicator";
await load();
