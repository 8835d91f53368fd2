// Whether the devices of a cohort can have said what a sum says: docs/protocol.md, "Plausible sums". Integers only; roots
// are rounded up.
import { floorDivide, nextTrail, type Model, type Sums } from "./aggregate.js";
import { hitsRoom, largestRowNoise, ternaryRoom } from "./secure/vector.js";

/** What is known about the open rows. */
export interface OpenRows {
  /** Rows of the model, ascending. */
  rows: number[];
  /** Devices that rate the item of each row of the model. Absent: there is no gate, and nothing is known. */
  counts?: number[];
  /** N: devices that counted. Absent: somebody gave the counts, and the largest stands for it. */
  counted?: number;
}

/** RoundModel.noise: standard deviations of each device's noise in thousandths. */
export interface Noise {
  rowsThousandths: number;
  sumsThousandths: number;
  countsThousandths: number;
}

/** A sum from which the model may learn. */
export interface Plausible {
  sums: Sums;
  /** Rows that stay as they are. */
  frozen: Set<number>;
}

/** What may be learnt from a sum of so many survivors. Undefined: the sum is dropped. */
export function plausible(sums: Sums, devices: number, model: Model, open: OpenRows, f: number): Plausible | undefined {
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
  if (open.counts && devices >= 64 && !haveUsualEnergy(others, open.counts, open.counted, devices, rowOf, f))
    return undefined;
  if (!open.counts) return { sums, frozen };
  const usual = cut(sums, open.rows, uploadsOf(open.rows, open.counts, open.counted, devices), f);
  return { sums: shortened(usual, devices, model, open.rows, open.counts, frozen, f), frozen };
}

/** x_i by row: how many survivors rate the item at most, on the average. */
function mostRaters(devices: number, { rows, counts, counted: asked }: OpenRows): Map<number, number> {
  if (!counts) return new Map(rows.map((row) => [row, devices]));
  const counted = countedDevices(rows, counts, asked);
  const expected = (count: number) => floorDivide(devices * (count + 4 * rootAbove(count + 8)), counted) + 1;
  return new Map(rows.map((row) => [row, Math.min(devices, expected(counts[row]))]));
}

/** The variance of the noise in a sum of rows; a longer row has more. */
const rowVariance = (f: number): number => Math.max(12, f / 8);

const rowBound = (devices: number, raters: number, f: number): number =>
  Math.min(
    devices + largestRowNoise(devices, f),
    raters + 4 * rootAbove(raters) + Math.floor(Math.sqrt(32 * rowVariance(f))),
  );

/** N, at least the largest count of these rows. */
const countedDevices = (rows: number[], counts: number[], counted = 1): number =>
  rows.reduce((largest, row) => Math.max(largest, counts[row]), Math.max(counted, 1));

/** y_i by row: how many survivors upload it, on the average; of all rows a device uploads 64 at most. */
function uploadsOf(rows: number[], counts: number[], asked: number | undefined, devices: number): Map<number, number> {
  const counted = countedDevices(rows, counts, asked);
  const total = Math.max(
    rows.reduce((sum, row) => sum + counts[row], 0),
    1,
  );
  const uploads = (count: number) =>
    Math.min(floorDivide(devices * count, counted), floorDivide(64 * devices * count, total)) + 1;
  return new Map(rows.map((row) => [row, uploads(counts[row])]));
}

/** The sums without what is far above what is usual for a row. */
function cut(sums: Sums, rows: number[], uploads: Map<number, number>, f: number): Sums {
  const result = Int32Array.from(sums.rows);
  for (const row of rows) {
    const most = floorDivide(uploads.get(row)!, 2) + 3 * rootAbove(uploads.get(row)! + rowVariance(f));
    for (let at = row * f; at < (row + 1) * f; at++) result[at] = Math.max(-most, Math.min(most, result[at]));
  }
  return { ...sums, rows: result };
}

/** Whether the rarer and the more popular half of the rows each have no more in them than their devices and the noise. */
function haveUsualEnergy(
  rows: number[],
  counts: number[],
  asked: number | undefined,
  devices: number,
  rowOf: (row: number) => Int32Array,
  f: number,
): boolean {
  const ordered = [...rows].sort((left, right) => counts[left] - counts[right] || left - right);
  const uploads = uploadsOf(rows, counts, asked, devices);
  const usual = (row: number) => f * (rowVariance(f) + uploads.get(row)! + floorDivide(uploads.get(row)!, 4) ** 2);
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
    const bound = floorDivide(f * (devices + 128), 256) + floorDivide(3 * usual * counts[row], 1024);
    if (frozen.has(row) || lengths[at] <= bound) return;
    let eighths = 7;
    const scale = (value: number) => floorDivide(eighths * value + 4, 8);
    while (eighths > 0 && lengthWith(row, scale) > bound) eighths--;
    result.rows.set(cells(sums.rows, row).map(scale), row * f);
  });
  return result;
}

/** Whether a sum of mode SECAGG_DP can be learnt from. `rows` are those of the open rows alone, `userSum` is as the devices sent it. */
export function isPlausibleClipped(rows: Int32Array, userSum: Int32Array, devices: number, noise: Noise): boolean {
  const f = userSum.length;
  const mostUser = devices + noiseReach(noise.sumsThousandths, devices);
  if (userSum.some((value) => Math.abs(value) > mostUser)) return false;
  const rated = Math.floor((6 * f + 5) / 10);
  const mostRow = devices * (rated + f) + noiseReach(noise.rowsThousandths, devices);
  if (rows.some((value) => Math.abs(value) > mostRow)) return false;
  const length = BigInt((devices < 64 ? 8 : 4) * f * devices);
  const expected = (BigInt(rows.length) * BigInt(devices) * BigInt(noise.rowsThousandths) ** 2n) / 1_000_000n;
  const root = BigInt(Math.max(Math.floor(Math.sqrt(rows.length)), 1));
  return sumOfSquares(rows) <= length ** 2n + expected + expected / 8n + (8n * expected) / root;
}

/** Whether so many devices can have these counts in a gate refresh. `noise` is that of mode SECAGG_DP. */
export function arePlausibleCounts(counts: Int32Array, devices: number, noise?: Noise): boolean {
  const reach = noise ? noiseReach(noise.countsThousandths, devices) : ternaryRoom(devices);
  return counts.every((count) => count >= -reach && count <= devices + reach);
}

/** Whether so many devices can have these numbers in an evaluation of mode SECAGG. */
export function arePlausibleHits(hits: Int32Array, devices: number): boolean {
  const reach = hitsRoom(devices);
  return hits.every((hit) => hit >= -reach && hit <= devices + reach);
}

/** Eight standard deviations of the sum of noise. n (8 s)^2 is below 2^60 and its root is floored exactly. */
function noiseReach(thousandths: number, devices: number): number {
  const square = BigInt(devices) * BigInt(8 * thousandths) ** 2n;
  let root = BigInt(Math.floor(Math.sqrt(Number(square))));
  while (root * root > square) root--;
  while ((root + 1n) * (root + 1n) <= square) root++;
  return floorDivide(Number(root), 1000) + 1;
}

function sumOfSquares(values: Int32Array): bigint {
  let sum = 0n;
  for (const value of values) sum += BigInt(value) ** 2n;
  return sum;
}

/** floor( sum T^2 / 2^24 ). The sum may leave the integers that numbers hold. */
const energyOf = (trail: Int32Array): number => Number(sumOfSquares(trail) >> 24n);

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
