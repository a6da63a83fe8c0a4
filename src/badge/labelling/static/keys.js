// The key of each class: the same on every page and for every item.

/** Keys of the page Label itself: comment, guesses, recently used, skip, undo. */
const TAKEN = "cgrsu";
const KEYS = [..."123456789abcdefghijklmnopqrstuvwxyz"].filter((key) => !TAKEN.includes(key));

/** Key -> class. Classes get the keys that they ask for; the others get theirs in order, or by use where keys are too few. */
export const keysOf = (classes) => {
  const keys = new Map();
  for (const { name, key } of classes) if (key && !TAKEN.includes(key) && !keys.has(key)) keys.set(key, name);
  const given = new Set(keys.values());
  const rest = classes.filter(({ name }) => !given.has(name));
  if (classes.length > KEYS.length) rest.sort((a, b) => b.count - a.count);
  const free = KEYS.filter((key) => !keys.has(key));
  rest.slice(0, free.length).forEach(({ name }, i) => keys.set(free[i], name));
  return keys;
};
