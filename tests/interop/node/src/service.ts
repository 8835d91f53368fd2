// The calls of devices: docs/protocol.md, "Manifest" to "A round with secure aggregation". Each function asks its
// questions in the order of the document, since the first one that fails names the error.
import { createContextKey, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { equal, sha256 } from "./bytes.js";
import { checkRowUpdate } from "./clear.js";
import type { Coordinator } from "./coordinator.js";
import { ErrorReason, refusal, requireThat } from "./errors.js";
import {
  RetryReason,
  RoundKind,
  RoundState,
  type Capabilities,
  type CheckInRequest,
  type CoordinatorService,
  type GetManifestRequest,
  type GetRoundStatusRequest,
  type UploadRequest,
} from "./gen/lightfr/v1/coordinator_pb.js";
import { PrivacyMode } from "./gen/lightfr/v1/model_pb.js";
import type {
  AcknowledgeSharesRequest,
  AdvertiseKeysRequest,
  GetStepRequest,
  RevealSharesRequest,
  ShareKeysRequest,
  SignIncludedRequest,
  SignSurvivorsRequest,
} from "./gen/lightfr/v1/secure_pb.js";
import { uploadLimit } from "./limits.js";
import { Round, type RoundView, type Step } from "./round.js";
import { MEMBERSHIP_BYTES } from "./secure/members.js";
import { SecureRound } from "./secure/round.js";
import { WIRE_VERSION } from "./versions.js";

/** The device that asks, by its certificate, and the bytes that it sent. */
export interface Caller {
  device: string;
  body: Uint8Array;
}

export const callerKey = createContextKey<Caller>({ device: "", body: new Uint8Array() });

const LONGEST_WAIT_MS = 20_000;
const SIGNATURE_BYTES = 64;
const ON_ITS_WAY_MS = 100;
const DAY_MS = 86_400_000;
const CROWD_MS = 10; // for each device of a round, so that they do not come back all at once

/** A time as the messages take it. */
const milliseconds = (value: number): number => Math.min(DAY_MS, Math.max(1, Math.floor(value)));

export class Service implements ServiceImpl<typeof CoordinatorService> {
  constructor(private readonly coordinator: Coordinator) {}

  getManifest = (request: GetManifestRequest) => {
    checkCapabilities(request.capabilities);
    const { versions } = this.coordinator;
    const isKnown = request.knownModelVersion === BigInt(versions.current.number);
    return isKnown ? {} : { signedManifest: versions.signedManifest() };
  };

  checkIn = (request: CheckInRequest, context: HandlerContext) => {
    const capabilities = checkCapabilities(request.capabilities);
    const { device } = context.values.get(callerKey);
    this.coordinator.advance();
    const { round, settings } = this.coordinator;
    const isCapable =
      capabilities.uploadKinds.includes(settings.uploadKind) && capabilities.privacyModes.includes(settings.privacy);
    if (!isCapable) return this.retry(RetryReason.NOT_CAPABLE);
    if (round.receipts.has(device)) return this.retry(RetryReason.ALREADY_UPLOADED);
    if (round.step && round.canGoOn(device)) return this.assignment(device);
    const barredMs = this.coordinator.standing.barredMs(device, Date.now());
    if (barredMs > 0) return this.retry(RetryReason.FAULTY, barredMs);
    if (!round.step) return this.retry(RetryReason.AGGREGATING);
    if (!round.hasFreePlace() || this.coordinator.keepsOut(device)) return this.retry(RetryReason.ROUND_FULL);
    round.admit(device, Date.now());
    return this.assignment(device);
  };

  upload = (request: UploadRequest, context: HandlerContext) => {
    requireBytes(request.manifestSha256, 32, "manifest_sha256");
    requireBytes(request.uploadId, 16, "upload_id");
    this.deliver(request, "upload", context, (round) => {
      requireThat(
        equal(request.manifestSha256, round.version.manifestSha256),
        ErrorReason.MODEL_MISMATCH,
        "the round has another model",
      );
      const { settings } = this.coordinator;
      if (!(round instanceof SecureRound)) checkRowUpdate(request.body, settings, round.version.openRows);
      else round.checkVector(request.body.case === "maskedVector" ? request.body.value : undefined);
    });
    return { uploadId: request.uploadId, requestSha256: sha256(context.values.get(callerKey).body) };
  };

  advertiseKeys = (request: AdvertiseKeysRequest, context: HandlerContext) => {
    requireBytes(request.maskPublicKey, 32, "mask_public_key");
    requireBytes(request.sharePublicKey, 32, "share_public_key");
    requireBytes(request.membership, MEMBERSHIP_BYTES, "membership");
    requireBytes(request.signature, SIGNATURE_BYTES, "signature");
    const { device } = context.values.get(callerKey);
    return this.deliver(request, "advertise", context, (round) =>
      secure(round).checkAdvertise(device, request, Date.now()),
    );
  };

  shareKeys = (request: ShareKeysRequest, context: HandlerContext) => {
    const { device } = context.values.get(callerKey);
    return this.deliver(request, "share", context, (round) => secure(round).checkShares(device, request));
  };

  acknowledgeShares = (request: AcknowledgeSharesRequest, context: HandlerContext) => {
    const { device } = context.values.get(callerKey);
    return this.deliver(request, "acknowledge", context, (round) => secure(round).checkUnopened(device, request));
  };

  signIncluded = (request: SignIncludedRequest, context: HandlerContext) => {
    requireBytes(request.signature, SIGNATURE_BYTES, "signature");
    const { device } = context.values.get(callerKey);
    return this.deliver(request, "include", context, (round) => secure(round).checkSigned(device, request.signature));
  };

  signSurvivors = (request: SignSurvivorsRequest, context: HandlerContext) => {
    requireBytes(request.signature, SIGNATURE_BYTES, "signature");
    const { device } = context.values.get(callerKey);
    return this.deliver(request, "confirm", context, (round) => secure(round).checkSigned(device, request.signature));
  };

  revealShares = (request: RevealSharesRequest, context: HandlerContext) => {
    const { device } = context.values.get(callerKey);
    return this.deliver(request, "reveal", context, (round) => secure(round).checkReveal(device, request));
  };

  getStep = async (request: GetStepRequest, context: HandlerContext) => {
    requireBytes(request.roundId, 16, "round_id");
    requireThat(request.maxWaitMs <= LONGEST_WAIT_MS, ErrorReason.MALFORMED, `max_wait_ms is above ${LONGEST_WAIT_MS}`);
    const { device } = context.values.get(callerKey);
    // The answer must still reach a device that waits no longer than this.
    const patienceMs = (context.timeoutMs() ?? Infinity) - ON_ITS_WAY_MS;
    const endMs = Date.now() + Math.min(request.maxWaitMs, patienceMs);
    for (;;) {
      const step = this.stepOf(device, this.coordinator.find(request.roundId));
      const leftMs = endMs - Date.now();
      if (step?.case !== "waitMs" || leftMs <= 0) return { step };
      await this.coordinator.untilMoved(leftMs, context.signal);
    }
  };

  getRoundStatus = (request: GetRoundStatusRequest, context: HandlerContext) => {
    requireBytes(request.roundId, 16, "round_id");
    const round = this.coordinator.find(request.roundId);
    return {
      state: round.state,
      uploadCount: round.receipts.size,
      uploadGoal: this.coordinator.settings.goal,
      hasYourUpload: round.receipts.has(context.values.get(callerKey).device),
      nextModelVersion: BigInt(round.nextVersion),
    };
  };

  /** Takes a delivery of a step, which the document's questions come before. */
  private deliver(
    { roundId }: { roundId: Uint8Array },
    step: Step,
    context: HandlerContext,
    check: (live: Round) => void,
  ): Record<string, never> {
    requireBytes(roundId, 16, "round_id");
    const { device, body } = context.values.get(callerKey);
    const round = this.coordinator.find(roundId);
    const before = round.digestOf(device, step);
    if (before) {
      const isSame = equal(before, sha256(body));
      requireThat(isSame, ErrorReason.UPLOAD_CONFLICT, "this device has delivered something else in this step");
      return {};
    }
    requireThat(round.hasPlace(device), ErrorReason.NOT_ASSIGNED, "this device has no place in the round");
    const isPart = step === "upload" || this.isSecure;
    requireThat(isPart, ErrorReason.UPLOAD_INVALID, `a round in the clear has no step ${step}`);
    if (!(round instanceof Round)) throw refusal(ErrorReason.ROUND_CLOSED, "the round is over");
    round.requireTurn(device, step);
    check(round);
    round.accept(device, step, body);
    this.coordinator.advance();
    return {};
  }

  private get isSecure(): boolean {
    return this.coordinator.settings.privacy !== PrivacyMode.CLEAR;
  }

  private stepOf(device: string, round: RoundView): ReturnType<SecureRound["stepFor"]> {
    requireThat(round.hasPlace(device), ErrorReason.NOT_ASSIGNED, "this device has no place in the round");
    requireThat(this.isSecure, ErrorReason.UPLOAD_INVALID, "the round is in the clear");
    const isAddedUp = round.state === RoundState.AGGREGATING || round.state === RoundState.FINISHED;
    const isDone = round.digestOf(device, "reveal") !== undefined || (isAddedUp && round.receipts.has(device));
    if (isDone) return { case: "done", value: {} };
    if (!(round instanceof Round)) throw refusal(ErrorReason.ROUND_CLOSED, "the round is over");
    return secure(round).stepFor(device);
  }

  private assignment(device: string) {
    const { round, settings } = this.coordinator;
    const isSecure = round instanceof SecureRound;
    const value = {
      roundId: round.id,
      modelVersion: BigInt(round.version.number),
      manifestSha256: round.version.manifestSha256,
      deadlineMs: milliseconds(round.untilUploadsEndMs(Date.now())),
      uploadLimitBytes: uploadLimit(settings, round.version.itemCount),
      peerId: isSecure ? round.peerOf(device) : new Uint8Array(),
      kind: isSecure ? round.kind : RoundKind.UNSPECIFIED,
    };
    return { answer: { case: "assignment" as const, value } };
  }

  /** Begins about when the next round will open unless told otherwise, and is as wide as the crowd needs. */
  private retry(reason: RetryReason, fromMs = this.coordinator.round.untilEndMs(Date.now())) {
    const { settings } = this.coordinator;
    const earliestMs = milliseconds(fromMs);
    const latestMs = milliseconds(earliestMs + CROWD_MS * settings.places);
    return { answer: { case: "retryWindow" as const, value: { earliestMs, latestMs, reason } } };
  }
}

function checkCapabilities(capabilities: Capabilities | undefined): Capabilities {
  const versions = capabilities?.wireVersions ?? [];
  const isInRange = versions.length >= 1 && versions.length <= 16;
  requireThat(
    isInRange && capabilities !== undefined,
    ErrorReason.MALFORMED,
    `${versions.length} wire versions; 1 to 16 are allowed`,
  );
  const most = Math.max(capabilities.uploadKinds.length, capabilities.privacyModes.length);
  requireThat(most <= 16, ErrorReason.MALFORMED, `${most} kinds or modes; at most 16 are allowed`);
  if (!versions.includes(WIRE_VERSION)) {
    throw refusal(ErrorReason.WIRE_VERSION, "no wire version in common", { wireVersions: [WIRE_VERSION] });
  }
  return capabilities;
}

function requireBytes(field: Uint8Array, size: number, name: string): void {
  requireThat(field.length === size, ErrorReason.MALFORMED, `${name} has ${field.length} bytes, not ${size}`);
}

function secure(round: Round): SecureRound {
  if (!(round instanceof SecureRound)) throw refusal(ErrorReason.UPLOAD_INVALID, "the round is in the clear");
  return round;
}
