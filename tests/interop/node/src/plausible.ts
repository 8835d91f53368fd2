// Whether the devices of a cohort can have said what a sum says: docs/protocol.md, "Plausible sums". Integers only; roots
// are rounded up.
import { floorDivide, nextTrail, type Model, type Shape, type Sums } from "./aggregate.js";

/** What is known about the open rows. */
export interface OpenRows {
  /** By ascending index. */
  rows: number[];
  /** Devices that rate each item of the catalogue. Absent: there is no gate, and nothing is known. */
  counts?: number[];
}

/** A sum from which the model may learn. */
export interface Plausible {
  sums: Sums;
  /** Rows that stay as they are. */
  frozen: Set<number>;
}

const LARGEST_NOISE = 32;

/** What may be learnt from a sum of so many survivors. Undefined: the sum is dropped. */
export function plausible(
  sums: Sums,
  devices: number,
  model: Model,
  open: OpenRows,
  { codeBits: f }: Shape,
): Plausible | undefined {
  const { weight, userSum } = sums;
  if (weight < 26 * devices || weight > 70 * devices) return undefined;
  if (userSum.some((value) => Math.abs(value) > weight + 24 * devices)) return undefined;
  const rowOf = (row: number) => sums.rows.subarray(row * f, (row + 1) * f);
  const raters = mostRaters(devices, open);
  const isTooLarge = (row: number) => {
    const bound = rowBound(devices, raters.get(row)!);
    return rowOf(row).some((value) => Math.abs(value) > bound);
  };
  const frozen = new Set(open.rows.filter(isTooLarge));
  if (frozen.size >= 3 && 100 * frozen.size > open.rows.length) return undefined;
  const loud = open.rows.filter((row) => loudness(rowOf(row), raters.get(row)!) > 2);
  if (open.rows.length > 0 && 2 * loud.length >= open.rows.length) return undefined;
  return { sums: open.counts ? shortened(sums, devices, model, open.rows, open.counts, frozen, f) : sums, frozen };
}

/** x_i by row: how many survivors rate the item at most, on the average. */
function mostRaters(devices: number, { rows, counts }: OpenRows): Map<number, number> {
  if (!counts) return new Map(rows.map((row) => [row, devices]));
  const counted = rows.reduce((largest, row) => Math.max(largest, counts[row]), 1);
  const expected = (count: number) => floorDivide(devices * (count + 4 * rootAbove(count + 8)), counted) + 1;
  return new Map(rows.map((row) => [row, Math.min(devices, expected(counts[row]))]));
}

const rowBound = (devices: number, raters: number): number =>
  Math.min(devices + Math.min(devices, LARGEST_NOISE), raters + 4 * rootAbove(raters) + 16);

/** The row's energy in units of what honest devices and their noise have. */
function loudness(values: Int32Array, raters: number): number {
  const energy = values.reduce((sum, value) => sum + value * value, 0);
  return floorDivide(energy, values.length * (8 + raters + floorDivide(raters * raters, 16)));
}

/** The sums in which no row's trail is too long: those that would be are scaled by some eighths. */
function shortened(
  sums: Sums,
  devices: number,
  { trail }: Model,
  rows: number[],
  counts: number[],
  frozen: Set<number>,
  f: number,
): Sums {
  const cells = (values: Int32Array, row: number) => values.subarray(row * f, (row + 1) * f);
  const lengthWith = (row: number, scaled: (value: number) => number) =>
    energyOf(cells(trail, row).map((old, k) => nextTrail(old, scaled(cells(sums.rows, row)[k]))));
  const lengths = rows.map((row) =>
    frozen.has(row) ? energyOf(cells(trail, row)) : lengthWith(row, (value) => value),
  );
  const usual = median(rows.map((row, at) => floorDivide(1024 * lengths[at], counts[row])));
  const result = { ...sums, rows: Int32Array.from(sums.rows) };
  rows.forEach((row, at) => {
    const bound = floorDivide(f * (devices + 64), 64) + floorDivide(3 * usual * counts[row], 1024);
    if (frozen.has(row) || lengths[at] <= bound) return;
    let eighths = 7;
    const scale = (value: number) => floorDivide(eighths * value + 4, 8);
    while (eighths > 0 && lengthWith(row, scale) > bound) eighths--;
    result.rows.set(cells(sums.rows, row).map(scale), row * f);
  });
  return result;
}

/** floor( sum T^2 / 2^24 ). The sum may leave the integers that numbers hold. */
function energyOf(trail: Int32Array): number {
  let sum = 0n;
  for (const value of trail) sum += BigInt(value) ** 2n;
  return Number(sum >> 24n);
}

/** Of two in the middle their mean, rounded down. */
function median(values: number[]): number {
  const sorted = [...values].sort((left, right) => left - right);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[half] : floorDivide((sorted[half - 1] ?? 0) + (sorted[half] ?? 0), 2);
}

/** The smallest integer whose square is not below this. */
function rootAbove(value: number): number {
  let root = Math.floor(Math.sqrt(value));
  while (root * root < value) root++;
  return root;
}
