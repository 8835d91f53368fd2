// How to rank: by codes and what popularity adds, or by popularity alone. A signed manifest says which.
import { type ItemCodes, type Step, type UserCode } from "./codes.js";
import { Recency } from "./fit.js";

/** By what items are ranked; the numbers are those of the wire. */
export enum RankBy {
  Codes = 1,
  Popularity = 2,
  Chance = 3,
}

/** One way to rank. */
export interface Ranking {
  by: RankBy;
  /** What popularity adds, in fourths of (f / 64) ln(1 + count). */
  priorFourths: number;
  recency: Recency;
  refine: boolean;
}

/** How popular the items are from this one on, until the next step begins. */
export interface Popularity {
  firstItem: number;
  popularity: number;
}

/** Users are told how to rank by how many opinions they have: each group begins at so many. */
export const GROUPS = [0, 5, 20, 100];
const UNSAID: Ranking = { by: RankBy.Codes, priorFourths: 0, recency: Recency.Strong, refine: true };

/** How to rank for a user with so many opinions. `byGroup` has one for each group, or none: nobody has evaluated yet. */
export function rankingFor(byGroup: readonly Ranking[], opinionCount: number): Ranking {
  const group = GROUPS.filter((first) => opinionCount >= first).length - 1;
  return byGroup[group] ?? UNSAID;
}

/** What popularity adds to scores; undefined: nothing. */
export function priorOf(popularities: readonly Popularity[], ranking: Ranking, codeBits: number): Step[] | undefined {
  if (popularities.length === 0 || ranking.priorFourths === 0) return undefined;
  const scale = ranking.priorFourths * codeBits;
  return popularities.map(({ firstItem, popularity }) => ({
    firstItem,
    offset: Math.floor((scale * popularity + 2048) / 4096),
  }));
}

/** One item of a ranking. */
export interface Ranked {
  itemIndex: number;
  /** The share of equal bits, 0 to 1. */
  similarity: number;
  /** Equal bits less other bits, and what popularity adds: what items are ranked by. */
  score: number;
}

function ranked(itemIndex: number, distance: number, codeBits: number, steps: readonly Step[] | undefined): Ranked {
  const offset = steps?.findLast((step) => step.firstItem <= itemIndex)?.offset ?? 0;
  return { itemIndex, similarity: 1 - distance / codeBits, score: codeBits - 2 * distance + offset };
}

/** The k items of the highest score that the bitmap does not leave out; ties go to the lower index. */
export function rank(
  code: UserCode,
  codes: ItemCodes,
  k: number,
  options: { exclude?: Uint8Array; steps?: readonly Step[] } = {},
): Ranked[] {
  const hits = codes.topK(code, k, options);
  return hits.map(({ itemIndex, distance }) => ranked(itemIndex, distance, codes.codeBits, options.steps));
}

/** These items with their scores, in their order. */
export function score(
  code: UserCode,
  codes: ItemCodes,
  itemIndices: readonly number[],
  steps?: readonly Step[],
): Ranked[] {
  const distances = codes.distances(code, itemIndices);
  return itemIndices.map((itemIndex, at) => ranked(itemIndex, distances[at], codes.codeBits, steps));
}
