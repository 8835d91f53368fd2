// Where a model is kept between visits: its signed manifest and the files that it names.
import { type Bytes } from "./bytes.js";
import { StoreError } from "./errors.js";

/** Keeps files by name. Putting one replaces it whole. */
export interface ModelStore {
  get(name: string): Promise<Bytes | undefined>;
  put(name: string, content: Bytes): Promise<void>;
  names(): Promise<string[]>;
  remove(name: string): Promise<void>;
}

/** In the browser's cache, under the addresses that the files have at the server. */
export async function openCacheStore(baseUrl: string): Promise<ModelStore> {
  const cache = await caches.open(`lightfr model ${baseUrl}`);
  const addressOf = (name: string): string => `${baseUrl}/${name}`;
  return {
    async get(name) {
      const kept = await cache.match(addressOf(name));
      return kept && new Uint8Array(await kept.arrayBuffer());
    },
    async put(name, content) {
      const file = new Response(content, { headers: { "Content-Type": "application/octet-stream" } });
      await cache.put(addressOf(name), file).catch((error: Error) => {
        throw new StoreError(`the browser did not keep ${content.length} bytes of the model: ${error.name}`);
      });
    },
    async names() {
      return (await cache.keys()).map(({ url }) => url.slice(baseUrl.length + 1));
    },
    async remove(name) {
      await cache.delete(addressOf(name));
    },
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
