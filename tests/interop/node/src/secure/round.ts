// A round with secure aggregation: docs/protocol.md, "A round with secure aggregation". What a stage settles (roster,
// included, signers, survivors) follows from what was delivered before its `settled` event, so replaying the journal
// settles the same again.
import { fromBinary, type MessageInitShape } from "@bufbuild/protobuf";
import type { Sums } from "../aggregate.js";
import { bitmap, indicesIn, isAscending, pieces, readU32s, u32 } from "../bytes.js";
import { ErrorReason, requireThat } from "../errors.js";
import { RoundKind } from "../gen/lightfr/v1/coordinator_pb.js";
import {
  AcknowledgeSharesRequestSchema,
  AdvertiseKeysRequestSchema,
  RevealSharesRequestSchema,
  ShareKeysRequestSchema,
  SignIncludedRequestSchema,
  SignSurvivorsRequestSchema,
  type AcknowledgeSharesRequest,
  type AdvertiseKeysRequest,
  type GetStepResponseSchema,
  type RevealSharesRequest,
  type ShareKeysRequest,
} from "../gen/lightfr/v1/secure_pb.js";
import { arePlausibleCounts, arePlausibleHits, isPlausibleClipped } from "../plausible.js";
import { Round, type RoundEvent, type Step } from "../round.js";
import type { Versions } from "../versions.js";
import { isLowOrder } from "./keys.js";
import { isSigned, MEMBER_KEY_BYTES, memberOf } from "./members.js";
import { Roster, type Entry } from "./roster.js";
import { settle, type Settlement } from "./settling.js";
import { areSharesOf, unmask } from "./unmask.js";
import { evaluationBlocks, gateBlocks, signedBlocks, sumsOf, trainingBlocks, unpack, type Block } from "./vector.js";

type StepAnswer = MessageInitShape<typeof GetStepResponseSchema>["step"];

const INDEX_BYTES = 4;
const SEALED_RECORD_BYTES = 98;
const ASK_AGAIN_MS = 250;
const ENTRY_LABEL = "lightfr entry v1\n";

export class SecureRound extends Round {
  readonly steps: Step[] = ["advertise", "share", "acknowledge", "include", "upload", "confirm", "reveal"];
  private roster?: Roster;
  private blocks: Block[] = [];
  private settlement?: Settlement;
  /** By receiver, what others sealed for it, by ascending index of the sender. */
  private inboxes = new Map<number, Buffer[]>();
  private liars: string[] = [];
  /** Whether no sum could be put together because devices were missing at the end. */
  lacksShares = false;

  constructor(
    readonly kind: RoundKind,
    private readonly versions: Versions,
    private readonly authorityKeys: Uint8Array[],
    ...rest: ConstructorParameters<typeof Round>
  ) {
    super(...rest);
  }

  override apply(event: RoundEvent): void {
    super.apply(event);
    if (event.type !== "settled") return;
    if (this.step === "share") this.settleRoster();
    if (this.step === "acknowledge") this.fillInboxes();
    if (this.step === "include") this.settlement = this.settleIncluded();
  }

  protected isComplete(): boolean {
    return this.delivered[this.step!].size >= this.expected();
  }

  /** How many devices may deliver in this stage. */
  private expected(): number {
    if (this.stage === 0) return this.settings.places;
    return this.step === "include" ? this.included.size : this.delivered[this.steps[this.stage - 1]].size;
  }

  protected isEnough(): boolean {
    const delivered = this.delivered[this.step!].size;
    if (this.step === "advertise") return delivered >= Math.max(this.settings.minimum, 2);
    if (this.step === "reveal") return true; // whether the shares suffice shows when they are put together
    const count = this.step === "acknowledge" ? this.settleIncluded().included.size : delivered;
    return count >= Math.max(this.settings.minimum, this.roster!.quorum);
  }

  override canGoOn(device: string): boolean {
    return super.canGoOn(device) && (!this.settlement || this.included.has(this.indexOf(device)));
  }

  override faulty(): string[] {
    if (this.stage < this.steps.indexOf("acknowledge")) return [];
    const { faulty } = this.settlement ?? this.settleIncluded();
    return [...new Set([...this.devicesAt(faulty), ...this.liars])];
  }

  sums(): Sums | undefined {
    const blocks = this.unmasked();
    const { noise } = this.settings;
    if (noise && blocks && !isPlausibleClipped(blocks[0], blocks[1], this.uploads.size, noise)) return undefined;
    const { model, openRows } = this.version;
    return blocks && sumsOf(blocks, this.uploads.size, openRows, model.memory.length / this.settings.codeBits);
  }

  /** What a gate refresh comes to: how many devices rate each item. Undefined as for `sums`. */
  counts(): Int32Array | undefined {
    const counts = this.unmasked()?.[0];
    return counts && arePlausibleCounts(counts, this.uploads.size, this.settings.noise) ? counts : undefined;
  }

  /** Of the noise in each number of an evaluation. */
  get hitsVariance(): number {
    const { noise } = this.settings;
    return noise ? this.uploads.size * (noise.countsThousandths / 1000) ** 2 : 128;
  }

  /** What an evaluation comes to. Undefined as for `sums`; with the noise of an epsilon every sum can have been said. */
  hits(): Int32Array | undefined {
    const hits = this.unmasked()?.[0];
    return hits && (this.settings.noise || arePlausibleHits(hits, this.uploads.size)) ? hits : undefined;
  }

  /** The sum of the survivors' vectors, block by block. */
  private unmasked(): Int32Array[] | undefined {
    const byIndex = <Value>(step: Step, read: (device: string, body: Buffer) => Value): Map<number, Value> =>
      new Map([...this.delivered[step]].map(([device, body]) => [this.indexOf(device), read(device, body)]));
    const { sum, faulty, lacksShares } = unmask({
      roundId: this.id,
      roster: this.roster!,
      blocks: this.blocks,
      included: this.included,
      vectors: byIndex("upload", (device) => unpack(this.uploads.get(device)!.body.value as Uint8Array, this.blocks)!),
      reveals: byIndex("reveal", (_, body) => fromBinary(RevealSharesRequestSchema, body)),
    });
    this.liars = this.devicesAt(faulty);
    this.lacksShares = lacksShares;
    return sum && signedBlocks(sum, this.blocks);
  }

  // What devices deliver: each throws unless it is what the step asks for.

  checkAdvertise(device: string, request: AdvertiseKeysRequest, nowMs: number): void {
    const { maskPublicKey, sharePublicKey, membership, signature } = request;
    const keys = [maskPublicKey, sharePublicKey, membership.subarray(0, MEMBER_KEY_BYTES)].map((key) =>
      Buffer.from(key),
    );
    const known = [...this.delivered.advertise].flatMap(([other, body]) => {
      const { maskKey, shareKey, memberKey } = this.entryOf(other, fromBinary(AdvertiseKeysRequestSchema, body));
      return [maskKey, shareKey, memberKey];
    });
    const all = new Set([...known, ...keys].map((key) => key.toString("hex")));
    invalidUnless(all.size === known.length + keys.length, "a key stands twice in the roster");
    invalidUnless(!keys.slice(0, 2).some(isLowOrder), "a key is a point of low order");
    const member = memberOf(membership, this.authorityKeys, nowMs / 1000);
    invalidUnless(member !== undefined, "the membership is not the authority's, or it has ended");
    const entry = [this.id, this.peerOf(device), maskPublicKey, sharePublicKey];
    invalidUnless(isSigned(member, signature, ENTRY_LABEL, ...entry), "the signature of the entry does not fit");
  }

  checkShares(device: string, { sealedShares }: ShareKeysRequest): void {
    const { size, numbers } = this.roster!;
    const isWhole = sealedShares.length === numbers.holders * SEALED_RECORD_BYTES;
    const receivers = isWhole ? receiversOf(sealedShares) : [];
    const own = this.indexOf(device);
    const fits =
      isWhole && isAscending(receivers) && receivers.every((receiver) => receiver < size && receiver !== own);
    invalidUnless(fits, `not ${numbers.holders} records for other devices, by ascending index`);
  }

  checkUnopened(device: string, { unopened }: AcknowledgeSharesRequest): void {
    const senders = this.inboxOf(device).map((record) => record.readUInt32LE());
    const fits =
      unopened.length === (this.roster!.size + 7) >> 3 && indicesIn(unopened).every((i) => senders.includes(i));
    invalidUnless(fits, "unopened has another size, or names a device that sent this one nothing");
  }

  /** The signature of the set that is due. */
  checkSigned(device: string, signature: Uint8Array): void {
    const { memberKey } = this.roster!.entries[this.indexOf(device)];
    const [label, ...parts] = this.step === "include" ? this.includedMessage() : this.survivorsMessage();
    invalidUnless(isSigned(memberKey, signature, label, ...parts), "the signature of the set does not fit");
  }

  checkVector(vector: Uint8Array | undefined): void {
    const fits = vector !== undefined && unpack(vector, this.blocks) !== undefined;
    invalidUnless(fits, "the masked vector is absent, of another size, or has bits behind the last value of a block");
  }

  checkReveal(device: string, { seeds, maskKeys }: RevealSharesRequest): void {
    const held = this.ownersHeldBy(device);
    const survivors = this.indicesOf("upload");
    const [alive, gone] = [true, false].map((is) => new Set(held.filter((owner) => survivors.has(owner) === is)));
    const fits = areSharesOf(seeds, alive) && areSharesOf(maskKeys, gone);
    invalidUnless(fits, "not exactly the shares that this device must reveal, by ascending index");
  }

  /** Included devices whose shares a device has: itself, and who chose it and about whom it did not complain. */
  private ownersHeldBy(device: string): number[] {
    const senders = this.inboxOf(device).map((record) => record.readUInt32LE());
    const unopened = this.unopened().get(this.indexOf(device))!;
    const opened = senders.filter((sender) => !unopened.has(sender));
    return [this.indexOf(device), ...opened].filter((owner) => this.included.has(owner));
  }

  // What devices are told.

  stepFor(device: string): StepAnswer {
    requireThat(this.canGoOn(device), ErrorReason.ROUND_CLOSED, "the round goes on without this device");
    const { step } = this;
    if (!step || step === "advertise" || this.delivered[step].has(device)) {
      return { case: "waitMs", value: ASK_AGAIN_MS };
    }
    if (step === "share") return { case: "share", value: this.shareStep() };
    if (step === "acknowledge") {
      return { case: "acknowledge", value: { sealedShares: Buffer.concat(this.inboxOf(device)) } };
    }
    if (step === "include") return { case: "included", value: this.includedStep() };
    if (step === "upload") return { case: "upload", value: this.quorum("include") };
    if (step === "confirm") return { case: "survivors", value: this.survivorsStep() };
    return { case: "reveal", value: this.quorum("confirm") };
  }

  private shareStep() {
    const { numbers, digest } = this.roster!;
    return {
      entries: this.roster!.entryBytes(),
      vouchers: this.roster!.voucherBytes(),
      ...numbers,
      signature: this.versions.sign("lightfr roster v1\n", digest),
    };
  }

  private includedStep() {
    return { included: this.bitmapOf(this.included), signature: this.versions.sign(...this.includedMessage()) };
  }

  private survivorsStep() {
    const survivors = this.bitmapOf(this.indicesOf("upload"));
    return { survivors, signature: this.versions.sign(...this.survivorsMessage()) };
  }

  /** As many signers as a device asks for, those with the smallest indices. */
  private quorum(step: "include" | "confirm") {
    const schema = step === "include" ? SignIncludedRequestSchema : SignSurvivorsRequestSchema;
    const signed = [...this.delivered[step]]
      .map(([device, body]) => ({ index: this.indexOf(device), ...fromBinary(schema, body) }))
      .sort((left, right) => left.index - right.index)
      .slice(0, this.roster!.quorum);
    const signers = this.bitmapOf(new Set(signed.map(({ index }) => index)));
    return { signers, signatures: Buffer.concat(signed.map(({ signature }) => signature)) };
  }

  private includedMessage(): [label: string, ...parts: Buffer[]] {
    return ["lightfr included v1\n", this.roster!.digest, this.bitmapOf(this.included)];
  }

  private survivorsMessage(): [label: string, ...parts: Buffer[]] {
    const sets = [this.included, this.indicesOf("upload")].map((set) => this.bitmapOf(set));
    return ["lightfr survivors v1\n", this.roster!.digest, ...sets];
  }

  // What the stages settle.

  private settleRoster(): void {
    const entries = [...this.delivered.advertise].map(([device, body]) =>
      this.entryOf(device, fromBinary(AdvertiseKeysRequestSchema, body)),
    );
    const { manifestSha256 } = this.version;
    this.roster = new Roster({ roundId: this.id, manifestSha256, kind: this.kind }, entries);
    this.blocks = this.blocksFor(this.roster.size);
  }

  private blocksFor(devices: number): Block[] {
    const { codeBits, noise } = this.settings;
    const { itemCount, openRows } = this.version;
    if (this.kind === RoundKind.GATE_REFRESH) return gateBlocks(devices, itemCount, noise);
    if (this.kind === RoundKind.EVALUATION) return evaluationBlocks(devices, this.versions.candidates.length, noise);
    return trainingBlocks(devices, openRows.size, codeBits, noise);
  }

  private entryOf(
    device: string,
    { maskPublicKey, sharePublicKey, membership, signature }: AdvertiseKeysRequest,
  ): Entry {
    return {
      peer: this.peerOf(device),
      maskKey: Buffer.from(maskPublicKey),
      shareKey: Buffer.from(sharePublicKey),
      memberKey: Buffer.from(membership.subarray(0, MEMBER_KEY_BYTES)),
      voucher: Buffer.concat([membership.subarray(MEMBER_KEY_BYTES), signature]),
    };
  }

  private sealedBySender(): [sender: number, records: Uint8Array][] {
    return [...this.delivered.share]
      .map(([device, body]): [number, Uint8Array] => [
        this.indexOf(device),
        fromBinary(ShareKeysRequestSchema, body).sealedShares,
      ])
      .sort(([left], [right]) => left - right);
  }

  private fillInboxes(): void {
    for (const [sender, records] of this.sealedBySender()) {
      for (const record of pieces(records, SEALED_RECORD_BYTES)) {
        const [receiver] = readU32s(record.subarray(0, INDEX_BYTES));
        // The receiver's index gives way to the sender's.
        const addressed = Buffer.concat([u32(sender), record.subarray(INDEX_BYTES)]);
        this.inboxes.set(receiver, [...(this.inboxes.get(receiver) ?? []), addressed]);
      }
    }
  }

  private inboxOf(device: string): Buffer[] {
    return this.inboxes.get(this.indexOf(device)) ?? [];
  }

  private settleIncluded(): Settlement {
    const holdersOf = new Map(this.sealedBySender().map(([sender, records]) => [sender, receiversOf(records)]));
    return settle(this.roster!.numbers, holdersOf, this.unopened());
  }

  /** For each device that acknowledged, the senders whose shares it could not open. */
  private unopened(): Map<number, Set<number>> {
    return new Map(
      [...this.delivered.acknowledge].map(([device, body]) => [
        this.indexOf(device),
        new Set(indicesIn(fromBinary(AcknowledgeSharesRequestSchema, body).unopened)),
      ]),
    );
  }

  private get included(): Set<number> {
    return this.settlement!.included;
  }

  private indexOf(device: string): number {
    return this.roster!.indexOf(this.peerOf(device));
  }

  private devicesAt(indices: Set<number>): string[] {
    return [...this.delivered.advertise.keys()].filter((device) => indices.has(this.indexOf(device)));
  }

  private indicesOf(step: Step): Set<number> {
    return new Set([...this.delivered[step].keys()].map((device) => this.indexOf(device)));
  }

  private bitmapOf(indices: Set<number>): Buffer {
    return bitmap(this.roster!.size, (index) => indices.has(index));
  }
}

function invalidUnless(holds: boolean, message: string): asserts holds {
  requireThat(holds, ErrorReason.UPLOAD_INVALID, message);
}

const receiversOf = (sealedShares: Uint8Array): number[] =>
  pieces(sealedShares, SEALED_RECORD_BYTES).map((record) => readU32s(record.subarray(0, INDEX_BYTES))[0]);
