// The page of a team: people and their links, labels per hour, agreement, accuracy.

import { $, drawCurve, element, fillTable, number, pairRows, percent } from "./draw.js";
import { begin, server } from "./start.js";

const links = (row) => {
  if (row.role === null) return "";
  const button = element("button", { type: "button" }, row.link ? "Revoke the link" : "New link");
  button.addEventListener("click", async () => {
    const path = row.link ? "/api/revoke" : "/api/link";
    const { data, refused } = await server.post(path, { person: row.name });
    $("link").textContent = refused ?? (data.link ? `${data.name}: ${data.link}` : `The link of ${data.name} does not work any more.`);
    await load();
  });
  return button;
};

const load = async () => {
  const { data, refused } = await server.get("/api/team");
  if (!data) { $("link").textContent = refused; return; }
  const hours = data.hours.map((hour) => new Date(hour).toLocaleString("en", { weekday: "short", hour: "numeric" }));
  const head = ["Person", "Role", "Labels", "Seconds (median)", "Agreement (κ)", ...hours, ""];
  $("people").tHead.replaceChildren(element("tr", {}, ...head.map((text) => element("th", { scope: "col" }, text))));
  fillTable($("people"), data.people.map((row) => [row.name, row.role ?? "", number(row.labels),
    row.seconds === null ? "" : row.seconds.toFixed(1), row.kappa === null ? "" : row.kappa.toFixed(2),
    ...row.hours.map((count) => (count ? number(count) : "")), links(row)]));
  $("invite").hidden = !data.links;
  const { test, overview } = data;
  $("test-figure").textContent = !test ? "not known: there is no test sample" : test.accuracy === null ? "not known yet"
    : `${percent(test.accuracy)} (${percent(test.interval[0])} to ${percent(test.interval[1])})`;
  $("test-text").textContent = test ? `${number(test.labelled)} of ${number(test.size)} test items have a label. ${test.text}` : "";
  drawCurve($("test-curve"), test ? test.curve.map((point) => point.accuracy) : []);
  $("accuracy").textContent = overview.accuracy === null ? "not known yet" : `${percent(overview.accuracy)} of the last ${overview.predictions}`;
  drawCurve($("curve"), overview.curve);
  fillTable($("pairs"), pairRows(data.pairs));
};

$("invite").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { data, refused } = await server.post("/api/link", { person: $("invite-name").value, role: $("invite-role").value });
  $("link").textContent = refused ?? `${data.name}: ${data.link}`;
  await load();
});

$("save").addEventListener("click", async () => {
  $("save-said").textContent = "Training …";
  const { data, refused } = await server.post("/api/save", {});
  $("save-said").textContent = refused ?? `Saved on the server, in ${data.folder}`;
});

await begin();
await load();
