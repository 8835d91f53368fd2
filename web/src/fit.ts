// The fit of a user code for use: docs/protocol.md, "The device". Integers only, as the SDK has them.
import { type ItemCodes, UserCode } from "./codes.js";
import { InvalidInputError } from "./errors.js";

/** Opinions are kept as whole numbers from 0, the lowest rating, to this, the highest. */
export const LEVELS = 2520;
/** Below the middle an opinion is a dislike, above it the user likes the item; what was seen is in the middle. */
export const MIDDLE = LEVELS / 2;

const WEIGHT_UNIT = 16;
const CATALOGUE_WEIGHT = 2;
const MEAN_PULL = 5 * WEIGHT_UNIT;
const MEAN_UNIT = 256;
const LEAST_CATALOGUE_RATINGS = 32;
const MOST_FITTED = 2 ** 51;
const USE_SWEEPS = 30;
const REFINE_SWEEPS = 20;
const REFINE_FROM_RATINGS = 20;
const REFINE_FROM_BITS = 128;
const REFINE_TO_ITEMS = 2 ** 24;
const TERMS_BYTES = 88;

/** How much more newer opinions weigh; the numbers are those of the wire. */
export enum Recency {
  Off = 1,
  Weak = 2,
  Strong = 3,
}

// What the newest opinion weighs more than the oldest, in times. It halves every 5 opinions.
const SURPLUS = { [Recency.Off]: 0, [Recency.Weak]: 10, [Recency.Strong]: 40 };

/** What an opinion weighs by its age, in units of 1/16; 0 is the newest. */
export function weightOfAge(age: number, recency: Recency): number {
  const surplus = age < 52 ? SURPLUS[recency] * WEIGHT_UNIT * 2 ** (-age / 5) : 0;
  return WEIGHT_UNIT + Math.floor(surplus + 0.5);
}

/** What a user thinks of an item. */
export interface Opinion {
  itemIndex: number;
  /** 0 to LEVELS. */
  level: number;
}

/** An item that a code is fitted to. */
export interface WeighedItem {
  itemIndex: number;
  weight: number;
  /** Whether the code shall be near to it, or far from it. */
  isNear: boolean;
}

/** Opinions, oldest first, as the fit for use weighs them; those that the code shall be near to come first. */
export function weigh(opinions: readonly Opinion[], recency: Recency): WeighedItem[] {
  const best = opinions.some(({ level }) => level > MIDDLE) ? MIDDLE + 1 : MIDDLE;
  const weighed = opinions.map(({ itemIndex, level }, at) => {
    const weight = weightOfAge(opinions.length - 1 - at, recency);
    return { itemIndex, weight: level >= best ? weight : weight >> 1, isNear: level >= MIDDLE };
  });
  return [...weighed.filter(({ isNear }) => isNear), ...weighed.filter(({ isNear }) => !isNear)];
}

/** One start of the fit, and where its sweeps ended. */
export interface Swept {
  code: UserCode;
  sweeps: number;
  loss: bigint;
}

/** Fits user codes to one catalogue. What depends on the catalogue alone is computed once. */
export class Fitter {
  readonly #codes: ItemCodes;
  readonly #gram: number;
  readonly #columnSums: number;
  readonly #meanPull: number;
  readonly #quadratic: number;
  readonly #linear: number;

  /** `meanUser` has a number for each bit, in units of 1/256; absent: zeros. */
  constructor(codes: ItemCodes, meanUser?: readonly number[]) {
    const { memory, codeBits: f } = codes;
    this.#codes = codes;
    this.#gram = memory.take(8 * f * f);
    this.#columnSums = memory.take(8 * f);
    this.#quadratic = memory.take(8 * f * f);
    this.#linear = memory.take(8 * f);
    memory.call("lfr_gram_open", codes.address, codes.rowCount, f, codes.closedCount, this.#gram, this.#columnSums);
    this.#meanPull = memory.put(new BigInt64Array(this.#pullOf(meanUser).map(BigInt)));
  }

  /** K (G mu) by bit; G mu is rounded down after the sum. Sums stay far below 2^53. */
  #pullOf(meanUser: readonly number[] | undefined): number[] {
    const f = this.#codes.codeBits;
    if (meanUser === undefined) return new Array<number>(f).fill(0);
    const gram = this.#codes.memory.int64s(this.#gram, f * f);
    return Array.from({ length: f }, (_, k) => {
      const sum = meanUser.reduce((total, mean, j) => total + Number(gram[k * f + j]) * mean, 0);
      return MEAN_PULL * Math.floor(sum / MEAN_UNIT);
    });
  }

  /**
   * Fits a code to opinions, oldest first, from an older code or a random one. `refine` climbs a ranking objective from
   * there, with 128 bits and 20 items or more, and among no more items than the kernel counts.
   */
  fit(
    opinions: readonly Opinion[],
    old: UserCode,
    { recency = Recency.Off, refine = false }: { recency?: Recency; refine?: boolean } = {},
  ): UserCode {
    const { codeBits, itemCount } = this.#codes;
    // Of the newest opinions all sums are below 2^61.
    const most = Math.floor(MOST_FITTED / Math.max(1, codeBits * codeBits * itemCount));
    const weighed = weigh(opinions.slice(Math.max(0, opinions.length - most)), recency);
    const { result } = this.fitWeighed(weighed, old, USE_SWEEPS);
    const near = weighed.filter(({ isNear }) => isNear);
    const pays = codeBits >= REFINE_FROM_BITS && near.length >= REFINE_FROM_RATINGS;
    return refine && pays && itemCount <= REFINE_TO_ITEMS ? this.#refine(near, result) : result;
  }

  /** Fits from two starts, the old code and the signs of the linear term; the second wins if its loss is lower. */
  fitWeighed(
    weighed: readonly WeighedItem[],
    old: UserCode,
    maxSweeps: number,
  ): { fromOld: Swept; fromSigns: Swept; result: UserCode } {
    const { memory, codeBits: f } = this.#codes;
    if (old.codeBits !== f) throw new InvalidInputError(`code has ${old.codeBits} bits, expected ${f}`);
    return memory.scratch(() => {
      this.#prepare(weighed);
      const start = memory.put(old.reveal());
      memory.call("lfr_fit_start", this.#linear, f, start);
      const signs = new UserCode(memory.bytes(start, f / 8));
      const [fromOld, fromSigns] = [this.#sweep(old, maxSweeps), this.#sweep(signs, maxSweeps)];
      return { fromOld, fromSigns, result: (fromSigns.loss < fromOld.loss ? fromSigns : fromOld).code };
    });
  }

  /** The linear term and the matrix of the last fit, row after row. */
  terms(): { linear: BigInt64Array; quadratic: BigInt64Array } {
    const { memory, codeBits: f } = this.#codes;
    return { linear: memory.int64s(this.#linear, f).slice(), quadratic: memory.int64s(this.#quadratic, f * f).slice() };
  }

  /** G and c, row after row. */
  catalogueTerms(): { gram: BigInt64Array; columnSums: BigInt64Array } {
    const { memory, codeBits: f } = this.#codes;
    return { gram: memory.int64s(this.#gram, f * f).slice(), columnSums: memory.int64s(this.#columnSums, f).slice() };
  }

  #prepare(weighed: readonly WeighedItem[]): void {
    const { memory, codeBits: f, itemCount } = this.#codes;
    const [target, catalogueTarget] = [Math.floor((6 * f + 5) / 10), Math.floor((4 * f + 5) / 10)];
    const near = weighed.filter(({ isNear }) => isNear);
    const nearWeight = near.reduce((total, { weight }) => total + weight, 0);
    const short = Math.max(0, LEAST_CATALOGUE_RATINGS - near.length);
    const catalogue = CATALOGUE_WEIGHT * (nearWeight + WEIGHT_UNIT * short);
    const rows = this.#codes.takeRows(weighed.map(({ itemIndex }) => itemIndex));
    const targets = memory.put(new Int32Array(weighed.map(({ isNear }) => (isNear ? target : -target))));
    const weights = memory.put(new Uint16Array(weighed.map(({ weight }) => weight)));
    // A lfr_fit_terms with pointers of 32 bits, by the offsets of its fields. The last one, balance, stays 0.
    const terms = new DataView(new ArrayBuffer(TERMS_BYTES));
    [f, weighed.length, rows, targets, weights].forEach((word, at) => terms.setUint32(4 * at, word, true));
    terms.setBigInt64(24, BigInt(itemCount), true);
    terms.setBigInt64(32, BigInt(itemCount), true);
    terms.setUint32(40, this.#gram, true);
    terms.setBigInt64(48, BigInt(catalogue + MEAN_PULL), true);
    terms.setUint32(56, this.#columnSums, true);
    terms.setBigInt64(64, BigInt(-catalogue * catalogueTarget), true);
    terms.setUint32(72, this.#meanPull, true);
    memory.call("lfr_fit_prepare", memory.put(new Uint8Array(terms.buffer)), this.#quadratic, this.#linear);
  }

  #sweep(start: UserCode, maxSweeps: number): Swept {
    const { memory, codeBits: f } = this.#codes;
    const [code, loss, sweeps] = [memory.put(start.reveal()), memory.take(8), memory.take(4)];
    memory.call("lfr_fit_sweep", this.#quadratic, this.#linear, f, maxSweeps, code, sweeps, loss);
    return {
      code: new UserCode(memory.bytes(code, f / 8)),
      sweeps: memory.uint32s(sweeps, 1)[0],
      loss: memory.int64s(loss, 1)[0],
    };
  }

  #refine(near: readonly WeighedItem[], fitted: UserCode): UserCode {
    const { memory, codeBits: f, address, rowCount, closedCount } = this.#codes;
    return memory.scratch(() => {
      const rows = this.#codes.takeRows(near.map(({ itemIndex }) => itemIndex));
      const weights = memory.put(new Uint16Array(near.map(({ weight }) => weight)));
      // T = (64 + f) / 10, as the kernel takes it.
      const twiceInverse = 20 / (64 + f);
      const numbers = [twiceInverse / Math.LN2, Math.exp(-twiceInverse), Math.exp(twiceInverse)];
      const temperature = memory.put(new Uint32Array(numbers.map((number) => Math.round(65536 * number))));
      const [distances, code] = [memory.take(2 * rowCount), memory.put(fitted.reveal())];
      const rated = [rows, weights, near.length];
      memory.call(
        "lfr_refine_open",
        address,
        rowCount,
        f,
        closedCount,
        ...rated,
        temperature,
        REFINE_SWEEPS,
        distances,
        code,
      );
      return new UserCode(memory.bytes(code, f / 8));
    });
  }
}
