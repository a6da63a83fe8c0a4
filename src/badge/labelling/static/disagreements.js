// The page that decides where people disagree.

import { randomId } from "./api.js";
import { $, element, fillTable, itemView, number, pairRows, percent, words } from "./draw.js";
import { begin, server } from "./start.js";

const KEYS = [..."123456789abcdefghilmnopqrstuvwxyz"]; // j and k move

let name = "";
let classes = [];
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

/** What was said first, then all classes: one key each. */
const choicesOf = (row) => {
  const said = row.votes.map((vote) => vote.label);
  return [...new Map([...said, ...(Array.isArray(said[0]) ? [] : classes)].map((label) => [words(label), label])).values()];
};

const rowView = (row, i) => {
  const choices = choicesOf(row).map((label, k) => {
    const button = element("button", { type: "button" }, KEYS[k] ? element("kbd", {}, KEYS[k]) : "", ` ${words(label)}`);
    button.addEventListener("click", () => decide(row, label));
    return button;
  });
  const about = row.tie ? "A tie: it has no label yet." : `The majority counts: ${words(row.label)}.`;
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
  classes = data.overview.classes.map((one) => one.name);
  const ties = data.ties ? `, ${number(data.ties)} of them tied` : "";
  $("found").textContent = `${said} ${data.total ? `${number(data.total)} open${ties}` : "Nothing is open."}`.trim();
  draw();
  fillTable($("pairs"), pairRows(data.pairs));
  fillTable($("per-class"), data.classes.map((one) => [one.name, number(one.pairs), percent(one.agreement)]));
  fillTable($("confused"), data.confused.map((one) => [one.one, one.other, number(one.count)]));
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.matches("input, select")) return;
  const key = event.key.toLowerCase();
  if (key === "j" || key === "k") {
    marked += key === "j" ? 1 : -1;
    draw();
    $("rows").children[marked]?.scrollIntoView({ block: "nearest" });
    return;
  }
  const row = rows[marked];
  const label = row && choicesOf(row)[KEYS.indexOf(key)];
  if (label === undefined || !KEYS.includes(key)) return;
  event.preventDefault();
  decide(row, label);
});

const first = await begin();
name = first?.visitor.name ?? localStorage.getItem("badge-name") ?? "adjudicator";
await load();
