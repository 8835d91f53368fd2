// The model in use: downloaded, checked, kept for the next visit, and asked for recommendations.
import { readBitmap, requireFewLeft } from "./bitmaps.js";
import { type Bytes, hasBit, setBit } from "./bytes.js";
import { Catalogue, type ItemId } from "./catalogue.js";
import { ItemCodes, type UserCode } from "./codes.js";
import { Downloads } from "./downloads.js";
import { ArtifactError, InvalidInputError, LightFRError, ManifestError } from "./errors.js";
import { Fitter, MIDDLE, type Opinion } from "./fit.js";
import { Kernel } from "./kernel.js";
import { type Manifest, readManifest, readTrustedKeys } from "./manifest.js";
import { priorOf, rank, RankBy, type Ranked, type Ranking, rankingFor, score } from "./rankings.js";
import { type ItemOpinion } from "./ratings.js";
import { type ModelStore, openCacheStore } from "./store.js";

/** What a page knows of its user; Ratings is the usual one. */
export interface UserOpinions {
  /** Oldest first. */
  opinions(): Promise<ItemOpinion[]>;
  hidden(): Promise<ItemId[]>;
  startCode(codeBits: number): Promise<UserCode>;
}

export interface Recommendation {
  itemId: ItemId;
  /** The share of equal bits, 0 to 1. */
  similarity: number;
  /** What items are ranked by. */
  score: number;
}

export interface LoadOptions {
  /** Where the model is kept; the browser's cache if absent. */
  store?: ModelStore;
  kernel?: Kernel;
  fetch?: typeof globalThis.fetch;
}

export class Model {
  readonly manifest: Manifest;
  readonly codes: ItemCodes;
  readonly catalogue: Catalogue;
  /** Why the newest version of the server is not in use: it could not be reached, or what it sent was refused. */
  readonly updateError: LightFRError | undefined;
  readonly #removed: Bytes | undefined;
  readonly #fitter: Fitter;

  private constructor(
    manifest: Manifest,
    codes: ItemCodes,
    catalogue: Catalogue,
    removed: Bytes | undefined,
    updateError: LightFRError | undefined,
  ) {
    this.manifest = manifest;
    this.codes = codes;
    this.catalogue = catalogue;
    this.#removed = removed;
    this.updateError = updateError;
    this.#fitter = new Fitter(codes, manifest.meanUser);
  }

  /**
   * Fetches the newest model from a server, checks it against the trusted key (PEM text, or 32 bytes), and keeps it if
   * there is room. When anything is wrong the model of the last visit is used, and `updateError` says why; without one
   * the error is thrown.
   */
  static async load(baseUrl: string, trustedKey: string | Uint8Array, options: LoadOptions = {}): Promise<Model> {
    const [base, keys] = [requireBase(baseUrl), readTrustedKeys(trustedKey)];
    const store = options.store ?? (await openCacheStore(base));
    const downloads = new Downloads(base, store, options.fetch ?? globalThis.fetch.bind(globalThis), keys);
    const kernel = options.kernel ?? (await Kernel.load());
    try {
      return await Model.#fetchNewest(downloads, kernel);
    } catch (error) {
      if (!(error instanceof LightFRError)) throw error;
      return await downloads.alone(async () => {
        // By now another tab may keep a newer one than there was before.
        const kept = await downloads.kept();
        if (kept === undefined) throw error;
        await downloads.sweep(kept);
        return Model.#open(kept, downloads, kernel, kept, error);
      });
    }
  }

  static async #fetchNewest(downloads: Downloads, kernel: Kernel): Promise<Model> {
    const kept = await downloads.kept();
    const signed = await downloads.signedManifest();
    const manifest = await readManifest(signed, downloads.keys);
    if (kept && manifest.modelVersion <= kept.modelVersion && manifest.sha256 !== kept.sha256)
      throw new ManifestError(`version ${manifest.modelVersion} after ${kept.modelVersion}`);
    const model = await Model.#open(manifest, downloads, kernel, kept);
    // From here on it is the version in use.
    await downloads.keep(manifest, signed);
    return model;
  }

  /** Opens a version, fetching what the store lacks. Nothing counts before all of it was checked. */
  static async #open(
    manifest: Manifest,
    downloads: Downloads,
    kernel: Kernel,
    kept: Manifest | undefined,
    updateError?: LightFRError,
  ): Promise<Model> {
    const { itemCount, codeBits, catalogueParts } = manifest;
    const bitmap = async (file: Manifest["openRows"]) => file && readBitmap(await downloads.file(file), itemCount);
    const [openRows, removed] = [await bitmap(manifest.openRows), await bitmap(manifest.removedItems)];
    if (removed && openRows) requireFewLeft(removed, openRows, itemCount);
    const parts: Bytes[] = [];
    for (const part of catalogueParts) parts.push(await downloads.file(part));
    const catalogue = new Catalogue(parts, itemCount);
    const codes = openCodes(kernel, await downloads.codes(manifest, kept), codeBits, itemCount, openRows);
    return new Model(manifest, codes, catalogue, removed, updateError);
  }

  /** Number of the version; grows with every new one. */
  get version(): bigint {
    return this.manifest.modelVersion;
  }

  /** The k best items for the user, computed here: nothing about the user leaves the page. */
  async recommend(
    user: UserOpinions,
    k = 10,
    { excludeRated = true, exclude = [] }: { excludeRated?: boolean; exclude?: readonly ItemId[] } = {},
  ): Promise<Recommendation[]> {
    const opinions = await this.#indexed(await user.opinions());
    const leftOut = this.#removed?.slice() ?? new Uint8Array(Math.ceil(this.codes.itemCount / 8));
    for (const itemId of [...exclude, ...(await user.hidden())]) {
      const index = await this.indexOf(itemId);
      if (index !== undefined) setBit(leftOut, index);
    }
    for (const { itemIndex, level } of opinions) if (excludeRated || level < MIDDLE) setBit(leftOut, itemIndex);
    const ranking = this.rankingFor(opinions.length);
    const found = this.#ranked(await this.#fitted(user, opinions), k, leftOut, ranking);
    const itemIds = await this.catalogue.idsOf(found.map(({ itemIndex }) => itemIndex));
    return found.map(({ itemIndex: _, ...rest }, at) => ({ itemId: itemIds[at], ...rest }));
  }

  /** The code of the user's taste, by which recommend() ranks: private data. */
  async userCode(user: UserOpinions): Promise<UserCode> {
    return this.#fitted(user, await this.#indexed(await user.opinions()));
  }

  /** How the server says to rank for a user with so many opinions. */
  rankingFor(opinionCount: number): Ranking {
    return rankingFor(this.manifest.rankings, opinionCount);
  }

  async #fitted(user: UserOpinions, opinions: readonly Opinion[]): Promise<UserCode> {
    return this.#fitter.fit(opinions, await user.startCode(this.codes.codeBits), this.rankingFor(opinions.length));
  }

  #ranked(code: UserCode, k: number, exclude: Bytes, ranking: Ranking): Ranked[] {
    const steps = priorOf(this.manifest.popularities, ranking, this.codes.codeBits);
    if (ranking.by !== RankBy.Popularity) return rank(code, this.codes, k, { exclude, steps });
    if (!Number.isInteger(k) || k < 1) throw new InvalidInputError("k must be a whole number from 1 on");
    const first: number[] = [];
    for (let item = 0; item < this.codes.itemCount && first.length < k; item++)
      if (!hasBit(exclude, item)) first.push(item);
    return score(code, this.codes, first, steps);
  }

  /** The index of an item; undefined when the catalogue lacks the id, or its item left. */
  async indexOf(itemId: ItemId): Promise<number | undefined> {
    const index = await this.catalogue.indexOf(itemId);
    return index !== undefined && this.#removed && hasBit(this.#removed, index) ? undefined : index;
  }

  /** Opinions of items that the catalogue lacks wait. */
  async #indexed(opinions: readonly ItemOpinion[]): Promise<Opinion[]> {
    const found: Opinion[] = [];
    for (const { itemId, level } of opinions) {
      const itemIndex = await this.indexOf(itemId);
      if (itemIndex !== undefined) found.push({ itemIndex, level });
    }
    return found;
  }
}

/** As browsers write it, since the store finds its files by their addresses. */
function requireBase(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  const isBase = url && /^https?:$/.test(url.protocol) && !/[?#]/.test(url.href) && !url.username && !url.password;
  if (!isBase) throw new InvalidInputError("the address of the server is not https://host:port");
  return url.href.replace(/\/+$/, "");
}

/** The manifest only bounds the number of rows; the bitmap says how many there are. */
function openCodes(
  kernel: Kernel,
  codes: Bytes,
  codeBits: number,
  itemCount: number,
  openRows: Bytes | undefined,
): ItemCodes {
  try {
    return new ItemCodes(kernel, codes, codeBits, itemCount, openRows);
  } catch (error) {
    if (error instanceof InvalidInputError) throw new ArtifactError(`the model is refused: ${error.message}`);
    throw error;
  }
}
