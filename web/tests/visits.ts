// Visits that meet other tabs, servers that hang, full disks, and browsers that lack something.
import { type Bytes } from "../src/bytes.js";
import {
  ArtifactError,
  InvalidInputError,
  LightFRError,
  ManifestError,
  ServerUnavailableError,
  StoreError,
  UnsupportedBrowserError,
} from "../src/errors.js";
import { Kernel } from "../src/kernel.js";
import { Model } from "../src/model.js";
import { memoryStore, type ModelStore } from "../src/store.js";
import { type Case, drawnBytes, equal, refuses, withGlobals } from "./check.js";
import { BASE, type Fetch, FIRST, type Load, loader, published } from "./models.js";
import { type Publisher, type Version } from "./publishing.js";

export function visitCases(kernel: Kernel): Case[] {
  const load = loader(kernel);
  return [
    ["an address that is none of a server is refused", () => addresses(kernel)],
    ["a page that came over plain HTTP, or may keep nothing, hears so", () => withoutStorage(kernel)],
    ["a kernel that is out of reach, or is none, is a typed error", noKernel],
    ["a tab whose update fails leaves the newer model that another tab has just kept", () => failsBeside(load)],
    ["a slow tab does not put an older version over a newer one", () => isSlowBeside(load)],
    ["a version is kept whole though another tab removed files of it", () => keepsWhole(load)],
    ["a server that hangs or drips holds nobody up", () => hangs(load)],
    ["a slow network has a second more for each 1,000 bytes", () => isPatient(load)],
    ["a catalogue that is announced larger than its items need is not fetched", () => largeCatalogue(load)],
    ["a request tells nothing of the page, and the browser does not keep the answer", () => asksQuietly(load)],
    ["a full disk keeps no new model, and none from being used", () => fullDisk(load)],
  ];
}

const version = (number: number): Version => ({ ...FIRST, number, codes: drawnBytes(40 * 8, number) });

/** Loads what a server has, as a slow tab does: what follows the manifest comes when it may. */
async function loadSlowly(load: Load, server: Publisher, store: ModelStore, end: Fetch = server.fetch) {
  let goOn = (): void => undefined;
  const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
  let loading: Promise<Model> | undefined;
  await new Promise<void>((isWaiting) => {
    loading = load(server, store, async (address) => {
      if (String(address).endsWith("/manifest")) return server.fetch(address);
      isWaiting();
      await mayGoOn;
      return end(address);
    });
  });
  return (): Promise<Model> => (goOn(), loading!);
}

async function versionOffline(load: Load, server: Publisher, store: ModelStore): Promise<bigint> {
  server.isDown = true;
  return (await load(server, store)).version;
}

async function failsBeside(load: Load): Promise<void> {
  const [server, store] = [await published(version(3)), memoryStore()];
  await load(server, store);
  await server.publish(version(4));
  const finish = await loadSlowly(load, server, store, () => Promise.reject(new TypeError("Failed to fetch")));
  equal((await load(server, store)).version, 4);
  const model = await finish();
  equal([model.version, model.updateError instanceof ServerUnavailableError], [4, true], "the slow tab's model");
  equal(await versionOffline(load, server, store), 4, "version that is kept");
}

async function isSlowBeside(load: Load): Promise<void> {
  const [server, store] = [await published(version(3)), memoryStore()];
  await load(server, store);
  await server.publish(version(4));
  const four = server.files.get("manifest")!;
  const finish = await loadSlowly(load, server, store);
  await server.publish(version(5));
  equal((await load(server, store)).version, 5);
  await finish();
  equal((await store.names()).length, 3, "files that are kept");
  // A server, or a cache before it, that goes back to version 4 must be refused by a browser that has kept 5.
  server.files.set("manifest", four);
  const model = await load(server, store);
  equal([model.version, model.updateError instanceof ManifestError], [5, true], "after the server went back");
}

/** While a tab waits for the codes of version 5, another one keeps version 4, which has another catalogue. */
async function keepsWhole(load: Load): Promise<void> {
  const [server, store] = [await published(version(3)), memoryStore()];
  await load(server, store);
  await server.publish(version(5));
  const finish = await loadSlowly(load, server, store);
  await server.publish({ number: 4, codes: drawnBytes(50 * 8, 4), codeBits: 64, itemCount: 50 });
  equal((await load(server, store)).version, 4);
  await finish();
  equal(await versionOffline(load, server, store), 5, "version that is kept");
}

/** All timers are over at once, so that no patience has to be waited for; how long each should have taken. */
async function hurried(run: () => Promise<void>): Promise<number[]> {
  const [later, delays] = [globalThis.setTimeout, [] as number[]];
  await withGlobals({ setTimeout: (use: () => void, delay = 0) => (delays.push(delay), later(use, 20)) }, run);
  return delays;
}

/** A body that goes on when the request is given up: it fails then, as browsers have it. */
function hanging(init: RequestInit | undefined, ...pieces: Bytes[]): Response {
  return new Response(
    new ReadableStream({
      start(controller) {
        pieces.forEach((piece) => controller.enqueue(piece));
        init?.signal?.addEventListener("abort", () => controller.error(init.signal!.reason));
      },
    }),
  );
}

async function hangs(load: Load): Promise<void> {
  const [server, store] = [await published(), memoryStore()];
  await load(server, store);
  const silent: Fetch = (_, init) =>
    new Promise((_, reject) => init?.signal?.addEventListener("abort", () => reject(init.signal!.reason as Error)));
  for (const fetch of [silent, async (_: unknown, init?: RequestInit) => hanging(init, new Uint8Array(1))])
    await hurried(async () => {
      const model = await load(server, store, fetch);
      equal([model.version, model.updateError instanceof ServerUnavailableError], [3, true]);
    });
}

async function isPatient(load: Load): Promise<void> {
  const server = await published();
  const slow: Fetch = async (_, init) => hanging(init, new Uint8Array(1000), new Uint8Array(2000));
  const delays = await hurried(() => refuses(() => load(server, memoryStore(), slow), ServerUnavailableError, "slow"));
  const seconds = delays.map((delay) => Math.ceil(delay / 1000));
  equal(seconds, [40, 41, 43], "seconds for nothing, for 1,000 bytes, and for 2,000 more");
}

/** So that not as much is fetched before it proves to be something else. */
async function largeCatalogue(load: Load): Promise<void> {
  const most = 2 ** 17 + 2 ** 12;
  const refused = await published({ ...FIRST, catalogueBytes: most + 1 });
  await refuses(() => load(refused, memoryStore()), ManifestError, "a catalogue of a byte more than 40 items need");
  equal(refused.asked, ["manifest"], "what is asked for");
  const [server, one] = [await published({ ...FIRST, catalogueBytes: most }), memoryStore()];
  await refuses(() => load(server, one), ArtifactError, "another size than the file has");
}

async function asksQuietly(load: Load): Promise<void> {
  const [server, asked] = [await published(), [] as unknown[]];
  await load(server, memoryStore(), (address, init) => {
    asked.push([init?.cache, init?.credentials, init?.redirect, init?.referrerPolicy]);
    return server.fetch(address);
  });
  equal(asked, new Array(3).fill(["no-store", "omit", "error", "no-referrer"]), "how the server is asked");
}

async function fullDisk(load: Load): Promise<void> {
  const [server, store] = [await published(version(3)), memoryStore()];
  const { put } = store;
  store.put = () => Promise.reject(new StoreError("full"));
  equal((await load(server, store)).version, 3, "at the first visit");
  await refuses(() => versionOffline(load, server, store), ServerUnavailableError, "what was not kept");
  server.isDown = false;
  store.put = put;
  await load(server, store);
  await server.publish(version(4));
  // There is room for the codes, but not for the manifest.
  store.put = (name, content) => (name === "manifest" ? Promise.reject(new StoreError("full")) : put(name, content));
  equal((await load(server, store)).version, 4, "at a later visit");
  equal([await versionOffline(load, server, store), (await store.names()).length], [3, 3], "what is kept");
}

async function addresses(kernel: Kernel): Promise<void> {
  const [server, key] = [await published(), drawnBytes(32, 1)];
  const options = { kernel, store: memoryStore(), fetch: server.fetch };
  const bad = ["recs.example", "https://", "ftp://recs.example", "about:blank", "", undefined as unknown as string];
  const more = ["?v=2", "?", "#top", "#"].map((end) => `${BASE}/${end}`);
  for (const address of [...bad, ...more, "https://user:word@recs.example"])
    await refuses(() => Model.load(address, key, options), InvalidInputError, String(address));
  equal(server.asked, [], "what is asked for");
  for (const address of [`${BASE}//`, "HTTPS://Recs.Example:8446", new URL(BASE) as unknown as string])
    equal((await Model.load(address, server.publicKey, options)).version, 3, String(address));
}

async function withoutStorage(kernel: Kernel): Promise<void> {
  const server = await published();
  const load = (): Promise<Model> => Model.load(BASE, server.publicKey, { kernel, fetch: server.fetch });
  const denied = (): Promise<never> => Promise.reject(new DOMException("denied", "SecurityError"));
  await withGlobals({ caches: undefined }, () => refuses(load, UnsupportedBrowserError, "no caches"));
  await withGlobals({ caches: { open: denied } }, () => refuses(load, StoreError, "caches that may not be used"));
  const broken = {
    caches: { open: async () => ({ match: denied }) },
    navigator: { locks: { request: (_: string, run: () => Promise<unknown>) => run() } },
  };
  await withGlobals(broken, () => refuses(load, StoreError, "a cache that cannot be read"));
}

async function noKernel(): Promise<void> {
  const answers: Record<string, Fetch> = {
    "out of reach": () => Promise.reject(new TypeError("Failed to fetch")),
    "cut off": async () => new Response(new ReadableStream({ start: (body) => body.error(new TypeError("gone")) })),
    "not there": async () => new Response(null, { status: 404 }),
    "the page of a portal": async () => new Response("<html>"),
  };
  for (const [what, fetch] of Object.entries(answers))
    await withGlobals({ fetch }, () => refuses(() => Kernel.load(), LightFRError, `a kernel that is ${what}`));
}
