// The published versions of the model: docs/protocol.md, "Manifest".
import { createPublicKey, sign, type KeyObject } from "node:crypto";
import { readdirSync, readFileSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { emptyModel, type Model, type RowOf } from "./aggregate.js";
import type { Artifacts, Stored } from "./artifacts.js";
import { base64, equal, fromBase64, hex, sha256 } from "./bytes.js";
import { catalogueOf, changed, type Catalogue } from "./catalogue.js";
import { candidatesFor, Evaluations, type Ranking } from "./evaluation.js";
import { writeBitmap, writeCatalogue, writeDelta } from "./formats.js";
import {
  firstGate,
  gateAfter,
  openItemsOf,
  openRowsOf,
  publishedCodes,
  rowsBefore,
  withRows,
  type Gate,
} from "./gate.js";
import type { RoundKind } from "./gen/lightfr/v1/coordinator_pb.js";
import { ManifestSchema, type Manifest } from "./gen/lightfr/v1/manifest_pb.js";
import { PrivacyMode } from "./gen/lightfr/v1/model_pb.js";
import { writeDurably } from "./journal.js";
import { priorOf } from "./popularity.js";
import { hasGate, type Item, type Settings } from "./settings.js";

export const WIRE_VERSION = 1;
const KEPT_VERSIONS = 16;
const DELTA_VERSIONS = 8;

export interface Version {
  number: number;
  /** The serialised Manifest, the very bytes that are signed. */
  manifest: Buffer;
  manifestSha256: Buffer;
  model: Model;
  /** m. */
  itemCount: number;
  /** The open items by ascending index, and which row of the model each has. */
  openRows: RowOf;
}

/** What a version came of, besides the model. It is kept as JSON. */
export interface Origin {
  /** Of the round. Absent: nothing was learnt. */
  kind?: RoundKind;
  /** Of the first version, of a gate refresh and of another catalogue. Absent: as before. */
  gate?: Gate;
  /** Of the first version and of another catalogue. Absent: as before. */
  catalogue?: Catalogue;
  /** The sum of an evaluation, which was about the candidates of the version before. */
  hits?: number[];
  /** Of the noise in each of these numbers. */
  variance?: number;
}

/** A version to be. */
export interface Next {
  model: Model;
  origin: Origin;
}

export class Versions {
  /** Of the newest version. */
  gate!: Gate;
  catalogue!: Catalogue;
  readonly evaluations: Evaluations;
  /** The last versions, newest first: as signed, parsed, and the ids of the items that have rows in the published codes. */
  private history: { bytes: Buffer; manifest: Manifest; rowIds: string[] }[] = [];
  private newest?: Version;

  constructor(
    private readonly settings: Settings,
    private readonly artifacts: Artifacts,
    private readonly signingKey: KeyObject,
    private readonly folder: string,
  ) {
    this.evaluations = new Evaluations(settings);
  }

  /** The first version of these items, with a code for each of them; closed ones have the same. */
  firstOf(items: Item[], codes: Uint8Array): Next {
    const catalogue = catalogueOf(items);
    const gate = firstGate(catalogue, this.settings);
    const open = new Set(gate.everOpen);
    const closed = [...items.keys()].find((item) => !open.has(item)) ?? -1;
    const rows = hasGate(this.settings) ? [...gate.everOpen, closed] : gate.everOpen;
    const model = withRows(emptyModel(codes, this.settings.codeBits), rows, this.settings.codeBits);
    return { model, origin: { catalogue, gate } };
  }

  /** What comes of a list of items, most popular first. Undefined: nothing changes. */
  changedBy(items: Item[]): Next | undefined {
    const change = changed(this.catalogue, items, this.settings);
    if (!change) return undefined;
    const gate = gateAfter(this.gate, change, this.settings);
    const rows = rowsBefore(this.gate, gate, this.settings, (item) => change.oldIndices[item]);
    const model = withRows(this.current.model, rows, this.settings.codeBits);
    return { model, origin: { catalogue: change.catalogue, gate } };
  }

  /** Writes all files of a next version. It exists from when the journal holds the manifest that this returns. */
  prepare(model: Model, origin: Origin = {}): string {
    const [gate, catalogue] = [origin.gate ?? this.gate, origin.catalogue ?? this.catalogue];
    const codes = publishedCodes(model, gate, this.settings);
    const openItems = openItemsOf(gate, this.settings);
    const itemCount = catalogue.ids.length;
    const manifest = create(ManifestSchema, {
      wireVersion: WIRE_VERSION,
      modelVersion: (this.history[0]?.manifest.modelVersion ?? 0n) + 1n,
      createdUnixSeconds: BigInt(Math.floor(Date.now() / 1000)),
      model: this.roundModel(model.meanUser, itemCount),
      codes: this.artifacts.put(codes),
      codesDeltas: this.deltas(codes, this.rowIds(gate, catalogue)),
      catalogueParts: this.parts(catalogue),
      openRows: hasGate(this.settings) ? this.artifacts.put(writeBitmap(itemCount, openItems)) : undefined,
      removedItems: catalogue.removed.length
        ? this.artifacts.put(writeBitmap(itemCount, catalogue.removed))
        : undefined,
      ...this.aboutRanking(gate, origin),
    });
    const kept = [model.memory, model.trail].map(({ buffer }) => Buffer.from(buffer));
    writeDurably(join(this.folder, modelName(manifest)), Buffer.concat([...kept, model.codes]));
    return base64(toBinary(ManifestSchema, manifest));
  }

  /** Takes up a version that the journal holds. */
  replay(manifest: string, origin: Origin): void {
    if (origin.kind !== undefined) this.evaluations.note(origin.kind, this.evaluated(origin));
    this.gate = origin.gate ?? this.gate;
    this.catalogue = origin.catalogue ?? this.catalogue;
    const bytes = fromBase64(manifest);
    const rowIds = this.rowIds(this.gate, this.catalogue);
    const version = { bytes, manifest: fromBinary(ManifestSchema, bytes), rowIds };
    this.history = [version, ...this.history].slice(0, KEPT_VERSIONS);
    this.newest = undefined;
  }

  get exists(): boolean {
    return this.history.length > 0;
  }

  /** What an evaluation of the newest version compares. */
  get candidates(): Ranking[] {
    return this.history[0].manifest.candidates;
  }

  get current(): Version {
    return (this.newest ??= this.read());
  }

  /** Deletes what no kept manifest names. */
  clean(): void {
    const kept = this.history.flatMap(({ manifest }) => [
      manifest.codes,
      manifest.openRows,
      manifest.removedItems,
      ...manifest.catalogueParts,
      ...manifest.codesDeltas.map((delta) => delta.artifact),
    ]);
    this.artifacts.keep(new Set(kept.flatMap((artifact) => (artifact ? [hex(artifact.sha256)] : []))));
    const models = readdirSync(this.folder).filter((name) => name.startsWith("model-"));
    for (const name of models) if (name !== modelName(this.history[0].manifest)) unlinkSync(join(this.folder, name));
  }

  signedManifest() {
    const { manifest } = this.current;
    return {
      manifest,
      signature: this.sign("lightfr manifest v1\n", manifest),
      keyId: keyIdOf(createPublicKey(this.signingKey)),
    };
  }

  /** Ed25519 over a label and bytes. The same bytes always get the same signature. */
  sign(label: string, ...parts: Uint8Array[]): Buffer {
    return sign(null, Buffer.concat([Buffer.from(label), ...parts]), this.signingKey);
  }

  private read(): Version {
    const { bytes, manifest } = this.history[0];
    const kept = readFileSync(join(this.folder, modelName(manifest)));
    // An int32 of the memory, one of the trail, and a bit of the codes.
    const cells = kept.length / (4 + 4 + 1 / 8);
    const numbersAt = (start: number) =>
      Int32Array.from({ length: cells }, (_, at) => kept.readInt32LE(start + 4 * at));
    const model = {
      codes: kept.subarray(8 * cells),
      memory: numbersAt(0),
      trail: numbersAt(4 * cells),
      meanUser: this.readMeanUser(Buffer.from(manifest.model!.meanUser)),
    };
    return {
      number: Number(manifest.modelVersion),
      manifest: bytes,
      manifestSha256: sha256(bytes),
      model,
      itemCount: this.catalogue.ids.length,
      openRows: openRowsOf(this.gate, this.settings),
    };
  }

  /** The fields of a manifest that say how devices rank. */
  private aboutRanking(gate: Gate, origin: Origin) {
    const { codeBits, privacy } = this.settings;
    // Counts that somebody gave may be told, however small; those of devices only from the gate on.
    const prior = priorOf(gate.counts, gate.counted === undefined ? 1 : this.settings.gate);
    const hasPrior = prior !== undefined;
    const candidates = privacy === PrivacyMode.CLEAR ? [] : candidatesFor(codeBits, hasPrior);
    return { prior, candidates, rankings: this.evaluations.rankings(hasPrior, origin.kind, this.evaluated(origin)) };
  }

  private evaluated({ hits, variance }: Origin) {
    return hits && variance !== undefined ? { candidates: this.candidates, hits, variance } : undefined;
  }

  private roundModel(meanUser: number[], itemCount: number) {
    const { codeBits, maxRows, objective, uploadKind, noise, privacy: privacyMode } = this.settings;
    const isKnown = meanUser.some((element) => element !== 0);
    return {
      codeBits,
      itemCount,
      objective,
      uploadKind,
      maxRows,
      balance: BigInt(this.settings.balance),
      noise,
      privacyMode,
      meanUser: isKnown ? Buffer.from(Int16Array.from(meanUser).buffer) : new Uint8Array(),
    };
  }

  private readMeanUser(bytes: Buffer): number[] {
    return Array.from({ length: this.settings.codeBits }, (_, k) => (bytes.length ? bytes.readInt16LE(2 * k) : 0));
  }

  /** A file for each part of the catalogue. */
  private parts({ ids, parts }: Catalogue): Stored[] {
    let start = 0;
    return parts.map((count) => {
      const part = ids.slice(start, start + count);
      start += count;
      return this.artifacts.put(writeCatalogue(part, this.settings.integerIds));
    });
  }

  private rowIds(gate: Gate, { ids }: Catalogue): string[] {
    return openItemsOf(gate, this.settings).map((item) => ids[item]);
  }

  /** Ways from the last versions, newest first, where they are shorter than the codes. */
  private deltas(codes: Uint8Array, rowIds: string[]) {
    const digest = sha256(codes);
    const ways = new Map<string, { fromSha256: Uint8Array; artifact: Stored }>();
    for (const { manifest, rowIds: oldIds } of this.history.slice(0, DELTA_VERSIONS)) {
      const { sha256: oldDigest } = manifest.codes!;
      if (equal(oldDigest, digest) || ways.has(hex(oldDigest))) continue;
      const oldRowOf = new Map(oldIds.map((id, row) => [id, row]));
      const movedFrom = rowIds.map((id) => oldRowOf.get(id) ?? -1);
      if (hasGate(this.settings)) movedFrom.push(oldIds.length);
      const delta = writeDelta(this.artifacts.get(oldDigest), codes, this.settings.codeBits, movedFrom);
      if (delta.length >= codes.length) continue;
      ways.set(hex(oldDigest), { fromSha256: oldDigest, artifact: this.artifacts.put(delta) });
    }
    return [...ways.values()];
  }
}

/** Says which of several keys signed. */
export function keyIdOf(publicKey: KeyObject): Buffer {
  const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  return sha256(raw).subarray(0, 8);
}

const modelName = (manifest: Manifest): string => `model-${manifest.modelVersion}`;
