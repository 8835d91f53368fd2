// Who is in a cohort and who is whose neighbour: docs/secagg.md, "Share".
import { createCipheriv } from "node:crypto";
import { hex, sha256, u32 } from "../bytes.js";

/** What a device advertised; a device's place among them is its index. */
export interface Entry {
  peer: Buffer;
  maskKey: Buffer;
  shareKey: Buffer;
  memberKey: Buffer;
  /** End and signature of the membership, and the device's signature of its entry. */
  voucher: Buffer;
}

/** What the cohort agrees on besides its devices. */
export interface Subject {
  roundId: Uint8Array;
  manifestSha256: Uint8Array;
  kind: number;
}

const COMPLETE_UP_TO = 129; // devices: everybody is everybody's neighbour and holder

export interface Numbers {
  degree: number;
  holders: number;
  threshold: number;
}

export function usualNumbers(devices: number): Numbers {
  if (devices > COMPLETE_UP_TO) return { degree: 64, holders: 80, threshold: 39 };
  return { degree: devices - 1, holders: devices - 1, threshold: Math.floor(devices / 2) + 1 };
}

/** The most holders of a device's shares, however many devices come to so many places. */
export const mostHolders = (places: number): number => Math.min(places, COMPLETE_UP_TO) - 1;

/** How many of a roster must have signed a set before a device acts on it. */
export const quorumOf = (devices: number): number =>
  Math.max(Math.floor(devices / 2) + 1, Math.floor((7 * devices) / 10));

export class Roster {
  /** By ascending peer id. */
  readonly entries: Entry[];
  readonly numbers: Numbers;
  readonly digest: Buffer;
  /** Of each index, ascending. */
  readonly neighbours: number[][];
  private readonly indices: Map<string, number>;

  constructor({ roundId, manifestSha256, kind }: Subject, entries: Entry[]) {
    this.entries = [...entries].sort((left, right) => Buffer.compare(left.peer, right.peer));
    this.indices = new Map(this.entries.map(({ peer }, index) => [hex(peer), index]));
    this.numbers = usualNumbers(this.size);
    const { degree, holders, threshold } = this.numbers;
    const head = [kind, this.size, degree, holders, threshold].map(u32);
    this.digest = sha256(roundId, manifestSha256, ...head, this.entryBytes());
    this.neighbours = this.findNeighbours();
  }

  get size(): number {
    return this.entries.length;
  }

  get quorum(): number {
    return quorumOf(this.size);
  }

  entryBytes(): Buffer {
    const parts = this.entries.flatMap(({ peer, maskKey, shareKey, memberKey }) => [
      peer,
      maskKey,
      shareKey,
      memberKey,
    ]);
    return Buffer.concat(parts);
  }

  voucherBytes(): Buffer {
    return Buffer.concat(this.entries.map(({ voucher }) => voucher));
  }

  indexOf(peer: Buffer): number {
    return this.indices.get(hex(peer)) ?? -1;
  }

  /** Orders that nobody can choose: they depend on every key of the cohort. None when the graph is complete. */
  cycles(): number[][] {
    const { degree } = this.numbers;
    if (degree === this.size - 1) return [];
    const key = sha256(Buffer.from("lightfr graph v1\n"), this.digest);
    const bytes = Buffer.alloc((8 * this.size * degree) / 2);
    const stream = createCipheriv("aes-256-ctr", key, Buffer.alloc(16)).update(bytes);
    const indices = this.entries.map((_, index) => index);
    return Array.from({ length: degree / 2 }, (_, cycle) => {
      const number = (index: number) => stream.readBigUInt64LE(8 * (cycle * this.size + index));
      return [...indices].sort((left, right) => {
        const [one, other] = [number(left), number(right)];
        return one < other ? -1 : one > other ? 1 : left - right;
      });
    });
  }

  private findNeighbours(): number[][] {
    const indices = this.entries.map((_, index) => index);
    const cycles = this.cycles();
    if (cycles.length === 0) return indices.map((own) => indices.filter((index) => index !== own));
    const near = indices.map(() => new Set<number>());
    for (const cycle of cycles) {
      cycle.forEach((index, place) => {
        const next = cycle[(place + 1) % cycle.length];
        near[index].add(next);
        near[next].add(index);
      });
    }
    return near.map((some) => [...some].sort((left, right) => left - right));
  }
}
