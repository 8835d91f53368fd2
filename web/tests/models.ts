// Loading, keeping and replacing a model, and what it recommends, with a server that may lie.
import { type Bytes, hex, sha256 } from "../src/bytes.js";
import { IntegerPart } from "../src/catalogue_part.js";
import { UserCode } from "../src/codes.js";
import {
  ArtifactError,
  InvalidInputError,
  LightFRError,
  ManifestError,
  RatingError,
  ServerUnavailableError,
  UnsupportedBrowserError,
} from "../src/errors.js";
import { type Kernel } from "../src/kernel.js";
import { readTrustedKeys } from "../src/manifest.js";
import { Model, type UserOpinions } from "../src/model.js";
import { levelOf, type RatingScale } from "../src/ratings.js";
import { memoryStore, type ModelStore } from "../src/store.js";
import { type Case, drawnBytes, equal, refuses } from "./check.js";
import { number, Publisher, type Version } from "./publishing.js";

export const BASE = "https://recs.example:8446";
export const FIRST: Version = { number: 3, codes: drawnBytes(40 * 8, 1), codeBits: 64, itemCount: 40 };

/** Loads models from a server that may lie, or be asked in another way. */
export const loader =
  (kernel: Kernel): Load =>
  (server, store, fetch = server.fetch) =>
    Model.load(BASE, server.publicKey, { kernel, store, fetch });

export function modelCases(kernel: Kernel): Case[] {
  const load = loader(kernel);
  return [
    ["what was rated, disliked, hidden, excluded or removed is not recommended", () => leavesOut(load)],
    ["a list by popularity goes by the index", () => byPopularity(load)],
    ["a long list decodes each block of the catalogue once", () => longList(load)],
    ["ids that are asked for at the same time decode their block once", () => sameBlock(load)],
    ["a model that was loaded once works offline", () => offline(load)],
    ["a delta saves the download of the codes", () => byDelta(load)],
    ["a delta that leads elsewhere is not used", () => byWrongDelta(load)],
    ["whatever is wrong with a new version, the old one stays", () => keepsOld(load)],
    ["a damaged file of the store is fetched again", () => mends(load)],
    ["without a stored model the error is thrown", () => throws(load)],
    ["a browser without Ed25519 says so", () => withoutEd25519(load)],
    ["trusted keys are PEM text or 32 bytes", trustedKeys],
    ["ratings become the levels of the SDK", levels],
  ];
}

export type Fetch = (address: RequestInfo | URL, init?: RequestInit) => Promise<Response>;
export type Load = (server: Publisher, store: ModelStore, fetch?: Fetch) => Promise<Model>;

export async function published(version: Version = FIRST): Promise<Publisher> {
  const server = await Publisher.make();
  await server.publish(version);
  return server;
}

function user(levels: Record<number, number>, hidden: number[] = []): UserOpinions {
  return {
    opinions: async () => Object.entries(levels).map(([itemId, level]) => ({ itemId: Number(itemId), level })),
    hidden: async () => hidden,
    startCode: async (codeBits) => new UserCode(new Uint8Array(codeBits / 8)),
  };
}

const idsOf = (list: { itemId: unknown }[]): unknown[] => list.map(({ itemId }) => itemId);

async function leavesOut(load: Load): Promise<void> {
  const open = [...Array(40).keys()].filter((item) => item !== 5 && item !== 6);
  const codes = drawnBytes((open.length + 1) * 8, 1);
  const model = await load(await published({ ...FIRST, codes, open, removed: [6] }), memoryStore());
  const opinions = user({ 1001: 2520, 1002: 0, 1006: 2520, 9999: 2520 }, [1003]);
  const list = idsOf(await model.recommend(opinions, 100, { exclude: [1004] }));
  equal([list.length, [1001, 1002, 1003, 1004, 1006].some((id) => list.includes(id))], [35, false]);
  equal(list.includes(1005), true, "a closed item can be recommended");
  const rated = idsOf(await model.recommend(opinions, 100, { excludeRated: false }));
  equal([rated.includes(1001), rated.includes(1002)], [true, false], "disliked items stay away");
  equal(await model.indexOf(1006), undefined, "index of an item that left");
  const scores = (await model.recommend(opinions, 100)).map(({ score }) => score);
  equal(
    scores,
    [...scores].sort((a, b) => b - a),
    "scores",
  );
}

async function byPopularity(load: Load): Promise<void> {
  const model = await load(await published({ ...FIRST, ranking: number(1, 2) }), memoryStore());
  equal(idsOf(await model.recommend(user({ 1001: 2520, 1003: 1260 }), 4)), [1000, 1002, 1004, 1005]);
  const all = Object.fromEntries(Array.from({ length: 40 }, (_, item) => [1000 + item, 2520]));
  equal(await model.recommend(user(all), 4), [], "a list when nothing is left");
}

/** How often blocks of integers are decoded while something runs. */
async function decodings(run: () => Promise<void>): Promise<number> {
  const prototype = IntegerPart.prototype as unknown as { decode(block: number): Promise<unknown> };
  const { decode } = prototype;
  let count = 0;
  prototype.decode = function (block) {
    count++;
    return decode.call(this, block);
  };
  try {
    await run();
  } finally {
    prototype.decode = decode;
  }
  return count;
}

/** There are more blocks than are kept, and the list goes to and fro between them. */
async function longList(load: Load): Promise<void> {
  const itemCount = 20_000;
  const model = await load(
    await published({ number: 1, codes: drawnBytes(8 * itemCount, 1), codeBits: 64, itemCount }),
    memoryStore(),
  );
  let list: unknown[] = [];
  const count = await decodings(async () => {
    list = idsOf(await model.recommend(user({}), 300));
  });
  equal(count <= Math.ceil(itemCount / 256), true, `${count} blocks were decoded`);
  const best = model.codes.topK(await model.userCode(user({})), 300);
  equal(
    list,
    best.map(({ itemIndex }) => 1000 + itemIndex),
    "ids",
  );
}

async function sameBlock(load: Load): Promise<void> {
  const { catalogue } = await load(await published(), memoryStore());
  const items = [...Array(40).keys()];
  let ids: unknown[] = [];
  const count = await decodings(async () => {
    ids = await Promise.all(items.map((item) => catalogue.idOf(item)));
  });
  equal([count, ids], [1, items.map((item) => 1000 + item)], "blocks that were decoded, and the ids");
}

async function offline(load: Load): Promise<void> {
  const [server, store] = [await published(), memoryStore()];
  const online = await load(server, store);
  equal(online.updateError, undefined);
  server.isDown = true;
  const model = await load(server, store);
  equal([model.version, model.updateError instanceof ServerUnavailableError], [3, true]);
  equal(await model.recommend(user({ 1001: 2520 })), await online.recommend(user({ 1001: 2520 })));
}

const artifactOf = async (codes: Bytes): Promise<string> => `artifacts/${hex(await sha256(codes))}`;

async function byDelta(load: Load): Promise<void> {
  const [server, store] = [await published(), memoryStore()];
  await load(server, store);
  const codes = FIRST.codes.map((byte, at) => (at % 80 === 0 ? byte ^ 1 : byte));
  await server.publish({ ...FIRST, number: 4, codes, deltaFrom: FIRST.codes });
  server.files.delete(await artifactOf(codes));
  const model = await load(server, store);
  equal([model.version, hex(model.codes.row(10))], [4, hex(codes.subarray(80, 88))]);
  equal((await store.names()).length, 3, "files that are kept: manifest, codes, catalogue");
}

async function byWrongDelta(load: Load): Promise<void> {
  const [server, store] = [await published(), memoryStore()];
  await load(server, store);
  const [codes, others] = [drawnBytes(40 * 8, 2), drawnBytes(40 * 8, 3)];
  await server.publish({ ...FIRST, number: 4, codes, deltaFrom: FIRST.codes, deltaTo: others });
  const model = await load(server, store);
  equal([model.version, hex(model.codes.row(0))], [4, hex(codes.subarray(0, 8))]);
}

async function keepsOld(load: Load): Promise<void> {
  const second = { ...FIRST, number: 4, codes: drawnBytes(40 * 8, 2) };
  const lies: [string, (server: Publisher) => Promise<unknown>, new (...args: never[]) => LightFRError][] = [
    ["an older version", (server) => server.publish({ ...FIRST, number: 2 }), ManifestError],
    ["other content of the same version", (server) => server.publish({ ...second, number: 3 }), ManifestError],
    [
      "a signature by another key",
      async (s) => s.files.set("manifest", (await published(second)).files.get("manifest")!),
      ManifestError,
    ],
    ["a manifest that goes on and on", async (s) => s.files.set("manifest", new Uint8Array(70_000)), ArtifactError],
    ["no manifest", async (server) => server.files.delete("manifest"), ServerUnavailableError],
    ["spoilt codes", async (s) => s.files.set(await artifactOf(second.codes), new Uint8Array(320)), ArtifactError],
    [
      "codes that go on and on",
      async (s) => s.files.set(await artifactOf(second.codes), new Uint8Array(321)),
      ArtifactError,
    ],
    ["missing codes", async (s) => s.files.delete(await artifactOf(second.codes)), ServerUnavailableError],
    ["more open items than rows", (s) => s.publish({ ...second, open: [...Array(40).keys()] }), ArtifactError],
    [
      "an open item that left",
      (s) => s.publish({ ...second, open: [...Array(39).keys()], removed: [0] }),
      ArtifactError,
    ],
  ];
  for (const [name, lie, kind] of lies) {
    const [server, store] = [await published(), memoryStore()];
    await load(server, store);
    await server.publish(second);
    await lie(server);
    const model = await load(server, store);
    equal([model.version, model.updateError instanceof kind], [3, true], `${name}: ${model.updateError}`);
    server.isDown = true;
    equal([(await load(server, store)).version, (await store.names()).length], [3, 3], `${name}: what is stored`);
  }
}

async function mends(load: Load): Promise<void> {
  const [server, store] = [await published(), memoryStore()];
  await load(server, store);
  await store.put(await artifactOf(FIRST.codes), new Uint8Array(320));
  server.asked.length = 0;
  equal(hex((await load(server, store)).codes.row(0)), hex(FIRST.codes.subarray(0, 8)));
  equal(server.asked, ["manifest", await artifactOf(FIRST.codes)], "what is asked for");
}

async function throws(load: Load): Promise<void> {
  const server = await published();
  server.files.set(await artifactOf(FIRST.codes), new Uint8Array(320));
  await refuses(() => load(server, memoryStore()), ArtifactError, "spoilt codes");
  server.isDown = true;
  await refuses(() => load(server, memoryStore()), ServerUnavailableError, "a server that is gone");
}

async function withoutEd25519(load: Load): Promise<void> {
  const server = await published();
  const { importKey } = SubtleCrypto.prototype;
  SubtleCrypto.prototype.importKey = () => Promise.reject(new DOMException("Unrecognized name", "NotSupportedError"));
  try {
    await refuses(() => load(server, memoryStore()), UnsupportedBrowserError, "Ed25519");
  } finally {
    SubtleCrypto.prototype.importKey = importKey;
  }
}

async function trustedKeys(): Promise<void> {
  const key = drawnBytes(32, 9);
  const info = Uint8Array.from([0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0, ...key]);
  const block = (label: string, content: Bytes): string =>
    `-----BEGIN ${label}-----\n${btoa(String.fromCharCode(...content))}\n-----END ${label}-----\n`;
  const trust = block("CERTIFICATE", key) + block("PUBLIC KEY", info) + block("LIGHTFR MEMBERSHIP KEY", info);
  equal(readTrustedKeys(trust).map(hex), [hex(key)]);
  equal(readTrustedKeys(key).map(hex), [hex(key)]);
  const brokenOff = block("PUBLIC KEY", info).replace(/...\n-----END/, "\n-----END");
  for (const bad of ["", block("PUBLIC KEY", key), block("CERTIFICATE", info), key.subarray(1), brokenOff])
    await refuses(() => readTrustedKeys(bad), InvalidInputError, "a trusted key");
}

async function levels(): Promise<void> {
  equal(
    [1, 2, 3, 4, 5].map((rating) => levelOf(rating, { min: 1, max: 5 })),
    [0, 630, 1260, 1890, 2520],
  );
  // 157.5, 472.5 and 787.5: halves go to the even level.
  equal(
    [1, 3, 5].map((rating) => levelOf(rating, { min: 0, max: 16 })),
    [158, 472, 788],
  );
  for (const [rating, max] of [
    [6, 5],
    [NaN, 5],
    [0.5, 5],
    [1, 1],
  ])
    await refuses(() => levelOf(rating, { min: 1, max }), RatingError, "a rating");
  for (const rating of [null, "", " ", "5", [], false, 5n, undefined])
    await refuses(
      () => levelOf(rating as unknown as number, { min: 0, max: 10 }),
      RatingError,
      `a rating of ${typeof rating}`,
    );
  for (const [min, max] of [
    [0, Infinity],
    [-Infinity, Infinity],
    [-Number.MAX_VALUE, Number.MAX_VALUE],
    ["0", "10"] as unknown as [number, number],
  ])
    await refuses(() => levelOf(5, { min, max }), RatingError, `a scale from ${min} to ${max}`);
  for (const scale of [undefined, null, {}])
    await refuses(() => levelOf(5, scale as RatingScale), RatingError, "a scale that was forgotten");
}
