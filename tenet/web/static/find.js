// Query pictures: in, looked at a few at a time, and listed.

import { api } from "./api.js";
import { $, h, toast } from "./dom.js";
import { forget, forgetAll, keep, kept, MOST } from "./keep.js";
import { changed, LEAST, on, shown, state } from "./state.js";

const TOGETHER = 3;
let number = Date.now();
let queue = [];
let total = 0;
let running = 0;
let timer = 0;
let lesson = 0; // grows when the classes change; a picture remembers the one it was looked at with

export const isPicture = (file) => file.type.startsWith("image/") || /\.(jpe?g|png|webp|avif|gif|bmp|tiff?|jp2|p[pg]m)$/i.test(file.name);

/** What the detector was shown: results of other shots are old. A class's name counts as well. */
const shotIds = () => JSON.stringify(state.classes.map((one) => [one.name, ...one.shots.map((shot) => shot.id)]));

export function lookAt(files) {
  const pictures = [...files].filter(isPicture);
  if (!pictures.length) return toast("Those are no pictures.", "bad");
  const room = MOST - state.pictures.length;
  if (pictures.length > room) toast(`The page shows ${MOST} pictures at a time; clear some of them first.`, "bad");
  const fresh = pictures.slice(0, room).map((file) => ({
    id: (number += 1), name: file.name || "picture", file, url: URL.createObjectURL(file), seen: 0, busy: false,
  }));
  if (!fresh.length) return undefined;
  state.pictures = [...state.pictures, ...fresh];
  state.selected = fresh[0].id;
  state.chosen = null;
  changed("pictures");
  document.body.dataset.tab = "find";
  changed("tab");
  for (const picture of fresh) keep(picture);
  if (state.classes.length) look(fresh);
  return undefined;
}

function look(pictures) {
  const fresh = pictures.filter((one) => !queue.includes(one));
  queue.push(...fresh);
  total += fresh.length;
  pump();
}

function pump() {
  while (running < TOGETHER && queue.length) {
    running += 1;
    one(queue.shift()).finally(() => {
      running -= 1;
      if (!running && !queue.length) total = 0;
      progress();
      pump();
    });
  }
  progress();
}

async function one(picture) {
  picture.busy = true;
  picture.lesson = lesson;
  const taught = shotIds();
  changed("pictures");
  try {
    const told = await api.detect(picture.file, LEAST);
    const found = told.pictures[0];
    Object.assign(picture, { width: found.width, height: found.height, detections: found.detections, classes: told.classes, taught, error: undefined });
  } catch (error) {
    Object.assign(picture, { detections: undefined, taught, error: error.message });
  }
  picture.busy = false;
  picture.seen += 1;
  if (state.pictures.includes(picture)) keep(picture);
  changed("pictures");
}

function progress() {
  const left = queue.length + running;
  $("progress").hidden = total < 2 || !left;
  if (!total) return;
  const done = total - left;
  $("progress").firstChild.style.width = `${(100 * done) / total}%`;
  $("progress").lastChild.textContent = `${done} of ${total} pictures`;
  $("progress").setAttribute("aria-valuenow", String(Math.round((100 * done) / total)));
}

/** The classes changed: what is on the page is looked at again, once the lesson is over. */
function again() {
  lesson += 1;
  afterLesson();
}

function afterLesson() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    if ($("editor").open) return;
    if (state.classes.length) look(state.pictures.filter((picture) => picture.lesson !== lesson));
    else {
      for (const picture of state.pictures) Object.assign(picture, { detections: undefined, taught: undefined });
      changed("pictures");
    }
  }, 300);
}

function select(id) {
  state.selected = id;
  state.chosen = null;
  changed("selected");
}

function step(by) {
  const at = state.pictures.findIndex((picture) => picture.id === state.selected);
  const next = state.pictures[at + by];
  if (next) {
    select(next.id);
    $("strip").querySelector("[aria-selected=true]")?.focus();
  }
}

function tile(picture) {
  const count = picture.error ? "!" : picture.busy || !picture.detections ? "…" : shown(picture).length;
  return h("button", {
    class: `tile ${picture.error ? "bad" : ""}`, role: "option", "aria-selected": String(picture.id === state.selected),
    tabindex: picture.id === state.selected ? 0 : -1, title: picture.name, "aria-label": `${picture.name}, ${count}`, onclick: () => select(picture.id),
  }, h("img", { src: picture.url, alt: "", loading: "lazy" }), h("b", {}, String(count)));
}

function show() {
  $("strip").hidden = state.pictures.length < 2;
  for (const id of ["bar", "clear"]) $(id).hidden = !state.pictures.length;
  const focused = $("strip").contains(document.activeElement);
  $("strip").replaceChildren(...state.pictures.map(tile));
  if (focused) $("strip").querySelector("[aria-selected=true]")?.focus();
  $("find-hint").textContent = state.classes.length ? "or choose them, or use the camera" : "it looks as soon as it was shown a thing";
}

export async function restore() {
  const before = await kept();
  const known = new Set(state.pictures.map((picture) => picture.id));
  const back = before.filter((picture) => !known.has(picture.id));
  // Somebody may have been faster and dropped pictures already.
  state.pictures = [
    ...back.map((picture) => ({ ...picture, url: URL.createObjectURL(picture.file), seen: 0, busy: false, lesson })),
    ...state.pictures,
  ];
  state.selected ??= state.pictures.at(-1)?.id ?? null;
  changed("pictures");
  const old = state.pictures.filter((picture) => !picture.busy && !queue.includes(picture) && (picture.error || picture.taught !== shotIds()));
  if (state.classes.length) look(old);
  else for (const picture of old) picture.detections = undefined;
  changed("pictures");
}

function removeCurrent() {
  const at = state.pictures.findIndex((picture) => picture.id === state.selected);
  if (at < 0) return;
  const [gone] = state.pictures.splice(at, 1);
  queue = queue.filter((picture) => picture !== gone);
  URL.revokeObjectURL(gone.url);
  forget(gone.id);
  state.selected = (state.pictures[at] ?? state.pictures[at - 1])?.id ?? null;
  state.chosen = null;
  changed("pictures");
}

function clear() {
  for (const picture of state.pictures) URL.revokeObjectURL(picture.url);
  queue = [];
  Object.assign(state, { pictures: [], selected: null, chosen: null });
  forgetAll();
  changed("pictures");
}

export function prepareFinding() {
  on("pictures selected threshold classes", show);
  on("taught", again);
  on("remove", removeCurrent);
  $("editor").addEventListener("close", afterLesson);
  $("clear").addEventListener("click", clear);
  $("threshold").addEventListener("input", (event) => {
    state.threshold = Number(event.target.value);
    localStorage.setItem("tenet-threshold", event.target.value);
    $("threshold-shown").textContent = state.threshold.toFixed(2);
    changed("threshold");
  });
  $("strip").addEventListener("keydown", (event) => {
    if (event.key === "ArrowRight") step(1);
    else if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "Delete") removeCurrent();
    else return;
    event.preventDefault();
  });
}
