// What is known so far, beside the item: progress, accuracy, advice.

import { $, drawCurve, element, number, percent } from "./draw.js";


const adviceOf = (seen) => {
  if (seen.trouble) return `The next batch could not be picked: ${seen.trouble}`;
  if (seen.stop) return "The predictions hardly change any more. You can stop.";
  if (seen.changed === null) return "After a few batches, you see here whether you can stop.";
  return `The last model changed its prediction for ${percent(seen.changed)} of the items: go on.`;
};

const showTest = (test) => {
  $("test").hidden = !test;
  if (!test) return;
  $("test-figure").textContent = test.accuracy === null ? "not known yet"
    : `${percent(test.accuracy)} (${percent(test.interval[0])} to ${percent(test.interval[1])})`;
  $("test-text").textContent = `${number(test.labelled)} of ${number(test.size)} test items have a label. ${test.text}`;
  drawCurve($("test-curve"), test.curve.map((point) => point.accuracy));
};

export const showOverview = (seen) => {
  const most = Math.max(1, ...seen.classes.map((one) => one.count));
  const counted = seen.classes.length > 12
    ? seen.classes.filter((one) => one.count).sort((a, b) => b.count - a.count) : seen.classes;
  $("counts").replaceChildren(...counted.map(({ name, count }) => element("li", {},
    element("span", { class: "name" }, name), element("span", { class: "count" }, number(count)),
    element("meter", { min: 0, max: most, value: count, "aria-hidden": "true" }))));
  const skipped = seen.skipped ? `, ${number(seen.skipped)} skipped` : "";
  const ties = seen.ties ? `, ${number(seen.ties)} tied` : "";
  $("total").textContent = `${number(seen.labelled)} of ${number(seen.size)}${skipped}${ties}`;
  $("whole").max = seen.size;
  $("whole").value = seen.labelled + seen.skipped;
  $("accuracy").textContent = seen.accuracy === null ? "not known yet"
    : `${percent(seen.accuracy)} of the last ${seen.predictions}`;
  drawCurve($("curve"), seen.curve);
  $("advice").textContent = adviceOf(seen);
  $("advice-text").textContent = seen.advice;
  $("advice").classList.toggle("stop", seen.stop);
  showTest(seen.test);
};
