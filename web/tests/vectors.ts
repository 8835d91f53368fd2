// The known answers of vectors/v1 that a page has anything to do with, bit for bit; refusals too.
import { readBitmap } from "../src/bitmaps.js";
import { type Bytes, concat, hex, setBit, sha256, viewOf } from "../src/bytes.js";
import { Catalogue } from "../src/catalogue.js";
import { ItemCodes, UserCode } from "../src/codes.js";
import { applyDelta } from "../src/deltas.js";
import { ArtifactError, ManifestError } from "../src/errors.js";
import { Fitter, Recency, weigh, type WeighedItem, weightOfAge } from "../src/fit.js";
import { inflateAtMost } from "../src/inflate.js";
import { type Kernel } from "../src/kernel.js";
import { MANIFEST, readManifest, SIGNED_MANIFEST } from "../src/manifest.js";
import { decode, MalformedMessage, type Schema } from "../src/proto.js";
import { priorOf, RankBy, score } from "../src/rankings.js";
import { type Case, drawnBytes, equal, type ReadVector, refuses, unhex } from "./check.js";

const RECENCIES: Record<string, Recency> = { off: Recency.Off, weak: Recency.Weak, strong: Recency.Strong };

export function vectorCases(kernel: Kernel, read: ReadVector): Case[] {
  const load = async (file: string): Promise<any> => JSON.parse(new TextDecoder().decode(await read(file)));
  return [
    ["codes.json: bit order", async () => codes(kernel, await load("codes.json"), await read("codes.bin"))],
    [
      "hamming.json: distances, nearest rows, ties, exclusions",
      async () => hamming(kernel, await load("hamming.json")),
    ],
    ["gram.json: G and c", async () => gram(kernel, await load("gram.json"))],
    ["user_fit.json: weights", async () => weights(await load("user_fit.json"))],
    ["user_fit.json: fits", async () => fits(kernel, await load("user_fit.json"))],
    ["evaluation.json: ranks by each candidate", async () => evaluation(kernel, await load("evaluation.json"))],
    ["bitmaps.json", async () => bitmaps(await load("bitmaps.json"))],
    ["catalogue.json: look-ups both ways", async () => catalogues(await load("catalogue.json"), read)],
    ["catalogue.json: many", async () => manyIds(await load("catalogue.json"), read)],
    ["catalogue.json: refusals", async () => badCatalogues(await load("catalogue.json"))],
    ["deltas.json: good ones", async () => deltas(await load("deltas.json"))],
    ["deltas.json: refusals", async () => badDeltas(await load("deltas.json"))],
    ["messages.json: fields in any order, and unknown ones", async () => messages(await load("messages.json"))],
    ["manifest.json: good ones", async () => manifests(await load("manifest.json"), await read("manifest.bin"))],
    ["manifest.json: refusals", async () => badManifests(await load("manifest.json"))],
  ];
}

async function codes(kernel: Kernel, vector: any, file: Bytes): Promise<void> {
  const { code_bits: f, rows } = vector.matrix;
  const items = new ItemCodes(kernel, file, f, rows.length);
  rows.forEach((signs: number[], row: number) => {
    const bytes = new Uint8Array(f / 8);
    signs.forEach((sign, bit) => sign > 0 && setBit(bytes, bit));
    equal(hex(items.row(row)), hex(bytes), "row");
  });
}

async function hamming(kernel: Kernel, vectors: any[]): Promise<void> {
  for (const vector of vectors) {
    const items = new ItemCodes(kernel, unhex(vector.codes), vector.code_bits, vector.item_count);
    const query = new UserCode(unhex(vector.query));
    const all = [...Array(vector.item_count).keys()];
    equal(items.distances(query, all), vector.distances, "distances");
    const scores = score(query, items, all).map((item) => item.score);
    equal(scores, vector.similarities, "similarities");
    const best = items.topK(query, vector.k, { exclude: unhex(vector.excluded) });
    equal(
      best.map(({ itemIndex, distance }) => [itemIndex, distance]),
      vector.best,
      "nearest rows",
    );
  }
}

async function gram(kernel: Kernel, vectors: any[]): Promise<void> {
  for (const vector of vectors) {
    const f = vector.code_bits;
    const fitter = new Fitter(new ItemCodes(kernel, unhex(vector.codes), f, vector.item_count));
    const { gram, columnSums } = fitter.catalogueTerms();
    equal(gram, vector.gram.flat(), "gram");
    equal(columnSums, vector.column_sums, "column sums");
  }
}

async function weights(vector: any): Promise<void> {
  for (const [name, expected] of Object.entries<number[]>(vector.recency_weights)) {
    const ages = expected.map((_, age) => weightOfAge(age, RECENCIES[name]));
    equal(ages, expected, name);
    equal(weightOfAge(52, RECENCIES[name]), 16, "old opinions");
  }
}

/** What a training round would fit: every item is near and weighs 16. A page takes part in none. */
const ofRound = (items: number[]): WeighedItem[] => items.map((itemIndex) => ({ itemIndex, weight: 16, isNear: true }));

async function fits(kernel: Kernel, vector: any): Promise<void> {
  for (const c of vector.cases) {
    const items = new ItemCodes(kernel, unhex(c.codes), c.code_bits, c.item_count);
    const fitter = new Fitter(items, c.mean_user.length ? c.mean_user : undefined);
    const rated: number[] = c.rated_oldest_first;
    const opinions = rated.map((itemIndex, at) => ({ itemIndex, level: c.levels[at] }));
    const weighed = c.purpose === "round" ? ofRound(rated) : weigh(opinions, RECENCIES[c.recency]);
    const old = new UserCode(unhex(c.old_code));
    equal(weightsByItem(weighed, rated), c.weights, `${c.name}: weights`);
    const { fromOld, fromSigns, result } = fitter.fitWeighed(weighed, old, c.max_sweeps);
    const { linear, quadratic } = fitter.terms();
    equal(linear, c.linear, `${c.name}: linear`);
    if (c.quadratic.length) equal(offDiagonal(quadratic, c.code_bits), offDiagonal(c.quadratic.flat(), c.code_bits));
    for (const [swept, expected] of [
      [fromOld, c.from_old_code],
      [fromSigns, c.from_linear_signs],
    ] as const) {
      equal(hex(swept.code.reveal()), expected.code, `${c.name}: code`);
      equal([swept.sweeps, swept.loss], [expected.sweeps, expected.loss], `${c.name}: sweeps and loss`);
    }
    equal(hex(result.reveal()), c.result, `${c.name}: result`);
    if (c.purpose !== "round") {
      const fitted = fitter.fit(opinions, old, { recency: RECENCIES[c.recency] });
      equal(hex(fitted.reveal()), c.result, `${c.name}: fit for use`);
    }
  }
}

const weightsByItem = (weighed: WeighedItem[], items: number[]): number[] =>
  items.map((item) => weighed.find(({ itemIndex }) => itemIndex === item)!.weight);

const offDiagonal = (matrix: ArrayLike<number | bigint>, f: number): number[] =>
  Array.from(matrix, (entry, at) => (at % (f + 1) === 0 ? 0 : Number(entry)));

/** The items that an evaluation draws: docs/protocol.md, "An evaluation on the device". */
async function drawnItems(digest: Bytes, itemCount: number, without: Set<number>): Promise<number[]> {
  const all = [...Array(itemCount).keys()].filter((item) => !without.has(item));
  if (all.length <= 49) return all;
  const drawn = new Set<number>();
  for (let block = 0; ; block++) {
    const number = new Uint8Array(new Uint32Array([block]).buffer);
    const words = await sha256(concat(new TextEncoder().encode("lightfr evaluation v1\n"), digest, number));
    for (let at = 0; at < 32; at += 4) {
      const item = Math.floor((viewOf(words).getUint32(at, true) * itemCount) / 2 ** 32);
      if (!without.has(item)) drawn.add(item);
      if (drawn.size === 49) return [...drawn];
    }
  }
}

async function evaluation(kernel: Kernel, vector: any): Promise<void> {
  for (const device of vector.devices.filter(({ ranks }: any) => ranks.length)) {
    const { code_bits: f, item_count: itemCount, opinions } = device;
    const items = new ItemCodes(kernel, unhex(device.codes), f, itemCount);
    const fitter = new Fitter(items);
    const popularities = device.prior.map(([firstItem, popularity]: number[]) => ({ firstItem, popularity }));
    const held: number = opinions.at(-1)[0];
    const others = await drawnItems(
      unhex(device.roster_digest),
      itemCount,
      new Set(opinions.map(([i]: number[]) => i)),
    );
    const fittedOn = opinions.slice(0, -1).map(([itemIndex, level]: number[]) => ({ itemIndex, level }));
    vector.candidates.forEach((candidate: any, at: number) => {
      if (candidate.by === "chance") return;
      const ranking = {
        by: RankBy.Codes,
        priorFourths: candidate.prior_fourths,
        recency: RECENCIES[candidate.recency],
      };
      const steps = priorOf(popularities, { ...ranking, refine: false }, f);
      const options = { recency: ranking.recency, refine: candidate.refine };
      const code = fitter.fit(fittedOn, new UserCode(unhex(device.old_code)), options);
      const scored = score(code, items, [held, ...others], steps);
      const of = (item: { score: number }): number => (candidate.by === "popularity" ? 0 : item.score);
      const isBetter = (item: { score: number; itemIndex: number }): boolean =>
        of(item) > of(scored[0]) || (of(item) === of(scored[0]) && item.itemIndex < held);
      equal(1 + scored.filter(isBetter).length, device.ranks[at], `${device.name}: rank by candidate ${at}`);
    });
  }
}

async function bitmaps(vector: any): Promise<void> {
  for (const { file } of vector.good) equal(hex(await readBitmap(unhex(file), vector.item_count)), vector.bitmap);
  for (const { name, file } of vector.refused)
    await refuses(() => readBitmap(unhex(file), vector.item_count), ArtifactError, name);
  await refuses(() => readBitmap(new Uint8Array(), vector.item_count), ArtifactError, "no bytes");
  for (const { file } of vector.good) {
    const stream = unhex(file);
    for (const between of [0, 1, 9]) {
      const longer = concat(stream, drawnBytes(between, 1), stream.subarray(-4));
      await refuses(() => readBitmap(longer, vector.item_count), ArtifactError, "the checksum once more at the end");
    }
  }
  // One stored block of four bytes, which are the checksum of themselves.
  const content = unhex("03fb01f8");
  const stream = concat(unhex("7801010400fbff"), content, content);
  equal(await inflateAtMost(stream, 4, "a stream"), content, "a stream in which its checksum stands twice");
}

async function catalogues(vector: any, read: ReadVector): Promise<void> {
  for (const { kind, files, ids, missing } of vector.good) {
    const catalogue = new Catalogue(await Promise.all(files.map(read)), ids.length);
    const idOf = (id: string): string | bigint => (kind === "int" ? BigInt(id) : id);
    for (const [index, id] of ids.entries()) {
      equal(await catalogue.indexOf(idOf(id)), index, "index");
      equal(String(await catalogue.idOf(index)), id, "id");
    }
    equal((await catalogue.idsOf([...ids.keys(), 0])).map(String), [...ids, ids[0]], "ids, one of them twice");
    for (const id of missing) equal(await catalogue.indexOf(idOf(id)), undefined, "index of an unknown id");
    equal(await catalogue.indexOf(kind === "int" ? "7" : 7), undefined, "index of an id of the other kind");
  }
}

async function manyIds({ many }: any, read: ReadVector): Promise<void> {
  const ids = [0];
  for (let at = 0; at + 1 < many.item_count; at++) ids.push(ids[at] + many.steps[Math.floor(at / 256) % 5]);
  const catalogue = new Catalogue([await read(many.file)], many.item_count);
  for (let index = 0; index < many.item_count; index += 97) {
    const id = ids[(((index + 1) * many.multiplier) % many.modulus) - 1];
    equal(await catalogue.idOf(index), id, "id");
    equal(await catalogue.indexOf(id), index, "index");
  }
}

async function badCatalogues(vector: any): Promise<void> {
  for (const { name, item_count: itemCount, files, at, asked } of vector.refused) {
    const open = (): Catalogue => new Catalogue(files.map(unhex), itemCount);
    if (at === "open") {
      await refuses(open, ArtifactError, name);
      continue;
    }
    const catalogue = open();
    const isText = files[0].startsWith("4c4652430202");
    const lookUp = (): Promise<unknown> =>
      at === "id_of" ? catalogue.idOf(asked) : catalogue.indexOf(isText ? asked : BigInt(asked));
    await refuses(lookUp, ArtifactError, name);
  }
}

async function deltas({ good, far_apart: far }: any): Promise<void> {
  for (const { name, old, delta, new: codes, new_sha256: digest } of good) {
    const result = await applyDelta(unhex(delta), unhex(old), codes.length / 2);
    equal([hex(result), hex(await sha256(result))], [codes, digest], name);
  }
  const result = await applyDelta(unhex(far.delta), new Uint8Array(far.old_zero_bytes), far.old_zero_bytes);
  equal(hex(await sha256(result)), far.new_sha256, "rows far apart");
}

async function badDeltas({ bad }: any): Promise<void> {
  const old = unhex(bad.old);
  for (const { name, delta } of bad.refused)
    await refuses(() => applyDelta(unhex(delta), old, bad.largest_new_bytes), ArtifactError, name);
  const whole = await applyDelta(unhex(bad.good.delta), old, bad.largest_new_bytes);
  equal(hex(await sha256(whole)), bad.good.new_sha256);
  const other = await applyDelta(unhex(bad.good.delta), unhex(bad.other_old_codes.old), bad.largest_new_bytes);
  equal(hex(await sha256(other)) === bad.good.new_sha256, false, "digests of other old codes");
}

async function manifests(vector: any, signed: Bytes): Promise<void> {
  const keys = [unhex(vector.public_key)];
  equal(hex(signed), vector.signed_manifest);
  const manifest = await readManifest(signed, keys);
  equal(manifest.sha256, vector.manifest_sha256, "digest");
  equal([manifest.modelVersion, manifest.codeBits, manifest.itemCount], [9, 64, 100]);
  equal([manifest.meanUser?.length, manifest.rankings.length], [64, 4]);
  for (const good of Object.values<string>(vector.also_good)) await readManifest(unhex(good), keys);
}

async function badManifests(vector: any): Promise<void> {
  const keys = [unhex(vector.public_key)];
  for (const { name, signed_manifest: signed } of vector.refused)
    await refuses(() => readManifest(unhex(signed), keys), ManifestError, name);
}

// Of messages that a page never meets, what the known answers need.
const CAPABILITIES: Schema = { 1: ["wireVersions", "uint32", "repeated"], 2: ["uploadKinds", "int32", "repeated"] };
const SCHEMAS: Record<string, Schema> = {
  Manifest: MANIFEST,
  SignedManifest: SIGNED_MANIFEST,
  Capabilities: CAPABILITIES,
  GetRoundStatusResponse: { 1: ["state", "int32"], 2: ["uploadCount", "uint32"] },
  GetManifestRequest: { 1: ["capabilities", CAPABILITIES] },
  EnrollRequest: { 1: ["token", "string"] },
};

/** As proto3's JSON has it: zeros are absent. Names are sorted, for fields come in any order. */
const shown = (message: unknown): unknown =>
  JSON.parse(
    JSON.stringify(message, (_, part: unknown) => {
      if (part === 0) return undefined;
      if (part instanceof Uint8Array) return btoa(String.fromCharCode(...part));
      if (part === "UPLOAD_KIND_TERNARY") return 1;
      if (part instanceof Object && !Array.isArray(part)) return Object.fromEntries(Object.entries(part).sort());
      return typeof part === "bigint" ? String(part) : part;
    }),
  );

async function messages({ messages, read_as: readAs, refused }: any): Promise<void> {
  for (const { message, bytes, json, other_order: other, unknown_fields: unknown } of messages) {
    const schema = SCHEMAS[message];
    if (!schema || !message.endsWith("Manifest")) continue;
    const read = decode(schema, unhex(bytes));
    for (const [name, kind] of Object.values(schema))
      if (["bytes", "string", "uint64"].includes(kind as string)) equal(shown(read[name]), json[name], name);
    for (const same of [other, unknown]) equal(shown(decode(schema, unhex(same))), shown(read), message);
  }
  for (const { name, message, bytes, json } of readAs.filter((c: any) => c.message in SCHEMAS))
    equal(shown(decode(SCHEMAS[message], unhex(bytes))), shown(json), name);
  for (const { name, message, bytes } of refused)
    await refuses(() => decode(SCHEMAS[message], unhex(bytes)), MalformedMessage, name);
}
