// From the click on a link to the first list: a first visit, or with the model of the last one.
import { Model, Ratings } from "../src/index.js";

interface Measuring {
  measureUserAgentSpecificMemory(): Promise<{ bytes: number }>;
}

const asked = new URLSearchParams(location.search);
const started = performance.now();
const model = await Model.load(asked.get("server")!, atob(asked.get("trust")!));
const loaded = performance.now();
const ratings = await Ratings.open();
const list = await model.recommend(ratings, 10);
const firstList = performance.now();
await ratings.like(list[0].itemId);
const before = performance.now();
await model.recommend(ratings, 10);
const nextList = performance.now() - before;
const { bytes } = await (performance as unknown as Measuring).measureUserAgentSpecificMemory();
const files = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
Object.assign(globalThis, {
  shown: {
    items: model.codes.itemCount,
    pageMs: started,
    loadMs: loaded - started,
    firstListMs: firstList,
    nextListMs: nextList,
    memoryBytes: bytes,
    kernelBytes: model.codes.memory.byteLength,
    downloads: files.filter(({ name }) => name.startsWith(asked.get("server")!)).length,
  },
});
