// Shamir's secret sharing over GF(p), p = 2^256 + 297: docs/secagg.md, "Shares". JavaScript's BigInt holds the numbers.
export const PRIME = 2n ** 256n + 297n;
export const SHARE_BYTES = 33;
const SECRET_BYTES = 32;

export interface Share {
  /** Roster index of the holder + 1. */
  x: bigint;
  y: bigint;
}

const modulo = (value: bigint): bigint => ((value % PRIME) + PRIME) % PRIME;

export function fromLittleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString("hex")}`);
}

export function toLittleEndian(value: bigint, size: number): Buffer {
  return Buffer.from(value.toString(16).padStart(2 * size, "0"), "hex").reverse();
}

/** 1 / value by Euclid's algorithm. */
function inverse(value: bigint): bigint {
  let [left, right, factor, next] = [PRIME, modulo(value), 0n, 1n];
  while (right > 0n) {
    const quotient = left / right;
    [left, right, factor, next] = [right, left - quotient * right, next, factor - quotient * next];
  }
  return modulo(factor);
}

/** The value at zero of the polynomial through these points. */
function interpolate(shares: Share[]): bigint {
  let secret = 0n;
  for (const { x, y } of shares) {
    let [numerator, denominator] = [y, 1n];
    for (const other of shares) {
      if (other.x === x) continue;
      numerator = modulo(numerator * other.x);
      denominator = modulo(denominator * (other.x - x));
    }
    secret = modulo(secret + numerator * inverse(denominator));
  }
  return secret;
}

/**
 * The 32 bytes behind shares, in the order in which they came. Undefined: there are fewer than `threshold`, or they do
 * not fit together.
 */
export function reconstruct(shares: Share[], threshold: number): Buffer | undefined {
  if (shares.length < threshold) return undefined;
  const secret = interpolate(shares.slice(0, threshold));
  if (shares.length > threshold && interpolate(shares.slice(-threshold)) !== secret) return undefined;
  return secret < 2n ** 256n ? toLittleEndian(secret, SECRET_BYTES) : undefined;
}
