// What is published about ranking: docs/protocol.md, "Evaluation", worked out by hand.
import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesFor, choose, Evaluations, GROUPS, type Evaluated, type Ranking } from "../evaluation.js";
import { RoundKind } from "../gen/lightfr/v1/coordinator_pb.js";
import { RankBy, Recency } from "../gen/lightfr/v1/manifest_pb.js";
import { PrivacyMode } from "../gen/lightfr/v1/model_pb.js";
import { arePlausibleCounts } from "../plausible.js";
import { evaluationBlocks } from "../secure/vector.js";
import type { Settings } from "../settings.js";

const codes: Ranking = { by: RankBy.CODES, priorFourths: 0, recency: Recency.OFF, refine: false };
const weak: Ranking = { by: RankBy.CODES, priorFourths: 8, recency: Recency.WEAK, refine: false };
const popularity: Ranking = { by: RankBy.POPULARITY };
const chance: Ranking = { by: RankBy.CHANCE };
const candidates = [codes, weak, popularity, chance];

/** How many opinions there are, and for each candidate how many count for their place. */
type Counted = [opinions: number, ...counted: number[]];
const NONE: Counted = [0, 0, 0, 0, 0];
const LIKES_CODES: Counted = [200, 120, 90, 70, 20];
const LIKES_POPULARITY: Counted = [200, 50, 60, 110, 20];

/** Groups of opinions that are no dislikes, and of dislikes. Whatever was shown without counting must not matter. */
function evaluated(...groups: [likes: Counted, dislikes: Counted][]): Evaluated {
  const all = Array.from({ length: GROUPS }, (_, at) => groups[at] ?? [NONE, NONE]);
  const hits = all.flat().flatMap(([opinions, ...counted], at) => [opinions, ...counted.flatMap((n) => [at * 7, n])]);
  return { candidates, hits, variance: 64 };
}

test("candidates are by recency, then by what popularity adds, and refined ones from 128 bits on", () => {
  const sizes = [64, 127, 128, 256].map((bits) => [
    candidatesFor(bits, true).length,
    candidatesFor(bits, false).length,
  ]);
  assert.deepEqual(sizes, [
    [14, 5],
    [14, 5],
    [17, 8],
    [17, 8],
  ]);
  const all = candidatesFor(128, true);
  assert.deepEqual(all[1], { ...codes, priorFourths: 8 });
  assert.deepEqual(all[4], { ...codes, recency: Recency.WEAK });
  assert.deepEqual(all[12], { ...codes, priorFourths: 8, refine: true });
  assert.deepEqual(all.slice(-2), [popularity, chance]);
});

test("each group gets what is best for it", () => {
  const many = ([opinions, ...counted]: Counted): Counted => [9 * opinions, ...counted.map((n) => 9 * n)];
  const [forCodes, forPopularity] = [many(LIKES_CODES), many(LIKES_POPULARITY)];
  const rankings = choose([evaluated([forCodes, NONE], [forPopularity, NONE], [forCodes, NONE])]);
  assert.deepEqual(rankings.slice(0, 3), [codes, popularity, codes]);
});

test("a group of few opinions, dislikes counted, gets what is best for all", () => {
  const most: Counted = [1800, 900, 700, 630, 180];
  const [few, enough]: Counted[] = [
    [60, 10, 25, 12, 10],
    [1060, 110, 275, 132, 110],
  ];
  const dislikes: Counted = [40, 0, 0, 0, 0];
  assert.deepEqual(choose([evaluated([most, NONE], [few, dislikes])])[1], codes);
  assert.deepEqual(choose([evaluated([most, NONE], [enough, dislikes])])[1], weak);
});

test("what counts for dislikes counts against a ranking", () => {
  assert.deepEqual(choose([evaluated([LIKES_CODES, [50, 60, 0, 50, 5]])])[0], weak);
});

test("the first of equals is chosen, and chance never", () => {
  assert.deepEqual(choose([evaluated([[200, 120, 120, 60, 180], NONE])])[0], codes);
});

test("codes that are not surely better than popularity are not used", () => {
  assert.deepEqual(choose([evaluated([[200, 80, 90, 90, 120], NONE])])[0], popularity);
  assert.deepEqual(choose([evaluated([[200, 80, 109, 90, 120], NONE])])[0], popularity);
  // 20,000 opinions leave a doubt of .0023.
  assert.deepEqual(choose([evaluated([[20_000, 8000, 9180, 9000, 900], NONE])])[0], popularity);
  assert.deepEqual(choose([evaluated([[20_000, 8000, 9190, 9000, 900], NONE])])[0], weak);
});

test("the last four evaluations with the newest one's candidates are added up", () => {
  const [forCodes, forPopularity] = [LIKES_CODES, LIKES_POPULARITY].map((counted) => evaluated([counted, NONE]));
  // Codes win by 50 each time, popularity by 60.
  assert.deepEqual(choose([forPopularity, forCodes])[0], popularity);
  assert.deepEqual(choose([forPopularity, forPopularity, forCodes, forCodes])[0], popularity);
  assert.deepEqual(choose([forPopularity, forCodes, forCodes, forCodes, forPopularity])[0], codes);
  const others = { ...forPopularity, candidates: [codes, { ...weak, refine: true }, popularity, chance] };
  assert.deepEqual(choose([forCodes, others, others])[0], popularity);
  assert.deepEqual(choose([forPopularity, others, others, others, forCodes])[0], popularity);
  assert.deepEqual(choose([others, others, others, forCodes])[0], codes);
});

const settings = (change: Partial<Settings>) =>
  ({ privacy: PrivacyMode.SECAGG, evaluateEvery: 2, ...change }) as Settings;
const fourOf = (ranking: Ranking): Ranking[] => [ranking, ranking, ranking, ranking];
const usual: Ranking = { by: RankBy.CODES, priorFourths: 0, recency: Recency.STRONG, refine: true };

test("before the first evaluation devices rank by popularity if there is any", () => {
  const evaluations = new Evaluations(settings({}));
  evaluations.note(RoundKind.TRAINING);
  assert.deepEqual(evaluations.rankings(true, RoundKind.TRAINING), fourOf(popularity));
  assert.deepEqual(evaluations.rankings(false, RoundKind.TRAINING), []);
  const sum = evaluated([LIKES_CODES, NONE]);
  assert.deepEqual(evaluations.rankings(true, RoundKind.EVALUATION, sum), fourOf(codes));
  assert.deepEqual(
    evaluations.rankings(true),
    fourOf(popularity),
    "nothing is kept of a version that is not there yet",
  );
  evaluations.note(RoundKind.EVALUATION, sum);
  assert.deepEqual(evaluations.rankings(true, RoundKind.TRAINING), fourOf(codes));
});

test("without evaluations devices rank by codes from the first training round on", () => {
  for (const change of [{ privacy: PrivacyMode.CLEAR }, { evaluateEvery: 0 }]) {
    const evaluations = new Evaluations(settings(change));
    evaluations.note(RoundKind.GATE_REFRESH);
    assert.deepEqual(evaluations.rankings(true), fourOf(popularity));
    assert.deepEqual(evaluations.rankings(false), []);
    assert.deepEqual(evaluations.rankings(true, RoundKind.TRAINING), fourOf(usual));
    for (let rounds = 0; rounds < 3; rounds++) evaluations.note(RoundKind.TRAINING);
    assert.deepEqual(evaluations.rankings(true), fourOf(usual));
    assert.equal(evaluations.isDue, false);
  }
});

test("an evaluation is due after so many training rounds since the last one", () => {
  const evaluations = new Evaluations(settings({}));
  const { TRAINING, GATE_REFRESH, EVALUATION } = RoundKind;
  const due = [TRAINING, GATE_REFRESH, TRAINING, TRAINING, EVALUATION, TRAINING, TRAINING].map((kind) => {
    evaluations.note(kind, kind === EVALUATION ? evaluated() : undefined);
    return evaluations.isDue;
  });
  assert.deepEqual(due, [false, false, true, true, false, false, true]);
});

test("six devices add up numbers of five bits, none above twelve or below minus six", () => {
  assert.deepEqual(evaluationBlocks(6, 23), [{ values: 376, bits: 5 }]);
  const isPlausible = (hit: number) => arePlausibleCounts(Int32Array.of(0, hit), 6);
  assert.deepEqual([-7, -6, 12, 13].map(isPlausible), [false, true, true, false]);
});
