// Writers of the files that devices download: docs/artifacts.md.
import { constants, deflateSync } from "node:zlib";
import { bitmap, u32 } from "./bytes.js";

const u64 = (value: number | bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)));
  return bytes;
};

const compressed = (content: Uint8Array): Buffer => deflateSync(content, { level: constants.Z_BEST_COMPRESSION });

/** Which of so many items are among these. */
export function writeBitmap(itemCount: number, items: Iterable<number>): Buffer {
  const set = new Set(items);
  return compressed(bitmap(itemCount, (item) => set.has(item)));
}

const FORMAT_VERSION = 2;
const INTEGER_IDS = 1;
const STRING_IDS = 2;
const BLOCK = 256;
const GROUP = 8192;
const GAP_BYTES = [0, 1, 2, 4, 8];

/** One part of a catalogue: `ids` by number. */
export function writeCatalogue(ids: string[], integerIds: boolean): Buffer {
  const { order, firsts, blocks } = integerIds ? integerBlocks(ids.map(BigInt)) : stringBlocks(ids);
  const offsets = [0];
  for (const block of blocks) offsets.push(offsets[offsets.length - 1] + block.length);
  const positionOf = new Map(order.map((number, position) => [number, position]));
  const groups = ids.map((_, number) => Math.floor(positionOf.get(number)! / GROUP));
  return Buffer.concat([
    Buffer.from("LFRC"),
    Buffer.from([FORMAT_VERSION, integerIds ? INTEGER_IDS : STRING_IDS, 0, 0]),
    u64(ids.length),
    ...offsets.map(u32),
    ...firsts.map(u64),
    ...blocks,
    packedBits(order, bitsOf(ids.length - 1)),
    packedBits(groups, bitsOf(Math.ceil(ids.length / GROUP) - 1)),
  ]);
}

/** The ids in their order: the number at each position, the first ids that the file lists, and the blocks. */
interface Sorted {
  order: number[];
  firsts: bigint[];
  blocks: Buffer[];
}

function integerBlocks(ids: bigint[]): Sorted {
  const order = [...ids.keys()].sort((left, right) => (ids[left] < ids[right] ? -1 : 1));
  const blocks = slices(order.map((number) => ids[number]));
  return { order, firsts: blocks.map(([first]) => first), blocks: blocks.map(integerBlock) };
}

function integerBlock(ids: bigint[]): Buffer {
  const gaps = ids.slice(1).map((id, at) => id - ids[at] - 1n);
  const size = GAP_BYTES.find((bytes) => gaps.every((gap) => gap >> BigInt(8 * bytes) === 0n))!;
  return Buffer.concat(gaps.map((gap) => u64(gap).subarray(0, size)));
}

function stringBlocks(ids: string[]): Sorted {
  const texts = ids.map((id) => Buffer.from(id, "utf8"));
  const order = [...ids.keys()].sort((left, right) => Buffer.compare(texts[left], texts[right]));
  return { order, firsts: [], blocks: slices(order.map((number) => texts[number])).map(stringBlock) };
}

function stringBlock([first, ...others]: Buffer[]): Buffer {
  const head = [Buffer.from([first.length]), first];
  if (others.length === 0) return Buffer.concat(head);
  const shared = others.map((text, at) => sharedBytes(text, at === 0 ? first : others[at - 1]));
  const further = others.map((text, at) => text.subarray(shared[at]));
  const lengths = further.map(({ length }) => length);
  return Buffer.concat([...head, compressed(Buffer.concat([Buffer.from(shared), Buffer.from(lengths), ...further]))]);
}

/** How many bytes at their beginning two texts share. */
function sharedBytes(left: Buffer, right: Buffer): number {
  let count = 0;
  while (count < left.length && left[count] === right[count]) count++;
  return count;
}

function slices<Value>(values: Value[]): Value[][] {
  const count = Math.ceil(values.length / BLOCK);
  return Array.from({ length: count }, (_, block) => values.slice(block * BLOCK, (block + 1) * BLOCK));
}

/** How many bits a number has. */
const bitsOf = (number: number): number => 32 - Math.clz32(number);

/** Numbers of so many bits, one behind the other, the low bit first. */
const packedBits = (numbers: number[], width: number): Buffer =>
  bitmap(numbers.length * width, (bit) => ((numbers[Math.floor(bit / width)] >>> (bit % width)) & 1) === 1);

const NO_ROW = 2 ** 32 - 1;

/** A way from older codes to newer ones. `movedFrom` has the old row that each new row comes from, -1 for none. */
export function writeDelta(old: Uint8Array, codes: Uint8Array, codeBits: number, movedFrom: number[]): Buffer {
  const rowBytes = codeBits / 8;
  const changed: number[] = [];
  const flips: Buffer[] = [];
  movedFrom.forEach((from, row) => {
    const before = from < 0 ? Buffer.alloc(rowBytes) : old.subarray(from * rowBytes, (from + 1) * rowBytes);
    const now = codes.subarray(row * rowBytes, (row + 1) * rowBytes);
    const flip = Buffer.from(now.map((byte, at) => byte ^ before[at]));
    if (flip.every((byte) => byte === 0)) return;
    changed.push(row);
    flips.push(flip);
  });
  const runs = runsOf(movedFrom);
  const rowCounts = [old, codes].map(({ length }) => u64(length / rowBytes));
  return Buffer.concat([
    Buffer.from("LFRD"),
    Buffer.from([FORMAT_VERSION, 0, 0, 0]),
    u32(codeBits),
    ...rowCounts,
    u64(runs.length),
    u64(changed.length),
    compressed(Buffer.concat([...runs.flat().map(u32), gapPlanes(changed), ...flips])),
  ]);
}

/** The first row and the number of rows of each run. */
function runsOf(movedFrom: number[]): [first: number, count: number][] {
  const runs: [number, number][] = [];
  movedFrom.forEach((from, row) => {
    const before = row > 0 ? movedFrom[row - 1] : undefined;
    const goesOn = before !== undefined && from === (from < 0 ? before : before + 1) && before < 0 === from < 0;
    if (goesOn) runs[runs.length - 1][1]++;
    else runs.push([from < 0 ? NO_ROW : from, 1]);
  });
  return runs;
}

/** First the low bytes of all gaps, then their second bytes, and so on. */
function gapPlanes(rows: number[]): Buffer {
  const gaps = rows.map((row, at) => u32(at === 0 ? row : row - rows[at - 1] - 1));
  return Buffer.concat([0, 1, 2, 3].map((plane) => Buffer.from(gaps.map((gap) => gap[plane]))));
}
