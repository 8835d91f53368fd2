// How the server adds up and moves the item codes: docs/protocol.md, "The server". All of it is integer arithmetic;
// with at most 8,192 devices every number stays below 2^53, where JavaScript's numbers are exact.
//
// D: item codes as signs; gate.ts says which rows the model has. Q: the server's memory, as D. v, w: sums of weighted user
// codes.
import { bitmap, hasBit, readU32s } from "./bytes.js";
import type { RowUpdate } from "./gen/lightfr/v1/update_pb.js";

export interface Shape {
  codeBits: number;
  /** m, also where fewer rows are published. */
  itemCount: number;
  /** Whether rows are exact gradients, which count 1/f each; otherwise they are ternary. */
  isExact?: boolean;
}

/** What a cohort's uploads come to, whether they came in the clear or masked. */
export interface Sums {
  /** R, a row for each of the model. */
  rows: Int32Array;
  /** v, f. */
  userSum: Int32Array;
  /** w. */
  weight: number;
}

export interface Model {
  /** Packed as on the wire. */
  codes: Uint8Array;
  /** Q. Never leaves the server. */
  memory: Int32Array;
  /** T, the part of Q that came from devices. */
  trail: Int32Array;
  /** mu in units of 1/256. All zeros: none is known yet. */
  meanUser: number[];
}

/** The model with these codes, before the first round. */
export function emptyModel(codes: Uint8Array, codeBits: number): Model {
  const [memory, trail] = [new Int32Array(8 * codes.length), new Int32Array(8 * codes.length)];
  return { codes, memory, trail, meanUser: new Array<number>(codeBits).fill(0) };
}

const CATALOGUE_WEIGHT = 2; // beta
const LEAST_WEIGHT = 32;
const MEMORY_SHIFT = 4;
const LARGEST_STEP = 2 ** 26;

/** Division that rounds toward minus infinity. A quotient of floats could be rounded up to the next integer. */
export function floorDivide(dividend: number, divisor: number): number {
  const remainder = dividend % divisor;
  const below = remainder !== 0 && remainder < 0 !== divisor < 0;
  return (dividend - remainder) / divisor - (below ? 1 : 0);
}

const clamp = (value: number, limit: number): number => Math.max(-limit, Math.min(limit, value));

/** -1 or +1 for each bit. */
export function signsOf(codes: Uint8Array): Int8Array {
  return Int8Array.from({ length: 8 * codes.length }, (_, bit) => (hasBit(codes, bit) ? 1 : -1));
}

export function emptySums({ memory, meanUser }: Pick<Model, "memory" | "meanUser">): Sums {
  return { rows: new Int32Array(memory.length), userSum: new Int32Array(meanUser.length), weight: 0 };
}

/** The number at each place of an upload's rows, of whichever kind it is. */
function elementsOf({ rows }: RowUpdate): (at: number) => number {
  if (rows.case === "ternary") {
    const { nonzero, positive } = rows.value;
    return (at) => (hasBit(nonzero, at) ? (hasBit(positive, at) ? 1 : -1) : 0);
  }
  if (rows.case === "exact") {
    const { buffer, byteOffset, length } = rows.value.gradients;
    const gradients = new DataView(buffer, byteOffset, length);
    return (at) => gradients.getInt32(4 * at, true);
  }
  const codes = rows.value!.codes;
  return (at) => (hasBit(codes, at) ? 1 : -1);
}

/** The row of the model that each open item has. */
export type RowOf = ReadonlyMap<number, number>;

/** Adds the rows of an upload, which has been checked, to sums of all rows. */
export function addRows(sums: Int32Array | Float64Array, update: RowUpdate, codeBits: number, rowOf: RowOf): void {
  const elementAt = elementsOf(update);
  readU32s(update.itemIndices).forEach((item, at) => {
    const row = rowOf.get(item)!;
    for (let k = 0; k < codeBits; k++) sums[row * codeBits + k] += elementAt(at * codeBits + k);
  });
}

/** Adds one upload of the catalogue objective, which has been checked. */
export function addUpload(sums: Sums, update: RowUpdate, rowOf: RowOf): void {
  addRows(sums.rows, update, update.codeBits, rowOf);
  const weight = Math.max(update.itemIndices.length / 4, LEAST_WEIGHT);
  signsOf(update.userCode).forEach((sign, k) => (sums.userSum[k] += weight * sign));
  sums.weight += weight;
}

/** T <- T - (T >> 4) + 256 R. */
export const nextTrail = (trail: number, rowSum: number): number => trail - (trail >> MEMORY_SHIFT) + 256 * rowSum;

/** The next version: Q <- Q - (Q >> 4) + S, D = sign(Q), and mu. Frozen rows stay as they are. */
export function nextModel(model: Model, sums: Sums, shape: Shape, frozen: ReadonlySet<number> = new Set()): Model {
  const { codeBits: f, itemCount: m, isExact } = shape;
  const signs = signsOf(model.codes);
  const [memory, trail] = [model.memory, model.trail].map((values) => Int32Array.from(values));
  for (let row = 0; row < signs.length / f; row++) {
    if (frozen.has(row)) continue;
    const code = signs.subarray(row * f, (row + 1) * f);
    const likeness = code.reduce((sum, sign, k) => sum + sign * sums.userSum[k], 0);
    for (let k = 0; k < f; k++) {
      const at = row * f + k;
      const own = isExact ? floorDivide(256 * sums.rows[at], f) : 256 * sums.rows[at];
      const term = catalogueTerm(likeness - code[k] * sums.userSum[k], sums.userSum[k], sums, f, m);
      memory[at] += clamp(own - term, LARGEST_STEP) - (memory[at] >> MEMORY_SHIFT);
      trail[at] = nextTrail(trail[at], sums.rows[at]);
    }
  }
  return { codes: bySign(memory, signs), memory, trail, meanUser: nextMeanUser(model.meanUser, sums) };
}

/** The codes by the signs of these; a zero keeps the old bit. */
export function bySign(values: Int32Array | Float64Array, old: Int8Array): Buffer {
  return bitmap(values.length, (bit) => (values[bit] === 0 ? old[bit] : values[bit]) > 0);
}

/** floor( 256 beta C / (m f) ) with C = floor(others v_k / w) + tau v_k, and 0 unless w > 0. */
function catalogueTerm(others: number, userSum: number, { weight }: Sums, f: number, m: number): number {
  if (weight <= 0) return 0;
  const tau = floorDivide(4 * f + 5, 10);
  return floorDivide(256 * CATALOGUE_WEIGHT * (floorDivide(others * userSum, weight) + tau * userSum), m * f);
}

/** mu_k = floor((512 v_k + w) / (2 w)) within -256 .. 256, unchanged unless w > 0. */
function nextMeanUser(meanUser: number[], { userSum, weight }: Sums): number[] {
  if (weight <= 0) return meanUser;
  return Array.from(userSum, (sum) => clamp(floorDivide(512 * sum + weight, 2 * weight), 256));
}
