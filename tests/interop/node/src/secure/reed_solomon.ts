// Shares of which some are false: docs/secagg.md, "Unmask". The shares of a secret are values of one polynomial of degree
// threshold - 1, a Reed-Solomon code; it is decoded as in Gao, "A new algorithm for decoding Reed-Solomon codes", 2003.
import { inverse, modulo } from "./field.js";
import type { Share } from "./shamir.js";

/** Coefficients, lowest power first; the last one is not zero. */
type Polynomial = bigint[];

/** The secret, and the x of the false shares. Undefined: more than (shares - threshold) div 2 are false. */
export function decode(shares: Share[], threshold: number): { secret: bigint; falseShares: bigint[] } | undefined {
  const all = shares.reduce<Polynomial>((product, { x }) => times(product, [modulo(-x), 1n]), [1n]);
  const [rest, locator] = euclid(all, through(shares), Math.floor((shares.length + threshold) / 2));
  const [polynomial, remainder] = divide(rest, locator);
  if (remainder.length > 0 || polynomial.length > threshold) return undefined;
  const falseShares = shares.filter(({ x, y }) => valueAt(polynomial, x) !== y).map(({ x }) => x);
  if (falseShares.length > Math.floor((shares.length - threshold) / 2)) return undefined;
  return { secret: polynomial[0] ?? 0n, falseShares };
}

/** The polynomial through all points (Newton). */
function through(shares: Share[]): Polynomial {
  let [result, basis]: Polynomial[] = [[], [1n]];
  for (const { x, y } of shares) {
    const step = modulo((y - valueAt(result, x)) * inverse(valueAt(basis, x)));
    result = minus(
      result,
      basis.map((coefficient) => modulo(-step * coefficient)),
    );
    basis = times(basis, [modulo(-x), 1n]);
  }
  return result;
}

/** The first remainder of Euclid's algorithm below this degree, and the factor of `second` in it. */
function euclid(first: Polynomial, second: Polynomial, degree: number): [Polynomial, Polynomial] {
  let [older, newer, olderFactor, factor]: Polynomial[] = [first, second, [], [1n]];
  while (newer.length > degree) {
    const [quotient, remainder] = divide(older, newer);
    [older, newer] = [newer, remainder];
    [olderFactor, factor] = [factor, minus(olderFactor, times(quotient, factor))];
  }
  return [newer, factor];
}

function valueAt(polynomial: Polynomial, x: bigint): bigint {
  return polynomial.reduceRight((value, coefficient) => modulo(value * x + coefficient), 0n);
}

function trim(polynomial: Polynomial): Polynomial {
  while (polynomial.at(-1) === 0n) polynomial.pop();
  return polynomial;
}

function minus(left: Polynomial, right: Polynomial): Polynomial {
  const length = Math.max(left.length, right.length);
  return trim(Array.from({ length }, (_, at) => modulo((left[at] ?? 0n) - (right[at] ?? 0n))));
}

function times(left: Polynomial, right: Polynomial): Polynomial {
  if (left.length === 0 || right.length === 0) return [];
  const product = new Array<bigint>(left.length + right.length - 1).fill(0n);
  left.forEach((one, i) => right.forEach((other, j) => (product[i + j] = modulo(product[i + j] + one * other))));
  return trim(product);
}

/** Quotient and remainder. */
function divide(dividend: Polynomial, divisor: Polynomial): [Polynomial, Polynomial] {
  const remainder = [...dividend];
  const scale = inverse(divisor.at(-1)!);
  const quotient = new Array<bigint>(Math.max(dividend.length - divisor.length + 1, 0)).fill(0n);
  for (let at = quotient.length - 1; at >= 0; at--) {
    quotient[at] = modulo(remainder[at + divisor.length - 1] * scale);
    divisor.forEach((coefficient, i) => {
      remainder[at + i] = modulo(remainder[at + i] - quotient[at] * coefficient);
    });
  }
  return [trim(quotient), trim(remainder)];
}
