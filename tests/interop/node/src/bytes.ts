// Bytes and bits, as docs/protocol.md, "Layouts", has them: little-endian, low bit first.
import { createHash } from "node:crypto";

export function sha256(...parts: Uint8Array[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
export const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
export const fromBase64 = (text: string): Buffer => Buffer.from(text, "base64");
export const equal = (left: Uint8Array, right: Uint8Array): boolean => Buffer.compare(left, right) === 0;

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

/** Numbers of a `bytes` field; its length is a whole number of them. */
export function readU32s(bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: bytes.length / 4 }, (_, i) => view.getUint32(4 * i, true));
}

export const hasBit = (bytes: Uint8Array, bit: number): boolean => ((bytes[bit >> 3] >> (bit & 7)) & 1) === 1;

/** A bitmap of `size` bits with these set. */
export function bitmap(size: number, isSet: (bit: number) => boolean): Buffer {
  const bytes = Buffer.alloc((size + 7) >> 3);
  for (let bit = 0; bit < size; bit++) if (isSet(bit)) bytes[bit >> 3] |= 1 << (bit & 7);
  return bytes;
}

/** The indices of the bits that are set, ascending. */
export function indicesIn(bytes: Uint8Array): number[] {
  return Array.from({ length: 8 * bytes.length }, (_, bit) => bit).filter((bit) => hasBit(bytes, bit));
}

/** Equal pieces of `size` bytes, one behind the other. */
export function pieces(bytes: Uint8Array, size: number): Uint8Array[] {
  return Array.from({ length: bytes.length / size }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

export const isAscending = (numbers: number[]): boolean =>
  numbers.every((number, at) => at === 0 || number > numbers[at - 1]);
