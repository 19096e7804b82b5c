// A picture from the camera. It stays in the browser until it is looked at.

import { $ } from "./dom.js";
import { teachFrom } from "./editor.js";
import { lookAt } from "./find.js";

let stream = null;

async function open() {
  $("camera-problem").hidden = true;
  $("camera").showModal();
  try {
    if (!navigator.mediaDevices) throw new Error("The browser gives the camera only to pages of this machine or of https.");
    stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: { ideal: 1280 } } });
    $("camera-view").srcObject = stream;
  } catch (error) {
    $("camera-problem").textContent = error.name === "NotFoundError" ? "There is no camera." : error.name === "NotAllowedError" ? "The browser was told not to use the camera." : error.message;
    $("camera-problem").hidden = false;
  }
  for (const id of ["camera-take", "camera-teach"]) $(id).disabled = !stream;
}

function close() {
  for (const track of stream?.getTracks() ?? []) track.stop();
  stream = null;
}

async function taken() {
  const video = $("camera-view");
  const canvas = document.createElement("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d").drawImage(video, 0, 0);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.92));
  const time = new Date().toTimeString().slice(0, 8).replaceAll(":", "-");
  return new File([blob], `camera-${time}.jpg`, { type: "image/jpeg" });
}

export function prepareCamera() {
  $("camera-open").addEventListener("click", open);
  $("camera-close").addEventListener("click", () => $("camera").close());
  $("camera").addEventListener("close", close);
  $("camera-take").addEventListener("click", async () => {
    const file = await taken();
    $("camera").close();
    lookAt([file]);
  });
  $("camera-teach").addEventListener("click", async () => {
    const file = await taken();
    $("camera").close();
    teachFrom([file]);
  });
}
