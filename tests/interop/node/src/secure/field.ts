// The field of the shares, GF(p).
export const PRIME = 2n ** 256n + 297n;

export const modulo = (value: bigint): bigint => ((value % PRIME) + PRIME) % PRIME;

/** 1 / value by Euclid's algorithm. */
export function inverse(value: bigint): bigint {
  let [left, right, factor, next] = [PRIME, modulo(value), 0n, 1n];
  while (right > 0n) {
    const quotient = left / right;
    [left, right, factor, next] = [right, left - quotient * right, next, factor - quotient * next];
  }
  return modulo(factor);
}
