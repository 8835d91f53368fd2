// Writers of the files that devices download: docs/artifacts.md.
import { constants, deflateSync } from "node:zlib";
import { u32 } from "./bytes.js";

const u64 = (value: number | bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)));
  return bytes;
};

const INTEGER_IDS = 1;
const STRING_IDS = 2;

/** Which item each row is, `ids` by row. */
export function writeCatalogue(ids: string[], integerIds: boolean): Buffer {
  const kind = integerIds ? INTEGER_IDS : STRING_IDS;
  const head = Buffer.concat([Buffer.from("LFRC"), Buffer.from([1, kind, 0, 0]), u64(ids.length)]);
  return Buffer.concat([head, ...(integerIds ? integerSection(ids.map(BigInt)) : stringSection(ids))]);
}

function integerSection(ids: bigint[]): Buffer[] {
  const order = ids.map((_, row) => row).sort((left, right) => (ids[left] < ids[right] ? -1 : 1));
  return [...ids.map(u64), ...order.map(u32)];
}

function stringSection(ids: string[]): Buffer[] {
  const texts = ids.map((id) => Buffer.from(id, "utf8"));
  const offsets = [0];
  for (const text of texts) offsets.push(offsets[offsets.length - 1] + text.length);
  const order = ids.map((_, row) => row).sort((left, right) => Buffer.compare(texts[left], texts[right]));
  return [...offsets.map(u32), ...order.map(u32), ...texts];
}

/** A way from older codes to newer ones of the same shape. */
export function writeDelta(old: Uint8Array, codes: Uint8Array, codeBits: number): Buffer {
  const rowBytes = codeBits / 8;
  const rowOf = (all: Uint8Array, row: number) => all.subarray(row * rowBytes, (row + 1) * rowBytes);
  const changed: number[] = [];
  const flips: Buffer[] = [];
  for (let row = 0; row < codes.length / rowBytes; row++) {
    const before = rowOf(old, row);
    const flip = Buffer.from(rowOf(codes, row).map((byte, at) => byte ^ before[at]));
    if (flip.every((byte) => byte === 0)) continue;
    changed.push(row);
    flips.push(flip);
  }
  const head = [u32(codeBits), u64(old.length / rowBytes), u64(codes.length / rowBytes), u64(changed.length)];
  const content = deflateSync(Buffer.concat([gapPlanes(changed), ...flips]), {
    level: constants.Z_BEST_COMPRESSION,
  });
  return Buffer.concat([Buffer.from("LFRD"), Buffer.from([1, 0, 0, 0]), ...head, content]);
}

/** First the low bytes of all gaps, then their second bytes, and so on. */
function gapPlanes(rows: number[]): Buffer {
  const gaps = rows.map((row, at) => u32(at === 0 ? row : row - rows[at - 1] - 1));
  return Buffer.concat([0, 1, 2, 3].map((plane) => Buffer.from(gaps.map((gap) => gap[plane]))));
}
