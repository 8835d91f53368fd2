// The service worker, with a network and caches that are made up. In Node.js alone: a page is no worker.
import { type Case, equal, withGlobals } from "./check.js";

/** Asks a worker for pages, and waits until it has kept what it keeps. */
type Use = (ask: (url: string) => Promise<Response>, settle: () => Promise<unknown>) => Promise<void>;

const PAGE = "https://app.example/";
const full = (): Promise<never> => Promise.reject(new DOMException("Quota exceeded.", "QuotaExceededError"));
const page = (text: string, cacheControl = ""): (() => Promise<Response>) => {
  return async () => new Response(text, { headers: { "Cache-Control": cacheControl } });
};
const textOf = async (answer: Promise<Response>): Promise<string> => (await answer).text();

export const workerCases: Case[] = [
  ["the worker answers with the last copy when the network is gone", offline],
  ["with a full disk the worker still answers with what the network gave", fullDisk],
  ["with caches that cannot be opened the worker still answers with what the network gave", noCaches],
  ["the worker answers before its copy is whole", streamed],
  ["the worker keeps no page that its server says not to store", secret],
  ["the worker does not keep ever more pages", manyPages],
];

/** Starts the worker with this network and these caches. */
async function withWorker(fetch: () => Promise<Response>, open: () => Promise<object>, use: Use): Promise<void> {
  const listeners = new Map<string, (event: object) => void>();
  const addEventListener = (name: string, listener: (event: object) => void) => listeners.set(name, listener);
  const location = new URL("https://app.example/worker.js");
  await withGlobals({ addEventListener, location, caches: { open }, fetch }, async () => {
    // Each has another address, since a module runs but once.
    await import(`../src/worker.js?${Math.random()}`);
    const keeping: Promise<void>[] = [];
    const ask = async (url: string): Promise<Response> => {
      let answer: Promise<Response> | undefined;
      listeners.get("fetch")!({
        request: { url, method: "GET", destination: "document" },
        respondWith: (given: Promise<Response>) => (answer = given),
        waitUntil: (kept: Promise<void>) => keeping.push(kept),
      });
      return answer!;
    };
    await use(ask, () => Promise.all(keeping));
    await Promise.all(keeping);
  });
}

/** Copies by address, the oldest first. */
function copies(kept: Map<string, Response>) {
  const urlOf = (one: string | { url: string }): string => (typeof one === "string" ? one : one.url);
  return async () => ({
    put: async (url: string, copy: Response) => {
      kept.delete(url);
      kept.set(url, copy);
    },
    match: async (one: string | { url: string }) => kept.get(urlOf(one))?.clone(),
    keys: async () => [...kept.keys()].map((url) => ({ url })),
    delete: async (one: string | { url: string }) => kept.delete(urlOf(one)),
  });
}

async function offline(): Promise<void> {
  let network = page("the page");
  const open = copies(new Map());
  await withWorker(
    () => network(),
    open,
    async (ask, settle) => {
      equal(await textOf(ask(PAGE)), "the page");
      await settle();
      network = () => Promise.reject(new TypeError("Failed to fetch"));
      equal(await textOf(ask(PAGE)), "the page", "without a network");
      const error = await ask(`${PAGE}another`).catch((reason: Error) => reason);
      equal(error instanceof TypeError, true, "a page that was never there");
    },
  );
}

async function fullDisk(): Promise<void> {
  const open = async (): Promise<object> => ({ put: full, match: async () => new Response("old") });
  await withWorker(page("new"), open, async (ask) => equal(await textOf(ask(PAGE)), "new"));
}

async function noCaches(): Promise<void> {
  const open = (): Promise<never> => Promise.reject(new DOMException("Unexpected", "UnknownError"));
  await withWorker(page("the page"), open, async (ask) => equal(await textOf(ask(PAGE)), "the page"));
}

/** The rest of the page comes only when the browser has shown its beginning. */
async function streamed(): Promise<void> {
  const [kept, text] = [[] as string[], new TextEncoder()];
  let end = (): void => undefined;
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(text.encode("begins, "));
      end = () => (controller.enqueue(text.encode("ends")), controller.close());
    },
  });
  const put = async (_: string, copy: Response): Promise<void> => void kept.push(await copy.text());
  await withWorker(
    async () => new Response(body),
    async () => ({ put, keys: async () => [] }),
    async (ask) => {
      const answer = await ask(PAGE);
      end();
      equal(await answer.text(), "begins, ends");
    },
  );
  equal(kept, ["begins, ends"], "the copy");
}

async function secret(): Promise<void> {
  const kept = new Map<string, Response>();
  await withWorker(page("Account of Ada", "private, No-Store"), copies(kept), async (ask) => {
    equal(await textOf(ask(PAGE)), "Account of Ada");
  });
  equal([...kept.keys()], []);
}

async function manyPages(): Promise<void> {
  const kept = new Map<string, Response>();
  await withWorker(page("results"), copies(kept), async (ask) => {
    for (let i = 0; i < 510; i++) await ask(`${PAGE}search?q=${i}`);
  });
  equal([kept.size, kept.has(`${PAGE}search?q=9`), kept.has(`${PAGE}search?q=10`)], [500, false, true]);
}
