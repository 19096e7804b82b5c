// Query pictures and what was found in them stay in the browser, so that a reload finds them again.

/** Pictures on the page; more of them are a job. */
export const MOST = 60;

function open() {
  return new Promise((done, fail) => {
    const request = indexedDB.open("tenet", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("pictures", { keyPath: "id" });
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });
}

async function store(mode, work) {
  try {
    const database = await open();
    return await new Promise((done, fail) => {
      const transaction = database.transaction("pictures", mode);
      const request = work(transaction.objectStore("pictures"));
      transaction.oncomplete = () => { database.close(); done(request?.result); };
      transaction.onerror = () => { database.close(); fail(transaction.error); };
    });
  } catch {
    return undefined; // a private window may forbid it; the page works without
  }
}

export async function keep({ id, name, file, width, height, detections, classes, taught, error }) {
  await store("readwrite", (pictures) => pictures.put({ id, name, file, width, height, detections, classes, taught, error }));
}

export const forget = (id) => store("readwrite", (pictures) => pictures.delete(id));
export const forgetAll = () => store("readwrite", (pictures) => pictures.clear());

export async function kept() {
  const all = (await store("readonly", (pictures) => pictures.getAll())) ?? [];
  all.sort((one, other) => one.id - other.id);
  for (const old of all.slice(0, -MOST)) forget(old.id);
  return all.slice(-MOST);
}
