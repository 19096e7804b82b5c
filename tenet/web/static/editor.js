// The dialog in which a person draws a box around the thing and names it, picture after picture.

import { api } from "./api.js";
import { $, fit, h, plural, toast } from "./dom.js";
import { changed, state } from "./state.js";

let waiting = [];
let done = 0;
let drawn = []; // boxes of this picture that were added already
let image = null;
let box = null; // xyxy in pixels of the picture
let drag = null;
const touch = matchMedia("(hover: none)");

export function teachFrom(files, name = "") {
  const pictures = [...files].filter((file) => file.type.startsWith("image/") || !file.type);
  if (!pictures.length) return toast("Those are no pictures.", "bad");
  if (!$("editor").open) {
    waiting = [];
    $("editor-name").value = "";
  }
  waiting.push(...pictures);
  if (name) $("editor-name").value = name;
  if (!$("editor").open) {
    done = 0;
    $("editor").showModal();
    next();
  } else count();
}

const count = () => {
  $("editor-count").textContent = [
    done ? `${plural(done, "shot")} added` : "", waiting.length > 1 ? `${waiting.length - 1} more to come` : "",
  ].filter(Boolean).join(", ");
};

function next() {
  const file = waiting[0];
  if (!file) return $("editor").close();
  box = null;
  drawn = [];
  $("editor-whole").checked = false;
  $("editor-skip").hidden = waiting.length < 2;
  $("editor-problem").hidden = true;
  $("names").replaceChildren(...state.classes.map((one) => h("option", { value: one.name })));
  image = h("img", { alt: file.name, draggable: "false" });
  image.onload = () => { showBox(); $("draw").focus(); };
  image.onerror = () => problem(`${file.name}: the browser cannot show this picture.`);
  image.src = URL.createObjectURL(file);
  $("draw").replaceChildren(image);
  count();
  ready();
}

function problem(text) {
  $("editor-problem").textContent = text;
  $("editor-problem").hidden = !text;
}

function ready() {
  const whole = $("editor-whole").checked;
  $("editor-add").disabled = !(whole || box) || !$("editor-name").value.trim();
  $("editor-more").disabled = $("editor-add").disabled || whole;
  $("editor-hint").textContent = whole
    ? "The picture is a crop of the thing."
    : box
      ? `${Math.round(box[2] - box[0])} × ${Math.round(box[3] - box[1])} px. Draw again to change it${touch.matches ? "" : "; arrow keys move, with Shift resize"}.`
      : `${drawn.length ? "Draw the next one." : "Drag on the picture."}${touch.matches ? "" : " Arrow keys make and move a box, with Shift they resize it."}`;
}

function frame(corners, kind, ...parts) {
  const scale = image.clientWidth / image.naturalWidth;
  const [x1, y1, x2, y2] = corners.map((value) => value * scale);
  return h("div", {
    class: kind,
    style: {
      left: `${image.offsetLeft + x1}px`, top: `${image.offsetTop + y1}px`, width: `${x2 - x1}px`, height: `${y2 - y1}px`,
    },
  }, ...parts);
}

function showBox() {
  for (const old of $("draw").querySelectorAll(".box, .done")) old.remove();
  fit(image, $("draw").clientWidth, 0.56 * innerHeight);
  if (image?.naturalWidth) {
    $("draw").append(...drawn.map((one) => frame(one, "done")));
    const corners = [["0%", "0%"], ["100%", "0%"], ["0%", "100%"], ["100%", "100%"]];
    if (box && !$("editor-whole").checked)
      $("draw").append(frame(box, "box", corners.map(([left, top]) => h("i", { style: { left, top, translate: "-50% -50%" } }))));
  }
  ready();
}

function place(event) {
  const frame = image.getBoundingClientRect();
  const scale = image.naturalWidth / frame.width;
  const bound = (value, most) => Math.min(most, Math.max(0, value * scale));
  return [bound(event.clientX - frame.left, image.naturalWidth), bound(event.clientY - frame.top, image.naturalHeight)];
}

/** What a drag from (x, y) does: a corner that is near is pulled, elsewhere a new box begins. */
function anchor([x, y]) {
  if (!box) return [x, y];
  const near = (14 * image.naturalWidth) / image.clientWidth;
  for (const [cx, cy, ox, oy] of [[0, 1, 2, 3], [2, 1, 0, 3], [0, 3, 2, 1], [2, 3, 0, 1]])
    if (Math.hypot(box[cx] - x, box[cy] - y) < near) return [box[ox], box[oy]];
  return [x, y];
}

function key(event) {
  const [dx, dy] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
  if ((!dx && !dy) || !image?.naturalWidth) return;
  event.preventDefault();
  const [width, height] = [image.naturalWidth, image.naturalHeight];
  const step = Math.max(1, Math.round(Math.max(width, height) / (event.altKey ? 400 : 80)));
  if (!box) box = [width * 0.3, height * 0.3, width * 0.7, height * 0.7];
  else if (event.shiftKey) {
    box = [box[0], box[1], Math.min(width, Math.max(box[0] + 4, box[2] + dx * step)), Math.min(height, Math.max(box[1] + 4, box[3] + dy * step))];
  } else {
    const mx = Math.min(width - box[2], Math.max(-box[0], dx * step));
    const my = Math.min(height - box[3], Math.max(-box[1], dy * step));
    box = [box[0] + mx, box[1] + my, box[2] + mx, box[3] + my];
  }
  showBox();
}

/** The shot goes to the service; `more`: the picture stays, for another box. */
async function add(more) {
  const [file, name] = [waiting[0], $("editor-name").value.trim()];
  if (!file || $("editor-add").disabled) return;
  $("editor-add").disabled = $("editor-more").disabled = true;
  const pressed = more ? $("editor-more") : $("editor-add");
  const label = pressed.textContent;
  pressed.textContent = "Adding…";
  try {
    const told = await api.addShot(name, file, $("editor-whole").checked ? null : box.map((value) => Math.round(value * 10) / 10));
    state.classes = [...state.classes.filter((one) => one.name !== told.name), told];
    state.classes.sort((one, other) => one.shots[0].id - other.shots[0].id);
    if (!told.added) toast("This class has that shot already.");
    done += told.added;
    changed("classes", "taught");
    if (more) {
      drawn.push(box);
      box = null;
      showBox();
      count();
      $("draw").focus();
    } else {
      waiting.shift();
      next();
    }
  } catch (error) {
    problem(error.message);
  } finally {
    pressed.textContent = label;
    ready();
  }
}

export function prepareEditor() {
  const area = $("draw");
  area.addEventListener("pointerdown", (event) => {
    if (!image?.naturalWidth || $("editor-whole").checked) return;
    area.setPointerCapture(event.pointerId);
    drag = anchor(place(event));
  });
  area.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const [x, y] = place(event);
    box = [Math.min(x, drag[0]), Math.min(y, drag[1]), Math.max(x, drag[0]), Math.max(y, drag[1])];
    showBox();
  });
  area.addEventListener("pointerup", () => {
    drag = null;
    if (box && (box[2] - box[0] < 4 || box[3] - box[1] < 4)) box = null;
    showBox();
    if (box && !$("editor-name").value) $("editor-name").focus();
  });
  area.addEventListener("keydown", key);
  $("editor-name").addEventListener("input", ready);
  $("editor-whole").addEventListener("change", showBox);
  $("editor-form").addEventListener("submit", (event) => { event.preventDefault(); add(false); });
  $("editor-more").addEventListener("click", () => add(true));
  $("editor-skip").addEventListener("click", () => { waiting.shift(); next(); });
  $("editor-close").addEventListener("click", () => $("editor").close());
  $("editor").addEventListener("close", () => {
    if ($("editor").open) return; // the event comes late: pictures that came meanwhile have opened it again
    waiting = [];
    $("editor-name").value = "";
  });
  addEventListener("resize", () => $("editor").open && showBox());
}
