// One round, from its first place to its end: docs/protocol.md, "Rounds". What happens to it are events: each is in the
// journal before it is applied, and applying the journal anew after a crash gives the same round.
//
// A round has steps that devices deliver: `upload` alone in the clear, seven with secure aggregation. `stage` is the
// place among them of the step that is due.
import { randomBytes } from "node:crypto";
import { fromBinary } from "@bufbuild/protobuf";
import type { Sums } from "./aggregate.js";
import { base64, fromBase64, hex, sha256 } from "./bytes.js";
import { ErrorReason, requireThat } from "./errors.js";
import { RoundKind, RoundState, UploadRequestSchema, type UploadRequest } from "./gen/lightfr/v1/coordinator_pb.js";
import type { Journal } from "./journal.js";
import type { Settings } from "./settings.js";
import type { Verdict } from "./standing.js";
import type { Version } from "./versions.js";

export type Step = "advertise" | "share" | "acknowledge" | "include" | "upload" | "confirm" | "reveal";

export type RoundEvent =
  | { type: "open"; id: string; version: number; kind: RoundKind }
  | { type: "place"; device: string; peer: string; at: number }
  | { type: "delivery"; device: string; step: Step; body: string }
  | { type: "settled"; at: number };

export interface Receipt {
  uploadId: Uint8Array;
  requestSha256: Uint8Array;
}

/** What is known of a round, running or ended. */
export interface RoundView {
  readonly state: RoundState;
  readonly nextVersion: number;
  readonly receipts: ReadonlyMap<string, Receipt>;
  hasPlace(device: string): boolean;
  /** SHA-256 of what a device delivered in a step. */
  digestOf(device: string, step: Step): Buffer | undefined;
}

/** What outlives a round, as JSON. */
export interface RoundSummary {
  id: string;
  state: RoundState;
  nextVersion: number;
  receipts: [device: string, uploadId: string, requestSha256: string][];
  places: string[];
  delivered: [device: string, step: Step, requestSha256: string][];
  /** Devices whose deliveries did not fit together. */
  faulty: string[];
  verdict: Verdict;
  endedMs: number;
}

export class EndedRound implements RoundView {
  readonly receipts: ReadonlyMap<string, Receipt>;
  private readonly delivered: ReadonlyMap<string, Buffer>;

  constructor(private readonly summary: RoundSummary) {
    this.receipts = new Map(
      summary.receipts.map(([device, uploadId, digest]) => [
        device,
        { uploadId: fromBase64(uploadId), requestSha256: fromBase64(digest) },
      ]),
    );
    this.delivered = new Map(
      summary.delivered.map(([device, step, digest]) => [`${step} ${device}`, fromBase64(digest)]),
    );
  }

  get state(): RoundState {
    return this.summary.state;
  }

  get nextVersion(): number {
    return this.summary.nextVersion;
  }

  hasPlace(device: string): boolean {
    return this.summary.places.includes(device);
  }

  digestOf(device: string, step: Step): Buffer | undefined {
    return this.delivered.get(`${step} ${device}`);
  }
}

export abstract class Round implements RoundView {
  readonly nextVersion = 0;
  readonly receipts = new Map<string, Receipt>();
  readonly uploads = new Map<string, UploadRequest>();
  protected readonly places = new Map<string, Buffer>();
  protected readonly delivered: Record<Step, Map<string, Buffer>> = {
    advertise: new Map(),
    share: new Map(),
    acknowledge: new Map(),
    include: new Map(),
    upload: new Map(),
    confirm: new Map(),
    reveal: new Map(),
  };
  stage = 0;
  /** When the stage began. Absent: nobody has a place yet, and the clock stands still. */
  private clockMs?: number;

  constructor(
    readonly id: Buffer,
    readonly version: Version,
    protected readonly settings: Settings,
    private readonly journal: Pick<Journal<RoundEvent>, "append">,
  ) {}

  /** What the cohort adds up. */
  abstract readonly kind: RoundKind;

  /** In their order. */
  abstract readonly steps: Step[];

  /** Whether everybody has delivered whom the stage waits for. */
  protected abstract isComplete(): boolean;

  /** Whether the round can go on with those who delivered in this stage. */
  protected abstract isEnough(): boolean;

  /** What the cohort's uploads come to. Undefined: they cannot be put together, or devices cannot have said it. */
  abstract sums(): Sums | undefined;

  /** Devices whose deliveries did not fit together, as far as is known. */
  faulty(): string[] {
    return [];
  }

  apply(event: RoundEvent): void {
    if (event.type === "place") {
      this.places.set(event.device, Buffer.from(event.peer, "hex"));
      this.clockMs ??= event.at;
    } else if (event.type === "delivery") {
      this.keep(event.device, event.step, fromBase64(event.body));
    } else if (event.type === "settled") {
      this.stage += 1;
      this.clockMs = event.at;
    }
  }

  get step(): Step | undefined {
    return this.steps[this.stage];
  }

  get state(): RoundState {
    return this.step ? RoundState.OPEN : RoundState.AGGREGATING;
  }

  /** Ends the stage when everybody is done or the time is over. Returns "abandoned" when too few delivered. */
  advance(nowMs: number): "goes on" | "abandoned" {
    if (!this.step || !(this.isComplete() || this.remainingMs(nowMs, 1) <= 0)) return "goes on";
    if (!this.isEnough()) return "abandoned";
    this.record({ type: "settled", at: nowMs });
    return "goes on";
  }

  hasPlace(device: string): boolean {
    return this.places.has(device);
  }

  /** Whether any device has a place. */
  get hasBegun(): boolean {
    return this.places.size > 0;
  }

  hasFreePlace(): boolean {
    return this.stage === 0 && this.places.size < this.settings.places;
  }

  digestOf(device: string, step: Step): Buffer | undefined {
    const body = this.delivered[step].get(device);
    return body && sha256(body);
  }

  /** The device has a place, missed nothing and was not left out. */
  canGoOn(device: string): boolean {
    return this.hasPlace(device) && this.steps.slice(0, this.stage).every((step) => this.delivered[step].has(device));
  }

  admit(device: string, nowMs: number): void {
    this.record({ type: "place", device, peer: hex(randomBytes(16)), at: nowMs });
  }

  peerOf(device: string): Buffer {
    return this.places.get(device)!;
  }

  /** Milliseconds until so many stages from now are over, if each takes all its time. */
  remainingMs(nowMs: number, stages: number): number {
    return (this.clockMs ?? nowMs) + stages * this.settings.deadlineMs - nowMs;
  }

  /** Milliseconds until uploads are refused. */
  untilUploadsEndMs(nowMs: number): number {
    return this.remainingMs(nowMs, this.steps.indexOf("upload") + 1 - this.stage);
  }

  untilEndMs(nowMs: number): number {
    return this.remainingMs(nowMs, this.steps.length - this.stage);
  }

  /** Refuses what a device with a place may not deliver now. */
  requireTurn(device: string, step: Step): void {
    requireThat(this.steps.indexOf(step) <= this.stage, ErrorReason.UPLOAD_INVALID, `step ${step} is not due yet`);
    const isDue = step === this.step && this.canGoOn(device);
    requireThat(isDue, ErrorReason.ROUND_CLOSED, `step ${step} is over for this device`);
  }

  /** Takes a delivery that has been checked. */
  accept(device: string, step: Step, body: Uint8Array): void {
    this.record({ type: "delivery", device, step, body: base64(body) });
  }

  summary(state: RoundState, nextVersion: number, verdict: Verdict): RoundSummary {
    const receipts = [...this.receipts].map(
      ([device, { uploadId, requestSha256 }]): RoundSummary["receipts"][number] => [
        device,
        base64(uploadId),
        base64(requestSha256),
      ],
    );
    const delivered = this.steps.flatMap((step) =>
      [...this.delivered[step]].map(([device, body]): RoundSummary["delivered"][number] => [
        device,
        step,
        base64(sha256(body)),
      ]),
    );
    const [places, faulty] = [[...this.places.keys()], this.faulty()];
    return { id: hex(this.id), state, nextVersion, receipts, places, delivered, faulty, verdict, endedMs: Date.now() };
  }

  private keep(device: string, step: Step, body: Buffer): void {
    this.delivered[step].set(device, body);
    if (step !== "upload") return;
    const upload = fromBinary(UploadRequestSchema, body);
    this.uploads.set(device, upload);
    // The digest is of the bytes as they arrived: serialised anew they could differ.
    this.receipts.set(device, { uploadId: upload.uploadId, requestSha256: sha256(body) });
  }

  private record(event: RoundEvent): void {
    this.journal.append(event);
    this.apply(event);
  }
}
