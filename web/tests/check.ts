// What the cases need to compare, in Node.js and in a page alike.
import { type Bytes } from "../src/bytes.js";

/** A case: a name, and what throws when the code is wrong. */
export type Case = [name: string, run: () => Promise<void>];

/** Reads a file of vectors/v1. */
export type ReadVector = (file: string) => Promise<Bytes>;

// Numbers of 64 bits and of 53 are the same where their values are.
const plain = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) => {
    if (typeof part === "bigint") return Number.isSafeInteger(Number(part)) ? Number(part) : `${part}n`;
    return ArrayBuffer.isView(part) ? Array.from(part as Uint8Array) : part;
  }) ?? "undefined";

export function equal(actual: unknown, expected: unknown, what = "values"): void {
  const [left, right] = [plain(actual), plain(expected)];
  if (left !== right) throw new Error(`${what} differ: ${left.slice(0, 400)} is not ${right.slice(0, 400)}`);
}

export async function refuses(run: () => unknown, kind: new (...args: never[]) => Error, what: string): Promise<void> {
  try {
    await run();
  } catch (error) {
    if (error instanceof kind) return;
    throw new Error(`${what}: refused by ${String(error)}, expected ${kind.name}`);
  }
  throw new Error(`${what}: was not refused`);
}

export const unhex = (text: string): Bytes =>
  Uint8Array.from(text.match(/../g) ?? [], (digits) => parseInt(digits, 16));

/** Rows that are drawn the same way each time. */
export function drawnBytes(count: number, seed: number): Bytes {
  let state = seed;
  return Uint8Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  });
}

/** Runs with some globals replaced: undefined as in a browser that lacks them. */
export async function withGlobals(changed: object, run: () => Promise<void>): Promise<void> {
  const before = Object.keys(changed).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const);
  for (const [name, value] of Object.entries(changed))
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  try {
    await run();
  } finally {
    for (const [name, property] of before)
      if (property) Object.defineProperty(globalThis, name, property);
      else delete (globalThis as Record<string, unknown>)[name];
  }
}
