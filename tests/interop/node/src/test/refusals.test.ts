// What the server refuses and with which reason, over real HTTP; TLS is tried by the conformance suite.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { errorToJson } from "@connectrpc/connect/protocol-connect";
import { Artifacts } from "../artifacts.js";
import { equal, hasBit } from "../bytes.js";
import { Coordinator } from "../coordinator.js";
import { Enrollment } from "../enrollment.js";
import { checkRowUpdate } from "../clear.js";
import { refusal } from "../errors.js";
import { CoordinatorService, UploadRequestSchema } from "../gen/lightfr/v1/coordinator_pb.js";
import { EnrollmentService, EnrollRequestSchema } from "../gen/lightfr/v1/enrollment_pb.js";
import { ErrorDetailSchema, ErrorReason } from "../gen/lightfr/v1/error_pb.js";
import { Objective, PrivacyMode, RoundModelSchema, UploadKind } from "../gen/lightfr/v1/model_pb.js";
import { listener } from "../http.js";
import { limitsOf } from "../limits.js";
import { Service } from "../service.js";
import type { Settings } from "../settings.js";
import { Versions } from "../versions.js";
import { bytes, vector } from "./known_answers.js";

const uploads = vector("uploads_bad");
const [ternary, ...ofThePaper] = uploads.rounds;
const enrollments = vector("enrollment");
const settings: Settings = {
  privacy: PrivacyMode.CLEAR,
  objective: Objective.CATALOGUE,
  uploadKind: UploadKind.TERNARY,
  balance: 0,
  codeBits: 32,
  gate: 2,
  gateRefreshes: false,
  maxRows: 64,
  places: 2,
  goal: 2,
  minimum: 1,
  deadlineMs: 60_000,
  integerIds: false,
  evaluateEvery: 0,
};

let address = "";
let coordinator: Coordinator;
const memoryJournal = { append: () => {} };
const server = createServer();

before(async () => {
  const folder = mkdtempSync(join(tmpdir(), "coordinator-"));
  const items = Array.from({ length: 80 }, (_, row) => ({
    id: `${row}`,
    count: hasBit(bytes(ternary.open_rows), row) ? 2 : 0,
  }));
  const versions = new Versions(
    settings,
    new Artifacts(join(folder, "artifacts")),
    generateKeyPairSync("ed25519").privateKey,
    folder,
  );
  coordinator = new Coordinator(settings, versions, memoryJournal, folder, []);
  coordinator.start(items, Buffer.alloc(4 * items.length));
  const tokens = [{ token: enrollments.token, expires_unix_seconds: Date.now() / 1000 + 60 }];
  const issued = { certificate: Buffer.from("certificate"), membership: Buffer.alloc(104) };
  const enrollment = new Enrollment({ certify: async () => issued }, tokens, memoryJournal);
  server.on(
    "request",
    listener({
      limitOf: limitsOf(settings, () => items.length),
      deviceOf: () => "00".repeat(16),
      routes: (router) =>
        router.service(CoordinatorService, new Service(coordinator)).service(EnrollmentService, enrollment),
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, resolve));
  address = `http://localhost:${(server.address() as AddressInfo).port}`;
});

after(() => {
  server.close();
  server.closeAllConnections();
  coordinator.stop();
});

/** The reason of a refusal, or undefined when the call was answered. */
async function reasonOf(method: string, body: Uint8Array): Promise<string | undefined> {
  const response = await fetch(`${address}/lightfr.v1.${method}`, {
    method: "POST",
    body: new Uint8Array(body),
    headers: { "Content-Type": "application/proto" },
  });
  if (response.ok) return undefined;
  const { details } = (await response.json()) as { details: { value: string }[] };
  return `ERROR_REASON_${ErrorReason[fromBinary(ErrorDetailSchema, base64Decode(details[0].value)).reason]}`;
}

test("errors have the known codes, statuses and details", () => {
  for (const { reason, code, body } of vector("connect_errors").answers) {
    const detail = fromBinary(ErrorDetailSchema, base64Decode(JSON.parse(body).details[0].value));
    const ours = refusal(detail.reason as Exclude<ErrorReason, 0>, "why", {
      limitBytes: detail.limitBytes,
      renewableUnixSeconds: detail.renewableUnixSeconds,
      wireVersions: detail.wireVersions,
    });
    const json = JSON.parse(JSON.stringify(errorToJson(ours, undefined)));
    delete json.details[0].debug; // for people; devices do not read it
    assert.deepEqual(json, JSON.parse(body), reason);
    assert.equal(json.code, code);
  }
});

test("bad requests of every method are refused with the known reason", async () => {
  for (const { method, name, request, reason } of vector("requests_bad")) {
    assert.equal(await reasonOf(`CoordinatorService/${method}`, bytes(request)), reason, `${method}, ${name}`);
  }
});

test("bad uploads are refused with the known reason, and a good one is taken afterwards", async () => {
  coordinator.round.admit("00".repeat(16), Date.now());
  for (const { name, request, reason } of ternary.refused) {
    assert.equal(await reasonOf("CoordinatorService/Upload", ofThisRound(bytes(request))), reason, name);
  }
  assert.equal(await reasonOf("CoordinatorService/Upload", ofThisRound(bytes(ternary.good[0]))), undefined);
  assert.equal(
    await reasonOf("CoordinatorService/Upload", ofThisRound(bytes(ternary.good[1]))),
    "ERROR_REASON_UPLOAD_CONFLICT",
  );
});

test("bad uploads of exact gradients and of codes are refused, and good ones are not", () => {
  const rows = new Map(Array.from({ length: 80 }, (_, item) => [item, item]));
  for (const { name, model, good, refused } of ofThePaper) {
    const { objective, uploadKind, maxRows } = fromBinary(RoundModelSchema, bytes(model));
    const check = (request: string) => () =>
      checkRowUpdate(
        fromBinary(UploadRequestSchema, bytes(request)).body,
        { ...settings, objective, uploadKind, maxRows },
        rows,
      );
    for (const request of good) check(request)();
    const invalid = refused.filter((one: any) => one.reason === "ERROR_REASON_UPLOAD_INVALID");
    assert.ok(invalid.length > 0);
    for (const one of invalid) assert.throws(check(one.request), `${name}: ${one.name}`);
  }
});

/** The request with the ids of the round that runs, where it had those of the vectors' round. */
function ofThisRound(request: Buffer): Uint8Array {
  try {
    const upload = fromBinary(UploadRequestSchema, request);
    if (equal(upload.roundId, bytes(uploads.round_id))) upload.roundId = coordinator.round.id;
    if (equal(upload.manifestSha256, bytes(uploads.manifest_sha256)))
      upload.manifestSha256 = coordinator.round.version.manifestSha256;
    return toBinary(UploadRequestSchema, upload);
  } catch {
    return request;
  }
}

test("bad signing requests are refused and leave the token as it was", async () => {
  const enroll = (request: string) => reasonOf("EnrollmentService/Enroll", bytes(request));
  for (const { name, request, reason } of enrollments.refused) assert.equal(await enroll(request), reason, name);
  assert.equal(await enroll(enrollments.good.request), undefined);
  assert.equal(await enroll(enrollments.good.request), undefined, "the same request again");
  const [signingRequest] = Object.values<string>(enrollments.also_good).map(bytes);
  const memberKey = bytes(enrollments.good.member_key);
  const other = create(EnrollRequestSchema, { token: enrollments.token, signingRequest, memberKey });
  assert.equal(await reasonOf("EnrollmentService/Enroll", toBinary(EnrollRequestSchema, other)), "ERROR_REASON_TOKEN");
});
