// Taking the masks off the sum of a cohort: docs/secagg.md, "Unmask".
import { isAscending, pieces, readU32s } from "../bytes.js";
import { pairKey, publicOf, selfKey } from "./keys.js";
import type { Roster } from "./roster.js";
import { fromLittleEndian, isShare, reconstruct, SHARE_BYTES, type Share } from "./shamir.js";
import { add, maskOf, type Block } from "./vector.js";

const INDEX_BYTES = 4;
const RECORD_BYTES = INDEX_BYTES + SHARE_BYTES;

export interface Reveal {
  seeds: Uint8Array;
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

export interface Unmasked {
  /** The sum of the survivors' vectors mod 2^32. Undefined: a secret lacks shares or does not fit; no mask came off. */
  sum?: Uint32Array;
  /** Who revealed or dealt false shares, by roster index. */
  faulty: Set<number>;
  /** Whether a secret lacks shares: nobody need have lied. */
  lacksShares: boolean;
}

const ownerOf = (record: Uint8Array): number => readU32s(record.subarray(0, INDEX_BYTES))[0];

/** Whether `records` are exactly one share of each owner, by ascending index. */
export function areSharesOf(records: Uint8Array, owners: ReadonlySet<number>): boolean {
  if (records.length !== owners.size * RECORD_BYTES) return false;
  const all = pieces(records, RECORD_BYTES);
  const indices = all.map(ownerOf);
  const fits = isAscending(indices) && indices.every((index) => owners.has(index));
  return fits && all.every((record) => isShare(record.subarray(INDEX_BYTES)));
}

export function unmask(cohort: Cohort): Unmasked {
  const survivors = [...cohort.vectors.keys()];
  const dropped = [...cohort.included].filter(
    (index) => !cohort.vectors.has(index) && survivingNeighbours(index, cohort).length > 0,
  );
  const judged = new Judged();
  const seeds = secretsOf(survivors, "seeds", cohort, judged);
  const keys = secretsOf(dropped, "maskKeys", cohort, judged);
  const faulty = judged.faulty();
  const lacksShares = seeds === "missing" || (seeds !== "false" && keys === "missing");
  if (typeof seeds === "string" || typeof keys === "string") return { faulty, lacksShares };
  const isOwn = (index: number) => publicOf(keys.get(index)!).equals(cohort.roster.entries[index].maskKey);
  if (!dropped.every(isOwn)) return { faulty, lacksShares };
  const sum = new Uint32Array(cohort.vectors.get(survivors[0])!.length);
  for (const vector of cohort.vectors.values()) add(sum, vector, 1);
  for (const [index, seed] of seeds) removeSelfMask(sum, index, seed, cohort);
  for (const [index, key] of keys) removePairMasks(sum, index, key, cohort);
  return { sum, faulty, lacksShares };
}

const survivingNeighbours = (index: number, { roster, vectors }: Cohort): number[] =>
  roster.neighbours[index].filter((neighbour) => vectors.has(neighbour));

/** Who lies about shares. Some who lie together could have anybody blamed for a few false ones, so a few are not enough. */
class Judged {
  private readonly holders = new Map<number, { shares: number; false: number }>();
  /** Owners of secrets that cannot be put together. */
  readonly unreadable = new Set<number>();

  note(holder: number, isFalse: boolean): void {
    const known = this.holders.get(holder) ?? { shares: 0, false: 0 };
    this.holders.set(holder, { shares: known.shares + 1, false: known.false + Number(isFalse) });
  }

  faulty(): Set<number> {
    const liars = [...this.holders].filter(([, { shares, false: wrong }]) => 2 * wrong > shares);
    return new Set([...liars.map(([holder]) => holder), ...this.unreadable]);
  }
}

/** The secrets of these devices, or why the first that cannot be put together cannot. */
function secretsOf(
  owners: number[],
  kind: keyof Reveal,
  cohort: Cohort,
  judged: Judged,
): Map<number, Buffer> | "missing" | "false" {
  const shares = new Map<number, Share[]>(owners.map((owner) => [owner, []]));
  for (const [holder, reveal] of cohort.reveals) {
    for (const record of pieces(reveal[kind], RECORD_BYTES)) {
      const share = { x: BigInt(holder + 1), y: fromLittleEndian(record.subarray(INDEX_BYTES)) };
      shares.get(ownerOf(record))?.push(share);
    }
  }
  const secrets = new Map<number, Buffer>();
  for (const [owner, points] of shares) {
    const found = reconstruct(points, cohort.roster.numbers.threshold);
    if (!found && points.length < cohort.roster.numbers.threshold) return "missing";
    if (!found) {
      judged.unreadable.add(owner);
      return "false";
    }
    secrets.set(owner, found.secret);
    for (const { x } of points) judged.note(Number(x) - 1, found.falseShares.includes(x));
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
