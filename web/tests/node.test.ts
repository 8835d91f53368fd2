// The cases in Node.js, with both builds of the kernel. tests/page.ts runs the same in a browser, but for the worker's.
import { webcrypto } from "node:crypto";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { Kernel } from "../src/kernel.js";
import { agreementCases } from "./agreement.js";
import { modelCases } from "./models.js";
import { vectorCases } from "./vectors.js";
import { visitCases } from "./visits.js";
import { workerCases } from "./worker.js";

// Node.js 18 has them, though not as globals.
if (!globalThis.crypto) Object.assign(globalThis, { crypto: webcrypto, SubtleCrypto: webcrypto.subtle.constructor });

const VECTORS = new URL("../../../vectors/v1/", import.meta.url);
const read = async (file: string) => new Uint8Array(await readFile(new URL(file, VECTORS)));
const load = async (kind: string) =>
  Kernel.load(await readFile(new URL(`../src/kernel.${kind}.wasm`, import.meta.url)));
const [simd, plain] = [await load("simd"), await load("plain")];

for (const [kind, kernel] of Object.entries({ simd, plain }))
  for (const [name, run] of vectorCases(kernel, read)) test(`${kind}: ${name}`, run);
for (const [name, run] of [...agreementCases(simd, plain), ...modelCases(simd), ...visitCases(simd), ...workerCases])
  test(name, run);
