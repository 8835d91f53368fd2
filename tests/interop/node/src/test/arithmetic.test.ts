// The server's arithmetic against its known answers: docs/protocol.md, "The server".
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { addUpload, emptySums, floorDivide, nextModel, signsOf, type Model, type Sums } from "../aggregate.js";
import { openRowsOf, refreshed, withNewRows } from "../gate.js";
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

test("three rounds move codes, memory and mean user as known", () => {
  const { code_bits: codeBits, item_count: itemCount, codes, rounds } = vector("aggregation");
  const shape = { codeBits, itemCount };
  let model: Model = {
    codes: bytes(codes),
    memory: new Int32Array(codeBits * itemCount),
    trail: new Int32Array(codeBits * itemCount),
    meanUser: new Array(codeBits).fill(0),
  };
  for (const round of rounds) {
    const sums = emptySums(shape);
    for (const upload of round.uploads) addUpload(sums, fromBinary(RowUpdateSchema, bytes(upload)), shape);
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
      const sums = emptySums(shape);
      for (const upload of known.uploads) addUpload(sums, fromBinary(RowUpdateSchema, bytes(upload)), shape);
      assert.deepEqual(sums, sumsOf(known), known.name);
    }
    const before = {
      codes: bytes(known.codes),
      memory: new Int32Array(known.row_sums.flat().length),
      trail: new Int32Array(known.row_sums.flat().length),
      meanUser: known.mean_user_before,
    };
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
      const settings = { codeBits: known.code_bits, itemCount: known.item_count, balance: known.balance, uploadKind };
      const updates = known.devices.map((device: any) => fromBinary(RowUpdateSchema, bytes(device[uploads])));
      const model = { codes: bytes(known.codes) } as unknown as Model;
      const { codes } = nextPaperModel(model, updates, settings as Settings);
      assert.equal(Buffer.from(codes).toString("hex"), after);
    }
  }
});

test("a pair of gate refreshes moves rows across the gate as known, and rows that open get codes of their own", () => {
  const { sum, pair, k_min } = vector("gate");
  const settings = { gate: k_min } as Settings;
  const everOpen = openRowsOf({ counts: pair.before, everOpen: [] }, settings);
  const once = refreshed({ counts: pair.before, everOpen }, sum, ["one"], settings);
  assert.deepEqual([once.counts, once.first], [pair.before, { counts: sum, devices: ["one"] }]);
  const twice = refreshed(once, pair.second, ["other"], settings);
  assert.deepEqual([twice.counts, twice.first], [pair.counts, undefined]);
  const open = openRowsOf(twice, settings);
  assert.deepEqual(open, [...bitsOf(bytes(pair.open_rows))]);
  assert.deepEqual(new Set(twice.everOpen), new Set([...everOpen, ...open]), "a row that closed keeps its code");
  const cells = () => new Int32Array(128).fill(7);
  const old: Model = { codes: Buffer.alloc(16), memory: cells(), trail: cells(), meanUser: [] };
  const next = withNewRows(old, [1], { codeBits: 64, itemCount: 2 });
  assert.notDeepEqual(next.codes.subarray(8), Buffer.alloc(8));
  assert.deepEqual(next.codes.subarray(0, 8), Buffer.alloc(8));
  const emptied = cells().fill(0, 64);
  assert.deepEqual([next.memory, next.trail, old.memory], [emptied, emptied, cells()]);
});

const bitsOf = (bitmap: Buffer): number[] =>
  Array.from({ length: 8 * bitmap.length }, (_, bit) => bit).filter((bit) => (bitmap[bit >> 3] >> (bit & 7)) & 1);

function sumsOf({ row_sums, user_sum, weight }: any): Sums {
  return { rows: Int32Array.from(row_sums.flat()), userSum: Int32Array.from(user_sum), weight };
}
