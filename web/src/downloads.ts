// What a page fetches: the signed manifest, and the files that it names by their digests.
import { type Bytes, concat, hex, sha256 } from "./bytes.js";
import { applyDelta } from "./deltas.js";
import { ArtifactError, LightFRError, ManifestError, ServerUnavailableError, StoreError } from "./errors.js";
import { type Artifact, type Manifest, readManifest, SIGNED_LIMIT_BYTES } from "./manifest.js";
import { type ModelStore } from "./store.js";

const MANIFEST = "manifest";
// A request and its answer may take as long as the SDK lets them: networks may be slow, but no server holds a page up.
const PATIENCE_MS = 40_000;
const MS_PER_BYTE = 1;
// What a server may know of a page: no cookie, not even one made of the tag of a cached file, and no address.
const QUIET: RequestInit = { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" };

const nameOf = ({ sha256 }: Artifact): string => `artifacts/${sha256}`;

/** All that a page keeps of a version. */
const filesOf = ({ codes, catalogueParts, openRows, removedItems }: Manifest): Artifact[] =>
  [codes, ...catalogueParts, openRows, removedItems].filter((file) => file !== undefined);

/** A server, the store of its model, and how to ask; for one visit. */
export class Downloads {
  /** Files of this visit, whole. Until it keeps their version, another tab may remove them from the store. */
  readonly #opened = new Map<string, Bytes>();
  /** Names of those that the store had no room for. */
  readonly #unkept = new Set<string>();

  constructor(
    readonly baseUrl: string,
    readonly store: ModelStore,
    readonly fetch: typeof globalThis.fetch,
    readonly keys: readonly Bytes[],
  ) {}

  /** The manifest of the version that is kept; none where nothing is, or what is kept is not trusted any more. */
  async kept(): Promise<Manifest | undefined> {
    const signed = await this.store.get(MANIFEST);
    try {
      return signed && (await readManifest(signed, this.keys));
    } catch (error) {
      if (error instanceof ManifestError) return undefined;
      throw error;
    }
  }

  /** The newest signed manifest. */
  signedManifest(): Promise<Bytes> {
    return this.#get(MANIFEST, SIGNED_LIMIT_BYTES);
  }

  /** A file of the model, from the store or else from the server. What is damaged is fetched again. */
  async file(artifact: Artifact): Promise<Bytes> {
    const kept = await this.stored(artifact);
    if (kept) return kept;
    const content = await this.#get(nameOf(artifact), artifact.sizeBytes);
    if (!(await isWhole(content, artifact)))
      throw new ArtifactError("a download is not what the signed manifest names");
    await this.#add(artifact, content);
    return content;
  }

  /** A file that the store has, whole, or this visit. */
  async stored(artifact: Artifact): Promise<Bytes | undefined> {
    const name = nameOf(artifact);
    const opened = this.#opened.get(name);
    if (opened) return opened;
    const kept = await this.store.get(name);
    if (!kept || !(await isWhole(kept, artifact))) return undefined;
    this.#opened.set(name, kept);
    return kept;
  }

  /** Files are kept as they come, so that a visit that is cut short was not in vain. */
  async #add(artifact: Artifact, content: Bytes): Promise<void> {
    this.#opened.set(nameOf(artifact), content);
    if (!(await hadRoom(this.store.put(nameOf(artifact), content)))) this.#unkept.add(nameOf(artifact));
  }

  /** The codes; by the delta from older ones, where there is one, and whole where that does not lead to them. */
  async codes(manifest: Manifest, old: Manifest | undefined): Promise<Bytes> {
    const { codes, codesDeltas } = manifest;
    const delta = codesDeltas.find(({ fromSha256 }) => fromSha256 === old?.codes.sha256)?.artifact;
    if (old && delta && delta.sizeBytes < codes.sizeBytes && !(await this.stored(codes))) {
      const patched = await this.#patched(old.codes, delta, codes);
      if (patched) await this.#add(codes, patched);
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

  /** Runs while no other tab keeps or removes a version. */
  alone<Result>(run: () => Promise<Result>): Promise<Result> {
    return this.store.alone?.(run) ?? run();
  }

  /** Makes a version the one that is kept, unless another tab keeps a newer one by now, or there is no room. */
  async keep(manifest: Manifest, signed: Bytes): Promise<void> {
    await this.alone(async () => {
      const kept = await this.kept();
      const isNewer = !kept || manifest.modelVersion > kept.modelVersion || manifest.sha256 === kept.sha256;
      if (isNewer && (await hadRoom(this.#putAll(manifest, signed)))) await this.sweep(manifest);
      else if (kept) await this.sweep(kept);
    });
  }

  async #putAll(manifest: Manifest, signed: Bytes): Promise<void> {
    const there = await this.store.names();
    for (const name of filesOf(manifest).map(nameOf))
      if (!there.includes(name) || this.#unkept.has(name)) await this.store.put(name, this.#opened.get(name)!);
    await this.store.put(MANIFEST, signed);
  }

  /** Removes what this version does not name. */
  async sweep(manifest: Manifest): Promise<void> {
    const named = new Set([MANIFEST, ...filesOf(manifest).map(nameOf)]);
    for (const name of await this.store.names()) if (!named.has(name)) await this.store.remove(name);
  }

  /** At most so many bytes, however many the server sends, and no longer than those may take. */
  async #get(name: string, mostBytes: number): Promise<Bytes> {
    const [began, abort] = [performance.now(), new AbortController()];
    const endAfter = (bytes: number): ReturnType<typeof setTimeout> =>
      setTimeout(() => abort.abort(), began + PATIENCE_MS + bytes * MS_PER_BYTE - performance.now());
    let timer = endAfter(0);
    try {
      const answer = await this.fetch(`${this.baseUrl}/${name}`, { ...QUIET, signal: abort.signal });
      if (!answer.ok || !answer.body)
        throw new ServerUnavailableError(`the server answered with status ${answer.status}`);
      const pieces: Bytes[] = [];
      let total = 0;
      const reader = answer.body.getReader();
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        total += read.value.length;
        if (total > mostBytes) {
          await reader.cancel();
          throw new ArtifactError("a download is longer than the signed manifest says");
        }
        pieces.push(read.value);
        clearTimeout(timer);
        timer = endAfter(total);
      }
      return concat(...pieces);
    } catch (error) {
      if (error instanceof LightFRError) throw error;
      const what = abort.signal.aborted ? "is too slow" : "cannot be reached";
      throw new ServerUnavailableError(`${new URL(this.baseUrl).host} ${what}`);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Whether files could be put into the store. */
async function hadRoom(putting: Promise<void>): Promise<boolean> {
  try {
    await putting;
    return true;
  } catch (error) {
    if (error instanceof StoreError) return false;
    throw error;
  }
}

async function isWhole(content: Bytes, { sha256: digest, sizeBytes }: Artifact): Promise<boolean> {
  return content.length === sizeBytes && hex(await sha256(content)) === digest;
}
