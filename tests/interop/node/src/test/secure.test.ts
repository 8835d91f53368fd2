// The cryptography of docs/secagg.md against its known answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isLowOrder, pairKey, publicOf, selfKey } from "../secure/keys.js";
import { Roster } from "../secure/roster.js";
import { fromLittleEndian, reconstruct, type Share } from "../secure/shamir.js";
import { areSharesOf, ownersFor, unmask } from "../secure/unmask.js";
import { add, maskOf, packedSize, signedBlocks, trainingBlocks, unpack, type Block } from "../secure/vector.js";
import { bytes, vector } from "./known_answers.js";

const blocksOf = (blocks: [string, number, number][]): Block[] => blocks.map(([, values, bits]) => ({ values, bits }));
const entriesOf = (all: Buffer) =>
  Array.from({ length: all.length / 80 }, (_, at) => {
    const entry = all.subarray(80 * at, 80 * (at + 1));
    return { peer: entry.subarray(0, 16), maskKey: entry.subarray(16, 48), shareKey: entry.subarray(48) };
  });

test("keys are derived as the document says", () => {
  const known = vector("secagg_keys");
  const [one, other] = known.peer_ids.map(bytes);
  const [privateKey, peerKey, roundId] = [known.private_key, known.peer_key, known.round_id].map(bytes);
  assert.equal(publicOf(privateKey).toString("hex"), known.public_key);
  assert.equal(pairKey(privateKey, peerKey, roundId, one, other).toString("hex"), known.pair_mask_key);
  assert.equal(pairKey(privateKey, peerKey, roundId, other, one).toString("hex"), known.pair_mask_key);
  assert.equal(selfKey(bytes(known.self_mask_seed), roundId, one).toString("hex"), known.self_mask_key);
});

test("points of low order are known", () => {
  assert.ok(isLowOrder(Buffer.alloc(32)));
  assert.ok(isLowOrder(Buffer.concat([Buffer.from([1]), Buffer.alloc(31)])));
  assert.ok(!isLowOrder(bytes(vector("secagg_keys").peer_key)));
});

test("any shares that suffice give the secret back, fewer give nothing, a false one is noticed", () => {
  for (const { secret, threshold, holders, shares } of vector("secagg_shamir")) {
    const points: Share[] = holders.map((x: number, at: number) => ({
      x: BigInt(x),
      y: fromLittleEndian(bytes(shares[at])),
    }));
    assert.equal(reconstruct(points.slice(0, threshold), threshold)?.toString("hex"), secret);
    assert.equal(reconstruct(points.slice(-threshold), threshold)?.toString("hex"), secret);
    assert.equal(reconstruct(points.slice(0, threshold - 1), threshold), undefined);
    if (points.length === threshold) continue;
    points[0] = { ...points[0], y: points[0].y + 1n };
    assert.equal(reconstruct(points, threshold), undefined);
  }
});

test("a mask comes off as it went on", () => {
  const known = vector("secagg_mask");
  const blocks = blocksOf(known.blocks);
  const mask = maskOf(bytes(known.key), blocks);
  assert.deepEqual([...mask], known.mask.flat());
  for (const [packed, sign] of [
    [known.packed_plain, 0],
    [known.packed_plus, -1],
    [known.packed_minus, 1],
  ] as const) {
    const sum = unpack(bytes(packed), blocks)!;
    if (sign) add(sum, mask, sign);
    assert.deepEqual(
      signedBlocks(sum, blocks)
        .map((block) => [...block])
        .slice(2),
      known.vector.slice(2),
    );
    assert.deepEqual([...signedBlocks(sum, blocks)[0]], known.vector[0]);
  }
});

test("bits behind the last value and other sizes are refused", () => {
  const blocks = [
    { values: 3, bits: 5 },
    { values: 1, bits: 8 },
  ];
  assert.deepEqual([...unpack(bytes("ff7fff"), blocks)!], [31, 31, 31, 255]);
  assert.equal(unpack(bytes("ffffff"), blocks), undefined);
  assert.equal(unpack(bytes("ff7f"), blocks), undefined);
});

test("blocks have the documented sizes", () => {
  for (const known of vector("blocks")) {
    if (known.kind !== "training" || known.noise) continue;
    const blocks = trainingBlocks(known.devices, known.open_rows, known.code_bits);
    assert.deepEqual(blocks, blocksOf(known.blocks));
    assert.equal(packedSize(blocks), known.bytes);
  }
});

test("rosters have the documented digest, ring and neighbours", () => {
  for (const known of vector("secagg_roster")) {
    const roster = new Roster(bytes(known.round_id), entriesOf(bytes(known.entries)).reverse());
    assert.deepEqual([roster.degree, roster.threshold], [known.degree, known.threshold]);
    assert.equal(roster.digest.toString("hex"), known.digest);
    if (known.degree < roster.size - 1) assert.deepEqual(roster.ring(), known.ring);
    for (const [index, neighbours] of Object.entries(known.neighbours)) {
      assert.deepEqual(
        roster.neighbours[Number(index)],
        [...(neighbours as number[])].sort((left, right) => left - right),
      );
    }
  }
});

test("a whole round with two dropouts gives the known sum", () => {
  const known = vector("secagg_round");
  const roster = new Roster(bytes(known.round_id), entriesOf(bytes(known.entries)));
  const blocks = blocksOf(known.blocks);
  const present = (field: string) => [...known.devices.entries()].filter(([, device]) => device[field] !== "");
  const cohort = {
    roundId: bytes(known.round_id),
    roster,
    blocks,
    included: new Set(present("sealed").map(([index]) => index)),
    vectors: new Map(present("upload").map(([index, device]) => [index, unpack(bytes(device.upload), blocks)!])),
    reveals: new Map(
      present("self_masks").map(([index, device]) => [
        index,
        { selfMasks: bytes(device.self_masks), maskKeys: bytes(device.mask_keys) },
      ]),
    ),
  };
  for (const [index, reveal] of cohort.reveals) {
    const owners = ownersFor(index, { ...cohort, survivors: new Set(cohort.vectors.keys()) });
    assert.ok(
      areSharesOf(reveal.selfMasks, owners.selfMasks, roster) && areSharesOf(reveal.maskKeys, owners.maskKeys, roster),
    );
  }
  assert.deepEqual(
    signedBlocks(unmask(cohort)!, blocks).map((block) => [...block]),
    known.sum,
  );
  cohort.reveals.delete([...cohort.reveals.keys()][0]);
  assert.equal(unmask(cohort), undefined, "a secret lacks shares");
});
