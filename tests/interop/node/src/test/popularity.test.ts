// The prior of a manifest: docs/protocol.md, "Evaluation", worked out by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { priorOf } from "../popularity.js";

/** [first row, popularity] by step. */
const steps = (counts: number[], least = 1) => {
  const { firstItems, popularities } = priorOf(counts, least)!;
  return firstItems.map((row, at) => [row, popularities[at]]);
};

test("popularity is 16 ln(1 + count), and rows of one popularity are one step", () => {
  assert.deepEqual(steps([1000, 1000, 10, 1, 0]), [
    [0, 111],
    [2, 38],
    [3, 11],
    [4, 0],
  ]);
  assert.deepEqual(steps([5]), [[0, 29]]);
  assert.equal(steps([1e30, 1])[0][1], 1023);
});

test("counts below the least are told as none, and without others there is no prior", () => {
  assert.deepEqual(steps([50, 10, 9, 3], 10), [
    [0, 63],
    [1, 38],
    [2, 0],
  ]);
  assert.equal(priorOf([0, 0], 1), undefined);
  assert.equal(priorOf([9, 9, -4], 10), undefined);
});

test("rows that rise share their mean, with those before them if that rises too", () => {
  // 16 ln 8 = 33.27; 0 and 16 ln 55 = 64.12 have the mean 32.06.
  assert.deepEqual(steps([7, 0, 54, 0]), [
    [0, 33],
    [1, 32],
    [3, 0],
  ]);
  // 16 ln 7 = 31.13 is below that mean: (31.13 + 0 + 64.12) / 3.
  assert.deepEqual(steps([6, 0, 54, 0]), [
    [0, 32],
    [3, 0],
  ]);
});

test("more than 64 levels become the middles of intervals, none above the highest level", () => {
  /** Rows with all levels of an interval, the highest first. */
  const levels = (highest: number, lowest: number) =>
    Array.from({ length: highest - lowest + 1 }, (_, row) => Math.expm1((highest - row) / 16));
  const all = steps(levels(100, 37));
  assert.deepEqual([all.length, all[0], all.at(-1)], [64, [0, 100], [63, 37]]);
  // Width 2: the middle of 100 and 101 is 101, above the highest level; 99 and 98 become 99.
  const many = steps(levels(100, 35));
  assert.deepEqual(
    [many.length, many.slice(0, 3)],
    [
      34,
      [
        [0, 100],
        [1, 99],
        [3, 97],
      ],
    ],
  );
  assert.deepEqual(many.at(-1), [65, 35]);
  // These are 65 intervals of width 2, so the width is 3.
  assert.deepEqual(steps(levels(159, 30)).slice(0, 3), [
    [0, 159],
    [1, 157],
    [4, 154],
  ]);
});
