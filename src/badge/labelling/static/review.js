// The page that looks through, filters and corrects labels.

import { client, connect, noticeOf, randomId } from "./api.js";
import { element, itemView, number } from "./draw.js";

const $ = (id) => document.getElementById(id);
const FILTERS = ["show", "label", "by", "text"];
const TYPING_MS = 250;

const server = connect(noticeOf($("notice")));
const person = () => localStorage.getItem("badge-name") ?? state.person ?? "reviewer";
let state = {};
let page = 0;
let asked = 0; // number of the last request for a list: an older answer is not shown

const option = (value, text = value) => element("option", { value }, text);

const when = (at) => at ? new Date(at).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" }) : "";

const act = async (path, body, status) => {
  status.textContent = "Saving …";
  const { refused } = await server.post(path, { request: randomId(), name: person(), ...body });
  status.textContent = refused ?? "Saved";
  return refused === undefined;
};

const labelEditor = (row) => {
  const chooser = element("select", { "aria-label": `Label of ${row.id}` }, ...state.classes.map((one) => option(one.name)));
  chooser.value = row.label;
  const save = element("button", { type: "button", hidden: "" }, "Save");
  const status = element("span", { class: "dim", role: "status" });
  chooser.addEventListener("change", () => { save.hidden = chooser.value === row.label; status.textContent = ""; });
  save.addEventListener("click", async () => {
    if (await act("/api/relabel", { id: row.id, label: chooser.value }, status)) {
      row.label = chooser.value;
      save.hidden = true;
      chooser.focus();
    }
  });
  return [chooser, save, status];
};

const skippedEditor = (row) => {
  const status = element("span", { class: "dim", role: "status" });
  const back = element("button", { type: "button" }, "Bring back");
  back.addEventListener("click", async () => { if (await act("/api/unskip", { id: row.id }, status)) back.disabled = true; });
  return [element("span", {}, row.reason ? `Skipped: ${row.reason}` : "Skipped"), back, status];
};

const rowView = (row) => {
  const about = [`${row.id}`, row.by, when(row.at)].filter(Boolean).join(" · ");
  const doubt = row.predicted != null && row.predicted !== row.label ? `The model had said “${row.predicted}”.` : "";
  return element("li", {},
    element("div", { class: "item" }, ...itemView(row.item, row.id)),
    element("div", { class: "edit" }, ...("label" in row ? labelEditor(row) : skippedEditor(row))),
    element("p", { class: "dim about" }, about, doubt ? element("span", { class: "doubt" }, ` ${doubt}`) : ""));
};

const show = async () => {
  const mine = ++asked;
  const query = new URLSearchParams({ page: String(page), ...Object.fromEntries(FILTERS.map((id) => [id, $(id).value])) });
  const { data, refused } = await server.get(`/api/labels?${query}`);
  if (mine !== asked) return;
  $("found").textContent = refused ?? `${number(data.total)} ${data.total === 1 ? "item" : "items"}`;
  if (!data) return;
  $("rows").replaceChildren(...data.rows.map(rowView));
  $("pages").hidden = data.pages < 2;
  $("page").textContent = `${data.page + 1} of ${data.pages}`;
  $("newer").disabled = data.page === 0;
  $("older").disabled = data.page + 1 >= data.pages;
};

let typing = 0;
const again = () => { page = 0; show(); };
for (const id of ["show", "label", "by"]) $(id).addEventListener("change", again);
$("text").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(again, TYPING_MS); });
$("filters").addEventListener("submit", (event) => { event.preventDefault(); again(); });
$("newer").addEventListener("click", () => { page -= 1; show(); });
$("older").addEventListener("click", () => { page += 1; show(); });

history.replaceState(null, "", location.pathname);
const { data } = await server.get(`/api/state?client=${client}`);
state = { ...data?.overview, person: data?.person };
$("label").append(...(state.classes ?? []).map((one) => option(one.name, `${one.name} (${one.count})`)));
$("by").append(...Object.keys(state.people ?? {}).map((name) => option(name)));
await show();
