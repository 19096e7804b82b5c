// What the page knows. Who changes something says so, and who shows it hears of it.

export const state = {
  classes: [],
  ready: false,
  threshold: 0.5,
  pictures: [], // {id, name, file, url, width, height, detections, classes, taught, error, busy, seen}
  selected: null, // id of a picture
  chosen: null, // index of a detection in it
};

/** Detections below this are never asked for; the slider moves above it, without the service. */
export const LEAST = 0.05;

const listeners = new Map();

export function on(what, listener) {
  for (const name of what.split(" ")) listeners.set(name, [...(listeners.get(name) ?? []), listener]);
}

export function changed(...names) {
  const called = new Set(names.flatMap((name) => listeners.get(name) ?? []));
  for (const listener of called) listener();
}

export const current = () => state.pictures.find((one) => one.id === state.selected) ?? null;

/** Detections of a picture at the slider's threshold, with their place among all of them. */
export const shown = (picture) =>
  (picture?.detections ?? []).map((one, place) => ({ ...one, place })).filter((one) => one.score >= state.threshold);

export const colourOf = (name) => state.classes.find((one) => one.name === name)?.colour ?? "#3cc3b4";
