// The model that is part of the page, the items by their titles, and who plays with them. Nothing of it is kept.
import { type ItemId, Kernel, LEVELS, memoryStore, Model, UserCode, type UserOpinions } from "../src/index.js";
import kernelFile from "../src/kernel.simd.wasm";

/** What harness/lightfr_harness/demo/page.py writes into the page. */
export interface PageData {
  /** The key that signed the manifest, in PEM. */
  trust: string;
  /** The signed manifest and the files that it names, in base64, by the paths that they have at a coordinator. */
  files: Record<string, string>;
  /** By item id: the title, then genres. */
  titles: Record<string, string[]>;
}

export interface Item {
  id: ItemId;
  index: number;
  name: string;
  genres: string[];
}

/** So many times as many items as are asked about are looked at, to find some of each genre. */
const TELLING = 2;
const ADDRESS = "https://page.invalid";

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

/** The client as apps have it, signature checks included; only its requests are answered from the page. */
export async function openModel({ trust, files }: PageData): Promise<Model> {
  const answer = async (address: unknown): Promise<Response> => {
    const file = files[String(address).slice(ADDRESS.length + 1)];
    return file === undefined ? new Response(null, { status: 404 }) : new Response(bytesOf(file));
  };
  return Model.load(ADDRESS, trust, { store: memoryStore(), kernel: await Kernel.load(kernelFile), fetch: answer });
}

export class Items {
  readonly #model: Model;
  readonly #titles: PageData["titles"];

  constructor(model: Model, titles: PageData["titles"]) {
    this.#model = model;
    this.#titles = titles;
  }

  async byId(id: ItemId): Promise<Item> {
    const [name, ...genres] = this.#titles[String(id)] ?? [String(id)];
    return { id, index: (await this.#model.indexOf(id))!, name, genres };
  }

  /**
   * Items to ask about, of each genre in turn. What everybody likes says little about anybody: from the more popular
   * half, those come first whose codes are the farthest from the average user's.
   */
  async toAskAbout(most: number): Promise<Item[]> {
    const { codes, catalogue } = this.#model;
    const half = Array.from({ length: Math.max(most, Math.ceil(codes.itemCount / 2)) }, (_, index) => index);
    const popular = half.filter((index) => index < codes.itemCount);
    const distances = codes.distances(await this.#model.userCode(new Visitor()), popular);
    const telling = popular.sort((left, right) => distances[right] - distances[left]);
    const byGenre = new Map<string, Item[]>();
    for (const index of telling.slice(0, TELLING * most)) {
      const item = await this.byId(await catalogue.idOf(index));
      const genre = item.genres[0] ?? "";
      byGenre.set(genre, [...(byGenre.get(genre) ?? []), item]);
    }
    const genres = [...byGenre.values()];
    const turns = Math.max(...genres.map((items) => items.length));
    const inTurn = Array.from({ length: turns }, (_, turn) => genres.map((items) => items[turn])).flat();
    return inTurn.filter((item) => item !== undefined).slice(0, most);
  }
}

/** Opinions that live as long as the page. */
export class Visitor implements UserOpinions {
  readonly #levels = new Map<ItemId, number>();
  #start: UserCode | undefined;

  get count(): number {
    return this.#levels.size;
  }

  likes(id: ItemId): boolean | undefined {
    const level = this.#levels.get(id);
    return level === undefined ? undefined : level > 0;
  }

  /** Keeps an opinion as the newest; the same opinion twice takes it back. */
  say(id: ItemId, isLiked: boolean): void {
    const isTakenBack = this.likes(id) === isLiked;
    this.#levels.delete(id);
    if (!isTakenBack) this.#levels.set(id, isLiked ? LEVELS : 0);
  }

  forget(): void {
    this.#levels.clear();
  }

  async opinions() {
    return [...this.#levels].map(([itemId, level]) => ({ itemId, level }));
  }

  async hidden() {
    return [];
  }

  async startCode(codeBits: number): Promise<UserCode> {
    return (this.#start ??= UserCode.random(codeBits));
  }
}
