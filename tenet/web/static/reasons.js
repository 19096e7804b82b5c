// The things that were found, each beside the shot that it matched, with attention maps where they are asked for.

import { api, thumbnail } from "./api.js";
import { $, h, toast } from "./dom.js";
import { drawPart, loadImage } from "./heat.js";
import { changed, colourOf, current, on, shown, state } from "./state.js";

const MOST = 24;
const TOGETHER = 2; // explanations that are asked for at once: others wait for the same model
const explained = new Map(); // picture and detection → promise of its reasons
let lanes = Array(TOGETHER).fill(Promise.resolve());

/** Work in its turn; what nobody wants any more when its turn comes is left out. */
function inTurn(work, wanted) {
  const before = lanes.shift();
  const mine = before.then(() => (wanted() ? work() : null));
  lanes = [...lanes, mine.catch(() => null)];
  return mine;
}

function reasons(picture, one, wanted) {
  const key = [picture.id, picture.seen, one.class, ...one.box].join(" ");
  if (!explained.has(key)) {
    if (explained.size > 200) explained.delete(explained.keys().next().value);
    const asked = inTurn(() => api.explain(picture.file, one.class, one.box), wanted).then((told) => told?.explained[0]);
    asked.then((told) => told || explained.delete(key), () => explained.delete(key));
    explained.set(key, asked);
  }
  return explained.get(key);
}

async function drawPair(picture, one, left, right, note) {
  const attention = $("attention").checked;
  const image = await loadImage(picture.url);
  drawPart(left, image, one.box);
  const shots = state.classes.find((known) => known.name === one.class)?.shots ?? [];
  const id = one.shot_id;
  if (!shots.some((shot) => shot.id === id)) {
    note.textContent = "the shot that matched is gone";
    return;
  }
  const shot = await loadImage(await thumbnail(one.class, id));
  drawPart(right, shot, [0, 0, shot.naturalWidth, shot.naturalHeight]);
  if (!attention) return;
  note.textContent = `shot ${one.shot}, explaining…`;
  const why = await reasons(picture, one, () => $("attention").checked && left.isConnected);
  if (!why) return;
  const map = $("map").value;
  const other = why.shot_id === id ? shot : await loadImage(await thumbnail(one.class, why.shot_id));
  if (!$("attention").checked) return;
  if (!why.region_maps[map]) {
    note.textContent = "this model has no such map";
    return;
  }
  drawPart(left, image, one.box, why.region_maps[map]);
  drawPart(right, other, why.shot_box, why.shot_maps[map]);
  note.textContent = `shot ${why.shot}, cosine ${why.cosines[why.shot].toFixed(2)}`;
}

function hitNode(picture, one) {
  const [left, right] = [h("canvas", { role: "img", "aria-label": "What was found" }), h("canvas", { role: "img", "aria-label": "The shot that matched" })];
  const note = h("figcaption", {}, `shot ${one.shot}`);
  const node = h("article", { class: `hit ${one.place === state.chosen ? "chosen" : ""}`, onclick: () => { state.chosen = one.place; changed("chosen"); } },
    h("header", {}, h("span", { class: "dot", style: { background: colourOf(one.class) } }), h("strong", {}, one.class), h("output", {}, one.score.toFixed(2))),
    h("div", { class: "meter" }, h("i", { style: { width: `${100 * one.score}%` } })),
    h("div", { class: "pair" }, h("figure", {}, left, h("figcaption", {}, "found")), h("figure", {}, right, note)));
  node.dataset.place = one.place;
  drawPair(picture, one, left, right, note).catch((error) => { note.textContent = error.message; });
  return node;
}

let drawn = "";

function show() {
  const picture = current();
  const hits = picture && !picture.busy ? shown(picture).slice(0, MOST) : [];
  const key = JSON.stringify([picture?.id, picture?.seen, hits.map((one) => one.place), $("attention").checked, $("map").value, state.classes.map((one) => one.shots.length)]);
  if (key !== drawn) {
    drawn = key;
    const rest = picture ? shown(picture).length - hits.length : 0;
    $("found").replaceChildren(...hits.map((one) => hitNode(picture, one)));
    if (hits.length && rest > 0) $("found").append(h("p", { class: "empty" }, `and ${rest} more; the best ${MOST} are compared here`));
  }
  mark();
}

function mark() {
  for (const node of $("found").children) node.classList.toggle("chosen", Number(node.dataset.place) === state.chosen);
}

export function prepareReasons() {
  on("pictures selected threshold classes", show);
  on("chosen", () => {
    mark();
    $("found").querySelector(".chosen")?.scrollIntoView({ block: "nearest", behavior: "smooth" });
  });
  $("attention").addEventListener("change", () => {
    $("map").disabled = !$("attention").checked;
    if ($("attention").checked && !current()?.detections?.length) toast("There is nothing to explain yet.");
    show();
  });
  $("map").addEventListener("change", show);
}
