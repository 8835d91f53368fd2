// The server's arithmetic against its known answers: docs/protocol.md, "The server".
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBinary } from "@bufbuild/protobuf";
import { addUpload, emptySums, floorDivide, nextModel, signsOf, type Model, type Sums } from "../aggregate.js";
import { RowUpdateSchema } from "../gen/lightfr/v1/update_pb.js";
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
    if (known.upload_kind !== "UPLOAD_KIND_TERNARY") continue; // exact gradients are for audits; this server has none
    const shape = { codeBits: known.code_bits, itemCount: known.item_count };
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

function sumsOf({ row_sums, user_sum, weight }: any): Sums {
  return { rows: Int32Array.from(row_sums.flat()), userSum: Int32Array.from(user_sum), weight };
}
