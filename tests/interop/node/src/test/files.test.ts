// What devices download, what is signed, and what survives a crash.
import assert from "node:assert/strict";
import { createPrivateKey, createPublicKey, sign } from "node:crypto";
import { appendFileSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { inflateSync } from "node:zlib";
import { answerTo } from "../artifacts.js";
import { writeBitmap, writeCatalogue, writeDelta } from "../formats.js";
import { Journal } from "../journal.js";
import { keyIdOf } from "../versions.js";
import { bytes, readVector, vector } from "./known_answers.js";

const DELTA_HEAD_BYTES = 44;

/** The old row of each new row, by runs: -1 where there is none. */
const movedFrom = (runs: [number, number][]): number[] =>
  runs.flatMap(([first, count]) => Array.from({ length: count }, (_, at) => (first === 2 ** 32 - 1 ? -1 : first + at)));

test("deltas say which rows moved and what changed", () => {
  const { good, far_apart: far } = vector("deltas");
  const farOld = Buffer.alloc(far.old_zero_bytes);
  const farNew = Buffer.from(farOld);
  for (const row of far.changed_rows) farNew[row] = bytes(far.changed_to)[0];
  const cases = [
    ...good.map((one: any) => ({ ...one, old: bytes(one.old), new: bytes(one.new) })),
    { ...far, old: farOld, new: farNew, runs: [[0, farOld.length]] },
  ].filter(({ name }) => name !== "runs that could be one");
  for (const known of cases) {
    const ours = writeDelta(known.old, known.new, known.code_bits, movedFrom(known.runs));
    const theirs = bytes(known.delta);
    assert.deepEqual(ours.subarray(0, DELTA_HEAD_BYTES), theirs.subarray(0, DELTA_HEAD_BYTES), known.name);
    assert.deepEqual(inflateSync(ours.subarray(DELTA_HEAD_BYTES)), inflateSync(theirs.subarray(DELTA_HEAD_BYTES)));
  }
});

/** A part of a catalogue of strings with its blocks inflated, and without their offsets: writers may compress as they like. */
function uncompressed(file: Buffer): Buffer[] {
  const blocks = Math.ceil(Number(file.readBigUInt64LE(8)) / 256);
  const offsets = Array.from({ length: blocks + 1 }, (_, at) => file.readUInt32LE(16 + 4 * at));
  const ids = file.subarray(16 + 4 * offsets.length);
  const inflated = offsets.slice(1).flatMap((end, at) => {
    const block = ids.subarray(offsets[at], end);
    const [first, stream] = [block.subarray(0, 1 + block[0]), block.subarray(1 + block[0])];
    return [first, stream.length > 0 ? inflateSync(stream) : stream];
  });
  return [file.subarray(0, 16), ...inflated, ids.subarray(offsets[blocks])];
}

test("parts of catalogues have the documented bytes", () => {
  for (const { kind, ids, files } of vector("catalogue").good) {
    let first = 0;
    for (const known of files.map(readVector)) {
      const count = Number(known.readBigUInt64LE(8));
      const ours = writeCatalogue(ids.slice(first, (first += count)), kind === "int");
      if (kind === "int") assert.deepEqual(ours, known);
      else assert.deepEqual(uncompressed(ours), uncompressed(known));
    }
  }
});

test("bitmaps have a bit for each item and none behind them", () => {
  const { item_count: count, items, bitmap } = vector("bitmaps");
  assert.deepEqual(inflateSync(writeBitmap(count, items)), bytes(bitmap));
});

test("ids are in the order of their bytes, which is not that of JavaScript's strings", () => {
  const numbers = writeCatalogue(["\u{1f600}", "\ufffd"], false).at(-1);
  assert.equal(numbers, 0b01, "number 1 comes first");
});

test("manifests are signed with the documented bytes before them", () => {
  const known = vector("manifest");
  const key = createPrivateKey({
    key: Buffer.concat([bytes("302e020100300506032b657004220420"), bytes(known.private_key)]),
    format: "der",
    type: "pkcs8",
  });
  const signature = sign(null, Buffer.concat([Buffer.from("lightfr manifest v1\n"), bytes(known.manifest)]), key);
  assert.equal(signature.toString("hex"), known.signature);
  assert.equal(keyIdOf(createPublicKey(key)).toString("hex"), known.key_id);
});

test("ranges and conditions get the answers of RFC 9110", () => {
  const status = (headers: Record<string, string>) => {
    const { status, range } = answerTo(headers, '"e"', 10);
    return [status, range?.first, range?.last];
  };
  const whole = [200, 0, 9];
  assert.deepEqual(status({}), whole);
  assert.deepEqual(status({ range: "bytes=2-4" }), [206, 2, 4]);
  assert.deepEqual(status({ range: "bytes=2-" }), [206, 2, 9]);
  assert.deepEqual(status({ range: "bytes=-3" }), [206, 7, 9]);
  assert.deepEqual(status({ range: "bytes=8-99" }), [206, 8, 9]);
  assert.deepEqual(status({ range: "bytes=10-" }), [416, undefined, undefined]);
  for (const odd of ["bytes=4-2", "bytes=0-1,3-4", "rows=0-1", "bytes=-"])
    assert.deepEqual(status({ range: odd }), whole);
  assert.deepEqual(status({ range: "bytes=2-4", "if-range": '"e"' }), [206, 2, 4]);
  assert.deepEqual(status({ range: "bytes=2-4", "if-range": '"other"' }), whole);
  assert.deepEqual(status({ "if-none-match": '"x", "e"' }), [304, undefined, undefined]);
  assert.deepEqual(status({ "if-none-match": "*" }), [304, undefined, undefined]);
});

test("a torn last line is dropped, and what was written before it stays", () => {
  const path = join(mkdtempSync(join(tmpdir(), "journal-")), "journal");
  Journal.open<number>(path).journal.append(1);
  appendFileSync(path, '{"torn');
  const { journal, records } = Journal.open<number>(path);
  journal.append(2);
  assert.deepEqual(records, [1]);
  assert.equal(readFileSync(path, "utf8"), "1\n2\n");
});
