// Both builds of the kernel against each other and against plain JavaScript, on drawn codes of many lengths.
import { hasBit, hex, setBit } from "../src/bytes.js";
import { ItemCodes, type Step, UserCode } from "../src/codes.js";
import { InvalidInputError, ItemIndexError, KernelError } from "../src/errors.js";
import { Fitter, LEVELS, Recency } from "../src/fit.js";
import { type Kernel } from "../src/kernel.js";
import { type Case, drawnBytes, equal, refuses } from "./check.js";

// Below, at and above the widths that have a loop of their own.
const WIDTHS = [8, 40, 64, 72, 128, 192, 256, 384, 512, 1024];

export function agreementCases(simd: Kernel, plain: Kernel): Case[] {
  return [
    ["both builds rank as plain JavaScript does", () => both(simd, plain, ranks)],
    ["both builds treat closed items as copies of the shared row", () => both(simd, plain, closed)],
    ["both builds fit and refine the same code", () => agree(simd, plain)],
    ["a code is not refined among more than 2^24 items", () => both(simd, plain, notRefined)],
    ["a code is fitted to the newest opinions that 64-bit integers have room for", () => both(simd, plain, fitsNewest)],
    ["a fit whose sums could overflow is refused", () => both(simd, plain, overflows)],
    ["calls outside the domain are refused", () => both(simd, plain, domain)],
  ];
}

async function both(simd: Kernel, plain: Kernel, run: (kernel: Kernel) => void | Promise<void>): Promise<void> {
  for (const kernel of [simd, plain]) await run(kernel);
}

function popcount(byte: number): number {
  let count = 0;
  for (; byte; byte &= byte - 1) count++;
  return count;
}

/** The k best by (score, lower index), as docs/protocol.md has it. */
function ranked(rows: Uint8Array[], query: Uint8Array, k: number, exclude: Uint8Array, steps: readonly Step[]) {
  const offset = (item: number): number => steps.filter(({ firstItem }) => firstItem <= item).at(-1)?.offset ?? 0;
  return rows
    .map((row, itemIndex) => ({
      itemIndex,
      distance: row.reduce((sum, byte, at) => sum + popcount(byte ^ query[at]), 0),
    }))
    .filter(({ itemIndex }) => !hasBit(exclude, itemIndex))
    .sort(
      (a, b) =>
        2 * a.distance - offset(a.itemIndex) - 2 * b.distance + offset(b.itemIndex) || a.itemIndex - b.itemIndex,
    )
    .slice(0, k);
}

const STEPS: Step[] = [
  { firstItem: 0, offset: 9 },
  { firstItem: 37, offset: 2 },
  { firstItem: 200, offset: -4 },
];

function ranks(kernel: Kernel): void {
  for (const bits of WIDTHS) {
    const [count, width] = [333, bits / 8];
    const bytes = drawnBytes(count * width, bits);
    const rows = Array.from({ length: count }, (_, i) => bytes.subarray(i * width, (i + 1) * width));
    const items = new ItemCodes(kernel, bytes, bits, count);
    const exclude = drawnBytes(Math.ceil(count / 8), 7).map((byte) => byte & 0x11);
    const query = drawnBytes(width, 99);
    for (const steps of [[{ firstItem: 0, offset: 0 }], STEPS])
      for (const k of [1, 10, 500])
        equal(
          items.topK(new UserCode(query), k, { exclude, steps }),
          ranked(rows, query, k, exclude, steps),
          `${bits} bits`,
        );
  }
}

function closed(kernel: Kernel): void {
  for (const bits of [64, 128]) {
    const [count, width] = [600, bits / 8];
    const openRows = drawnBytes(Math.ceil(count / 8), 3);
    const open = [...Array(count).keys()].filter((item) => hasBit(openRows, item));
    const bytes = drawnBytes((open.length + 1) * width, 5);
    const rowOf = (item: number): number => (hasBit(openRows, item) ? open.indexOf(item) : open.length);
    const rows = Array.from({ length: count }, (_, item) =>
      bytes.subarray(rowOf(item) * width, (rowOf(item) + 1) * width),
    );
    const items = new ItemCodes(kernel, bytes, bits, count, openRows);
    const whole = new ItemCodes(kernel, Uint8Array.from(rows.flatMap((row) => [...row])), bits, count);
    const query = rows[17];
    const exclude = new Uint8Array(Math.ceil(count / 8));
    setBit(exclude, 3);
    equal(items.topK(new UserCode(query), 50, { exclude, steps: STEPS }), ranked(rows, query, 50, exclude, STEPS));
    equal(hex(items.row(599)), hex(rows[599]), "row");
    const opinions = [3, 17, 40, 41, 333].map((itemIndex, at) => ({ itemIndex, level: at === 2 ? 0 : 2520 }));
    const fits = [items, whole].map((codes) => new Fitter(codes).fit(opinions, new UserCode(query)));
    equal(hex(fits[0].reveal()), hex(fits[1].reveal()), "fits");
  }
}

async function agree(simd: Kernel, plain: Kernel): Promise<void> {
  for (const bits of [64, 128, 256]) {
    const [count, width] = [700, bits / 8];
    const opinions = Array.from({ length: 40 }, (_, i) => ({ itemIndex: 17 * i, level: (i * 630) % 2521 }));
    const codes = [simd, plain].map((kernel) => {
      const fitter = new Fitter(new ItemCodes(kernel, drawnBytes(count * width, bits), bits, count));
      const old = new UserCode(drawnBytes(width, 1));
      return [false, true].map((refine) =>
        hex(fitter.fit(opinions, old, { recency: Recency.Strong, refine }).reveal()),
      );
    });
    equal(codes[0], codes[1], `${bits} bits`);
    equal(codes[0][0] === codes[0][1], bits < 128, "refining changes the code from 128 bits on");
  }
}

/** The bound is a product that overflows 64 bits: what the compiler's library would multiply. */
function notRefined(kernel: Kernel): void {
  const itemCount = 2 ** 24 + 8;
  const open = new Uint8Array(itemCount / 8);
  for (let item = 0; item < 40; item++) setBit(open, item);
  const codes = new ItemCodes(kernel, drawnBytes(41 * 16, 1), 128, itemCount, open);
  const opinions = Array.from({ length: 20 }, (_, itemIndex) => ({ itemIndex, level: LEVELS }));
  const [fitter, start] = [new Fitter(codes), new UserCode(new Uint8Array(16))];
  const [refined, plain] = [true, false].map((refine) => hex(fitter.fit(opinions, start, { refine }).reveal()));
  equal(refined, plain, "codes");
}

/** Else who rates for years would one day get no recommendations any more. */
function fitsNewest(kernel: Kernel): void {
  const [bits, itemCount, count] = [1024, 2 ** 21, 3000];
  const open = new Uint8Array(itemCount / 8);
  for (let item = 0; item < count; item++) setBit(open, item);
  const codes = new ItemCodes(kernel, drawnBytes(((count + 1) * bits) / 8, 1), bits, itemCount, open);
  const opinions = Array.from({ length: count }, (_, itemIndex) => ({ itemIndex, level: (itemIndex * 630) % 2521 }));
  const [fitter, start] = [new Fitter(codes), new UserCode(new Uint8Array(bits / 8))];
  const [all, newest, fewer] = [count, 1024, 1023].map((n) =>
    hex(fitter.fit(opinions.slice(count - n), start, { recency: Recency.Strong }).reveal()),
  );
  equal(all, newest, "the fit to the newest 2^51 / (f^2 m)");
  equal(newest === fewer, false, "one opinion less");
}

async function overflows(kernel: Kernel): Promise<void> {
  const memory = kernel.newMemory();
  const numbers = memory.put(new BigInt64Array(64 + 8));
  const call = (factor: bigint): void => {
    const terms = new DataView(new ArrayBuffer(88));
    terms.setUint32(0, 8, true);
    terms.setBigInt64(24, factor, true);
    memory.call("lfr_fit_prepare", memory.put(new Uint8Array(terms.buffer)), numbers, numbers + 512);
  };
  // f (f row_factor + target_factor's 0) < 2^61 holds up to 2^55 - 1.
  call(2n ** 55n - 1n);
  for (const factor of [2n ** 55n, 2n ** 61n, 2n ** 62n + 12_345n])
    await refuses(() => call(factor), KernelError, "factor");
}

async function domain(kernel: Kernel): Promise<void> {
  const items = new ItemCodes(kernel, new Uint8Array(24), 64, 3);
  const code = new UserCode(new Uint8Array(8));
  await refuses(() => new ItemCodes(kernel, new Uint8Array(23), 64, 3), InvalidInputError, "a byte is missing");
  await refuses(() => new UserCode(new Uint8Array(129)), InvalidInputError, "1,032 bits");
  await refuses(() => items.row(3), ItemIndexError, "row 3 of 3");
  await refuses(() => items.topK(code, 0), InvalidInputError, "k of 0");
  await refuses(() => items.topK(new UserCode(new Uint8Array(16)), 1), InvalidInputError, "another length");
  await refuses(() => items.topK(code, 1, { exclude: new Uint8Array(2) }), InvalidInputError, "bitmap of 16 items");
  const rising = [
    { firstItem: 0, offset: 0 },
    { firstItem: 1, offset: 1 },
  ];
  await refuses(() => items.topK(code, 1, { steps: rising }), InvalidInputError, "a prior that rises");
  equal(JSON.stringify({ code }), '{"code":{}}', "JSON of a user code");
}
