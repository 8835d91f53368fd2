// All cases in a browser, with the package as it is built. tests/web/test_page.py waits for `results`.
import { type Bytes } from "../src/bytes.js";
import { Kernel } from "../src/kernel.js";
import { agreementCases } from "./agreement.js";
import { type Case } from "./check.js";
import { modelCases } from "./models.js";
import { ratingCases } from "./ratings.js";
import { vectorCases } from "./vectors.js";
import { visitCases } from "./visits.js";

const content = async (path: string): Promise<Bytes> => new Uint8Array(await (await fetch(path)).arrayBuffer());
const read = (file: string): Promise<Bytes> => content(`/vectors/${file}`);

async function allCases(): Promise<Case[]> {
  const simd = await Kernel.load(await content("/web/src/kernel.simd.wasm"));
  const plain = await Kernel.load(await content("/web/src/kernel.plain.wasm"));
  const named = (kind: string, cases: Case[]): Case[] => cases.map(([name, run]) => [`${kind}: ${name}`, run]);
  const both = [...named("simd", vectorCases(simd, read)), ...named("plain", vectorCases(plain, read))];
  const chosen = await Kernel.load();
  return [...both, ...agreementCases(simd, plain), ...modelCases(chosen), ...visitCases(chosen), ...ratingCases];
}

const results: [name: string, error: string][] = [];
for (const [name, run] of await allCases()) {
  const error = await run().then(
    () => "",
    (reason: Error) => reason.message || String(reason),
  );
  results.push([name, error]);
}
Object.assign(globalThis, { results });
