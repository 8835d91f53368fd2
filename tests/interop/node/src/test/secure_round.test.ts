// A whole round of secure aggregation, what a server refuses in it, and when it gets no sum: vectors/v1.
import assert from "node:assert/strict";
import { createPrivateKey, sign } from "node:crypto";
import { test } from "node:test";
import { create, fromBinary, toBinary, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { emptyModel } from "../aggregate.js";
import { u32 } from "../bytes.js";
import { RoundKind, UploadRequestSchema } from "../gen/lightfr/v1/coordinator_pb.js";
import { ErrorDetailSchema, ErrorReason } from "../gen/lightfr/v1/error_pb.js";
import { Objective, PrivacyMode, UploadKind } from "../gen/lightfr/v1/model_pb.js";
import * as secure from "../gen/lightfr/v1/secure_pb.js";
import type { Step } from "../round.js";
import { SecureRound } from "../secure/round.js";
import { bytes, vector } from "./known_answers.js";

const known = vector("secagg_round");
const bad = vector("secagg_bad");
const NOW_MS = known.now_unix_seconds * 1000;
const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");
const key = createPrivateKey({
  key: Buffer.concat([PKCS8, bytes(known.server_private_key)]),
  format: "der",
  type: "pkcs8",
});
const devices: [index: number, name: string, device: any][] = known.devices.map((device: any, index: number) => [
  index,
  `device ${index}`,
  device,
]);
const STEPS: Step[] = ["advertise", "share", "acknowledge", "include", "upload", "confirm", "reveal"];
const METHODS = [
  "AdvertiseKeys",
  "ShareKeys",
  "AcknowledgeShares",
  "SignIncluded",
  "Upload",
  "SignSurvivors",
  "RevealShares",
];

function newRound(): SecureRound {
  const shape = { codeBits: 8, places: 15, goal: 15, minimum: 2, maxRows: 0, deadlineMs: 60_000 };
  const model = { objective: Objective.CATALOGUE, uploadKind: UploadKind.TERNARY, balance: 0 };
  const how = { privacy: PrivacyMode.SECAGG, gate: 0, gateRefreshes: false, integerIds: false, evaluateEvery: 0 };
  const settings = { ...shape, ...model, ...how };
  const versions: any = {
    sign: (label: string, ...parts: Buffer[]) => sign(null, Buffer.concat([Buffer.from(label), ...parts]), key),
  };
  const version: any = {
    manifestSha256: bytes(known.manifest_sha256),
    itemCount: 2,
    openRows: new Map([0, 1].map((item) => [item, item])),
    model: emptyModel(Buffer.alloc(2), 8),
  };
  const keys = known.membership_keys.map(bytes);
  const rest = [bytes(known.round_id), version, settings, { append: () => {} }] as const;
  const round = new SecureRound(RoundKind.TRAINING, versions, keys, ...rest);
  for (const [, device, { peer_id: peer }] of devices) round.apply({ type: "place", device, peer, at: 0 });
  round.apply({ type: "place", device: "fifteenth", peer: bad.server_refuses.fifteenth_peer_id, at: 0 });
  return round;
}

/** As the service does it after its own questions. */
function deliver(round: SecureRound, step: Step, device: string, body: Uint8Array): void {
  const checks: Record<Step, () => void> = {
    advertise: () => round.checkAdvertise(device, fromBinary(secure.AdvertiseKeysRequestSchema, body), NOW_MS),
    share: () => round.checkShares(device, fromBinary(secure.ShareKeysRequestSchema, body)),
    acknowledge: () => round.checkUnopened(device, fromBinary(secure.AcknowledgeSharesRequestSchema, body)),
    include: () => round.checkSigned(device, fromBinary(secure.SignIncludedRequestSchema, body).signature),
    upload: () => {
      const { body: content } = fromBinary(UploadRequestSchema, body);
      round.checkVector(content.case === "maskedVector" ? content.value : undefined);
    },
    confirm: () => round.checkSigned(device, fromBinary(secure.SignSurvivorsRequestSchema, body).signature),
    reveal: () => round.checkReveal(device, fromBinary(secure.RevealSharesRequestSchema, body)),
  };
  round.requireTurn(device, step);
  checks[step]();
  round.accept(device, step, body);
}

const written = <Desc extends DescMessage>(schema: Desc, fields: MessageInitShape<Desc>) =>
  toBinary(schema, create(schema, fields));

/** What a device of the vector sends. Undefined: it is gone by then. */
function requestOf(step: Step, index: number, device: any): Uint8Array | undefined {
  const entry = bytes(known.entries).subarray(112 * index, 112 * (index + 1));
  if (step === "advertise")
    return written(secure.AdvertiseKeysRequestSchema, {
      maskPublicKey: entry.subarray(16, 48),
      sharePublicKey: entry.subarray(48, 80),
      membership: bytes(device.membership),
      signature: bytes(device.entry_signature),
    });
  if (step === "share") {
    const records = Object.entries<string>(device.sealed).flatMap(([holder, sealed]) => [
      u32(Number(holder)),
      bytes(sealed),
    ]);
    return written(secure.ShareKeysRequestSchema, { sealedShares: Buffer.concat(records) });
  }
  if (step === "acknowledge" && device.unopened)
    return written(secure.AcknowledgeSharesRequestSchema, { unopened: bytes(device.unopened) });
  if (step === "include" && device.included_signature)
    return written(secure.SignIncludedRequestSchema, { signature: bytes(device.included_signature) });
  if (step === "upload" && device.upload)
    return written(UploadRequestSchema, { body: { case: "maskedVector", value: bytes(device.upload) } });
  if (step === "confirm" && device.survivors_signature)
    return written(secure.SignSurvivorsRequestSchema, { signature: bytes(device.survivors_signature) });
  if (step === "reveal" && device.seeds)
    return written(secure.RevealSharesRequestSchema, {
      seeds: bytes(known.false_seeds[index] ?? device.seeds),
      maskKeys: bytes(device.mask_keys),
    });
  return undefined;
}

function deliverAll(round: SecureRound, step: Step): void {
  for (const [index, name, device] of devices) {
    const body = requestOf(step, index, device);
    if (body) deliver(round, step, name, body);
  }
}

/** Everybody delivers, stage by stage, until this step is due. */
function reach(round: SecureRound, step: Step): void {
  for (const earlier of STEPS.slice(0, STEPS.indexOf(step))) {
    deliverAll(round, earlier);
    round.apply({ type: "settled", at: 0 });
  }
}

const toHex = (value: unknown): string => Buffer.from(value as Uint8Array).toString("hex");

/** The sums in the order of the vector's blocks. */
function sumOf(round: SecureRound): number[][] | undefined {
  const sums = round.sums();
  return sums && [[...sums.rows], [...sums.userSum], [sums.weight]];
}

/** What a device is told in a stage, by the names of the vector. */
function told(round: SecureRound, index: number): any {
  return round.stepFor(`device ${index}`)!.value;
}

test("each stage settles and signs what is known, and the sum comes out in spite of a liar", () => {
  const round = newRound();
  reach(round, "share");
  const { entries, vouchers, degree, holders, threshold, signature } = told(round, 0);
  assert.deepEqual([toHex(entries), toHex(vouchers)], [known.entries, known.vouchers]);
  assert.deepEqual([degree, holders, threshold], [known.degree, known.holders, known.threshold]);
  assert.equal(toHex(signature), known.roster_signature);
  deliverAll(round, "share");
  round.apply({ type: "settled", at: 0 });
  const inbox = devices.slice(1).flatMap(([index, , { sealed }]) => [u32(index), bytes(sealed[0])]);
  assert.equal(toHex(told(round, 0).sealedShares), toHex(Buffer.concat(inbox)));
  deliverAll(round, "acknowledge");
  round.apply({ type: "settled", at: 0 });
  assert.equal(toHex(told(round, 0).included), known.included);
  assert.equal(toHex(told(round, 0).signature), known.included_signature);
  deliverAll(round, "include");
  round.apply({ type: "settled", at: 0 });
  assert.equal(toHex(told(round, 0).signers), known.included_signers);
  assert.equal(toHex(told(round, 0).signatures), known.included_signatures);
  deliverAll(round, "upload");
  round.apply({ type: "settled", at: 0 });
  assert.equal(toHex(told(round, 0).survivors), known.survivors);
  assert.equal(toHex(told(round, 0).signature), known.survivors_signature);
  deliverAll(round, "confirm");
  round.apply({ type: "settled", at: 0 });
  assert.equal(toHex(told(round, 0).signers), known.survivors_signers);
  assert.equal(toHex(told(round, 0).signatures), known.survivors_signatures);
  deliverAll(round, "reveal");
  assert.deepEqual(sumOf(round), known.sum);
  assert.deepEqual(
    round.faulty(),
    known.faulty.map((index: number) => `device ${index}`),
  );
});

function reasonOf(call: () => void): string | undefined {
  try {
    call();
  } catch (error) {
    if (!(error instanceof ConnectError)) throw error;
    const [detail] = error.findDetails(ErrorDetailSchema);
    return `ERROR_REASON_${ErrorReason[detail.reason]}`;
  }
  return undefined;
}

test("what does not fit is refused, and nothing of it is kept", () => {
  for (const { name, method, request } of bad.server_refuses.cases) {
    const round = newRound();
    const step = STEPS[METHODS.indexOf(method)];
    reach(round, step);
    const isFirst = step === "advertise";
    if (isFirst) deliverAll(round, step);
    const who = isFirst ? "fifteenth" : "device 0";
    const reason = reasonOf(() => deliver(round, step, who, bytes(request)));
    assert.equal(reason, bad.server_refuses.reason, `${method}, ${name}`);
    if (isFirst) {
      deliver(round, step, who, bytes(bad.server_refuses.good_fifteenth));
      continue;
    }
    for (const later of STEPS.slice(STEPS.indexOf(step))) {
      deliverAll(round, later);
      round.apply({ type: "settled", at: 0 });
    }
    assert.deepEqual(sumOf(round), known.sum, `${method}, ${name}`);
  }
});

test("no mask comes off when a secret lacks shares or does not fit", () => {
  for (const { name, answers } of bad.round_ends_without_a_sum) {
    const round = newRound();
    reach(round, "reveal");
    for (const [index, { seeds, mask_keys }] of Object.entries<any>(answers)) {
      const reveal = { seeds: bytes(seeds), maskKeys: bytes(mask_keys) };
      deliver(round, "reveal", `device ${index}`, written(secure.RevealSharesRequestSchema, reveal));
    }
    assert.equal(round.sums(), undefined, name);
  }
});
