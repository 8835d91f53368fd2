// Popularity as a step function of the row: docs/protocol.md, "Evaluation", and manifest.proto, "Prior".

/** The fields of the message Prior. */
export interface Prior {
  firstItems: number[];
  popularities: number[];
}

const MOST_STEPS = 64;
const MOST_POPULARITY = 1023;

/** The prior of items with these counts, by row; counts below `least` are not told. Undefined: there is none to tell. */
export function priorOf(counts: number[], least: number): Prior | undefined {
  const told = counts.map((count) => (count >= least ? count : 0));
  if (!told.some((count) => count > 0)) return undefined;
  const exact = neverRising(told.map((count) => 16 * Math.log1p(count)));
  const levels = atMostSteps(exact.map((level) => Math.min(Math.round(level), MOST_POPULARITY)));
  const firstItems = [...levels.keys()].filter((row) => row === 0 || levels[row] !== levels[row - 1]);
  return { firstItems, popularities: firstItems.map((row) => levels[row]) };
}

/** The numbers nearest to these that never rise: neighbours that do share their mean. */
function neverRising(values: number[]): number[] {
  const pools: { mean: number; size: number }[] = [];
  for (const value of values) {
    let pool = { mean: value, size: 1 };
    while (pools.length > 0 && pools[pools.length - 1].mean < pool.mean) {
      const before = pools.pop()!;
      const size = pool.size + before.size;
      pool = { mean: (pool.mean * pool.size + before.mean * before.size) / size, size };
    }
    pools.push(pool);
  }
  return pools.flatMap(({ mean, size }) => new Array<number>(size).fill(mean));
}

/** These levels, which never rise, or where they are too many the middles of intervals of the smallest sufficient width. */
function atMostSteps(levels: number[]): number[] {
  let width = 1;
  while (new Set(levels.map((level) => Math.floor(level / width))).size > MOST_STEPS) width++;
  if (width === 1) return levels;
  const middle = (level: number) => Math.floor(level / width) * width + Math.floor(width / 2);
  // The first level is the highest, and no middle may be above it.
  return levels.map((level) => Math.min(middle(level), levels[0]));
}
