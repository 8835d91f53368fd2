// The server's arithmetic against its known answers: docs/protocol.md, "The server".
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import {
  addUpload,
  emptyModel,
  emptySums,
  floorDivide,
  nextModel,
  signsOf,
  type Model,
  type RowOf,
  type Sums,
} from "../aggregate.js";
import { indicesIn } from "../bytes.js";
import { openItemsOf, refreshed, rowsBefore, withRows } from "../gate.js";
import { UploadKind } from "../gen/lightfr/v1/model_pb.js";
import { RowUpdateSchema } from "../gen/lightfr/v1/update_pb.js";
import { nextPaperModel } from "../paper.js";
import type { Settings } from "../settings.js";
import { bytes, vector } from "./known_answers.js";

test("division rounds toward minus infinity", () => {
  for (const [dividend, divisor, quotient] of [
    [7, 2, 3],
    [-7, 2, -4],
    [-8, 2, -4],
    [7, -2, -4],
    [0, 5, 0],
    [2 ** 52 - 1, 2, 2 ** 51 - 1],
  ]) {
    assert.equal(floorDivide(dividend, divisor), quotient);
  }
});

test("bit 0 is the low bit of byte 0", () => {
  assert.deepEqual([...signsOf(bytes("4d"))], [1, -1, 1, 1, -1, -1, 1, -1]);
});

const everyItem = (itemCount: number): RowOf => new Map(Array.from({ length: itemCount }, (_, item) => [item, item]));

test("three rounds move codes, memory and mean user as known", () => {
  const { code_bits: codeBits, item_count: itemCount, open_rows: open, codes, rounds } = vector("aggregation");
  const shape = { codeBits, itemCount };
  const rowOf = new Map(indicesIn(bytes(open)).map((item, row) => [item, row]));
  let model = emptyModel(bytes(codes), codeBits);
  for (const round of rounds) {
    const sums = emptySums(model);
    for (const upload of round.uploads) addUpload(sums, fromBinary(RowUpdateSchema, bytes(upload)), rowOf);
    model = nextModel(model, sums, shape);
    assert.equal(Buffer.from(model.codes).toString("hex"), round.codes);
    assert.deepEqual([...model.memory], round.memory.flat());
    assert.deepEqual(model.meanUser, round.mean_user);
  }
});

test("the catalogue term, its clamps and its zeros are as known", () => {
  for (const known of vector("catalogue_term")) {
    const isExact = known.upload_kind === "UPLOAD_KIND_EXACT";
    const shape = { codeBits: known.code_bits, itemCount: known.item_count, isExact };
    if (known.uploads.length > 0) {
      const sums = emptySums(emptyModel(bytes(known.codes), known.code_bits));
      const rowOf = everyItem(known.item_count);
      for (const upload of known.uploads) addUpload(sums, fromBinary(RowUpdateSchema, bytes(upload)), rowOf);
      assert.deepEqual(sums, sumsOf(known), known.name);
    }
    const before = { ...emptyModel(bytes(known.codes), known.code_bits), meanUser: known.mean_user_before };
    const after = nextModel(before, sumsOf(known), shape);
    assert.deepEqual([...after.memory], known.sums.flat(), known.name);
    assert.equal(Buffer.from(after.codes).toString("hex"), known.codes_after, known.name);
    assert.deepEqual(after.meanUser, known.mean_user, known.name);
  }
});

test("gradients and codes of the paper's objective move the codes as known", () => {
  for (const known of vector("paper").rounds) {
    for (const [uploads, uploadKind, after] of [
      ["exact", UploadKind.EXACT, known.codes_after_agg_grad],
      ["codes", UploadKind.CODES, known.codes_after_agg_para],
    ] as const) {
      const settings = { codeBits: known.code_bits, balance: known.balance, uploadKind } as Settings;
      const updates = known.devices.map((device: any) => fromBinary(RowUpdateSchema, bytes(device[uploads])));
      const model = emptyModel(bytes(known.codes), known.code_bits);
      const { codes } = nextPaperModel(model, updates, everyItem(known.item_count), settings);
      assert.equal(Buffer.from(codes).toString("hex"), after);
    }
  }
});

test("a pair of gate refreshes moves rows across the gate as known, and rows that open get codes of their own", () => {
  const { sum, pair, k_min } = vector("gate");
  const settings = { gate: k_min } as Settings;
  const everOpen = openItemsOf({ counts: pair.before, everOpen: [] }, settings);
  const once = refreshed({ counts: pair.before, everOpen }, sum, ["one"], { removed: [] }, settings);
  assert.deepEqual([once.counts, once.first], [pair.before, { counts: sum, devices: ["one"] }]);
  const twice = refreshed(once, pair.second, ["other"], { removed: [] }, settings);
  assert.deepEqual([twice.counts, twice.first], [pair.counts, undefined]);
  const open = openItemsOf(twice, settings);
  assert.deepEqual(open, indicesIn(bytes(pair.open_rows)));
  assert.deepEqual(new Set(twice.everOpen), new Set([...everOpen, ...open]), "an item that closed keeps its row");
  const closedForGood = refreshed(once, pair.second, ["other"], { removed: open }, settings);
  assert.deepEqual(openItemsOf(closedForGood, settings), [], "whatever is counted, what left stays closed");
});

test("items that open get rows between those of the others, and the shared row stays the last", () => {
  const settings = { gate: 2 } as Settings;
  const rows = rowsBefore({ counts: [], everOpen: [1, 4] }, { counts: [], everOpen: [1, 2, 4] }, settings);
  assert.deepEqual(rows, [0, -1, 1, 2]);
  const cells = Int32Array.from({ length: 3 * 64 }, (_, at) => 1 + (at >> 6));
  const old: Model = { codes: Buffer.from("aaaaaaaabbbbbbbbssssssss"), memory: cells, trail: cells, meanUser: [] };
  const next = withRows(old, rows, 64);
  const codes = Buffer.from(next.codes).toString("latin1");
  assert.match(codes, /^a{8}[^]{8}b{8}s{8}$/);
  for (const values of [next.memory, next.trail])
    assert.deepEqual(
      [0, 1, 2, 3].map((row) => [...new Set(values.subarray(64 * row, 64 * row + 64))]),
      [[1], [0], [2], [3]],
    );
});

function sumsOf({ row_sums, user_sum, weight }: any): Sums {
  return { rows: Int32Array.from(row_sums.flat()), userSum: Int32Array.from(user_sum), weight };
}
