// The picture in the middle with its boxes. The slider moves without asking the service.

import { $, fit, h, plural } from "./dom.js";
import { changed, colourOf, current, on, shown, state } from "./state.js";

const CROWD = 3; // with more boxes than these, a name that is wider than its box is left out

/** Black or white, whichever is read better on a colour. */
export function ink(colour) {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

function boxNode(one, unit, right, crowded) {
  const [x1, y1, x2, y2] = one.box;
  const colour = colourOf(one.class);
  const size = (crowded ? 12 : 14) * unit;
  const wide = (text) => (text.length * 0.58 + 0.8) * size;
  const full = `${one.class} ${one.score.toFixed(2)}`;
  const text = !crowded || one.place === state.chosen || wide(full) <= x2 - x1 ? full : one.score.toFixed(2);
  const width = wide(text);
  const left = Math.max(0, Math.min(x1, right - width));
  const top = y1 - 1.5 * size > 0 ? y1 - 1.5 * size : y1;
  const frame = { x: x1, y: y1, width: x2 - x1, height: y2 - y1 };
  const choose = () => { state.chosen = one.place; changed("chosen"); };
  const label = `${one.class}, score ${one.score.toFixed(2)}`;
  return h("svg:g", {
    class: one.place === state.chosen ? "chosen" : "", tabindex: 0, role: "button", "aria-label": label,
    onclick: choose, onkeydown: (event) => { if (["Enter", " "].includes(event.key)) { event.preventDefault(); choose(); } },
  },
  h("svg:rect", { class: "halo", ...frame, "stroke-width": 5 * unit }),
  h("svg:rect", { class: "line", ...frame, stroke: colour, "stroke-width": 3 * unit }),
  h("svg:rect", { x: left, y: top, width, height: 1.5 * size, rx: 3 * unit, fill: colour }),
  h("svg:text", { x: left + 0.4 * size, y: top + 1.08 * size, "font-size": size, fill: ink(colour), textLength: width - 0.8 * size, lengthAdjust: "spacingAndGlyphs" }, text));
}

function drawBoxes() {
  const picture = current();
  const image = $("canvas").querySelector("img");
  $("canvas").querySelector("svg")?.remove();
  fit(image, $("canvas").clientWidth, 0.6 * innerHeight);
  if (!picture?.detections || !image?.clientWidth) return;
  // The frame of boxes is what the service saw; the browser shows the same picture, scaled.
  const unit = picture.width / image.clientWidth;
  const svg = h("svg:svg", {
    class: "boxes", viewBox: `0 0 ${picture.width} ${picture.height}`,
    style: { left: `${image.offsetLeft}px`, top: `${image.offsetTop}px`, width: `${image.clientWidth}px`, height: `${image.clientHeight}px` },
  });
  const found = shown(picture);
  // The best and the chosen one come last: they lie above the others.
  const order = [...found].reverse().sort((one, other) => (one.place === state.chosen) - (other.place === state.chosen));
  svg.append(...order.map((one) => boxNode(one, unit, picture.width, found.length > CROWD)));
  $("canvas").append(svg);
}

function caption() {
  const picture = current();
  if (!picture) return;
  const found = shown(picture);
  const all = picture.detections?.length ?? 0;
  const hidden = all - found.length;
  const text = picture.error ?? (picture.busy
    ? "looking…"
    : !state.classes.length
    ? "waits until it is shown a thing"
    : !picture.detections
    ? "waits for its turn"
    : found.length
      ? plural(found.length, "thing") + " found" + (hidden ? `, ${hidden} below the least score` : "")
      : hidden
        ? `nothing at this score; ${plural(hidden, "guess", "guesses")} below it`
        : "nothing found");
  $("caption").replaceChildren(h("strong", {}, picture.name), h("span", { class: picture.error ? "problem" : "" }, text),
    h("button", { class: "quiet", "aria-label": `Remove ${picture.name} from the page`, onclick: () => changed("remove") }, "Remove"));
}

function show() {
  const picture = current();
  $("figure").hidden = !picture;
  $("find-drop").hidden = Boolean(picture);
  if (!picture) return $("canvas").replaceChildren();
  if ($("canvas").dataset.id !== String(picture.id) || !$("canvas").firstChild) {
    $("canvas").dataset.id = String(picture.id);
    const image = h("img", { alt: picture.name });
    image.onload = drawBoxes;
    image.onerror = () => image.replaceWith(h("p", { class: "empty" }, "The browser cannot show this picture."));
    image.src = picture.url;
    $("canvas").replaceChildren(image);
  }
  $("canvas").querySelector(".busy")?.remove();
  if (picture.busy) $("canvas").append(h("div", { class: "busy" }, h("div", { class: "spin" })));
  drawBoxes();
  caption();
  return undefined;
}

export function prepareStage() {
  on("pictures selected classes", show);
  on("threshold chosen", () => { drawBoxes(); caption(); });
  new ResizeObserver(drawBoxes).observe($("canvas"));
}
