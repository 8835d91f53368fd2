// The vector that devices mask: its blocks, its bytes, its masks. docs/secagg.md, "Mask and upload".
//
// A vector is one Uint32Array with the values of all blocks: it counts mod 2^32 by itself, and is cut to each block's
// bits at the end.
import { createCipheriv } from "node:crypto";
import type { RowOf, Sums } from "../aggregate.js";
import { hitCount } from "../evaluation.js";
import type { Noise } from "../plausible.js";

export interface Block {
  values: number;
  bits: number;
}

// What every device weighs in mode SECAGG_DP.
const EQUAL_WEIGHT = 20;

/** Bits for sums from -largest to largest, and for noise of at most `room` on top. */
const bitsFor = (largest: number, room: number): number => Math.ceil(Math.log2(2 * (largest + room) + 1));

/** Ten standard deviations of the sum over `devices`, rounded up; each adds noise of so many thousandths. */
const gaussianRoom = (devices: number, thousandths: number): number =>
  Math.ceil(Number(isqrt(BigInt(devices) * (10n * BigInt(thousandths)) ** 2n)) / 1000);

export const ternaryRoom = (devices: number): number => Math.min(devices, 32);
/** That of an evaluation, whose noise has the variance 128. */
export const hitsRoom = (devices: number): number => Math.min(devices, 128);

/** What the noise of a sum of rows comes to at most: secagg.md, "room". */
export const largestRowNoise = (devices: number, codeBits: number): number =>
  Math.min(devices, Math.floor(Math.sqrt(16 * Math.max(codeBits, 96))));

/** The blocks of a training round among `devices`: rows, user_sum and, unless all weigh the same, weight. */
export function trainingBlocks(devices: number, openRows: number, codeBits: number, noise?: Noise): Block[] {
  if (noise) {
    const largest = Math.floor((6 * codeBits + 5) / 10) + codeBits;
    const rowBits = bitsFor(largest * devices, gaussianRoom(devices, noise.rowsThousandths));
    const userBits = bitsFor(devices, gaussianRoom(devices, noise.sumsThousandths));
    return [
      { values: openRows * codeBits, bits: rowBits },
      { values: codeBits, bits: userBits },
    ];
  }
  const sumBits = bitsFor(64 * devices, gaussianRoom(devices, Number(isqrt(16_000_000n * BigInt(devices)))));
  return [
    { values: openRows * codeBits, bits: bitsFor(devices, largestRowNoise(devices, codeBits)) },
    { values: codeBits, bits: sumBits },
    { values: 1, bits: sumBits },
  ];
}

/** The one block of a gate refresh: counts. */
export function gateBlocks(devices: number, items: number, noise?: Noise): Block[] {
  return [{ values: items, bits: countBits(devices, ternaryRoom(devices), noise) }];
}

/** The one block of an evaluation: hits. */
export function evaluationBlocks(devices: number, candidates: number, noise?: Noise): Block[] {
  return [{ values: hitCount(candidates), bits: countBits(devices, hitsRoom(devices), noise) }];
}

/** Of sums of zeros and ones, with so much room for noise in mode SECAGG. */
const countBits = (devices: number, room: number, noise?: Noise): number =>
  bitsFor(devices, noise ? gaussianRoom(devices, noise.countsThousandths) : room);

/** floor(sqrt(n)), exactly. */
function isqrt(n: bigint): bigint {
  let root = BigInt(Math.floor(Math.sqrt(Number(n))));
  while (root * root > n) root--;
  while ((root + 1n) * (root + 1n) <= n) root++;
  return root;
}

const packedBytes = ({ values, bits }: Block): number => Math.ceil((values * bits) / 8);
export const packedSize = (blocks: Block[]): number => blocks.reduce((sum, block) => sum + packedBytes(block), 0);
const valueCount = (blocks: Block[]): number => blocks.reduce((sum, block) => sum + block.values, 0);

/** The values of a packed vector. Undefined: another size, or bits set behind the last value of a block. */
export function unpack(bytes: Uint8Array, blocks: Block[]): Uint32Array | undefined {
  if (bytes.length !== packedSize(blocks)) return undefined;
  const vector = new Uint32Array(valueCount(blocks));
  let [byte, value] = [0, 0];
  for (const block of blocks) {
    const isClean = unpackBlock(
      bytes.subarray(byte, byte + packedBytes(block)),
      block.bits,
      vector.subarray(value, value + block.values),
    );
    if (!isClean) return undefined;
    byte += packedBytes(block);
    value += block.values;
  }
  return vector;
}

/** Fills `values`; returns whether the padding is zero. */
function unpackBlock(bytes: Uint8Array, bits: number, values: Uint32Array): boolean {
  let [next, held, heldBits] = [0, 0, 0];
  for (let at = 0; at < values.length; at++) {
    // At most bits + 7 < 53 bits are held, so plain numbers are exact.
    for (; heldBits < bits; heldBits += 8) held += bytes[next++] * 2 ** heldBits;
    values[at] = held % 2 ** bits;
    held = Math.floor(held / 2 ** bits);
    heldBits -= bits;
  }
  return held === 0;
}

export function add(sum: Uint32Array, vector: Uint32Array, sign: 1 | -1): void {
  for (let at = 0; at < sum.length; at++) sum[at] += sign * vector[at];
}

/** The mask of a key: its AES-256-CTR stream, 2 or 4 bytes for each value. */
export function maskOf(key: Uint8Array, blocks: Block[]): Uint32Array {
  const widths = blocks.map((block) => (block.bits <= 16 ? 2 : 4));
  const size = blocks.reduce((sum, block, at) => sum + block.values * widths[at], 0);
  const stream = createCipheriv("aes-256-ctr", key, Buffer.alloc(16)).update(Buffer.alloc(size));
  const mask = new Uint32Array(valueCount(blocks));
  let [byte, value] = [0, 0];
  blocks.forEach((block, at) => {
    for (let i = 0; i < block.values; i++, byte += widths[at]) mask[value++] = stream.readUIntLE(byte, widths[at]);
  });
  return mask;
}

/** The values of each block as signed numbers: from 2^(bits - 1) on negative. */
export function signedBlocks(vector: Uint32Array, blocks: Block[]): Int32Array[] {
  let start = 0;
  return blocks.map(({ values, bits }) => {
    const block = Int32Array.from(
      vector.subarray(start, start + values),
      (value) => (value << (32 - bits)) >> (32 - bits),
    );
    start += values;
    return block;
  });
}

/** The unmasked sum in the form that the server's arithmetic takes, with so many rows. Without a block for it, all devices weigh 20. */
export function sumsOf(blocks: Int32Array[], devices: number, openRows: RowOf, rowCount: number): Sums {
  const [ofOpen, users, weights] = blocks;
  const f = users.length;
  const userSum = weights ? users : users.map((value) => EQUAL_WEIGHT * value);
  const rows = new Int32Array(rowCount * f);
  [...openRows.values()].forEach((row, at) => rows.set(ofOpen.subarray(at * f, (at + 1) * f), row * f));
  return { rows, userSum, weight: weights ? weights[0] : EQUAL_WEIGHT * devices };
}
