// Items that join, leave, come back and are numbered anew: docs/protocol.md, "A catalogue that changes".
import assert from "node:assert/strict";
import { test } from "node:test";
import { catalogueOf, changed, type Catalogue } from "../catalogue.js";
import { firstGate, gateAfter, isRefreshDue, openItemsOf, rowsBefore } from "../gate.js";
import type { Item, Settings } from "../settings.js";

const gated = { gate: 2, gateRefreshes: false } as Settings;
const counting = { gate: 2, gateRefreshes: true } as Settings;

/** Ten times as many items as letters, so that one of them at another place is not far; `a` stands for `a0` to `a9`. */
const listOf = (letters: string, count = 5): Item[] =>
  [...letters].flatMap((letter) => Array.from({ length: 10 }, (_, digit) => ({ id: letter + digit, count })));

const lettersOf = ({ ids }: Catalogue): string => [...new Set(ids.map(([letter]) => letter))].join("");

test("items that join come behind, those that leave keep their index, and those that return have it again", () => {
  const first = catalogueOf(listOf("abcdefghijkl"));
  const second = changed(first, [...listOf("bcdefghijkl"), ...listOf("x", 0)], gated)!;
  assert.equal(lettersOf(second.catalogue), "abcdefghijklx");
  assert.deepEqual(second.catalogue.parts, [120, 10]);
  assert.deepEqual(second.catalogue.removed, [...Array(10).keys()]);
  assert.deepEqual(second.oldIndices, [...Array(120).keys(), ...Array(10).fill(-1)]);
  const third = changed(second.catalogue, [...listOf("abcdefghijkl"), ...listOf("x", 0)], gated)!;
  assert.deepEqual(third.catalogue.ids, second.catalogue.ids);
  assert.deepEqual([third.catalogue.removed, third.catalogue.parts], [[], [120, 10]]);
  assert.deepEqual(third.oldIndices.slice(0, 11), [...Array(10).fill(-1), 10], "their rows are gone");
});

test("another order by popularity, a seventeenth part, or an item that leaves without a gate numbers anew", () => {
  const old = catalogueOf(listOf("abcdefghijkl"));
  const turned = changed(old, listOf("lkjihgfedcba"), gated)!;
  assert.equal(lettersOf(turned.catalogue), "lkjihgfedcba");
  assert.deepEqual([turned.oldIndices[0], turned.oldIndices[119]], [110, 9]);
  const full = { ...old, parts: [105, ...Array(15).fill(1)] };
  assert.deepEqual(changed(full, listOf("abcdefghijklx"), gated)!.catalogue.parts, [130]);
  assert.equal(lettersOf(changed(old, listOf("bcdefghijkl"), { gate: 0 } as Settings)!.catalogue), "bcdefghijkl");
});

test("the same list changes nothing, also after an item was moved a little", () => {
  const old = catalogueOf(listOf("abcdefghijkl"));
  assert.equal(changed(old, listOf("abcdefghijkl"), gated), undefined);
  const [first, second, ...others] = listOf("abcdefghijkl");
  assert.equal(changed(old, [second, first, ...others], gated), undefined);
});

test("rows and counts move with their items, and what joined waits for the devices", () => {
  const old = catalogueOf(listOf("abc", 0));
  const gate = { ...firstGate(old, counting), counts: Array(30).fill(3), everOpen: [...Array(30).keys()] };
  const counts = [...Array(30).keys()];
  const waiting = { ...gate, first: { counts, devices: ["one"] } };
  const change = changed(old, listOf("xcb", 9), counting)!;
  assert.equal(lettersOf(change.catalogue), "xcb", "numbered anew");
  const after = gateAfter(waiting, change, counting);
  assert.deepEqual(after.counts, [...Array(10).fill(0), ...Array(20).fill(3)]);
  assert.deepEqual(after.first!.counts.slice(9, 12), [0, 20, 21]);
  assert.deepEqual(openItemsOf(after, counting), [...Array(30).keys()].slice(10));
  const rows = rowsBefore(waiting, after, counting, (item) => change.oldIndices[item]);
  assert.deepEqual(rows, [...counts.slice(20), ...counts.slice(10, 20), 30]);
  assert.ok(isRefreshDue({ ...after, first: undefined }, counting));
  assert.ok(!isRefreshDue(gate, counting));
});

test("counts that somebody gives open items at once, and those that left are closed", () => {
  const old = catalogueOf(listOf("abcdefghijkl"));
  const change = changed(old, [...listOf("abcdefghijk"), ...listOf("x")], gated)!;
  const after = gateAfter(firstGate(old, gated), change, gated);
  const open = openItemsOf(after, gated).map((item) => change.catalogue.ids[item][0]);
  assert.equal([...new Set(open)].join(""), "abcdefghijkx");
});
