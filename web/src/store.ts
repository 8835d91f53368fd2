// Where a model is kept between visits: its signed manifest and the files that it names.
import { type Bytes, webLocks } from "./bytes.js";
import { LightFRError, StoreError, UnsupportedBrowserError } from "./errors.js";

/** Keeps files by name. Putting one replaces it whole. */
export interface ModelStore {
  get(name: string): Promise<Bytes | undefined>;
  /** Throws a StoreError when there is no room. The model is then used, but not kept. */
  put(name: string, content: Bytes): Promise<void>;
  names(): Promise<string[]>;
  remove(name: string): Promise<void>;
  /** Runs while no other tab does. A store that tabs do not share needs none. */
  alone?<Result>(run: () => Promise<Result>): Promise<Result>;
}

/** Uses the browser's storage, which may be full, or closed to this page by its user. */
export async function withStorage<Result>(use: () => Promise<Result>): Promise<Result> {
  try {
    return await use();
  } catch (error) {
    if (error instanceof LightFRError) throw error;
    throw new StoreError(`the browser's storage refused: ${(error as Error).name}`);
  }
}

/** In the browser's cache, under the addresses that the files have at the server. */
export async function openCacheStore(baseUrl: string): Promise<ModelStore> {
  if (!globalThis.caches) throw new UnsupportedBrowserError("the Cache API here: serve the page over HTTPS");
  const all = `lightfr model ${baseUrl}`;
  const [cache, locks] = [await withStorage(() => caches.open(all)), webLocks()];
  const addressOf = (name: string): string => `${baseUrl}/${name}`;
  return {
    get: (name) =>
      withStorage(async () => {
        const kept = await cache.match(addressOf(name));
        return kept && new Uint8Array(await kept.arrayBuffer());
      }),
    put(name, content) {
      const file = new Response(content, { headers: { "Content-Type": "application/octet-stream" } });
      return withStorage(() => cache.put(addressOf(name), file));
    },
    names: () => withStorage(async () => (await cache.keys()).map(({ url }) => url.slice(baseUrl.length + 1))),
    remove: (name) => withStorage(async () => void (await cache.delete(addressOf(name)))),
    alone: async (run) => await locks.request(all, run),
  };
}

/** For pages that keep nothing, and for tests. */
export function memoryStore(): ModelStore {
  const files = new Map<string, Bytes>();
  return {
    get: async (name) => files.get(name),
    put: async (name, content) => void files.set(name, content),
    names: async () => [...files.keys()],
    remove: async (name) => void files.delete(name),
  };
}
