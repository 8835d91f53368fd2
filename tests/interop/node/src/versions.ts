// The published versions of the model: docs/protocol.md, "Manifest".
import { createPublicKey, sign, type KeyObject } from "node:crypto";
import { readdirSync, readFileSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Model } from "./aggregate.js";
import type { Artifacts, Stored } from "./artifacts.js";
import { base64, bitmap, equal, fromBase64, hex, sha256 } from "./bytes.js";
import { candidatesFor, Evaluations, type Ranking } from "./evaluation.js";
import { writeCatalogue, writeDelta } from "./formats.js";
import { firstGate, openRowsOf, type Gate } from "./gate.js";
import type { RoundKind } from "./gen/lightfr/v1/coordinator_pb.js";
import { ManifestSchema, type Manifest } from "./gen/lightfr/v1/manifest_pb.js";
import { PrivacyMode } from "./gen/lightfr/v1/model_pb.js";
import { writeDurably } from "./journal.js";
import { priorOf } from "./popularity.js";
import type { Item, Settings } from "./settings.js";

export const WIRE_VERSION = 1;
const KEPT_VERSIONS = 16;
const DELTA_VERSIONS = 8;

export interface Version {
  number: number;
  /** The serialised Manifest, the very bytes that are signed. */
  manifest: Buffer;
  manifestSha256: Buffer;
  model: Model;
}

/** What a version has of the round that it came of, besides the model. It is kept as JSON. */
export interface Origin {
  /** Of the round. Absent: nothing was learnt, and all is as before. */
  kind?: RoundKind;
  /** Of a gate refresh. */
  gate?: Gate;
  /** The sum of an evaluation, which was about the candidates of the version before. */
  hits?: number[];
}

export class Versions {
  /** Of the newest version. */
  gate: Gate;
  /** Open rows by ascending index. */
  openRows: number[];
  readonly evaluations: Evaluations;
  /** The last versions, newest first: as signed, and parsed. */
  private history: { bytes: Buffer; manifest: Manifest }[] = [];
  private newest?: Version;
  private readonly catalogue: Stored;

  constructor(
    private readonly settings: Settings,
    items: Item[],
    private readonly artifacts: Artifacts,
    private readonly signingKey: KeyObject,
    private readonly folder: string,
  ) {
    this.gate = firstGate(items, settings);
    this.evaluations = new Evaluations(settings);
    this.openRows = openRowsOf(this.gate, settings);
    this.catalogue = artifacts.put(
      writeCatalogue(
        items.map((item) => item.id),
        settings.integerIds,
      ),
    );
  }

  /** Writes all files of a next version. It exists from when the journal holds the manifest that this returns. */
  prepare(model: Model, origin: Origin = {}): string {
    const gate = origin.gate ?? this.gate;
    const open = new Set(openRowsOf(gate, this.settings));
    const manifest = create(ManifestSchema, {
      wireVersion: WIRE_VERSION,
      modelVersion: (this.history[0]?.manifest.modelVersion ?? 0n) + 1n,
      createdUnixSeconds: BigInt(Math.floor(Date.now() / 1000)),
      model: this.roundModel(model.meanUser),
      codes: this.artifacts.put(model.codes),
      codesDeltas: this.deltas(model.codes),
      catalogue: this.catalogue,
      openRows: this.artifacts.put(bitmap(gate.counts.length, (row) => open.has(row))),
      ...this.aboutRanking(gate, origin),
    });
    const kept = [model.memory, model.trail].map(({ buffer }) => Buffer.from(buffer));
    writeDurably(join(this.folder, memoryName(manifest)), Buffer.concat(kept));
    return base64(toBinary(ManifestSchema, manifest));
  }

  /** Takes up a version that the journal holds. */
  replay(manifest: string, origin: Origin): void {
    if (origin.kind !== undefined) this.evaluations.note(origin.kind, this.evaluated(origin));
    this.gate = origin.gate ?? this.gate;
    this.openRows = openRowsOf(this.gate, this.settings);
    const bytes = fromBase64(manifest);
    this.history = [{ bytes, manifest: fromBinary(ManifestSchema, bytes) }, ...this.history].slice(0, KEPT_VERSIONS);
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
      manifest.catalogue,
      manifest.openRows,
      ...manifest.codesDeltas.map((delta) => delta.artifact),
    ]);
    this.artifacts.keep(new Set(kept.map((artifact) => hex(artifact!.sha256))));
    const memories = readdirSync(this.folder).filter((name) => name.startsWith("memory-"));
    for (const name of memories) if (name !== memoryName(this.history[0].manifest)) unlinkSync(join(this.folder, name));
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
    const kept = readFileSync(join(this.folder, memoryName(manifest)));
    const numbers = Int32Array.from({ length: kept.length / 4 }, (_, at) => kept.readInt32LE(4 * at));
    const model = {
      codes: this.artifacts.get(manifest.codes!.sha256),
      memory: numbers.slice(0, numbers.length / 2),
      trail: numbers.slice(numbers.length / 2),
      meanUser: this.readMeanUser(Buffer.from(manifest.model!.meanUser)),
    };
    return { number: Number(manifest.modelVersion), manifest: bytes, manifestSha256: sha256(bytes), model };
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

  private evaluated({ hits }: Origin) {
    return hits && { candidates: this.candidates, hits };
  }

  private roundModel(meanUser: number[]) {
    const { codeBits, itemCount, maxRows, objective, uploadKind, noise, privacy: privacyMode } = this.settings;
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

  /** Ways from the last versions, newest first, where they are shorter than the codes. */
  private deltas(codes: Uint8Array) {
    const digest = sha256(codes);
    const ways = new Map<string, { fromSha256: Uint8Array; artifact: Stored }>();
    for (const { codes: old } of this.history.slice(0, DELTA_VERSIONS).map((entry) => entry.manifest)) {
      if (equal(old!.sha256, digest) || ways.has(hex(old!.sha256))) continue;
      const delta = writeDelta(this.artifacts.get(old!.sha256), codes, this.settings.codeBits);
      if (delta.length >= codes.length) continue;
      ways.set(hex(old!.sha256), { fromSha256: old!.sha256, artifact: this.artifacts.put(delta) });
    }
    return [...ways.values()];
  }
}

/** Says which of several keys signed. */
export function keyIdOf(publicKey: KeyObject): Buffer {
  const raw = publicKey.export({ format: "der", type: "spki" }).subarray(-32);
  return sha256(raw).subarray(0, 8);
}

const memoryName = (manifest: Manifest): string => `memory-${manifest.modelVersion}`;
