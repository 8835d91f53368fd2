// A page as an app would have it, for tests/web/test_offline.py: it loads a model, keeps opinions, and recommends.
import { hex } from "../src/bytes.js";
import { Model, Ratings } from "../src/index.js";

const asked = new URLSearchParams(location.search);

async function run(): Promise<object> {
  const model = await Model.load(asked.get("server")!, atob(asked.get("trust")!));
  const ratings = await Ratings.open();
  const before = (await model.recommend(ratings)).map(({ itemId }) => itemId);
  if ((await ratings.opinions()).length === 0) {
    await ratings.like(before[0]);
    await ratings.dislike(before[1]);
    await ratings.hide(before[2]);
  }
  return {
    version: Number(model.version),
    before,
    list: await model.recommend(ratings),
    startCode: hex((await ratings.startCode(model.codes.codeBits)).reveal()),
    updateError: model.updateError?.name ?? "",
  };
}

// The worker answers for this page from its next visit on, and keeps what it then loads.
await navigator.serviceWorker.register("/web/src/worker.js", { type: "module", scope: "/" });
await navigator.serviceWorker.ready;
const shown = await run().catch((error: Error) => ({ error: error.name, message: error.message }));
Object.assign(globalThis, { shown, isControlled: navigator.serviceWorker.controller !== null });
