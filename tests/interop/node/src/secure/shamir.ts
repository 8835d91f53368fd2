// Shamir's secret sharing over GF(p), p = 2^256 + 297: docs/secagg.md, "Shares" and "Unmask". JavaScript's BigInt holds
// the numbers.
import { PRIME } from "./field.js";
import { decode } from "./reed_solomon.js";

export const SHARE_BYTES = 33;
const SECRET_BYTES = 32;

export interface Share {
  /** Roster index of the holder + 1. */
  x: bigint;
  y: bigint;
}

/** A secret, and the x of the shares that are not of it. */
export interface Reconstructed {
  secret: Buffer;
  falseShares: bigint[];
}

export function fromLittleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`);
}

const toLittleEndian = (value: bigint): Buffer =>
  Buffer.from(value.toString(16).padStart(2 * SECRET_BYTES, "0"), "hex").reverse();

export const isShare = (bytes: Uint8Array): boolean => fromLittleEndian(bytes) < PRIME;

/** The 32 bytes behind shares. Undefined: there are fewer than `threshold`, or too many are false to tell which. */
export function reconstruct(shares: Share[], threshold: number): Reconstructed | undefined {
  const decoded = shares.length < threshold ? undefined : decode(shares, threshold);
  if (!decoded || decoded.secret >= 2n ** 256n) return undefined;
  return { secret: toLittleEndian(decoded.secret), falseShares: decoded.falseShares };
}
