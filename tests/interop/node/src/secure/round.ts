// A round with secure aggregation: docs/protocol.md, "A round with secure aggregation". What a stage settles (roster,
// included, survivors) follows from what was delivered before its `settled` event, so replaying the journal settles the
// same again.
import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import type { Sums } from "../aggregate.js";
import { bitmap, readU32s } from "../bytes.js";
import { ErrorReason, requireThat } from "../errors.js";
import {
  AdvertiseKeysRequestSchema,
  RevealSharesRequestSchema,
  ShareKeysRequestSchema,
  type AdvertiseKeysRequest,
  type GetStepResponseSchema,
  type RevealSharesRequest,
  type ShareKeysRequest,
} from "../gen/lightfr/v1/secure_pb.js";
import { Round, type RoundEvent, type Step } from "../round.js";
import type { Versions } from "../versions.js";
import { isLowOrder } from "./keys.js";
import { Roster } from "./roster.js";
import { areSharesOf, ownersFor, unmask } from "./unmask.js";
import { signedBlocks, sumsOf, trainingBlocks, unpack, type Block } from "./vector.js";

type StepAnswer = MessageInitShape<typeof GetStepResponseSchema>["step"];

const SEALED_RECORD_BYTES = 98;
const ASK_AGAIN_MS = 250;

export class SecureRound extends Round {
  readonly steps: Step[] = ["advertise", "share", "upload", "reveal"];
  private roster?: Roster;
  private blocks: Block[] = [];

  constructor(
    private readonly versions: Versions,
    ...rest: ConstructorParameters<typeof Round>
  ) {
    super(...rest);
  }

  override apply(event: RoundEvent): void {
    super.apply(event);
    if (event.type === "settled" && this.step === "share") this.settleRoster();
  }

  protected isComplete(): boolean {
    const mayDeliver = this.stage === 0 ? this.settings.places : this.delivered[this.steps[this.stage - 1]].size;
    return this.delivered[this.step!].size >= mayDeliver;
  }

  protected needed(): number {
    return Math.max(this.settings.minimum, this.roster?.threshold ?? 2);
  }

  sums(): Sums | undefined {
    const sum = unmask({
      roundId: this.id,
      roster: this.roster!,
      blocks: this.blocks,
      included: this.indicesOf("share"),
      vectors: new Map(
        [...this.uploads].map(([device, { body }]) => [
          this.indexOf(device),
          unpack(body.value as Uint8Array, this.blocks)!,
        ]),
      ),
      reveals: new Map(
        [...this.delivered.reveal].map(([device, body]) => [
          this.indexOf(device),
          fromBinary(RevealSharesRequestSchema, body),
        ]),
      ),
    });
    return sum && sumsOf(signedBlocks(sum, this.blocks), this.versions.openRows, this.settings);
  }

  checkAdvertise({ maskPublicKey, sharePublicKey }: AdvertiseKeysRequest): void {
    const keys = [maskPublicKey, sharePublicKey].map((key) => Buffer.from(key));
    const known = [...this.delivered.advertise.values()].flatMap((body) => {
      const advertised = fromBinary(AdvertiseKeysRequestSchema, body);
      return [advertised.maskPublicKey, advertised.sharePublicKey];
    });
    const isFresh = !keys[0].equals(keys[1]) && !keys.some((key) => known.some((other) => key.equals(other)));
    requireThat(isFresh, ErrorReason.UPLOAD_INVALID, "a key stands twice in the roster");
    requireThat(!keys.some(isLowOrder), ErrorReason.UPLOAD_INVALID, "a key is a point of low order");
  }

  checkShares(device: string, { sealedShares }: ShareKeysRequest): void {
    const wanted = this.roster!.neighbours[this.indexOf(device)];
    const isWhole = sealedShares.length === wanted.length * SEALED_RECORD_BYTES;
    const receivers = isWhole ? sealedRecords(sealedShares).map(receiverOf) : [];
    const fits = isWhole && receivers.every((receiver, at) => receiver === wanted[at]);
    requireThat(
      fits,
      ErrorReason.UPLOAD_INVALID,
      `not exactly one record for each of ${wanted.length} neighbours, by ascending index`,
    );
  }

  checkVector(vector: Uint8Array | undefined): void {
    const fits = vector !== undefined && unpack(vector, this.blocks) !== undefined;
    requireThat(
      fits,
      ErrorReason.UPLOAD_INVALID,
      "the masked vector is absent, of another size, or has bits behind the last value of a block",
    );
  }

  checkReveal(device: string, { selfMasks, maskKeys }: RevealSharesRequest): void {
    const owners = ownersFor(this.indexOf(device), {
      roster: this.roster!,
      included: this.indicesOf("share"),
      survivors: this.indicesOf("upload"),
    });
    const fits =
      areSharesOf(selfMasks, owners.selfMasks, this.roster!) && areSharesOf(maskKeys, owners.maskKeys, this.roster!);
    requireThat(
      fits,
      ErrorReason.UPLOAD_INVALID,
      "not exactly the shares that this device must reveal, by ascending id",
    );
  }

  /** What the device needs for its next step. */
  stepFor(device: string): StepAnswer {
    requireThat(this.canGoOn(device), ErrorReason.ROUND_CLOSED, "the round goes on without this device");
    const step = this.step;
    const isDelivered = step !== undefined && this.delivered[step].has(device);
    if (step === "reveal" && isDelivered) return { case: "done", value: {} };
    if (step === "share" && !isDelivered) return { case: "share", value: this.shareStep() };
    if (step === "upload" && !isDelivered) return { case: "upload", value: this.uploadStep(this.indexOf(device)) };
    if (step === "reveal") return { case: "reveal", value: this.revealStep() };
    return { case: "waitMs", value: ASK_AGAIN_MS };
  }

  private settleRoster(): void {
    this.roster = new Roster(
      this.id,
      [...this.delivered.advertise].map(([device, body]) => {
        const { maskPublicKey, sharePublicKey } = fromBinary(AdvertiseKeysRequestSchema, body);
        return {
          peer: this.peerOf(device),
          maskKey: Buffer.from(maskPublicKey),
          shareKey: Buffer.from(sharePublicKey),
        };
      }),
    );
    this.blocks = trainingBlocks(this.roster.size, this.versions.openRows.length, this.settings.codeBits);
  }

  private shareStep() {
    const { degree, threshold, digest } = this.roster!;
    return {
      entries: this.roster!.entryBytes(),
      degree,
      threshold,
      signature: this.versions.sign("lightfr roster v1\n", digest),
    };
  }

  /** The included set, and what the included neighbours sealed for this device. */
  private uploadStep(index: number) {
    const senders = new Map([...this.delivered.share].map(([device, body]) => [this.indexOf(device), body]));
    const inbox = this.roster!.neighbours[index].filter((neighbour) => senders.has(neighbour)).map((neighbour) => {
      const record = sealedRecords(fromBinary(ShareKeysRequestSchema, senders.get(neighbour)!).sealedShares).find(
        (candidate) => receiverOf(candidate) === index,
      )!;
      const addressed = Buffer.from(record);
      addressed.writeUInt32LE(neighbour); // the receiver's index gives way to the sender's
      return addressed;
    });
    return { included: this.bitmapOf("share"), sealedShares: Buffer.concat(inbox) };
  }

  private revealStep() {
    const [included, survivors] = [this.bitmapOf("share"), this.bitmapOf("upload")];
    const signature = this.versions.sign("lightfr survivors v1\n", this.roster!.digest, included, survivors);
    return { survivors, signature };
  }

  private indexOf(device: string): number {
    return this.roster!.indexOf(this.peerOf(device));
  }

  private indicesOf(step: Step): Set<number> {
    return new Set([...this.delivered[step].keys()].map((device) => this.indexOf(device)));
  }

  private bitmapOf(step: Step): Buffer {
    const indices = this.indicesOf(step);
    return bitmap(this.roster!.size, (index) => indices.has(index));
  }
}

function sealedRecords(bytes: Uint8Array): Uint8Array[] {
  const count = bytes.length / SEALED_RECORD_BYTES;
  return Array.from({ length: count }, (_, at) =>
    bytes.subarray(at * SEALED_RECORD_BYTES, (at + 1) * SEALED_RECORD_BYTES),
  );
}

const receiverOf = (record: Uint8Array): number => readU32s(record.subarray(0, 4))[0];
