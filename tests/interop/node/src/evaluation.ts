// How devices shall rank, by what they say in evaluation rounds: docs/protocol.md, "Evaluation".
import { isDeepStrictEqual } from "node:util";
import { RoundKind } from "./gen/lightfr/v1/coordinator_pb.js";
import { RankBy, Recency } from "./gen/lightfr/v1/manifest_pb.js";
import { PrivacyMode } from "./gen/lightfr/v1/model_pb.js";
import type { Settings } from "./settings.js";

/** The fields of the message Ranking. Only CODES has the last three. */
export interface Ranking {
  by: RankBy;
  priorFourths?: number;
  recency?: Recency;
  refine?: boolean;
}

/** What a cohort added up: the block `hits`, whose numbers have these candidates' places. It is kept as JSON. */
export interface Evaluated {
  candidates: Ranking[];
  hits: number[];
  /** Of the noise in each number. */
  variance: number;
}

/** Users by how many opinions they have. */
export const GROUPS = 4;
const RECENCIES = [Recency.OFF, Recency.WEAK, Recency.STRONG];
const FOURTHS = [0, 8, 32, 128];
const REFINED_FOURTHS = 8;
const REFINED_FROM_BITS = 128;
const POOLED = 4;
/** How far groups usually lie apart, squared, and what one opinion says of two candidates, as a variance. */
const GROUPS_DIFFER = 0.0009;
const OPINION_VARIANCE = 0.1;
/** By how many standard deviations a candidate must be better than popularity. */
const SURE = 2;
/** The most that is asked of it where the noise is at most so large: that of four evaluations in mode SECAGG. */
const SURE_ENOUGH = 0.25;
const USUAL_NOISE = 512;

const POPULARITY = { by: RankBy.POPULARITY };
const CHANCE = { by: RankBy.CHANCE };
const UNEVALUATED = { by: RankBy.CODES, priorFourths: 0, recency: Recency.STRONG, refine: true };

/** How many numbers an evaluation with so many candidates has. */
export const hitCount = (candidates: number): number => 2 * GROUPS * (1 + 2 * candidates);

/** What an evaluation compares. */
export function candidatesFor(codeBits: number, hasPrior: boolean): Ranking[] {
  const codes = (fourths: number[], refine: boolean): Ranking[] =>
    RECENCIES.flatMap((recency) =>
      (hasPrior ? fourths : [0]).map((priorFourths) => ({ by: RankBy.CODES, priorFourths, recency, refine })),
    );
  const refined = codeBits >= REFINED_FROM_BITS ? codes([REFINED_FOURTHS], true) : [];
  return [...codes(FOURTHS, false), ...refined, POPULARITY, CHANCE];
}

/** One ranking for each group by the newest evaluation, the last one, and those before it with the same candidates. */
export function choose(evaluations: Evaluated[]): Ranking[] {
  const { candidates } = evaluations[evaluations.length - 1];
  const same = evaluations.filter((one) => isDeepStrictEqual(one.candidates, candidates)).slice(-POOLED);
  const sums = same[0].hits.map((_, at) => same.reduce((sum, { hits }) => sum + hits[at], 0));
  const width = 1 + 2 * candidates.length;
  /** By group: its numbers for opinions that are no dislikes, then those for dislikes. */
  const groups = Array.from({ length: GROUPS }, (_, group) => sums.slice(2 * group * width, 2 * (group + 1) * width));
  const variance = same.reduce((sum, one) => sum + one.variance, 0);
  const loud = groups.filter((group) => opinionsOf(group) > 2 * Math.sqrt(2 * variance));
  const heard = loud.length > 0 ? loud : groups;
  const opinions = heard.reduce((sum, group) => sum + opinionsOf(group), 0);
  const gains = candidates.map((_, at) => heard.reduce((sum, group) => sum + gainsOf(group)[at], 0));
  const all = withoutChance(gains, candidates).map((gain) => gain / opinions / 2);
  return groups.map((group) => {
    const own = ownShare(group, variance);
    const doubt = Math.sqrt(
      apart(own, opinionsOf(group), variance) + apart(1 - own, opinions, heard.length * variance),
    );
    const most = variance <= USUAL_NOISE ? SURE_ENOUGH : Infinity;
    return best(likely(group, all, own, candidates), Math.min(SURE * doubt, most), candidates);
  });
}

/** How many opinions a group has, at least 1. */
const opinionsOf = (sums: number[]): number => Math.max(1, sums[0] + sums[sums.length / 2]);

/** By candidate, what was shown and what counted for opinions, less the same for dislikes. */
function gainsOf(sums: number[]): number[] {
  const dislikes = sums.length / 2;
  const both = (at: number): number => sums[at] + sums[at + 1];
  return Array.from({ length: (dislikes - 1) / 2 }, (_, at) => both(1 + 2 * at) - both(dislikes + 1 + 2 * at));
}

/** Gains with less noise: where each prior is tried with each recency, what the two give is taken to add up. */
function withoutChance(gains: number[], candidates: Ranking[]): number[] {
  const mean = (places: number[]): number => places.reduce((sum, at) => sum + gains[at], 0) / places.length;
  return candidates.map((one, place) => {
    const alike = [...gains.keys()].filter(
      (at) => candidates[at].by === one.by && !candidates[at].refine === !one.refine,
    );
    const prior = alike.filter((at) => (candidates[at].priorFourths ?? 0) === (one.priorFourths ?? 0));
    const recency = alike.filter((at) => candidates[at].recency === one.recency);
    const isGrid = prior.length * recency.length === alike.length;
    return isGrid ? mean(prior) + mean(recency) - mean(alike) : gains[place];
  });
}

/** How much of what a group says for itself is believed; the rest is what all say. */
function ownShare(group: number[], variance: number): number {
  const n = opinionsOf(group);
  return GROUPS_DIFFER / (GROUPS_DIFFER + variance / n ** 2 + OPINION_VARIANCE / n);
}

/** What a part of this share adds to the variance of how far two nets lie apart: noise, and who was asked. */
const apart = (share: number, n: number, variance: number): number =>
  share ** 2 * ((2 * variance) / n ** 2 + OPINION_VARIANCE / n);

/** The nets of a group, drawn towards those of all, the more so the fewer opinions it has. */
function likely(group: number[], all: number[], own: number, candidates: Ranking[]): number[] {
  const n = opinionsOf(group);
  return withoutChance(gainsOf(group), candidates).map((gain, at) => all[at] + (gain / n / 2 - all[at]) * own);
}

/** The ranking by codes with the highest net, the first of equals, if it is better than popularity by the margin. */
function best(nets: number[], margin: number, candidates: Ranking[]): Ranking {
  const codes = nets.map((net, at) => (candidates[at].by === RankBy.CODES ? net : -Infinity));
  const highest = Math.max(...codes);
  const popularity = candidates.findIndex(({ by }) => by === RankBy.POPULARITY);
  return candidates[highest > nets[popularity] + margin ? codes.indexOf(highest) : popularity];
}

/** What the rounds that finished say about ranking, and when the next evaluation is due. */
export class Evaluations {
  private readonly evaluated: Evaluated[] = [];
  private isTrained = false;
  /** Training rounds since the last evaluation. */
  private trainedSince = 0;

  constructor(private readonly settings: Settings) {}

  /** Takes up what came of a round of this kind, which finished. */
  note(kind: RoundKind, evaluated?: Evaluated): void {
    if (evaluated) this.evaluated.push(evaluated);
    if (kind === RoundKind.EVALUATION) this.trainedSince = 0;
    if (kind !== RoundKind.TRAINING) return;
    this.isTrained = true;
    this.trainedSince += 1;
  }

  get isDue(): boolean {
    return this.evaluates && this.trainedSince >= this.settings.evaluateEvery;
  }

  /** The four rankings of the next version, or none: after a round of this kind, and after what it added up. */
  rankings(hasPrior: boolean, kind?: RoundKind, evaluated?: Evaluated): Ranking[] {
    const known = evaluated ? [...this.evaluated, evaluated] : this.evaluated;
    if (known.length > 0) return choose(known);
    const isTrained = this.isTrained || kind === RoundKind.TRAINING;
    if (isTrained && !this.evaluates) return new Array(GROUPS).fill(UNEVALUATED);
    return hasPrior ? new Array(GROUPS).fill(POPULARITY) : [];
  }

  private get evaluates(): boolean {
    return this.settings.privacy !== PrivacyMode.CLEAR && this.settings.evaluateEvery > 0;
  }
}
