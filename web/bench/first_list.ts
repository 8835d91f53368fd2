// From the click on a link to the first list on the screen: a first visit, or with the model of the last one.
import { Model, Ratings } from "../src/index.js";

interface Measuring {
  measureUserAgentSpecificMemory(): Promise<{ bytes: number }>;
}

/** When what was just drawn is on the screen: in the task behind the next frame. */
const painted = (): Promise<number> =>
  new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(performance.now()))));

const asked = new URLSearchParams(location.search);
const started = performance.now();
document.body.append(Object.assign(document.createElement("h1"), { textContent: "For you" }));
const model = await Model.load(asked.get("server")!, atob(asked.get("trust")!));
const loaded = performance.now();
const ratings = await Ratings.open();
const list = await model.recommend(ratings, 10);
const firstList = performance.now();
document.body.append(
  ...list.map(({ itemId }) => Object.assign(document.createElement("p"), { textContent: `${itemId}` })),
);
const listPainted = await painted();
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
    firstPaintMs: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
    firstListMs: firstList,
    listPaintedMs: listPainted,
    nextListMs: nextList,
    memoryBytes: bytes,
    kernelBytes: model.codes.memory.byteLength,
    downloads: files.filter(({ name }) => name.startsWith(asked.get("server")!)).length,
  },
});
