// Folders and archives: sent once, done in the background, also while the page is closed.

import { api } from "./api.js";
import { $, download, h, plural, toast } from "./dom.js";
import { NAMES } from "./files.js";
import { isPicture } from "./find.js";
import { LEAST, on, state } from "./state.js";

const MOST_FILES = 1000; // that a form may carry
let jobs = [];
let timer = 0;

function jobNode(job) {
  const ready = job.done + job.failed;
  const running = job.state !== "done";
  const share = job.total ? (100 * ready) / job.total : 0;
  const text = running ? `${ready} of ${job.total} pictures` : `${plural(job.done, "picture")} done${job.failed ? `, ${job.failed} failed` : ""}`;
  const save = h("select", {
    "aria-label": "Save the job's results as", disabled: !job.done,
    onchange: async (event) => {
      const format = event.target.value;
      event.target.value = "";
      try {
        if (format) download(await api.exportJob(job.id, format, state.threshold), NAMES[format]);
      } catch (error) {
        toast(error.message, "bad");
      }
    },
  }, h("option", { value: "" }, "Save as…"), Object.keys(NAMES).map((format) => h("option", { value: format }, format.toUpperCase())));
  return h("div", { class: "job", "data-job": job.id },
    h("strong", {}, new Date(1000 * job.created).toLocaleTimeString()),
    h("div", { class: "progress", role: "progressbar", "aria-valuenow": Math.round(share), "aria-label": text }, h("i", { style: { width: `${share}%` } }), h("span", {}, text)),
    save,
    h("button", { class: "quiet", "aria-label": "Forget this job", onclick: () => remove(job) }, running ? "Stop" : "✕"));
}

async function remove(job) {
  try {
    await api.removeJob(job.id);
  } catch (error) {
    toast(error.message, "bad");
  }
  await refresh();
}

export async function refresh() {
  clearTimeout(timer);
  try {
    jobs = (await api.jobs()).jobs;
  } catch {
    return;
  }
  $("jobs").replaceChildren(...jobs.slice(0, 5).map(jobNode));
  if (jobs.some((job) => job.state !== "done")) timer = setTimeout(refresh, 1000);
}

export const isArchive = (file) => /\.zip$/i.test(file.name);

export async function startJob(files) {
  const archive = [...files].find(isArchive);
  const pictures = [...files].filter(isPicture);
  if (!state.classes.length) return toast("First show it a thing.", "bad");
  if (archive && files.length > 1) return toast("One zip at a time, or pictures.", "bad");
  if (!archive && !pictures.length) return toast("There are no pictures among those.", "bad");
  if (pictures.length > MOST_FILES) return toast(`At most ${MOST_FILES} pictures at a time; put more into a zip.`, "bad");
  toast("Sending…");
  try {
    await api.startJob(pictures, archive, LEAST);
    toast("Begun. It goes on when this page is closed.");
  } catch (error) {
    toast(error.message, "bad");
  }
  return refresh();
}

export function prepareJobs() {
  on("ready", refresh);
}
