// Bytes and bits: little-endian, and bit i of a bitmap is bit (i mod 8) of byte (i div 8).
import { UnsupportedBrowserError } from "./errors.js";

/** Bytes that WebCrypto and the kernel take. */
export type Bytes = Uint8Array<ArrayBuffer>;

export const hex = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

export const areEqual = (left: Uint8Array, right: Uint8Array): boolean =>
  left.length === right.length && left.every((byte, at) => byte === right[at]);

export const hasBit = (bitmap: Uint8Array, bit: number): boolean => ((bitmap[bit >>> 3] >> (bit & 7)) & 1) === 1;

export function setBit(bitmap: Uint8Array, bit: number): void {
  bitmap[bit >>> 3] |= 1 << (bit & 7);
}

/** How many bits are set. */
export function countBits(bitmap: Uint8Array): number {
  let count = 0;
  for (let byte of bitmap) for (; byte; byte &= byte - 1) count++;
  return count;
}

export function concat(...parts: Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

/** WebCrypto, which browsers have on pages that came over HTTPS or from this machine. */
export function webCrypto(): SubtleCrypto {
  if (!globalThis.crypto?.subtle) throw new UnsupportedBrowserError("WebCrypto here: serve the page over HTTPS");
  return crypto.subtle;
}

/** Locks across tabs, on the same pages. */
export function webLocks(): LockManager {
  if (!globalThis.navigator?.locks) throw new UnsupportedBrowserError("Web Locks here: serve the page over HTTPS");
  return navigator.locks;
}

export async function sha256(bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await webCrypto().digest("SHA-256", bytes));
}
