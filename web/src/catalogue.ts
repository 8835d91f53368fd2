// The app's item ids and item indices, each found from the other in the files of the catalogue.
import { type Bytes } from "./bytes.js";
import { type IntegerPart, MOST_ID_BYTES, openPart, type TextPart } from "./catalogue_part.js";
import { ArtifactError, ItemIdError, ItemIndexError } from "./errors.js";

/** The app's name of an item. Integers are numbers where those are exact, otherwise bigints. */
export type ItemId = string | number | bigint;

/** The id as its catalogue keeps it: a bigint, or UTF-8. Throws an ItemIdError for anything else. */
export function keyOf(itemId: ItemId): bigint | Uint8Array {
  if (typeof itemId === "string") {
    const text = new TextEncoder().encode(itemId);
    // What has a lone surrogate does not come back as it was.
    const isText = new TextDecoder("utf-8", { ignoreBOM: true }).decode(text) === itemId;
    if (text.length < 1 || text.length > MOST_ID_BYTES || !isText) throw new ItemIdError();
    return text;
  }
  if (typeof itemId !== "bigint" && !Number.isSafeInteger(itemId)) throw new ItemIdError();
  const integer = BigInt(itemId);
  if (BigInt.asIntN(64, integer) !== integer) throw new ItemIdError();
  return integer;
}

/** The ids of all parts of a catalogue, by item index and by id. Ids show in no error. */
export class Catalogue {
  readonly #parts: readonly (IntegerPart | TextPart)[];
  readonly itemCount: number;

  /** Opens the parts in their order; throws an ArtifactError unless they have so many items together. */
  constructor(files: readonly Bytes[], itemCount: number) {
    this.#parts = files.map(openPart);
    this.itemCount = this.#parts.reduce((total, part) => total + part.itemCount, 0);
    if (!this.#parts.every((part) => part.isText === this.#parts[0].isText))
      throw new ArtifactError("one catalogue file has integers, another has strings");
    if (this.itemCount !== itemCount)
      throw new ArtifactError(`the catalogue has ${this.itemCount} items, expected ${itemCount}`);
  }

  /** The index of an item; undefined when the catalogue lacks the id or has ids of the other kind. */
  async indexOf(itemId: ItemId): Promise<number | undefined> {
    const key = keyOf(itemId);
    let first = 0;
    for (const part of this.#parts) {
      let number: number | undefined;
      if (part.isText && typeof key !== "bigint") number = await part.numberOf(key);
      if (!part.isText && typeof key === "bigint") number = await part.numberOf(key);
      if (number !== undefined) return first + number;
      first += part.itemCount;
    }
    return undefined;
  }

  /** The id of an item. */
  async idOf(itemIndex: number): Promise<ItemId> {
    return (await this.idsOf([itemIndex]))[0];
  }

  /** The ids of items. They are read in the order of the catalogue, so that no block is decoded twice. */
  async idsOf(itemIndices: readonly number[]): Promise<ItemId[]> {
    if (!itemIndices.every((index) => Number.isInteger(index) && index >= 0 && index < this.itemCount))
      throw new ItemIndexError(this.itemCount);
    const ids = new Map<number, ItemId>();
    let first = 0;
    for (const part of this.#parts) {
      const numbers = itemIndices.map((index) => index - first).filter((at) => at >= 0 && at < part.itemCount);
      for (const [number, position] of part.positionsOf(numbers))
        ids.set(first + number, idFrom(await part.keyAt(position)));
      first += part.itemCount;
    }
    return itemIndices.map((index) => ids.get(index)!);
  }
}

function idFrom(key: bigint | Uint8Array): ItemId {
  if (typeof key === "bigint") return Number.isSafeInteger(Number(key)) ? Number(key) : key;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(key);
  } catch {
    throw new ArtifactError("catalogue file is corrupt: an id is not UTF-8");
  }
}
