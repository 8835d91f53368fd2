// One file of a catalogue: sorted ids in packed blocks, and the numbers of their items. docs/artifacts.md has the format.
// An id has a position in the order of the ids, and its item has a number.
import { type Bytes, viewOf } from "./bytes.js";
import { ArtifactError } from "./errors.js";
import { inflateAtMost } from "./inflate.js";

const HEADER_BYTES = 16;
const MAGIC = 0x4352464c; // LFRC
const FORMAT_VERSION = 2;
const KIND_INT = 1;
const KIND_STR = 2;
const MOST_ITEMS = 2n ** 32n - 1n;
export const MOST_ID_BYTES = 255;
export const BLOCK_IDS = 256;
const GROUP_IDS = 8192;
export const MOST_BLOCK_BYTES = 2 ** 17;
const KEPT_BLOCKS = 64;

function require(condition: boolean, reason: string): asserts condition {
  if (!condition) throw new ArtifactError(`catalogue file is corrupt: ${reason}`);
}

const bitLength = (number: number): number => (number === 0 ? 0 : Math.floor(Math.log2(number)) + 1);
const packedBytes = (count: number, bits: number): number => Math.ceil((count * bits) / 8);

/** A key is an integer, or the bytes of a string, by the kind of the file. */
export type Key = bigint | Uint8Array;

export function compareBytes(left: Uint8Array, right: Uint8Array): number {
  const shared = Math.min(left.length, right.length);
  for (let at = 0; at < shared; at++) if (left[at] !== right[at]) return left[at] - right[at];
  return left.length - right.length;
}

/** Opens a part and goes through its directory; entries behind it are checked when a look-up meets them. */
export function openPart(file: Bytes): IntegerPart | TextPart {
  require(file.length >= HEADER_BYTES, "it is shorter than its header");
  const view = viewOf(file);
  const [magic, version, kind] = [view.getUint32(0, true), view.getUint8(4), view.getUint8(5)];
  const isKnown = magic === MAGIC && version === FORMAT_VERSION && view.getUint16(6, true) === 0;
  require(isKnown && (kind === KIND_INT || kind === KIND_STR), `not of format version ${FORMAT_VERSION}`);
  const itemCount = view.getBigUint64(8, true);
  require(itemCount >= 1n && itemCount <= MOST_ITEMS, `it has ${itemCount} items`);
  const part = kind === KIND_INT ? new IntegerPart(file, Number(itemCount)) : new TextPart(file, Number(itemCount));
  part.check();
  return part;
}

abstract class Part<PartKey extends Key> {
  abstract readonly isText: boolean;
  protected readonly view: DataView;
  protected readonly blockCount: number;
  protected readonly firsts: number;
  readonly #ids: number;
  readonly #idsBytes: number;
  readonly #numbers: number;
  readonly #groups: number;
  readonly #numberBits: number;
  readonly #groupBits: number;
  /** The last blocks that were asked for; who asks while one is decoded waits for the same. */
  readonly #decoded = new Map<number, Promise<PartKey[]>>();

  constructor(
    protected readonly file: Bytes,
    readonly itemCount: number,
    firstBytes: number,
  ) {
    this.view = viewOf(file);
    this.blockCount = Math.ceil(itemCount / BLOCK_IDS);
    this.#numberBits = bitLength(itemCount - 1);
    this.#groupBits = bitLength(Math.ceil(itemCount / GROUP_IDS) - 1);
    this.firsts = HEADER_BYTES + 4 * (this.blockCount + 1);
    this.#ids = this.firsts + firstBytes * this.blockCount;
    require(file.length >= this.#ids, "it is shorter than its directory");
    // The last offset is the length of the ids.
    this.#idsBytes = this.view.getUint32(this.firsts - 4, true);
    this.#numbers = this.#ids + this.#idsBytes;
    this.#groups = this.#numbers + packedBytes(itemCount, this.#numberBits);
    const end = this.#groups + packedBytes(itemCount, this.#groupBits);
    require(file.length === end, `it has ${file.length} bytes, expected ${end}`);
  }

  protected abstract firstOf(block: number): PartKey;
  protected abstract decode(block: number): Promise<PartKey[]>;
  protected abstract compare(left: PartKey, right: PartKey): number;

  check(): void {
    require(this.view.getUint32(HEADER_BYTES, true) === 0, "the first block does not begin where the ids do");
    for (let block = 0; block < this.blockCount; block++) this.bounds(block);
    this.#requireClear(this.#groups, this.#numberBits);
    this.#requireClear(this.file.length, this.#groupBits);
  }

  /** The number of an item; undefined when the part lacks the id. */
  async numberOf(key: PartKey): Promise<number | undefined> {
    let [low, high] = [0, this.blockCount];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.compare(this.firstOf(middle), key) <= 0) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return undefined;
    const place = (await this.#keysOf(low - 1)).findIndex((found) => this.compare(found, key) === 0);
    if (place < 0) return undefined;
    const number = this.#packed(this.#numbers, (low - 1) * BLOCK_IDS + place, this.#numberBits);
    require(number < this.itemCount, `a number is not below its ${this.itemCount} items`);
    return number;
  }

  /** Where the ids of numbers below itemCount stand, in their order. Each group is gone through once. */
  positionsOf(numbers: readonly number[]): [number: number, position: number][] {
    const wanted = new Map<number, Set<number>>();
    for (const number of numbers) {
      const group = this.#packed(this.#groups, number, this.#groupBits);
      wanted.set(group, (wanted.get(group) ?? new Set()).add(number));
    }
    const found: [number, number][] = [];
    for (const [group, left] of [...wanted].sort(([one], [other]) => one - other)) {
      const end = Math.min((group + 1) * GROUP_IDS, this.itemCount);
      for (let position = group * GROUP_IDS; position < end && left.size > 0; position++) {
        const number = this.#packed(this.#numbers, position, this.#numberBits);
        if (left.delete(number)) found.push([number, position]);
      }
      require(left.size === 0, "a number is not in its group");
    }
    return found;
  }

  /** The id at a position. */
  async keyAt(position: number): Promise<PartKey> {
    return (await this.#keysOf(Math.floor(position / BLOCK_IDS)))[position % BLOCK_IDS];
  }

  protected idsOf(block: number): number {
    return Math.min(BLOCK_IDS, this.itemCount - block * BLOCK_IDS);
  }

  /** Where a block begins and ends in the file. */
  protected bounds(block: number): [start: number, end: number] {
    const at = HEADER_BYTES + 4 * block;
    const [start, end] = [this.view.getUint32(at, true), this.view.getUint32(at + 4, true)];
    require(start <= end && end <= this.#idsBytes, "the offset of a block is above the next or behind the ids");
    require(end - start <= MOST_BLOCK_BYTES, `a block has more than ${MOST_BLOCK_BYTES} bytes`);
    return [this.#ids + start, this.#ids + end];
  }

  #keysOf(block: number): Promise<PartKey[]> {
    const kept = this.#decoded.get(block) ?? this.decode(block);
    this.#decoded.delete(block);
    this.#decoded.set(block, kept);
    if (this.#decoded.size > KEPT_BLOCKS) this.#decoded.delete(this.#decoded.keys().next().value!);
    return kept;
  }

  /** One of the packed numbers of a section: at most 32 bits, low bit first. */
  #packed(start: number, index: number, bits: number): number {
    const firstBit = index * bits;
    const first = start + Math.floor(firstBit / 8);
    let word = 0;
    for (let at = Math.ceil(((firstBit % 8) + bits) / 8) - 1; at >= 0; at--) word = word * 256 + this.file[first + at];
    return Math.floor(word / 2 ** (firstBit % 8)) % 2 ** bits;
  }

  /** Refuses set bits behind the last number of a section that ends here. */
  #requireClear(end: number, bits: number): void {
    const used = (this.itemCount * bits) % 8;
    require(used === 0 || this.file[end - 1] >> used === 0, "bits behind the last number are set");
  }
}

export class IntegerPart extends Part<bigint> {
  readonly isText = false;

  constructor(file: Bytes, itemCount: number) {
    super(file, itemCount, 8);
  }

  override check(): void {
    super.check();
    for (let block = 1; block < this.blockCount; block++)
      require(this.firstOf(block) > this.firstOf(block - 1), "the first ids of its blocks do not ascend");
  }

  protected compare(left: bigint, right: bigint): number {
    return left < right ? -1 : left > right ? 1 : 0;
  }

  protected firstOf(block: number): bigint {
    return this.view.getBigInt64(this.firsts + 8 * block, true);
  }

  protected async decode(block: number): Promise<bigint[]> {
    const [[start, end], count] = [this.bounds(block), this.idsOf(block)];
    const gapBytes = count > 1 ? (end - start) / (count - 1) : 0;
    const isSize = [0, 1, 2, 4, 8].includes(gapBytes) && gapBytes * (count - 1) === end - start;
    require(isSize, "the gaps of a block have none of the sizes");
    const ids = [this.firstOf(block)];
    for (let at = start; ids.length < count; at += gapBytes)
      ids.push(ids[ids.length - 1] + this.#gap(at, gapBytes) + 1n);
    const limit = block + 1 < this.blockCount ? this.firstOf(block + 1) : 2n ** 63n;
    require(ids[count - 1] < limit, "the ids of a block reach the next or go beyond 64 bits");
    return ids;
  }

  #gap(at: number, gapBytes: number): bigint {
    if (gapBytes === 8) return this.view.getBigUint64(at, true);
    let gap = 0;
    for (let byte = gapBytes - 1; byte >= 0; byte--) gap = gap * 256 + this.file[at + byte];
    return BigInt(gap);
  }
}

export class TextPart extends Part<Uint8Array> {
  readonly isText = true;

  constructor(file: Bytes, itemCount: number) {
    super(file, itemCount, 0);
  }

  protected compare(left: Uint8Array, right: Uint8Array): number {
    return compareBytes(left, right);
  }

  protected firstOf(block: number): Uint8Array {
    const [start, end] = this.bounds(block);
    const length = end > start ? this.file[start] : 0;
    require(length >= 1 && start + 1 + length <= end, "the first id of a block is not 1 to 255 bytes inside it");
    return this.file.subarray(start + 1, start + 1 + length);
  }

  protected async decode(block: number): Promise<Uint8Array[]> {
    const keys = [this.firstOf(block)];
    const count = this.idsOf(block) - 1;
    const content = await this.#inflated(block, 1 + keys[0].length, count);
    let at = 2 * count;
    for (let i = 0; i < count; i++) {
      const [before, shared, further] = [keys[i], content[i], content[count + i]];
      const fits = shared <= before.length && shared + further <= MOST_ID_BYTES;
      require(fits, "an id of a block has more than 255 bytes, or shares more than the id before it has");
      const key = new Uint8Array(shared + further);
      key.set(before.subarray(0, shared));
      key.set(content.subarray(at, (at += further)), shared);
      require(compareBytes(before, key) < 0, "the ids of a block do not ascend");
      keys.push(key);
    }
    return keys;
  }

  /** What follows the first id of a block: for `count` ids what they share, their lengths, their rest. */
  async #inflated(block: number, skipped: number, count: number): Promise<Uint8Array> {
    const [start, end] = this.bounds(block);
    const packed = this.file.subarray(start + skipped, end);
    if (count === 0) {
      require(packed.length === 0, "bytes follow the only id of a block");
      return packed;
    }
    const content = await inflateAtMost(packed, (2 + MOST_ID_BYTES) * count, "catalogue file");
    const further = content.subarray(count, 2 * count).reduce((total, length) => total + length, 0);
    require(content.length === 2 * count + further, "the lengths of a block do not fit its stream");
    return content;
  }
}
