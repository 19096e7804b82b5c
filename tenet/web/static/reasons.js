// The things that were found, each beside the shot that it matched, with attention maps where they are asked for.

import { api, thumbnail } from "./api.js";
import { $, h, toast } from "./dom.js";
import { drawPart, loadImage } from "./heat.js";
import { changed, colourOf, current, on, shown, state } from "./state.js";

const MOST = 24;
const explained = new Map(); // picture and detection → promise of its reasons

function reasons(picture, one) {
  const key = [picture.id, picture.seen, one.class, ...one.box].join(" ");
  if (!explained.has(key)) {
    if (explained.size > 200) explained.delete(explained.keys().next().value);
    const asked = api.explain(picture.file, one.class, one.box).then((told) => told.explained[0]);
    asked.catch(() => explained.delete(key));
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
  const why = await reasons(picture, one);
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
    $("found").replaceChildren(...hits.map((one) => hitNode(picture, one)));
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
