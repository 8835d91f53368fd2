// Who is in a cohort and who is whose neighbour: docs/secagg.md, "Share".
import { hex, sha256, u32 } from "../bytes.js";

export interface Entry {
  peer: Buffer;
  maskKey: Buffer;
  shareKey: Buffer;
}

const COMPLETE_UP_TO = 65; // devices; beyond, each has 64 neighbours
const RING_DEGREE = 64;

export const degreeFor = (devices: number): number => (devices <= COMPLETE_UP_TO ? devices - 1 : RING_DEGREE);

export class Roster {
  /** By ascending peer id; a device's place here is its index. */
  readonly entries: Entry[];
  readonly degree: number;
  /** The least that is more than half of the holders of a seed. */
  readonly threshold: number;
  readonly digest: Buffer;
  /** Of each index, ascending. */
  readonly neighbours: number[][];
  private readonly indices: Map<string, number>;

  constructor(roundId: Uint8Array, entries: Entry[]) {
    this.entries = [...entries].sort((left, right) => Buffer.compare(left.peer, right.peer));
    this.indices = new Map(this.entries.map(({ peer }, index) => [hex(peer), index]));
    this.degree = degreeFor(entries.length);
    this.threshold = Math.floor((this.degree + 1) / 2) + 1;
    const head = [this.size, this.degree, this.threshold].map(u32);
    this.digest = sha256(roundId, ...head, this.entryBytes());
    this.neighbours = this.findNeighbours();
  }

  get size(): number {
    return this.entries.length;
  }

  entryBytes(): Buffer {
    return Buffer.concat(this.entries.flatMap(({ peer, maskKey, shareKey }) => [peer, maskKey, shareKey]));
  }

  indexOf(peer: Buffer): number {
    return this.indices.get(hex(peer)) ?? -1;
  }

  /** Indices on a ring whose order nobody can choose: it depends on every key of the cohort. */
  ring(): number[] {
    const places = this.entries.map((_, index) => sha256(this.digest, u32(index)));
    return places.map((_, index) => index).sort((left, right) => Buffer.compare(places[left], places[right]));
  }

  private findNeighbours(): number[][] {
    const ring = this.ring();
    const all: number[][] = [];
    ring.forEach((index, at) => {
      // Everybody else when the graph is complete; else half of the degree to each side.
      const steps =
        this.degree === this.size - 1
          ? range(1, this.size - 1)
          : range(1, this.degree / 2).flatMap((step) => [step, -step]);
      all[index] = steps.map((step) => ring[(at + step + this.size) % this.size]).sort((left, right) => left - right);
    });
    return all;
  }
}

/** first, first + 1, …, last. */
const range = (first: number, last: number): number[] =>
  Array.from({ length: last - first + 1 }, (_, at) => first + at);
