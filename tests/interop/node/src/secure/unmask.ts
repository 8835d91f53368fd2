// Taking the masks off the sum of a cohort: docs/secagg.md, "Unmask".
import { pairKey, publicOf, selfKey } from "./keys.js";
import type { Roster } from "./roster.js";
import { fromLittleEndian, PRIME, reconstruct, SHARE_BYTES, type Share } from "./shamir.js";
import { add, maskOf, type Block } from "./vector.js";

const PEER_BYTES = 16;
export const RECORD_BYTES = PEER_BYTES + SHARE_BYTES;

export interface Reveal {
  selfMasks: Uint8Array;
  maskKeys: Uint8Array;
}

/** What a cohort has settled and delivered; devices are roster indices. */
export interface Cohort {
  roundId: Uint8Array;
  roster: Roster;
  blocks: Block[];
  included: ReadonlySet<number>;
  /** The survivors' vectors. */
  vectors: ReadonlyMap<number, Uint32Array>;
  /** In the order in which they came. */
  reveals: ReadonlyMap<number, Reveal>;
}

type Settled = Pick<Cohort, "roster" | "included"> & { survivors: ReadonlySet<number> };

/**
 * Whose secrets a survivor must reveal: shares of survivors' seeds, its own included, and of mask keys of those who
 * dropped out.
 */
export function ownersFor(
  device: number,
  { roster, included, survivors }: Settled,
): { selfMasks: number[]; maskKeys: number[] } {
  const around = [...roster.neighbours[device], device]
    .filter((index) => included.has(index))
    .sort((left, right) => left - right);
  return {
    selfMasks: around.filter((index) => survivors.has(index)),
    maskKeys: around.filter((index) => !survivors.has(index)),
  };
}

/** Whether `records` are exactly one share of each owner, in their order. */
export function areSharesOf(records: Uint8Array, owners: number[], roster: Roster): boolean {
  return (
    records.length === owners.length * RECORD_BYTES &&
    owners.every((owner, at) => {
      const record = Buffer.from(records).subarray(at * RECORD_BYTES, (at + 1) * RECORD_BYTES);
      return (
        roster.entries[owner].peer.equals(record.subarray(0, PEER_BYTES)) &&
        fromLittleEndian(record.subarray(PEER_BYTES)) < PRIME
      );
    })
  );
}

/**
 * The sum of the survivors' vectors mod 2^32. Undefined: a secret lacks shares or does not fit, and no mask comes off.
 */
export function unmask(cohort: Cohort): Uint32Array | undefined {
  const survivors = [...cohort.vectors.keys()];
  const dropped = [...cohort.included].filter(
    (index) => !cohort.vectors.has(index) && survivingNeighbours(index, cohort).length > 0,
  );
  const seeds = secretsOf(survivors, "selfMasks", cohort);
  const keys = secretsOf(dropped, "maskKeys", cohort);
  if (
    !seeds ||
    !keys ||
    !dropped.every((index) => publicOf(keys.get(index)!).equals(cohort.roster.entries[index].maskKey))
  )
    return undefined;
  const sum = new Uint32Array(cohort.vectors.get(survivors[0])!.length);
  for (const vector of cohort.vectors.values()) add(sum, vector, 1);
  for (const [index, seed] of seeds) removeSelfMask(sum, index, seed, cohort);
  for (const [index, key] of keys) removePairMasks(sum, index, key, cohort);
  return sum;
}

const survivingNeighbours = (index: number, { roster, vectors }: Cohort): number[] =>
  roster.neighbours[index].filter((neighbour) => vectors.has(neighbour));

/** The secrets of these devices, or undefined when one cannot be put together. */
function secretsOf(owners: number[], kind: keyof Reveal, cohort: Cohort): Map<number, Buffer> | undefined {
  const shares = new Map<number, Share[]>(owners.map((owner) => [owner, []]));
  for (const [holder, reveal] of cohort.reveals) {
    const records = Buffer.from(reveal[kind]);
    for (let at = 0; at < records.length; at += RECORD_BYTES) {
      const owner = cohort.roster.indexOf(records.subarray(at, at + PEER_BYTES));
      shares
        .get(owner)
        ?.push({ x: BigInt(holder + 1), y: fromLittleEndian(records.subarray(at + PEER_BYTES, at + RECORD_BYTES)) });
    }
  }
  const secrets = new Map<number, Buffer>();
  for (const [owner, points] of shares) {
    const secret = reconstruct(points, cohort.roster.threshold);
    if (!secret) return undefined;
    secrets.set(owner, secret);
  }
  return secrets;
}

function removeSelfMask(sum: Uint32Array, index: number, seed: Buffer, { roster, roundId, blocks }: Cohort): void {
  add(sum, maskOf(selfKey(seed, roundId, roster.entries[index].peer), blocks), -1);
}

/** The masks that the neighbours of a dropped device applied: the smaller id had added them. */
function removePairMasks(sum: Uint32Array, dropped: number, key: Buffer, cohort: Cohort): void {
  const { roster, roundId, blocks } = cohort;
  for (const neighbour of survivingNeighbours(dropped, cohort)) {
    const [one, other] = [roster.entries[dropped], roster.entries[neighbour]];
    const mask = maskOf(pairKey(key, other.maskKey, roundId, one.peer, other.peer), blocks);
    add(sum, mask, neighbour < dropped ? -1 : 1);
  }
}
