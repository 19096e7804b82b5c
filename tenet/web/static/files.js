// Files out and in: results in the formats that people use, and the bank.

import { api } from "./api.js";
import { $, ask, download, plural, toast } from "./dom.js";
import { changed, state } from "./state.js";
import { loadClasses } from "./teach.js";

export const NAMES = { coco: "results.json", csv: "results.csv", yolo: "results-yolo.zip", voc: "results-voc.zip" };

async function exportResults(format) {
  const pictures = state.pictures.filter((one) => one.detections);
  if (!pictures.length) return toast("There are no results to save yet.");
  const classes = [...new Set(pictures.flatMap((one) => [...(one.classes ?? []), ...one.detections.map((hit) => hit.class)]))];
  const body = {
    format, threshold: state.threshold, classes,
    pictures: pictures.map(({ name, width, height, detections }) => ({ name: name.slice(-200), width, height, detections })),
  };
  download(await api.export(body), NAMES[format]);
  return undefined;
}

async function importBank(file) {
  let told;
  try {
    told = await api.importBank(file, false);
  } catch (error) {
    if (error.status !== 409) throw error;
    if (!(await ask("A bank of another model", "Its shots can be encoded anew for this one. That takes a while.", { yes: "Do that" }))) return;
    told = await api.importBank(file, true);
  }
  await loadClasses();
  changed("taught");
  toast(`${plural(told.total, "class", "classes")} came in.`);
}

const safely = (work) => async (...words) => {
  try {
    await work(...words);
  } catch (error) {
    toast(error.message, "bad");
  }
};

export function prepareFiles() {
  $("export").addEventListener("change", safely(async (event) => {
    const format = event.target.value;
    event.target.value = "";
    if (format) await exportResults(format);
  }));
  $("bank-export").addEventListener("click", safely(async () => download(await api.bank(), "things.bank")));
  $("bank-import").addEventListener("click", () => $("bank-file").click());
  $("bank-file").addEventListener("change", safely(async (event) => {
    const file = event.target.files[0];
    event.target.value = "";
    if (file) await importBank(file);
  }));
}
