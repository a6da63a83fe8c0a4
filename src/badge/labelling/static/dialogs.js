// Questions that the page asks: which of a few, why skip, a comment, a name. Each answers its callback, or nobody.

import { $, element } from "./draw.js";

const REASONS = ["I cannot tell", "None of the classes", "Broken or unreadable"];

const open = (dialog) => {
  dialog.returnValue = "";
  dialog.showModal();
};

/** Closes with `value` when one of its numbered buttons is clicked or its digit is pressed. */
const numbered = (dialog, list, texts, take) => {
  list.replaceChildren(...texts.map((text, i) => {
    const button = element("button", { type: "button" }, element("kbd", {}, String(i + 1)), element("span", {}, text));
    button.addEventListener("click", () => { take(i); dialog.close("ok"); });
    return button;
  }));
  dialog.onkeydown = (event) => {
    const i = Number(event.key) - 1;
    if (!(i in texts) || event.target.matches("input, textarea") || event.repeat) return;
    event.preventDefault();
    take(i);
    dialog.close("ok");
  };
};

const closed = (dialog, then) =>
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "ok") then();
    else $("item").focus({ preventScroll: true });
  }, { once: true });

/** One of at most nine names, by its number. */
export const askOne = (title, texts, taken) => {
  let chosen = null;
  $("one-title").textContent = title;
  numbered($("one"), $("one-list"), texts, (i) => { chosen = i; });
  closed($("one"), () => taken(chosen));
  open($("one"));
  $("one-list").firstChild?.focus();
};

export const askSkip = (taken) => {
  $("reason").value = "";
  numbered($("skipping"), $("reasons"), REASONS, (i) => { $("reason").value = REASONS[i]; });
  closed($("skipping"), () => taken($("reason").value.trim()));
  open($("skipping"));
  $("reasons").firstChild.focus();
};

export const askComment = (flagged, taken) => {
  $("comment").value = "";
  $("flag").checked = flagged;
  closed($("commenting"), () => taken($("comment").value.trim(), $("flag").checked));
  open($("commenting"));
  $("comment").focus();
};

export const askName = (suggested, must) => new Promise((resolve) => {
  const keep = (event) => { if (must) event.preventDefault(); };
  $("naming-name").value = suggested;
  $("naming").addEventListener("cancel", keep);
  $("naming").addEventListener("close", () => {
    $("naming").removeEventListener("cancel", keep);
    resolve($("naming-name").value.trim() || suggested);
  }, { once: true });
  open($("naming"));
});

$("show-help").addEventListener("click", () => open($("help")));
export const showHelp = () => open($("help"));
