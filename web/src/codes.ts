// Packed binary codes: one user's, and a whole catalogue's. Code bit k is bit (k mod 8) of byte (k div 8); set is +1.
import { type Bytes, hasBit } from "./bytes.js";
import { InvalidInputError, ItemIndexError } from "./errors.js";
import { type Kernel, type KernelMemory } from "./kernel.js";

const OPEN_BLOCK = 512;
const MOST_STEPS = 64;
const MOST_OFFSET = 1 << 20;

function requireCodeBits(codeBits: number): void {
  if (!Number.isInteger(codeBits) || codeBits < 8 || codeBits > 1024 || codeBits % 8 !== 0)
    throw new InvalidInputError(`code has ${codeBits} bits, expected 8 to 1024 in steps of 8`);
}

/** A private user code. Its bits show in no text and no JSON. */
export class UserCode {
  readonly #bits: Bytes;

  constructor(bits: Uint8Array) {
    requireCodeBits(8 * bits.length);
    this.#bits = new Uint8Array(bits);
  }

  /** A uniformly random code, from the browser's cryptographic generator. */
  static random(codeBits: number): UserCode {
    requireCodeBits(codeBits);
    return new UserCode(crypto.getRandomValues(new Uint8Array(codeBits / 8)));
  }

  get codeBits(): number {
    return 8 * this.#bits.length;
  }

  /** The packed bits: private data. */
  reveal(): Bytes {
    return this.#bits.slice();
  }

  toString(): string {
    return `<UserCode of ${this.codeBits} bits>`;
  }
}

/** From `firstItem` on scores have this on top, until the next step begins. */
export interface Step {
  firstItem: number;
  offset: number;
}

/** An item, and in how many bits its code differs from the query. */
export interface Hit {
  itemIndex: number;
  distance: number;
}

export interface Search {
  /** A bitmap over the items; a set bit leaves the item out. */
  exclude?: Uint8Array;
  /** What popularity adds to scores: 1 to 64 steps that ascend from item 0 on, with offsets that do not rise. */
  steps?: readonly Step[];
}

/**
 * The codes of a catalogue, copied into the kernel's memory. With `openRows`, a bitmap over the items, there is a row for
 * each open item, and behind those one that all closed items share. Without, each item has its row.
 */
export class ItemCodes {
  readonly memory: KernelMemory;
  readonly address: number;
  readonly rowCount: number;
  readonly codeBytes: number;
  /** Of a lfr_open; 0: every item has its row. */
  readonly #open: number = 0;
  readonly #openRows: Uint8Array | undefined;

  constructor(
    kernel: Kernel,
    codes: Uint8Array,
    readonly codeBits: number,
    readonly itemCount: number,
    openRows?: Uint8Array,
  ) {
    requireCodeBits(codeBits);
    this.memory = kernel.newMemory();
    this.codeBytes = codeBits / 8;
    this.rowCount = itemCount;
    if (openRows !== undefined) {
      this.#openRows = openRows;
      [this.#open, this.rowCount] = this.#readOpen(openRows);
    }
    const expected = this.rowCount * this.codeBytes;
    if (codes.length !== expected)
      throw new InvalidInputError(`item codes have ${codes.length} bytes, expected ${expected}`);
    this.address = this.memory.put(codes);
  }

  /** The address of a lfr_open, and the number of rows. */
  #readOpen(bitmap: Uint8Array): [number, number] {
    const { memory, itemCount } = this;
    this.#requireBitmap(bitmap);
    const bits = memory.put(bitmap);
    const before = memory.take(4 * (Math.floor(itemCount / OPEN_BLOCK) + 1));
    const open = memory.put(new Uint32Array([bits, before, itemCount, 0]));
    memory.call("lfr_open_count", bits, itemCount, before, open + 12);
    return [open, memory.uint32s(open, 4)[3] + 1];
  }

  #requireBitmap(bitmap: Uint8Array): void {
    const expected = Math.ceil(this.itemCount / 8);
    if (bitmap.length !== expected)
      throw new InvalidInputError(`a bitmap over the items has ${bitmap.length} bytes, expected ${expected}`);
  }

  /** How many items the last row stands for. */
  get closedCount(): number {
    return this.#open ? this.itemCount - (this.rowCount - 1) : 1;
  }

  isOpen(itemIndex: number): boolean {
    return this.#openRows === undefined || hasBit(this.#openRows, itemIndex);
  }

  /** The codes of these items one behind the other, in memory that the caller gives back. */
  takeRows(itemIndices: readonly number[]): number {
    if (!itemIndices.every((index) => Number.isInteger(index) && index >= 0 && index < this.itemCount))
      throw new ItemIndexError(this.itemCount);
    const { memory } = this;
    const count = itemIndices.length;
    const indices = memory.put(new Uint32Array(itemIndices));
    const rows = memory.take(count * this.codeBytes);
    if (this.#open && count) memory.call("lfr_open_rows", this.#open, indices, count, indices);
    memory.call("lfr_gather", this.address, this.rowCount, this.codeBits, indices, count, rows);
    return rows;
  }

  /** The packed code of an item. */
  row(itemIndex: number): Bytes {
    return this.memory.scratch(() => this.memory.bytes(this.takeRows([itemIndex]), this.codeBytes).slice());
  }

  /** In how many bits each of these items differs from the code. */
  distances(code: UserCode, itemIndices: readonly number[]): number[] {
    const { memory } = this;
    return memory.scratch(() => {
      const [rows, query, count] = [this.takeRows(itemIndices), this.#putQuery(code), itemIndices.length];
      const distances = memory.take(2 * count);
      memory.call("lfr_distances", rows, count, this.codeBits, query, distances);
      return Array.from(memory.uint16s(distances, count));
    });
  }

  /** The k items of the highest score, best first, ties to the lower index; fewer when fewer are left. */
  topK(code: UserCode, k: number, { exclude, steps }: Search = {}): Hit[] {
    if (!Number.isInteger(k) || k < 1) throw new InvalidInputError("k must be a whole number from 1 on");
    const { memory } = this;
    const most = Math.min(k, this.itemCount);
    if (most === 0) return [];
    return memory.scratch(() => {
      if (exclude) this.#requireBitmap(exclude);
      const query = this.#putQuery(code);
      const [left, prior] = [exclude ? memory.put(exclude) : 0, steps ? this.#putPrior(steps) : 0];
      const [hits, count] = [memory.take(8 * most), memory.take(4)];
      const [rows, bits] = [this.rowCount, this.codeBits];
      memory.call("lfr_topk_open", this.address, rows, bits, query, left, prior, this.#open, most, hits, count);
      const found = memory.uint32s(hits, 2 * memory.uint32s(count, 1)[0]);
      return Array.from({ length: found.length / 2 }, (_, i) => ({
        itemIndex: found[2 * i],
        distance: found[2 * i + 1],
      }));
    });
  }

  #putQuery(code: UserCode): number {
    if (code.codeBits !== this.codeBits)
      throw new InvalidInputError(`code has ${code.codeBits} bits, expected ${this.codeBits}`);
    return this.memory.put(code.reveal());
  }

  /** The address of a lfr_prior. */
  #putPrior(steps: readonly Step[]): number {
    requireSteps(steps);
    const numbers = steps.flatMap(({ firstItem, offset }) => [firstItem, offset]);
    return this.memory.put(new Uint32Array([this.memory.put(new Uint32Array(numbers)), steps.length]));
  }
}

function requireSteps(steps: readonly Step[]): void {
  const isStep = ({ firstItem, offset }: Step): boolean =>
    Number.isInteger(firstItem) && firstItem < 2 ** 32 && Number.isInteger(offset) && Math.abs(offset) <= MOST_OFFSET;
  const follows = ({ firstItem, offset }: Step, at: number): boolean =>
    at === 0 ? firstItem === 0 : firstItem > steps[at - 1].firstItem && offset <= steps[at - 1].offset;
  if (steps.length < 1 || steps.length > MOST_STEPS || !steps.every(isStep) || !steps.every(follows))
    throw new InvalidInputError("a prior has 1 to 64 steps that ascend from item 0, with offsets that do not rise");
}
