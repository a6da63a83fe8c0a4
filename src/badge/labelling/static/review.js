// The page that looks through, filters and corrects labels.

import { randomId } from "./api.js";
import { $, element, itemView, number, words } from "./draw.js";
import { begin, server } from "./start.js";

const FILTERS = ["show", "label", "by", "text"];
const TYPING_MS = 250;
const SKIP = "\u0000skip"; // no class is called that

const person = () => state.visitor?.name ?? localStorage.getItem("badge-name") ?? "reviewer";
let state = {};
let page = 0;
let asked = 0; // number of the last request for a list: an older answer is not shown
let shown = []; // rows of this page
let before = null; // what the last change of many labels changed

const option = (value, text = value) => element("option", { value }, text);
const when = (at) => (at ? new Date(at).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" }) : "");
const may = (role) => state.visitor?.may.includes(role);

const act = async (path, body, status) => {
  status.textContent = "Saving …";
  const { data, refused } = await server.post(path, { request: randomId(), name: person(), ...body });
  status.textContent = refused ?? "Saved";
  return data;
};

/** What an editor changes: the label; for one who may correct only the own labels, what that person said. */
const saidOf = (row) => (may("adjudicate") ? row.label : row.own);

const chooserOf = (row) => {
  const chooser = element("select", { "aria-label": `Label of ${row.id}`, ...(state.several ? { multiple: "" } : {}) },
    ...state.classes.map((one) => option(one.name)));
  if (!state.several && may("adjudicate")) chooser.append(option(SKIP, "skip this item"));
  for (const one of chooser.options) one.selected = [saidOf(row)].flat().includes(one.value);
  return chooser;
};

const labelEditor = (row) => {
  const status = element("span", { class: "dim", role: "status" });
  if (saidOf(row) == null) return [element("span", {}, words(row.label))];
  const chooser = chooserOf(row);
  const save = element("button", { type: "button", hidden: "" }, "Save");
  const value = () => (state.several ? [...chooser.selectedOptions].map((one) => one.value) : chooser.value);
  chooser.addEventListener("change", () => { save.hidden = words(value()) === words(saidOf(row)); status.textContent = ""; });
  save.addEventListener("click", async () => {
    const label = value();
    const done = label === SKIP ? await act("/api/take_back", { id: row.id }, status)
      : may("adjudicate") ? await act("/api/change", { ids: [row.id], labels: [label] }, status)
        : await act("/api/correct", { id: row.id, label }, status);
    if (!done) return;
    row.label = row.own = label;
    save.hidden = true;
    chooser.focus();
  });
  return [chooser, save, status];
};

const skippedEditor = (row) => {
  const status = element("span", { class: "dim", role: "status" });
  const back = element("button", { type: "button" }, "Bring back");
  back.hidden = !may("adjudicate");
  back.addEventListener("click", async () => { if (await act("/api/unskip", { id: row.id }, status)) back.disabled = true; });
  return [element("span", {}, row.reason ? `Skipped: ${row.reason}` : "Skipped"), back, status];
};

const rowView = (row) => {
  const about = [`${row.id}`, row.by, when(row.at), row.flagged ? "flagged" : ""].filter(Boolean).join(" · ");
  const doubt = row.predicted != null && words(row.predicted) !== words(row.label) ? `The model predicted “${words(row.predicted)}”.` : "";
  const pick = element("input", { type: "checkbox", class: "pick", "aria-label": `Select ${row.id}` });
  pick.addEventListener("change", () => { row.picked = pick.checked; showBulk(); });
  row.pick = pick;
  const edit = "label" in row ? [...(may("adjudicate") ? [pick] : []), ...labelEditor(row)] : skippedEditor(row);
  return element("li", {},
    element("div", { class: "item" }, ...itemView(row.item, row.id)),
    element("div", { class: "edit" }, ...edit),
    element("p", { class: "dim about" }, about, doubt ? element("span", { class: "doubt" }, ` ${doubt}`) : ""));
};

const show = async () => {
  const mine = ++asked;
  const query = new URLSearchParams({ page: String(page), ...Object.fromEntries(FILTERS.map((id) => [id, $(id).value])) });
  const { data, refused } = await server.get(`/api/labels?${query}`);
  if (mine !== asked) return;
  $("found").textContent = refused ?? `${number(data.total)} ${data.total === 1 ? "item" : "items"}`;
  if (!data) return;
  shown = data.rows;
  $("rows").replaceChildren(...shown.map(rowView));
  $("pages").hidden = data.pages < 2;
  $("page").textContent = `${data.page + 1} of ${data.pages}`;
  $("newer").disabled = data.page === 0;
  $("older").disabled = data.page + 1 >= data.pages;
  showBulk();
};

// -- many at once ------------------------------------------------------------------------------------------------

const picked = () => shown.filter((row) => row.picked);
const showBulk = () => {
  $("bulk").hidden = !may("adjudicate") || $("show").value === "skipped" || (!shown.length && !before);
  $("apply").disabled = !picked().length;
  $("apply").textContent = picked().length ? `Change ${picked().length}` : "Change";
  $("undo-bulk").hidden = before === null;
};

const bulk = async (ids, labels) => {
  const done = await act("/api/change", { ids, labels }, $("bulk-said"));
  if (done) await show();
  return done;
};

$("all").addEventListener("click", () => {
  for (const row of shown) { row.picked = true; row.pick.checked = true; }
  showBulk();
});
$("apply").addEventListener("click", async () => {
  const ids = picked().map((row) => row.id);
  const done = await bulk(ids, ids.map(() => (state.several ? [$("to").value] : $("to").value)));
  if (!done) return;
  before = { ids, labels: done.before };
  $("bulk-said").textContent = `Changed ${ids.length}`;
  showBulk();
});
$("undo-bulk").addEventListener("click", async () => {
  const { ids, labels } = before;
  before = null;
  if (await bulk(ids, labels)) $("bulk-said").textContent = `Changed back ${ids.length}`;
});

// -- start -------------------------------------------------------------------------------------------------------

let typing = 0;
const again = () => { page = 0; show(); };
for (const id of ["show", "label", "by"]) $(id).addEventListener("change", again);
$("text").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(again, TYPING_MS); });
$("filters").addEventListener("submit", (event) => { event.preventDefault(); again(); });
$("newer").addEventListener("click", () => { page -= 1; show(); });
$("older").addEventListener("click", () => { page += 1; show(); });

const data = await begin();
state = { ...data?.overview, visitor: data?.visitor };
$("label").append(...(state.classes ?? []).map((one) => option(one.name, `${one.name} (${one.count})`)));
$("to").append(...(state.classes ?? []).map((one) => option(one.name)));
$("by").append(...Object.keys(state.people ?? {}).map((name) => option(name)));
await show();
