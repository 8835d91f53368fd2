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
import { PrivacyMode, UploadKind } from "./gen/lightfr/v1/model_pb.js";
import type {
  AdvertiseKeysRequest,
  GetStepRequest,
  RevealSharesRequest,
  ShareKeysRequest,
} from "./gen/lightfr/v1/secure_pb.js";
import { uploadLimit } from "./limits.js";
import { Round, type RoundView, type Step } from "./round.js";
import { SecureRound } from "./secure/round.js";
import { WIRE_VERSION } from "./versions.js";

/** The device that asks, by its certificate, and the bytes that it sent. */
export interface Caller {
  device: string;
  body: Uint8Array;
}

export const callerKey = createContextKey<Caller>({ device: "", body: new Uint8Array() });

const LONGEST_WAIT_MS = 20_000;
const DAY_MS = 86_400_000;
const CROWD_MS = 10; // for each device of a round, so that they do not come back all at once

/** A time as the messages take it. */
const milliseconds = (value: number): number => Math.min(DAY_MS, Math.max(1, Math.floor(value)));

export class Service implements ServiceImpl<typeof CoordinatorService> {
  private readonly openRows: ReadonlySet<number>;

  constructor(private readonly coordinator: Coordinator) {
    this.openRows = new Set(coordinator.versions.openRows);
  }

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
      capabilities.uploadKinds.includes(UploadKind.TERNARY) && capabilities.privacyModes.includes(settings.privacy);
    if (!isCapable) return this.retry(RetryReason.NOT_CAPABLE);
    if (round.receipts.has(device)) return this.retry(RetryReason.ALREADY_UPLOADED);
    if (!round.step) return this.retry(RetryReason.AGGREGATING);
    if (round.canGoOn(device)) return this.assignment(device);
    if (!round.hasFreePlace()) return this.retry(RetryReason.ROUND_FULL);
    round.admit(device, Date.now());
    return this.assignment(device);
  };

  upload = (request: UploadRequest, context: HandlerContext) => {
    requireBytes(request.roundId, 16, "round_id");
    requireBytes(request.manifestSha256, 32, "manifest_sha256");
    requireBytes(request.uploadId, 16, "upload_id");
    const { device, body } = context.values.get(callerKey);
    const round = this.coordinator.find(request.roundId);
    const receipt = round.receipts.get(device);
    if (receipt) {
      requireThat(
        equal(receipt.requestSha256, sha256(body)),
        ErrorReason.UPLOAD_CONFLICT,
        "this device has uploaded something else",
      );
      return receipt;
    }
    this.deliver(round, "upload", context, (live) => {
      requireThat(
        equal(request.manifestSha256, live.version.manifestSha256),
        ErrorReason.MODEL_MISMATCH,
        "the round has another model",
      );
      if (!(live instanceof SecureRound)) checkRowUpdate(request.body, this.coordinator.settings, this.openRows);
      else live.checkVector(request.body.case === "maskedVector" ? request.body.value : undefined);
    });
    return { uploadId: request.uploadId, requestSha256: sha256(body) };
  };

  advertiseKeys = (request: AdvertiseKeysRequest, context: HandlerContext) => {
    requireBytes(request.roundId, 16, "round_id");
    requireBytes(request.maskPublicKey, 32, "mask_public_key");
    requireBytes(request.sharePublicKey, 32, "share_public_key");
    const round = this.coordinator.find(request.roundId);
    this.deliver(round, "advertise", context, (live) => secure(live).checkAdvertise(request));
    return {};
  };

  shareKeys = (request: ShareKeysRequest, context: HandlerContext) => {
    requireBytes(request.roundId, 16, "round_id");
    const { device } = context.values.get(callerKey);
    const round = this.coordinator.find(request.roundId);
    this.deliver(round, "share", context, (live) => secure(live).checkShares(device, request));
    return {};
  };

  revealShares = (request: RevealSharesRequest, context: HandlerContext) => {
    requireBytes(request.roundId, 16, "round_id");
    const { device } = context.values.get(callerKey);
    const round = this.coordinator.find(request.roundId);
    // The masks came off without this answer, or with it: either way the device is done.
    if (round.state === RoundState.FINISHED && round.receipts.has(device)) return {};
    this.deliver(round, "reveal", context, (live) => secure(live).checkReveal(device, request));
    return {};
  };

  getStep = async (request: GetStepRequest, context: HandlerContext) => {
    requireBytes(request.roundId, 16, "round_id");
    requireThat(request.maxWaitMs <= LONGEST_WAIT_MS, ErrorReason.MALFORMED, `max_wait_ms is above ${LONGEST_WAIT_MS}`);
    const { device } = context.values.get(callerKey);
    const endMs = Date.now() + request.maxWaitMs;
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

  private deliver(round: RoundView, step: Step, context: HandlerContext, check: (live: Round) => void): void {
    const { device, body } = context.values.get(callerKey);
    requireThat(round.hasPlace(device), ErrorReason.NOT_ASSIGNED, "this device has no place in the round");
    if (!(round instanceof Round)) throw refusal(ErrorReason.ROUND_CLOSED, "the round is over");
    const isPart = round.steps.includes(step);
    requireThat(isPart, ErrorReason.UPLOAD_INVALID, `a round in the clear has no step ${step}`);
    round.deliver(device, step, body, () => check(round));
    this.coordinator.advance();
  }

  private stepOf(device: string, round: RoundView): ReturnType<SecureRound["stepFor"]> {
    requireThat(round.hasPlace(device), ErrorReason.NOT_ASSIGNED, "this device has no place in the round");
    const isSecure = this.coordinator.settings.privacy !== PrivacyMode.CLEAR;
    const isAddedUp = round.state === RoundState.AGGREGATING || round.state === RoundState.FINISHED;
    if (isSecure && isAddedUp && round.receipts.has(device)) return { case: "done", value: {} };
    if (!(round instanceof Round)) throw refusal(ErrorReason.ROUND_CLOSED, "the round is over");
    return secure(round).stepFor(device);
  }

  private assignment(device: string) {
    const { round, settings, versions } = this.coordinator;
    const isSecure = round instanceof SecureRound;
    const value = {
      roundId: round.id,
      modelVersion: BigInt(round.version.number),
      manifestSha256: round.version.manifestSha256,
      deadlineMs: milliseconds(round.untilUploadsEndMs(Date.now())),
      uploadLimitBytes: uploadLimit(settings, versions.openRows.length),
      peerId: isSecure ? round.peerOf(device) : new Uint8Array(),
      kind: isSecure ? RoundKind.TRAINING : RoundKind.UNSPECIFIED,
    };
    return { answer: { case: "assignment" as const, value } };
  }

  /** Begins about when the next round will open, and is as wide as the crowd needs. */
  private retry(reason: RetryReason) {
    const { round, settings } = this.coordinator;
    const earliestMs = milliseconds(round.untilEndMs(Date.now()));
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
