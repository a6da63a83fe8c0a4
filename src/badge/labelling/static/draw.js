// Items and figures as elements. Whatever an item holds goes in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** element("p", {class: "dim"}, "text", child, …) */
export const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const fields = (pairs) =>
  element("dl", { class: "fields" }, ...pairs.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", { dir: "auto" }, value === null ? "–" : String(value)))));

const image = (item, id) => {
  const shown = element("img", { src: `/file?id=${encodeURIComponent(id)}`, alt: `Image ${item.name}` });
  const holder = element("figure", {}, shown, element("figcaption", { class: "dim" }, item.name));
  shown.addEventListener("error", () => shown.replaceWith(element("p", { class: "broken" }, "This file cannot be shown as an image.")));
  return holder;
};

/** What to show of an item. */
export const itemView = (item, id) => {
  if (item.kind === "image") return [image(item, id)];
  if (item.kind === "row") return [fields(item.fields)];
  const text = element("p", { class: item.text.length > 400 ? "text long" : "text", dir: "auto" }, item.text || "(an empty text)");
  return item.fields.length ? [text, fields(item.fields)] : [text];
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
