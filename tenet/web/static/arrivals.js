// Pictures come in: chosen or dropped. A few are shown at once; a folder, a zip or many of them become a job.

import { $, dropZone } from "./dom.js";
import { lookAt } from "./find.js";
import { isArchive, startJob } from "./jobs.js";
import { MOST } from "./keep.js";

function take(files, folder = false) {
  const all = [...files];
  if (folder || all.length > MOST || all.some(isArchive)) startJob(all);
  else lookAt(all);
}

export function prepareArrivals() {
  const inputs = { "find-files": ["choose", "find-drop"], "batch-files": ["batch-open"], "folder-files": ["folder-open"] };
  for (const [id, buttons] of Object.entries(inputs)) {
    for (const button of buttons) $(button).addEventListener("click", () => $(id).click());
    $(id).addEventListener("change", (event) => {
      take(event.target.files, id === "folder-files");
      event.target.value = "";
    });
  }
  dropZone($("find"), take);
  dropZone($("find-drop"), take);
}
