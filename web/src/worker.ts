// A service worker, so that a page works offline: register it with { type: "module" } from the folder of the page.
// What Model.load has stored is answered from there; the page itself, its scripts and the kernel are kept as they come.
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
function isPageFile(request: Request): boolean {
  const { origin, pathname } = new URL(request.url);
  if (origin !== worker.location.origin) return false;
  return ["document", "script", "style"].includes(request.destination) || pathname.endsWith(".wasm");
}

const isArtifact = ({ url }: Request): boolean => /\/artifacts\/[0-9a-f]{64}$/.test(url);

async function answer(request: Request): Promise<Response> {
  // The name of an artifact is its content: what is stored under it never changes.
  const stored = isArtifact(request) ? await caches.match(request.url) : undefined;
  if (stored) return stored;
  try {
    const fresh = await fetch(request);
    if (fresh.ok && isPageFile(request)) await (await caches.open(PAGES)).put(request.url, fresh.clone());
    return fresh;
  } catch (error) {
    const kept = await caches.match(request.url);
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
  const isManifest = request.url.endsWith("/manifest");
  if (request.method === "GET" && (isPageFile(request) || isArtifact(request) || isManifest))
    (event as FetchEvent).respondWith(answer(request));
});
