// The page begins here.

import { prepareArrivals } from "./arrivals.js";
import { prepareCamera } from "./camera.js";
import { $, h } from "./dom.js";
import { prepareEditor } from "./editor.js";
import { prepareFiles } from "./files.js";
import { prepareFinding, restore } from "./find.js";
import { prepareJobs } from "./jobs.js";
import { prepareReasons } from "./reasons.js";
import { prepareStage } from "./stage.js";
import { changed, on, state } from "./state.js";
import { loadClasses, prepareTeaching } from "./teach.js";

function prepareTheme() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const show = () => {
    document.documentElement.dataset.theme = localStorage.getItem("tenet-theme") ?? (system.matches ? "dark" : "light");
  };
  $("theme").addEventListener("click", () => {
    localStorage.setItem("tenet-theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
    show();
  });
  system.addEventListener("change", show);
  show();
}

function prepareTabs() {
  const tabs = ["teach", "find"];
  const show = () => {
    for (const name of tabs) {
      const on = document.body.dataset.tab === name;
      $(`tab-${name}`).setAttribute("aria-selected", String(on));
      $(`tab-${name}`).tabIndex = on ? 0 : -1;
    }
  };
  for (const name of tabs) {
    $(`tab-${name}`).addEventListener("click", () => { document.body.dataset.tab = name; show(); changed("selected"); });
    $(`tab-${name}`).addEventListener("keydown", (event) => {
      if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
      const other = tabs[1 - tabs.indexOf(name)];
      $(`tab-${other}`).click();
      $(`tab-${other}`).focus();
    });
  }
  document.body.dataset.tab = "teach";
  on("tab", show);
  show();
}

async function begin() {
  try {
    const told = await loadClasses();
    $("model").textContent = `model ${told.model}`;
    state.threshold = Number(localStorage.getItem("tenet-threshold")) || Math.round(100 * told.threshold) / 100;
    $("threshold").value = String(state.threshold);
    $("threshold-shown").textContent = state.threshold.toFixed(2);
    await restore();
    changed("ready", "threshold");
  } catch (error) {
    $("model").textContent = "not connected";
    $("classes").setAttribute("aria-busy", "false");
    $("classes").replaceChildren(h("div", { class: "empty bad", role: "alert" },
      h("strong", {}, "The service cannot be reached"), error.message, h("button", { onclick: begin }, "Try again")));
  }
}

prepareTheme();
prepareTabs();
prepareEditor();
prepareTeaching();
prepareStage();
prepareReasons();
prepareFinding();
prepareCamera();
prepareFiles();
prepareJobs();
prepareArrivals();
// A picture that misses its place must not replace the page.
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());
begin();
