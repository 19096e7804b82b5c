// The classes with their shots.

import { api, thumbnail } from "./api.js";
import { $, ask, dropZone, h, plural, toast } from "./dom.js";
import { teachFrom } from "./editor.js";
import { lookAt } from "./find.js";
import { changed, on, state } from "./state.js";

let addTo = "";

export async function loadClasses() {
  const told = await api.classes();
  Object.assign(state, { classes: told.classes, ready: true });
  changed("classes");
  return told;
}

async function change(work) {
  try {
    await work();
    await loadClasses();
    changed("taught");
  } catch (error) {
    toast(error.message, "bad");
  }
}

function put(told) {
  state.classes = state.classes.map((one) => (one.name === told.name ? told : one));
}

async function removeShot(one, shot) {
  if (one.shots.length === 1) return removeClass(one);
  return change(async () => put(await api.removeShot(one.name, shot.id)));
}

async function removeClass(one) {
  const sure = await ask(`Forget “${one.name}”?`, `It has ${plural(one.shots.length, "shot")}. This cannot be undone.`, { yes: "Forget it" });
  if (sure) await change(() => api.removeClass(one.name));
}

async function rename(one) {
  const name = await ask("Another name", `What is “${one.name}” to be called?`, { input: one.name, yes: "Rename" });
  if (name && name !== one.name) await change(() => api.rename(one.name, name));
}

/** A photograph that comes with tenet: to be drawn on, and searched for the others. */
async function tryExample() {
  const file = await api.example().catch((error) => toast(error.message, "bad"));
  if (!file) return;
  lookAt([file]);
  teachFrom([file], "coin");
}

function shotNode(one, shot) {
  const image = h("img", { alt: `Shot ${shot.number} of ${one.name}`, loading: "lazy", width: 64, height: 64 });
  thumbnail(one.name, shot.id).then((address) => { image.src = address; });
  const size = shot.picture ? `in a picture of ${shot.picture.join(" × ")} px` : "a crop without surroundings";
  return h("div", { class: "shot", title: `${shot.thing.map(Math.round).join(" × ")} px, ${size}` },
    image, h("button", { "aria-label": `Remove shot ${shot.number} of ${one.name}`, onclick: () => removeShot(one, shot) }, "✕"));
}

function classNode(one) {
  return h("article", { class: "class", "data-name": one.name },
    h("header", {},
      h("span", { class: "dot", style: { background: one.colour } }),
      h("h3", { title: one.name }, one.name),
      h("span", { class: `badge ${one.verdict}`, title: one.sentence }, one.verdict),
      h("button", { class: "quiet", "aria-label": `Rename ${one.name}`, title: "Rename", onclick: () => rename(one) }, "✎"),
      h("button", { class: "quiet", "aria-label": `Forget ${one.name}`, title: "Forget", onclick: () => removeClass(one) }, "✕")),
    h("div", { class: "shots" },
      one.shots.map((shot) => shotNode(one, shot)),
      h("button", { class: "add", "aria-label": `Add shots of ${one.name}`, title: "Add shots", onclick: () => { addTo = one.name; $("teach-files").click(); } }, "+")),
    one.verdict === "good" ? null : h("p", { class: "note" }, one.sentence.replace(/^.*?: /, "")),
    one.notes.slice(0, 2).map((note) => h("p", { class: "note" }, `Note: ${note}.`)));
}

function show() {
  $("classes").setAttribute("aria-busy", String(!state.ready));
  if (!state.ready) $("classes").replaceChildren(h("div", { class: "ghost" }), h("div", { class: "ghost" }));
  else if (!state.classes.length) {
    $("classes").replaceChildren(h("div", { class: "empty" },
      h("strong", {}, "It knows nothing yet"), "Two or three pictures of a thing are enough to begin. Nothing has to be trained.",
      h("button", { id: "example", onclick: tryExample }, "Try it with a picture of coins")));
  } else $("classes").replaceChildren(...state.classes.map(classNode));
  $("bank-export").disabled = !state.classes.length;
}

export function prepareTeaching() {
  on("classes", show);
  show();
  $("teach-drop").addEventListener("click", () => { addTo = ""; $("teach-files").click(); });
  $("teach-files").addEventListener("change", (event) => {
    teachFrom(event.target.files, addTo);
    event.target.value = "";
  });
  dropZone($("teach-drop"), (files) => teachFrom(files));
}
