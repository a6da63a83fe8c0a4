// Which class a typed text means.

/** Case, accents of Latin letters, and the joints _ . / : - and space make no difference. */
const fold = (text) =>
  text.normalize("NFKD").replace(/[\u0300-\u036f]/g, "").toLowerCase().replace(/[\s_./:-]+/g, " ").trim();

const startsWords = (wanted, found) => {
  const words = found.split(" ");
  return wanted.split(" ").every((start) => {
    const at = words.findIndex((word) => word.startsWith(start));
    if (at >= 0) words.splice(0, at + 1);
    return at >= 0;
  });
};

const inOrder = (letters, found) => {
  let at = 0;
  for (const letter of found) if (letter === letters[at]) at += 1;
  return at === letters.length;
};

/** How far a name is from what was typed: 0 is the name itself; Infinity: it does not fit. */
export const distance = (query, name) => {
  const wanted = fold(query);
  const found = fold(name);
  if (query.trim() === name) return 0;
  if (wanted === found) return 1;
  if (found.startsWith(wanted)) return 2;
  if (startsWords(wanted, found)) return 3;
  if (found.includes(wanted)) return 4;
  return inOrder([...wanted.replaceAll(" ", "")], found) ? 5 : Infinity;
};

/** The names that fit, the best first, and the one that Enter takes: null where two fit equally well. */
export const search = (query, names) => {
  if (!query.trim()) return { fits: [], best: null };
  const scored = names.map((name, i) => [distance(query, name), i, name]).filter(([far]) => far < Infinity);
  scored.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const alone = scored.length === 1 || (scored.length > 1 && scored[0][0] < scored[1][0]);
  return { fits: scored.map(([, , name]) => name), best: alone ? scored[0][2] : null };
};
