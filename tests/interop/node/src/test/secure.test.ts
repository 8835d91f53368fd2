// The cryptography of docs/secagg.md against its known answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { pieces } from "../bytes.js";
import { isLowOrder, pairKey, publicOf, selfKey } from "../secure/keys.js";
import { isSigned, memberOf } from "../secure/members.js";
import { quorumOf, Roster, usualNumbers } from "../secure/roster.js";
import { settle } from "../secure/settling.js";
import { fromLittleEndian, reconstruct, type Share } from "../secure/shamir.js";
import {
  add,
  evaluationBlocks,
  maskOf,
  gateBlocks,
  packedSize,
  signedBlocks,
  trainingBlocks,
  unpack,
  type Block,
} from "../secure/vector.js";
import { bytes, vector } from "./known_answers.js";

const blocksOf = (blocks: [string, number, number][]): Block[] => blocks.map(([, values, bits]) => ({ values, bits }));
const entriesOf = (all: Buffer) =>
  pieces(all, 112).map((piece) => {
    const entry = Buffer.from(piece);
    const [peer, maskKey] = [entry.subarray(0, 16), entry.subarray(16, 48)];
    const [shareKey, memberKey] = [entry.subarray(48, 80), entry.subarray(80)];
    return { peer, maskKey, shareKey, memberKey, voucher: Buffer.alloc(136) };
  });
const subjectOf = (known: any) => ({
  roundId: bytes(known.round_id),
  manifestSha256: bytes(known.manifest_sha256),
  kind: known.kind,
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

const sharesOf = ({ holders, shares }: any): Share[] =>
  holders.map((x: number, at: number) => ({ x: BigInt(x), y: fromLittleEndian(bytes(shares[at])) }));

test("any shares that suffice give the secret back, and fewer give nothing", () => {
  for (const known of vector("secagg_shamir")) {
    const { secret, threshold } = known;
    const shares = sharesOf(known);
    assert.equal(reconstruct(shares.slice(0, threshold), threshold)?.secret.toString("hex"), secret);
    assert.equal(reconstruct(shares.slice(-threshold), threshold)?.secret.toString("hex"), secret);
    assert.equal(reconstruct(shares.slice(0, threshold - 1), threshold), undefined);
  }
});

test("false shares are corrected and named, or end the round", () => {
  for (const known of vector("secagg_correction")) {
    const found = reconstruct(sharesOf(known), known.threshold);
    assert.equal(found?.secret.toString("hex") ?? "", known.secret, known.name);
    const named = (found?.falseShares ?? []).map(Number).sort((left, right) => left - right);
    assert.deepEqual(named, known.false, known.name);
  }
});

test("memberships count when the authority signed them and they have not ended", () => {
  const { membership_keys, now_unix_seconds, member_key, good, refused } = vector("membership");
  const check = (membership: string) => memberOf(bytes(membership), membership_keys.map(bytes), now_unix_seconds);
  for (const { name, membership } of good) assert.equal(check(membership)?.toString("hex"), member_key, name);
  for (const { name, membership } of refused) assert.equal(check(membership), undefined, name);
});

test("quorums and numbers of a roster are as documented", () => {
  const { quorums, usual_numbers } = vector("secagg_agreement");
  for (const [devices, quorum] of quorums) assert.equal(quorumOf(devices), quorum);
  for (const [devices, degree, holders, threshold] of usual_numbers)
    assert.deepEqual(usualNumbers(devices), { degree, holders, threshold });
});

test("what is signed has the documented bytes", () => {
  const known = vector("secagg_agreement");
  const key = bytes(known.public_key);
  for (const { message, signature } of Object.values<any>(known.messages)) {
    const text = bytes(message);
    const label = text.subarray(0, text.indexOf("\n") + 1).toString();
    assert.ok(isSigned(key, bytes(signature), label, text.subarray(label.length)));
    assert.ok(!isSigned(key, bytes(signature), label, text.subarray(label.length + 1)));
  }
});

test("who goes on after complaints is as documented", () => {
  const { holders_of_130: chosen, cases } = vector("secagg_settling");
  for (const { name, devices, shared, acknowledged, unopened, included, faulty, ...numbers } of cases) {
    const everybody = Array.from({ length: devices }, (_, index) => index);
    const holdersOf = new Map<number, number[]>(
      shared.map((own: number) => [own, devices === 130 ? chosen[own] : everybody.filter((index) => index !== own)]),
    );
    const complaints = new Map<number, Set<number>>(
      acknowledged.map((index: number) => [index, new Set(unopened[index] ?? [])]),
    );
    const settled = settle(numbers, holdersOf, complaints);
    const sorted = (set: Set<number>) => [...set].sort((left, right) => left - right);
    assert.deepEqual([sorted(settled.included), sorted(settled.faulty)], [included, faulty], name);
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
    const [rowsThousandths, sumsThousandths, countsThousandths] = known.noise ?? [];
    const noise = known.noise ? { rowsThousandths, sumsThousandths, countsThousandths } : undefined;
    const byKind: Record<string, () => Block[]> = {
      training: () => trainingBlocks(known.devices, known.open_rows, known.code_bits, noise),
      gate: () => gateBlocks(known.devices, known.item_count, noise),
      evaluation: () => evaluationBlocks(known.devices, known.candidates, noise),
    };
    const blocks = byKind[known.kind]();
    assert.deepEqual(blocks, blocksOf(known.blocks));
    assert.equal(packedSize(blocks), known.bytes);
  }
});

test("rosters have the documented digest, cycles and neighbours", () => {
  const sparse = vector("secagg_sparse");
  const neighbours = { 0: sparse.device.neighbours };
  for (const known of [...vector("secagg_roster"), { ...sparse, digest: sparse.roster_digest, neighbours }]) {
    const roster = new Roster(subjectOf(known), entriesOf(bytes(known.entries)).reverse());
    const { degree, holders, threshold } = known;
    assert.deepEqual(roster.numbers, { degree, holders, threshold });
    assert.equal(roster.digest.toString("hex"), known.digest);
    const cycles = roster.cycles();
    assert.deepEqual(cycles.length > 0 ? [cycles[0], cycles.at(-1)] : [], known.first_and_last_cycle);
    for (const [index, near] of Object.entries(known.neighbours))
      assert.deepEqual(roster.neighbours[Number(index)], near);
  }
});
