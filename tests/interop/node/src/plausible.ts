// Whether the devices of a cohort can have said what a sum says: docs/protocol.md, "Plausible sums". Integers only; roots
// are rounded up.
import { floorDivide, nextTrail, type Model, type Shape, type Sums } from "./aggregate.js";
import { largestRowNoise } from "./secure/vector.js";

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
    const bound = rowBound(devices, raters.get(row)!, f);
    return rowOf(row).some((value) => Math.abs(value) > bound);
  };
  const frozen = new Set(open.rows.filter(isTooLarge));
  if (frozen.size >= 3 && 100 * frozen.size > open.rows.length) return undefined;
  const others = open.rows.filter((row) => !frozen.has(row));
  if (open.counts && devices >= 64 && !haveUsualEnergy(others, open.counts, devices, rowOf, f)) return undefined;
  return { sums: open.counts ? shortened(sums, devices, model, open.rows, open.counts, frozen, f) : sums, frozen };
}

/** x_i by row: how many survivors rate the item at most, on the average. */
function mostRaters(devices: number, { rows, counts }: OpenRows): Map<number, number> {
  if (!counts) return new Map(rows.map((row) => [row, devices]));
  const counted = rows.reduce((largest, row) => Math.max(largest, counts[row]), 1);
  const expected = (count: number) => floorDivide(devices * (count + 4 * rootAbove(count + 8)), counted) + 1;
  return new Map(rows.map((row) => [row, Math.min(devices, expected(counts[row]))]));
}

/** The variance of the noise in a sum of rows; a longer row has more. */
const rowVariance = (f: number): number => Math.max(8, f / 8);

const rowBound = (devices: number, raters: number, f: number): number =>
  Math.min(
    devices + largestRowNoise(devices, f),
    raters + 4 * rootAbove(raters) + Math.floor(Math.sqrt(32 * rowVariance(f))),
  );

/** Whether the rarer and the more popular half of the rows each have no more in them than their devices and the noise. */
function haveUsualEnergy(
  rows: number[],
  counts: number[],
  devices: number,
  rowOf: (row: number) => Int32Array,
  f: number,
): boolean {
  const ordered = [...rows].sort((left, right) => counts[left] - counts[right] || left - right);
  const counted = rows.reduce((largest, row) => Math.max(largest, counts[row]), 1);
  const total = rows.reduce((sum, row) => sum + counts[row], 0);
  const usual = (row: number) => {
    const raters = floorDivide(devices * counts[row], counted);
    const uploads = Math.min(raters, floorDivide(64 * devices * counts[row], Math.max(total, 1))) + 1;
    return f * (rowVariance(f) + uploads + floorDivide(uploads, 4) ** 2);
  };
  const middle = Math.floor(ordered.length / 2);
  return [ordered.slice(0, middle), ordered.slice(middle)].every((half) => {
    const expected = half.reduce((sum, row) => sum + usual(row), 0);
    const energy = half.reduce((sum, row) => rowOf(row).reduce((part, value) => part + value * value, sum), 0);
    const root = Math.max(Math.floor(Math.sqrt(f * half.length)), 1);
    return energy <= expected + floorDivide(expected, 8) + floorDivide(8 * expected, root);
  });
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
