// The ten best of a million items, in one interleaved run: both builds of the kernel, plain JavaScript, and floats.
import { ItemCodes, UserCode } from "../src/codes.js";
import { Kernel } from "../src/kernel.js";

const ITEMS = 1_000_000;
const K = 10;
const DIMENSIONS = 32;
const ROUNDS = 40;

/** The k smallest costs, by (cost, index); what every contender but the kernel keeps its best in. */
class Best {
  readonly costs: number[] = [];
  readonly items: number[] = [];
  worst = Infinity;

  offer(cost: number, item: number): void {
    let at = this.costs.length;
    while (at > 0 && this.costs[at - 1] > cost) at--;
    this.costs.splice(at, 0, cost);
    this.items.splice(at, 0, item);
    if (this.costs.length > K) {
      this.costs.pop();
      this.items.pop();
    }
    if (this.costs.length === K) this.worst = this.costs[K - 1];
  }
}

function popcount(word: number): number {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

function byTypedArray(codes: Uint32Array, low: number, high: number): number[] {
  const best = new Best();
  for (let item = 0; item < ITEMS; item++) {
    const distance = popcount(codes[2 * item] ^ low) + popcount(codes[2 * item + 1] ^ high);
    if (distance < best.worst) best.offer(distance, item);
  }
  return best.items;
}

function byFloats(vectors: Float32Array, query: Float32Array): number[] {
  const best = new Best();
  for (let item = 0, at = 0; item < ITEMS; item++) {
    let dot = 0;
    for (let k = 0; k < DIMENSIONS; k++) dot += vectors[at++] * query[k];
    if (-dot < best.worst) best.offer(-dot, item);
  }
  return best.items;
}

function randomBytes(length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
}

const load = async (kind: string): Promise<Kernel> =>
  Kernel.load(await (await fetch(new URL(`../src/kernel.${kind}.wasm`, import.meta.url))).arrayBuffer());

async function contenders(): Promise<Record<string, () => number[]>> {
  const codes = randomBytes(8 * ITEMS);
  const query = randomBytes(8);
  const user = new UserCode(query);
  const words = new Uint32Array(codes.buffer);
  const [low, high] = new Uint32Array(query.buffer);
  const vectors = new Float32Array(ITEMS * DIMENSIONS).map(() => Math.random() - 0.5);
  const wanted = vectors.slice(0, DIMENSIONS);
  const [simd, plain] = [await load("simd"), await load("plain")].map((k) => new ItemCodes(k, codes, 64, ITEMS));
  const itemsOf = (items: ItemCodes): number[] => items.topK(user, K).map(({ itemIndex }) => itemIndex);
  return {
    "kernel, SIMD": () => itemsOf(simd),
    "kernel, plain": () => itemsOf(plain),
    "TypedArray popcount": () => byTypedArray(words, low, high),
    "float32 dot products of 32": () => byFloats(vectors, wanted),
  };
}

const all = await contenders();
const names = Object.keys(all);
const answers = names.slice(0, 3).map((name) => String(all[name]()));
const times: Record<string, number[]> = Object.fromEntries(names.map((name) => [name, []]));
// The first rounds run code that the browser has not optimised yet.
for (let round = -10; round < ROUNDS; round++)
  for (const name of names) {
    const start = performance.now();
    all[name]();
    if (round >= 0) times[name].push(performance.now() - start);
    // The browser compiles in between.
    await new Promise((resolve) => setTimeout(resolve));
  }
const summary = names.map((name) => {
  const sorted = times[name].sort((a, b) => a - b);
  return { name, least: sorted[0], median: sorted[ROUNDS / 2] };
});
Object.assign(globalThis, { shown: { agree: new Set(answers).size === 1, summary } });
