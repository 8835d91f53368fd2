// Which sums a model may learn from: docs/protocol.md, "Plausible sums", worked out by hand for 100 devices.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nextModel, type Model, type Sums } from "../aggregate.js";
import { plausible, type Plausible } from "../plausible.js";

const DEVICES = 100;
const shape = { codeBits: 8, itemCount: 300 };
const rows = Array.from({ length: shape.itemCount }, (_, row) => row);
// N is 400, the largest count. A row that 90 devices rate: x = floor(100 (90 + 4 * 10) / 400) + 1 = 33.
const counts = rows.map((row) => (row === 0 ? 400 : 90));
const BOUND = 33 + 4 * 6 + 16;

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
  plausible(sumsWith(change), DEVICES, model(), { rows, counts }, shape);

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

test("half of the rows with too much energy drop the sum", () => {
  // 8 + 33 + floor(33^2 / 16) = 109 for each value, so 18^2 = 324 is 2 of it, and 19^2 = 361 is 3.
  const fill = (value: number, count: number) => (sums: Sums) => sums.rows.fill(value, 8, 8 * (1 + count));
  assert.ok(judge(fill(18, 299)));
  assert.ok(judge(fill(19, 149)));
  assert.equal(judge(fill(19, 150)), undefined);
});

test("a row that is pushed alone is shortened until its trail is not too long", () => {
  // e = 8 (256 * 64)^2 / 2^24 = 128 against floor(8 * 164 / 64) = 20; of 64 three eighths give 24, and e = 18.
  const { sums } = judge((sums) => sums.rows.fill(64, 8 * 5, 8 * 6))!;
  assert.deepEqual([...sums.rows.subarray(40, 48)], new Array(8).fill(24));
  const all = judge((sums) => sums.rows.fill(16))!;
  assert.ok(
    all.sums.rows.every((value) => value === 16),
    "where all rows are like that, it is usual",
  );
});
