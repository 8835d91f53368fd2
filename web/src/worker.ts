// A service worker, so that a page works offline: register it with { type: "module" } for the folder of the page.
// It keeps the page, its scripts and the kernel. The model needs no worker: Model.load finds the stored one by itself,
// and can then say that the server is out of reach.
export {};

interface FetchEvent extends Event {
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

/** The parts of a page that it cannot begin without. Whatever else it asks for is its own business. */
function isPageFile({ url, method, destination }: Request): boolean {
  const { origin, pathname } = new URL(url);
  if (method !== "GET" || origin !== worker.location.origin) return false;
  return ["document", "script", "style"].includes(destination) || pathname.endsWith(".wasm");
}

/** From the network, of which a copy is kept; without a network the last copy. */
async function answer(request: Request): Promise<Response> {
  const pages = await caches.open(PAGES);
  try {
    const fresh = await fetch(request);
    if (fresh.ok) await pages.put(request.url, fresh.clone());
    return fresh;
  } catch (error) {
    const kept = await pages.match(request.url);
    if (kept) return kept;
    throw error;
  }
}

worker.addEventListener("install", () => void worker.skipWaiting());
worker.addEventListener("activate", (event) =>
  (event as Event & { waitUntil(done: Promise<void>): void }).waitUntil(worker.clients.claim()),
);
worker.addEventListener("fetch", (event) => {
  const { request } = event as FetchEvent;
  if (isPageFile(request)) (event as FetchEvent).respondWith(answer(request));
});
