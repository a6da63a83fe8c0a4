// Wide tables scroll in a wrapper that the theme adds: let the keyboard reach it.
document$.subscribe(() =>
  requestAnimationFrame(() => document.querySelectorAll(".md-typeset__scrollwrap").forEach((wrap) => (wrap.tabIndex = 0)))
);
