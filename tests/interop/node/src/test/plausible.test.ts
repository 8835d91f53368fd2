// Which sums a model may learn from: docs/protocol.md, "Plausible sums", worked out by hand for 100 devices.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nextModel, type Model, type Sums } from "../aggregate.js";
import { arePlausibleCounts, isPlausibleClipped, plausible, type Noise, type Plausible } from "../plausible.js";
import { vector } from "./known_answers.js";

const DEVICES = 100;
const shape = { codeBits: 8, itemCount: 300 };
const rows = Array.from({ length: shape.itemCount }, (_, row) => row);
// N is 400, the largest count. A row that 90 devices rate: x = floor(100 (90 + 4 * 10) / 400) + 1 = 33.
const counts = rows.map((row) => (row === 0 ? 400 : 90));
const BOUND = 33 + 4 * 6 + 19;

const cells = () => new Int32Array(shape.itemCount * shape.codeBits);
const model = (): Model => ({
  codes: Buffer.alloc(300),
  memory: cells(),
  trail: cells(),
  meanUser: new Array(8).fill(0),
});
const sumsWith = (change: (sums: Sums) => void): Sums => {
  const sums = { rows: cells(), userSum: new Int32Array(8), weight: 40 * DEVICES };
  change(sums);
  return sums;
};
const judge = (change: (sums: Sums) => void): Plausible | undefined =>
  plausible(sumsWith(change), DEVICES, model(), { rows, counts }, shape.codeBits);

test("weights and user sums beyond what devices and noise reach drop the sum", () => {
  for (const weight of [2600, 7000]) assert.ok(judge((sums) => (sums.weight = weight)));
  for (const weight of [2599, 7001])
    assert.equal(
      judge((sums) => (sums.weight = weight)),
      undefined,
    );
  assert.ok(judge((sums) => (sums.userSum[3] = -6400)));
  assert.equal(
    judge((sums) => (sums.userSum[3] = -6401)),
    undefined,
  );
});

test("a row beyond its bound stays as it is, and four of 300 drop the sum", () => {
  assert.deepEqual(judge((sums) => (sums.rows[8 * 5] = BOUND))!.frozen, new Set());
  const { sums, frozen } = judge((sums) => (sums.rows[8 * 5] = -BOUND - 1))!;
  assert.deepEqual(frozen, new Set([5]));
  const before = { ...model(), memory: cells().fill(7), trail: cells().fill(9) };
  const after = nextModel(before, sums, shape, frozen);
  assert.deepEqual(
    [...after.memory.subarray(40, 48), ...after.trail.subarray(40, 48)],
    [...new Array(8).fill(7), ...new Array(8).fill(9)],
  );
  const spoil = (count: number) => (sums: Sums) =>
    rows.slice(1, 1 + count).forEach((row) => (sums.rows[8 * row] = 999));
  assert.equal(judge(spoil(3))!.frozen.size, 3);
  assert.equal(judge(spoil(4)), undefined);
});

test("either half of the rows with too much energy drops the sum", () => {
  // y = min(floor(100 * 90 / 400), floor(6400 * 90 / 27310)) + 1 = 22, and 12 + 22 + 5^2 = 59 for each value. A half has 1,200
  // values, whose root is 34, so 59 (1 + 1/8 + 8/34) = 80 is the most on the average: 8^2 is less than that, and 9^2 is
  // more. The more popular half has the row of 94 uploads, and 85 is the most there.
  const fill = (value: number, first: number) => (sums: Sums) => sums.rows.fill(value, 8 * first, 8 * (first + 150));
  for (const [first, most] of [
    [1, 8],
    [150, 9],
  ]) {
    assert.ok(judge(fill(most, first)));
    assert.equal(judge(fill(most + 1, first)), undefined);
  }
});

test("a row that is pushed alone is cut, and shortened until its trail is not too long", () => {
  // y = 22 as above, and z = 11 + 3 * 6 = 29. e = 8 (256 * 29)^2 / 2^24 = 26 against floor(8 * 228 / 256) = 7; of -29 four
  // eighths give -14, and e = 6.
  const { sums } = judge((sums) => sums.rows.fill(-64, 8 * 5, 8 * 6))!;
  assert.deepEqual([...sums.rows.subarray(40, 48)], new Array(8).fill(-14));
  const long = { ...model(), trail: cells().fill(256 * 64) };
  const all = plausible(
    sumsWith((sums) => sums.rows.fill(8)),
    DEVICES,
    long,
    { rows, counts },
    shape.codeBits,
  )!;
  assert.ok(
    all.sums.rows.every((value) => value === 8),
    "where all rows are like that, it is usual",
  );
});

const known = vector("plausible");
const noiseOf = ([rowsThousandths, sumsThousandths, countsThousandths]: number[]): Noise | undefined =>
  rowsThousandths === undefined ? undefined : { rowsThousandths, sumsThousandths, countsThousandths };

test("what is learnt from the sums of the known answers", () => {
  for (const one of known.sums) {
    const shape = { codeBits: known.code_bits, itemCount: one.rows.length };
    const before: Model = {
      codes: Buffer.alloc((shape.codeBits * shape.itemCount) / 8),
      memory: new Int32Array(shape.codeBits * shape.itemCount),
      trail: Int32Array.from(one.trail.flat()),
      meanUser: new Array(shape.codeBits).fill(0),
    };
    const sums = {
      rows: Int32Array.from(one.rows.flat()),
      userSum: Int32Array.from(one.user_sum),
      weight: one.weight,
    };
    const counts = one.counts.length > 0 ? one.counts : undefined;
    const open = { rows: [...one.rows.keys()], counts, counted: one.counted };
    const learnt = plausible(sums, one.devices, before, open, shape.codeBits);
    assert.equal(learnt === undefined, one.dropped, one.name);
    if (!learnt) continue;
    assert.deepEqual([...learnt.frozen], one.frozen, one.name);
    const { trail } = nextModel(before, learnt.sums, shape, learnt.frozen);
    assert.deepEqual([...trail], one.trail_after.flat(), one.name);
  }
});

test("which clipped sums and which counts of the known answers are dropped", () => {
  for (const one of known.clipped) {
    const rows = Int32Array.from(one.rows.flat());
    const isGood = isPlausibleClipped(rows, Int32Array.from(one.user_sum), one.devices, noiseOf(known.noise)!);
    assert.equal(isGood, !one.dropped, one.name);
  }
  for (const one of known.counts) {
    assert.equal(arePlausibleCounts(Int32Array.from(one.counts), one.devices, noiseOf(one.noise)), !one.dropped);
  }
});
