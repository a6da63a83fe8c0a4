// Items and figures as elements. Whatever an item holds goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** The element of the page with this id. */
export const $ = (id) => document.getElementById(id);

/** A label as words; an item may have several classes. */
export const words = (label) => (Array.isArray(label) ? label.join(", ") || "none" : label);

/** element("p", {class: "dim"}, "text", child, …) */
export const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const WIDE = 8; // fields that fit one column

const fields = (pairs) =>
  element("dl", { class: pairs.length > WIDE ? "fields wide" : "fields" }, ...pairs.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", { dir: "auto" }, value === null ? "–" : String(value)))));

const image = (item, id) => {
  const shown = element("img", { src: `/file?id=${encodeURIComponent(id)}`, alt: `Image ${item.name}` });
  const holder = element("figure", {}, shown, element("figcaption", { class: "dim" }, item.name));
  shown.addEventListener("error", async () => {
    const said = await fetch(shown.src).then((response) => response.json()).catch(() => ({}));
    shown.replaceWith(element("p", { class: "broken" }, said.error ?? "This file cannot be shown as an image."));
  });
  return holder;
};

/** A button that is there as long as a text goes on below. */
const moreBelow = (text) => {
  const more = element("button", { type: "button", class: "quiet more", hidden: "" }, "More below ↓");
  const look = () => { more.hidden = text.scrollHeight - text.clientHeight - text.scrollTop < 4; };
  more.addEventListener("click", () => text.scrollBy({ top: text.clientHeight * 0.9 }));
  text.addEventListener("scroll", look);
  new ResizeObserver(look).observe(text);
  return more;
};

/** What to show of an item. */
export const itemView = (item, id) => {
  if (item.kind === "image") return [image(item, id)];
  if (item.kind === "row") return [fields(item.fields)];
  const text = element("p", { class: item.text.length > 400 ? "text long" : "text", dir: "auto" }, item.text.trim() ? item.text : "(an empty text)");
  const shown = item.text.length > 400 ? [text, moreBelow(text)] : [text];
  return item.fields.length ? [...shown, fields(item.fields)] : shown;
};

/** A name that may break after its joints: lost_or_stolen_card has no spaces. */
export const breakable = (name) =>
  element("span", {}, ...name.split(/(?<=[_./-])/).flatMap((part, i) => (i ? [element("wbr"), part] : [part])));

export const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
export const number = (value) => value.toLocaleString("en");

/** A line of shares from 0 to 1 into an svg of 240 × 56. */
export const drawCurve = (svg, shares) => {
  svg.replaceChildren();
  svg.toggleAttribute("hidden", shares.length < 2);
  if (shares.length < 2) return;
  const at = (share, i) => `${((i * 232) / (shares.length - 1) + 4).toFixed(1)},${(52 - 48 * share).toFixed(1)}`;
  for (const [share, kind] of [[0, "axis"], [0.5, "grid"], [1, "grid"]]) {
    const line = document.createElementNS(SVG, "line");
    const y = String(52 - 48 * share);
    for (const [key, value] of Object.entries({ x1: "4", x2: "236", y1: y, y2: y, class: kind })) line.setAttribute(key, value);
    svg.append(line);
  }
  const path = document.createElementNS(SVG, "polyline");
  path.setAttribute("points", shares.map(at).join(" "));
  svg.append(path);
  svg.setAttribute("aria-label", `Accuracy as it went, from ${percent(shares[0])} to ${percent(shares.at(-1))}`);
};

/** A text with some Markdown (headings, lists, paragraphs, **bold**, `code`) as elements; markup in it stays text. */
export const markdown = (text) => {
  const inline = (line) => line.split(/(\*\*[^*]+\*\*|`[^`]+`)/).map((part) =>
    part.startsWith("**") && part.length > 4 ? element("b", {}, part.slice(2, -2))
      : part.startsWith("`") && part.length > 2 ? element("code", {}, part.slice(1, -1)) : part);
  const block = (lines) => {
    const heading = /^#{1,6}\s+(.*)/.exec(lines[0]);
    if (heading) return [element("h3", {}, ...inline(heading[1])), ...(lines.length > 1 ? block(lines.slice(1)) : [])];
    if (lines.every((line) => /^\s*([-*]|\d+\.)\s/.test(line)))
      return [element("ul", {}, ...lines.map((line) => element("li", {}, ...inline(line.replace(/^\s*([-*]|\d+\.)\s+/, "")))))];
    return [element("p", {}, ...inline(lines.join(" ")))];
  };
  return text.split(/\n\s*\n/).map((part) => part.split("\n").filter((line) => line.trim())).filter((part) => part.length).flatMap(block);
};

/** Fills the body of a table. */
export const fillTable = (table, rows) => {
  const cell = (value) => element("td", {}, value);
  table.tBodies[0].replaceChildren(...(rows.length ? rows.map((row) => element("tr", {}, ...row.map(cell)))
    : [element("tr", {}, element("td", { colspan: "4", class: "dim" }, "nothing yet"))]));
};

export const pairRows = (pairs) => pairs.map((one) => [`${one.one} and ${one.other}`, number(one.items),
  percent(one.same / one.items), one.kappa === null ? "both gave one label only" : one.kappa.toFixed(2)]);
