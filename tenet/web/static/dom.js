// Elements without markup in strings: nothing that came from a user is ever parsed as HTML.

export const $ = (id) => document.getElementById(id);

export function h(tag, attributes = {}, ...children) {
  const svg = tag.startsWith("svg:");
  const node = svg
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

export function toast(text, kind = "") {
  const node = h("div", { class: `toast ${kind}` }, h("span", {}, text));
  node.append(h("button", { "aria-label": "Close", onclick: () => node.remove() }, "✕"));
  $("toasts").append(node);
  while ($("toasts").children.length > 3) $("toasts").firstChild.remove();
  setTimeout(() => node.remove(), kind === "bad" ? 12000 : 4000);
}

/** A question in a dialog of our own: gives the text, true, or null where it was cancelled. */
export function ask(title, text, { input = null, password = false, yes = "Yes" } = {}) {
  const dialog = $("ask");
  $("ask-title").textContent = title;
  $("ask-text").textContent = text;
  $("ask-yes").textContent = yes;
  const field = $("ask-input");
  field.hidden = input === null;
  field.value = input ?? "";
  field.type = password ? "password" : "text";
  field.setAttribute("aria-label", title);
  dialog.returnValue = "";
  dialog.showModal();
  if (input !== null) field.select();
  return new Promise((done) => {
    $("ask-form").onkeydown = (event) => {
      if (event.key === "Enter" && event.target === field) {
        event.preventDefault();
        dialog.close("yes");
      }
    };
    dialog.onclose = () => done(dialog.returnValue !== "yes" ? null : input === null ? true : field.value.trim());
  });
}

export function download(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** Shows a picture as large as it fits, small ones enlarged: a box is drawn and seen better. */
export function fit(image, width, height) {
  if (!image?.naturalWidth || !width) return;
  const scale = Math.min(width / image.naturalWidth, height / image.naturalHeight, 4);
  image.style.width = `${Math.floor(image.naturalWidth * scale)}px`;
}

/** Files that were dropped, those of dropped folders among them, and whether there was a folder. */
async function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.some((entry) => entry.isDirectory)) return [[...transfer.files], false];
  const found = [];
  async function walk(entry) {
    if (entry.isFile) {
      const file = await new Promise((done, fail) => entry.file(done, fail));
      found.push(Object.assign(file, { path: entry.fullPath.replace(/^\//, "") }));
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((done, fail) => reader.readEntries(done, fail));
      if (!some.length) return;
      for (const one of some) await walk(one);
    }
  }
  for (const entry of entries) await walk(entry);
  return [found, true];
}

export function dropZone(node, take) {
  let depth = 0;
  const over = (on) => node.classList.toggle("over", on);
  node.addEventListener("dragenter", (event) => { event.preventDefault(); depth += 1; over(true); });
  node.addEventListener("dragleave", () => { depth -= 1; over(depth > 0); });
  node.addEventListener("dragover", (event) => event.preventDefault());
  node.addEventListener("drop", async (event) => {
    event.preventDefault();
    event.stopPropagation();
    depth = 0;
    over(false);
    take(...(await droppedFiles(event.dataTransfer)));
  });
}
