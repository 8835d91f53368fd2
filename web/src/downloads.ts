// What a page fetches: the signed manifest, and the files that it names by their digests.
import { type Bytes, concat, hex, sha256 } from "./bytes.js";
import { applyDelta } from "./deltas.js";
import { ArtifactError, LightFRError, ServerUnavailableError } from "./errors.js";
import { type Artifact, type Manifest, SIGNED_LIMIT_BYTES } from "./manifest.js";
import { type ModelStore } from "./store.js";

export const MANIFEST = "manifest";
const nameOf = ({ sha256 }: Artifact): string => `artifacts/${sha256}`;

/** All that a page keeps of a version. */
export const filesOf = ({ codes, catalogueParts, openRows, removedItems }: Manifest): Artifact[] =>
  [codes, ...catalogueParts, openRows, removedItems].filter((file) => file !== undefined);

/** A server, the store of its model, and how to ask. */
export class Downloads {
  constructor(
    readonly baseUrl: string,
    readonly store: ModelStore,
    readonly fetch: typeof globalThis.fetch,
  ) {}

  /** The newest signed manifest. */
  signedManifest(): Promise<Bytes> {
    return this.#get(MANIFEST, SIGNED_LIMIT_BYTES, "no-cache");
  }

  /** A file of the model, from the store or else from the server. What is damaged is fetched again. */
  async file(artifact: Artifact): Promise<Bytes> {
    const kept = await this.stored(artifact);
    if (kept) return kept;
    const content = await this.#get(nameOf(artifact), artifact.sizeBytes, "default");
    if (!(await isWhole(content, artifact)))
      throw new ArtifactError("a download is not what the signed manifest names");
    await this.store.put(nameOf(artifact), content);
    return content;
  }

  /** A file that the store has, whole. */
  async stored(artifact: Artifact): Promise<Bytes | undefined> {
    const kept = await this.store.get(nameOf(artifact));
    return kept && (await isWhole(kept, artifact)) ? kept : undefined;
  }

  /** The codes; by the delta from older ones, where there is one, and whole where that does not lead to them. */
  async codes(manifest: Manifest, old: Manifest | undefined): Promise<Bytes> {
    const { codes, codesDeltas } = manifest;
    const delta = codesDeltas.find(({ fromSha256 }) => fromSha256 === old?.codes.sha256)?.artifact;
    if (old && delta && delta.sizeBytes < codes.sizeBytes && !(await this.stored(codes))) {
      const patched = await this.#patched(old.codes, delta, codes);
      if (patched) await this.store.put(nameOf(codes), patched);
    }
    return this.file(codes);
  }

  async #patched(old: Artifact, delta: Artifact, codes: Artifact): Promise<Bytes | undefined> {
    const before = await this.stored(old);
    if (!before) return undefined;
    try {
      const patched = await applyDelta(await this.file(delta), before, codes.sizeBytes);
      return (await isWhole(patched, codes)) ? patched : undefined;
    } catch (error) {
      if (error instanceof ArtifactError) return undefined;
      throw error;
    }
  }

  /** Removes what this version does not name. */
  async sweep(manifest: Manifest): Promise<void> {
    const named = new Set([MANIFEST, ...filesOf(manifest).map(nameOf)]);
    for (const name of await this.store.names()) if (!named.has(name)) await this.store.remove(name);
  }

  /** At most so many bytes, however many the server sends. No cookie goes with the question. */
  async #get(name: string, mostBytes: number, cache: RequestCache): Promise<Bytes> {
    try {
      const answer = await this.fetch(`${this.baseUrl}/${name}`, { cache, credentials: "omit", redirect: "error" });
      if (!answer.ok || !answer.body)
        throw new ServerUnavailableError(`the server answered with status ${answer.status}`);
      const pieces: Bytes[] = [];
      let left = mostBytes;
      const reader = answer.body.getReader();
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        if ((left -= read.value.length) < 0) {
          await reader.cancel();
          throw new ArtifactError("a download is longer than the signed manifest says");
        }
        pieces.push(read.value);
      }
      return concat(...pieces);
    } catch (error) {
      if (error instanceof LightFRError) throw error;
      throw new ServerUnavailableError(`${new URL(this.baseUrl).host} cannot be reached`);
    }
  }
}

async function isWhole(content: Bytes, { sha256: digest, sizeBytes }: Artifact): Promise<boolean> {
  return content.length === sizeBytes && hex(await sha256(content)) === digest;
}
