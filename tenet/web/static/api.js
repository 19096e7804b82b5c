// Everything that is asked of the service. An error is an Error with the service's own words.

import { ask } from "./dom.js";

const KEY = "tenet-token";
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
let asking = null;

function token() {
  return sessionStorage.getItem(KEY);
}

async function askToken(wrong) {
  asking ??= ask("Token", wrong ? "That was not it. The token of this service:" : "This service asks for its token.", {
    input: "", password: true, yes: "Open",
  }).then((text) => {
    asking = null;
    if (!text) throw new Error("This service answers only with its token; reload the page to enter it.");
    sessionStorage.setItem(KEY, text);
  });
  await asking;
}

export async function call(path, options = {}, tries = 6) {
  const known = token();
  const headers = { ...options.headers, ...(known ? { Authorization: `Bearer ${known}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service does not answer. Is `tenet serve` still running?");
  }
  if (answer.status === 401) {
    await askToken(Boolean(known));
    return call(path, options, tries);
  }
  if (answer.status === 503 && tries > 1) {
    await pause(1000 * Number(answer.headers.get("Retry-After") ?? 1) * (0.75 + Math.random() / 2));
    return call(path, options, tries - 1);
  }
  if (!answer.ok) {
    const told = await answer.json().catch(() => null);
    const error = new Error(told?.error?.message ?? `The service answered ${answer.status}.`);
    error.status = answer.status;
    throw error;
  }
  return answer;
}

const json = async (...words) => (await call(...words)).json();
const named = (name) => `/v1/classes/${encodeURIComponent(name)}`;

function form(fields, files) {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    for (const one of Array.isArray(value) ? value : [value]) if (one != null) body.append(name, one);
  }
  for (const [name, file] of files) body.append(name, file, file.path || file.webkitRelativePath || file.name || "picture.jpg");
  return { method: "POST", body };
}

export const api = {
  async classes() {
    const first = await json("/v1/classes?limit=200");
    while (first.classes.length < first.total) {
      const more = await json(`/v1/classes?limit=200&start=${first.classes.length}`);
      if (!more.classes.length) break;
      first.classes.push(...more.classes);
    }
    return first;
  },
  addShot: (name, file, box) =>
    json(`${named(name)}/shots`, form({ boxes: box ? box.join(",") : "whole" }, [["pictures", file]])),
  removeShot: (name, id) => json(`${named(name)}/shots/${id}`, { method: "DELETE" }),
  removeClass: (name) => call(named(name), { method: "DELETE" }),
  rename: (name, to) =>
    json(named(name), { method: "PATCH", body: JSON.stringify({ name: to }), headers: { "Content-Type": "application/json" } }),
  detect: (file, threshold, signal) =>
    json("/v1/detect", { ...form({ threshold }, [["pictures", file]]), signal }),
  explain: (file, name, box) => json("/v1/explain", form({ classes: name, box: box.join(",") }, [["picture", file]])),
  export: async (body) =>
    (await call("/v1/export", {
      method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
    })).blob(),
  bank: async () => (await call("/v1/bank")).blob(),
  importBank: (file, rebuild) => json("/v1/bank", form({ rebuild }, [["bank", file]])),
  startJob: (files, archive, threshold) =>
    json("/v1/jobs", form({ threshold }, archive ? [["archive", archive]] : files.map((file) => ["pictures", file]))),
  example: async () => new File([await (await call("/static/coins.png")).blob()], "coins.png", { type: "image/png" }),
  jobs: () => json("/v1/jobs"),
  removeJob: (id) => call(`/v1/jobs/${id}`, { method: "DELETE" }),
  exportJob: async (id, format, threshold) =>
    (await call(`/v1/jobs/${id}/export?format=${format}&threshold=${threshold}`)).blob(),
};

const thumbnails = new Map();

/** An address of a shot's thumbnail that an <img> can show, token or not. */
export async function thumbnail(name, id) {
  const path = `${named(name)}/shots/${id}/thumbnail`;
  if (!token()) return path;
  if (!thumbnails.has(id)) {
    const blob = call(path).then((answer) => answer.blob());
    thumbnails.set(id, blob.then((one) => URL.createObjectURL(one)));
    blob.catch(() => thumbnails.delete(id));
  }
  return thumbnails.get(id);
}
