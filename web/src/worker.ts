// A service worker, so that a page works offline: register it with { type: "module" } for the folder of the page.
// It keeps the page, its scripts and the kernel. The model needs no worker: Model.load finds the stored one by itself,
// and can then say that the server is out of reach.
export {};

interface LastingEvent extends Event {
  waitUntil(done: Promise<void>): void;
}
interface FetchEvent extends LastingEvent {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}
interface Worker extends EventTarget {
  readonly location: Location;
  readonly clients: { claim(): Promise<void> };
  skipWaiting(): Promise<void>;
}

const worker = globalThis as unknown as Worker;
const PAGES = "lightfr pages";
/** Every address is a file of its own, and a site may have any number of them. */
const MOST_FILES = 500;

/** The parts of a page that it cannot begin without. Whatever else it asks for is its own business. */
function isPageFile({ url, method, destination }: Request): boolean {
  const { origin, pathname } = new URL(url);
  if (method !== "GET" || origin !== worker.location.origin) return false;
  return ["document", "script", "style"].includes(destination) || pathname.endsWith(".wasm");
}

/** From the network, of which a copy is kept; without a network the last copy. */
async function answer(event: FetchEvent): Promise<Response> {
  const { url } = event.request;
  let fresh: Response;
  try {
    fresh = await fetch(event.request);
  } catch (error) {
    const kept = await (await caches.open(PAGES)).match(url);
    if (kept) return kept;
    throw error;
  }
  // What the network gave is the answer, also when the disk is full. The page does not wait for its copy.
  if (fresh.ok && !isSecret(fresh)) event.waitUntil(keep(url, fresh.clone()).catch(() => undefined));
  return fresh;
}

/** Whether the server forbids to keep a copy. */
function isSecret({ headers }: Response): boolean {
  return /\bno-store\b/i.test(headers.get("Cache-Control") ?? "");
}

/** Keeps a copy, and removes the copies that are the oldest. */
async function keep(url: string, copy: Response): Promise<void> {
  const pages = await caches.open(PAGES);
  await pages.put(url, copy);
  for (const old of (await pages.keys()).slice(0, -MOST_FILES)) await pages.delete(old);
}

worker.addEventListener("install", () => void worker.skipWaiting());
worker.addEventListener("activate", (event) => (event as LastingEvent).waitUntil(worker.clients.claim()));
worker.addEventListener("fetch", (event) => {
  if (isPageFile((event as FetchEvent).request)) (event as FetchEvent).respondWith(answer(event as FetchEvent));
});
