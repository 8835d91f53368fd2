// The model, the round that runs and those that ended; and how one round becomes the next version.
import { EventEmitter, once } from "node:events";
import { existsSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { randomBytes } from "node:crypto";
import { nextModel, type Model } from "./aggregate.js";
import { hex } from "./bytes.js";
import { ClearRound } from "./clear.js";
import type { Enrolled, Renewed } from "./enrollment.js";
import { ErrorReason, refusal } from "./errors.js";
import { isRefreshDue, refreshed, rowsBefore, withRows } from "./gate.js";
import { RoundKind, RoundState } from "./gen/lightfr/v1/coordinator_pb.js";
import { Objective, PrivacyMode, UploadKind } from "./gen/lightfr/v1/model_pb.js";
import { Journal } from "./journal.js";
import { nextPaperModel } from "./paper.js";
import { plausible, type Plausible } from "./plausible.js";
import { EndedRound, Round, type RoundEvent, type RoundSummary, type RoundView } from "./round.js";
import { SecureRound } from "./secure/round.js";
import { hasGate, type Item, type Settings } from "./settings.js";
import { Standing } from "./standing.js";
import type { Next, Origin, Versions } from "./versions.js";

/** What the server's journal holds. A version and the end of its round are one record: never one without the other. */
export type ServerEvent =
  | Enrolled
  | Renewed
  | ({ type: "version"; manifest: string; round?: RoundSummary } & Origin)
  | { type: "abandoned"; round: RoundSummary };

/** What was learnt in a round. */
interface Learnt extends Pick<Origin, "gate" | "hits" | "variance"> {
  model: Model;
  /** Whether some rows say more than the devices can, and stay as they are. */
  isSpoilt?: boolean;
}

const KEPT_ROUNDS = 16;
const CLOCK_MS = 20;

export class Coordinator {
  round!: ClearRound | SecureRound;
  private roundJournal?: Journal<RoundEvent>;
  /** By id, oldest first. */
  private readonly ended = new Map<string, EndedRound>();
  readonly standing = new Standing();
  private readonly moved = new EventEmitter().setMaxListeners(0);
  private isFinishing = false;
  /** The items that the catalogue shall have as soon as a round has ended. */
  private listed?: Item[];
  private clock?: NodeJS.Timeout;

  constructor(
    readonly settings: Settings,
    readonly versions: Versions,
    private readonly journal: Pick<Journal<ServerEvent>, "append">,
    private readonly folder: string,
    /** By which the memberships of devices are known: raw Ed25519 keys. */
    private readonly authorityKeys: Uint8Array[],
  ) {}

  /** Takes up what the journal remembers. */
  replay(event: ServerEvent): void {
    if (event.type === "version") this.versions.replay(event.manifest, event);
    if ("round" in event && event.round) this.remember(event.round);
  }

  /** After the replay: publishes the first version if there is none, and goes on with the round that was running. */
  start(items: Item[], firstCodes: Uint8Array): void {
    if (!this.versions.exists) this.publish(this.versions.firstOf(items, firstCodes));
    this.versions.clean();
    this.resumeRound();
    this.changeItems(items);
    this.clock = setInterval(() => this.tick(), CLOCK_MS);
  }

  /** Lets the catalogue have these items, most popular first, from when no device has a place in a round. */
  changeItems(items: Item[]): void {
    this.listed = items;
    this.advance();
  }

  stop(): void {
    clearInterval(this.clock);
  }

  /** The round with this id, after whatever the clock has ended. */
  find(id: Uint8Array): RoundView {
    this.advance();
    const round = this.round.id.equals(id) ? this.round : this.ended.get(hex(id));
    if (!round) throw refusal(ErrorReason.ROUND_UNKNOWN, "there is no such round, or it is forgotten");
    return round;
  }

  /** Whether the device must wait for another round although this one has places left. */
  keepsOut(device: string): boolean {
    // The two refreshes of a pair have no device in common.
    const isRefresh = this.round.kind === RoundKind.GATE_REFRESH;
    const hasCounted = isRefresh && !!this.versions.gate.first?.devices.includes(device);
    return hasCounted || this.standing.isLeftOut(device, this.round.id);
  }

  /** Ends what has come to its end. Called before every answer, after every delivery, and as time passes. */
  advance(): void {
    if (this.listed && !this.round.hasBegun) this.changeCatalogue(this.listed);
    const { round } = this;
    const { stage } = round;
    const outcome = round.advance(Date.now());
    if (outcome === "abandoned")
      this.end({ type: "abandoned", round: round.summary(RoundState.ABANDONED, 0, "too few") });
    else if (!round.step && !this.isFinishing) {
      // Later, so that the last device has its receipt before the server starts to calculate.
      this.isFinishing = true;
      setImmediate(() => this.finish());
    }
    if (this.round !== round || this.round.stage !== stage) this.moved.emit("moved");
  }

  /** Resolves when a stage or a round has ended, or after `ms`; rejects when the caller is gone. */
  async untilMoved(ms: number, signal: AbortSignal): Promise<void> {
    const either = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
    await once(this.moved, "moved", { signal: either }).catch(() => signal.throwIfAborted());
  }

  /** Takes up a list of items, if it changes anything, as a version of its own. The round that nobody is in gives way. */
  private changeCatalogue(listed: Item[]): void {
    const change = this.versions.changedBy(listed);
    if (change) {
      this.publish(change);
      this.versions.clean();
      this.openRound();
    }
    this.listed = undefined;
  }

  private publish({ model, origin }: Next): void {
    this.record({ type: "version", manifest: this.versions.prepare(model, origin), ...origin });
  }

  private tick(): void {
    try {
      this.advance();
    } catch (error) {
      console.error("the round cannot go on yet:", error);
    }
  }

  private finish(): void {
    try {
      this.end(this.outcome());
    } catch (error) {
      // The round stays AGGREGATING and is tried again; all it needs is in the journal.
      console.error("adding up failed:", error);
    }
    this.isFinishing = false;
    this.moved.emit("moved");
  }

  /** What the round has come to: a version whose files are written, or nothing. */
  private outcome(): ServerEvent {
    const { round, versions } = this;
    const next = this.learnt();
    if (!next) {
      console.error("a round has no sum, or none that its devices can have said: nothing is learnt from it");
      // Devices have revealed on this version and will not on it again: the same codes get a new number.
      const manifest = versions.prepare(versions.current.model);
      const verdict = round instanceof SecureRound && round.lacksShares ? "nothing" : "spoilt";
      return { type: "version", manifest, round: round.summary(RoundState.ABANDONED, 0, verdict) };
    }
    const origin = { kind: round.kind, gate: next.gate, hits: next.hits, variance: next.variance };
    const manifest = versions.prepare(next.model, origin);
    const verdict = next.isSpoilt ? "spoilt" : "good";
    const summary = round.summary(RoundState.FINISHED, versions.current.number + 1, verdict);
    return { type: "version", manifest, ...origin, round: summary };
  }

  /** What comes of the round, by its kind. Undefined: nothing, for it has no sum that its devices can have said. */
  private learnt(): Learnt | undefined {
    const { round } = this;
    if (round instanceof SecureRound && round.kind === RoundKind.GATE_REFRESH) return this.counted(round);
    if (round instanceof SecureRound && round.kind === RoundKind.EVALUATION) return this.evaluated(round);
    return this.trained();
  }

  /** What comes of an evaluation: the same codes, and how well the candidates rank. */
  private evaluated(round: SecureRound): Learnt | undefined {
    const hits = round.hits();
    return hits && { model: this.versions.current.model, hits: [...hits], variance: round.hitsVariance };
  }

  /** What comes of a gate refresh. */
  private counted(round: SecureRound): Learnt | undefined {
    const { versions, settings } = this;
    const counts = round.counts();
    if (!counts) return undefined;
    const gate = refreshed(versions.gate, [...counts], [...round.uploads.keys()], versions.catalogue, settings);
    const rows = rowsBefore(versions.gate, gate, settings);
    return { model: withRows(versions.current.model, rows, settings.codeBits), gate };
  }

  private trained(): Learnt | undefined {
    const { round, settings } = this;
    const { model, openRows, itemCount } = this.versions.current;
    if (round instanceof ClearRound && settings.objective === Objective.PAPER)
      return { model: nextPaperModel(model, round.updates(), openRows, settings) };
    const learnt = this.learnable();
    const shape = { codeBits: settings.codeBits, itemCount, isExact: settings.uploadKind === UploadKind.EXACT };
    return learnt && { model: nextModel(model, learnt.sums, shape, learnt.frozen), isSpoilt: learnt.frozen.size > 0 };
  }

  /** The round's sums, if they can be put together and are what its devices can have said. */
  private learnable(): Plausible | undefined {
    const { round, versions, settings } = this;
    const sums = round.sums();
    if (!sums || settings.privacy !== PrivacyMode.SECAGG) return sums && { sums, frozen: new Set() };
    const { counts, counted, everOpen } = versions.gate;
    const { model, openRows } = versions.current;
    const countsByRow = hasGate(settings) ? everOpen.map((item) => counts[item]) : undefined;
    const open = { rows: [...openRows.values()], counts: countsByRow, counted };
    return plausible(sums, round.uploads.size, model, open, settings.codeBits);
  }

  private end(event: ServerEvent): void {
    // Should opening the next round have failed after this one was ended, it is not ended, and not counted, twice.
    if (!this.ended.has(hex(this.round.id))) this.record(event);
    this.versions.clean();
    this.openRound();
  }

  private record(event: ServerEvent): void {
    this.journal.append(event);
    this.replay(event);
  }

  private remember(summary: RoundSummary): void {
    this.standing.note(summary);
    this.ended.set(summary.id, new EndedRound(summary));
    if (this.ended.size > KEPT_ROUNDS) this.ended.delete(this.ended.keys().next().value!);
  }

  private get roundPath(): string {
    return join(this.folder, "round.jsonl");
  }

  /** A new round with a journal of its own: the uploads of the one before go with theirs. */
  private openRound(): void {
    this.roundJournal?.close();
    this.roundJournal = undefined;
    if (existsSync(this.roundPath)) unlinkSync(this.roundPath);
    const { journal } = Journal.open<RoundEvent>(this.roundPath);
    const [id, kind] = [randomBytes(16), this.nextKind()];
    journal.append({ type: "open", id: hex(id), version: this.versions.current.number, kind });
    this.roundJournal = journal;
    this.round = this.makeRound(id, kind, journal);
  }

  private resumeRound(): void {
    const { journal, records } = Journal.open<RoundEvent>(this.roundPath);
    this.roundJournal = journal;
    const [first] = records;
    // Over already: the crash came before its journal was deleted.
    const isOver = first?.type !== "open" || this.ended.has(first.id) || first.version !== this.versions.current.number;
    if (isOver) return this.openRound();
    this.round = this.makeRound(Buffer.from(first.id, "hex"), first.kind, journal);
    for (const event of records) this.round.apply(event);
  }

  private nextKind(): RoundKind {
    const { gate, evaluations } = this.versions;
    if (isRefreshDue(gate, this.settings)) return RoundKind.GATE_REFRESH;
    return evaluations.isDue ? RoundKind.EVALUATION : RoundKind.TRAINING;
  }

  private makeRound(id: Buffer, kind: RoundKind, journal: Journal<RoundEvent>): ClearRound | SecureRound {
    const rest: ConstructorParameters<typeof Round> = [id, this.versions.current, this.settings, journal];
    if (this.settings.privacy === PrivacyMode.CLEAR) return new ClearRound(...rest);
    return new SecureRound(kind, this.versions, this.authorityKeys, ...rest);
  }
}
