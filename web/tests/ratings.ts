// Ratings in a real IndexedDB. Node.js has none, so these run in a browser alone.
import { type Bytes, hex } from "../src/bytes.js";
import { RatingError, StoreError } from "../src/errors.js";
import { Ratings } from "../src/ratings.js";
import { openCacheStore } from "../src/store.js";
import { type Case, drawnBytes, equal, refuses } from "./check.js";

const STARS = { min: 1, max: 5 };

export const ratingCases: Case[] = [
  ["opinions come back oldest first, also after the page is opened anew", comesBack],
  ["an opinion that changes becomes the newest", becomesNewest],
  ["the key cannot be exported", keyStays],
  ["records show neither ids nor levels", nothingShows],
  ["a record that was changed or moved is refused", tampered],
  ["two tabs see each other's opinions", twoTabs],
  ["forgetting leaves nothing", forgets],
  ["what the cache keeps comes back by name", cached],
];

/** A user of whom nothing is known, and who is forgotten in the end. */
async function withUser(name: string, run: (open: () => Promise<Ratings>) => Promise<void>): Promise<void> {
  await run(() => Ratings.open(name));
  const ratings = await Ratings.open(name);
  await ratings.forget();
}

async function comesBack(): Promise<void> {
  await withUser("back", async (open) => {
    const ratings = await open();
    await ratings.rate("a", 4, STARS);
    await ratings.like(17);
    await ratings.dislike(2n ** 62n);
    await ratings.seen("17");
    await ratings.hide("gone");
    await refuses(() => ratings.rate("a", 6, STARS), RatingError, "six stars of five");
    const code = await ratings.startCode(64);
    ratings.close();
    const anew = await open();
    const levels = (await anew.opinions()).map(({ itemId, level }) => [typeof itemId, String(itemId), level]);
    const large = String(2n ** 62n);
    equal(levels, [
      ["string", "a", 1890],
      ["number", "17", 2520],
      ["bigint", large, 0],
      ["string", "17", 1260],
    ]);
    equal(await anew.hidden(), ["gone"]);
    equal(hex((await anew.startCode(64)).reveal()), hex(code.reveal()), "start code");
    equal((await anew.startCode(128)).codeBits, 128, "bits of another start code");
    anew.close();
  });
}

async function becomesNewest(): Promise<void> {
  await withUser("newest", async (open) => {
    const ratings = await open();
    await ratings.like("a");
    await ratings.like("b");
    await ratings.seen("a");
    equal(await ratings.opinions(), [
      { itemId: "b", level: 2520 },
      { itemId: "a", level: 2520 },
    ]);
    await ratings.hide("b");
    await ratings.seen("b");
    equal((await ratings.opinions()).at(-1), { itemId: "b", level: 1260 });
    await ratings.unrate("b");
    await ratings.unrate("b");
    equal(await ratings.opinions(), [{ itemId: "a", level: 2520 }]);
    ratings.close();
  });
}

/** What stands in the database, past the package. */
async function raw<Type>(user: string, store: string, use: (store: IDBObjectStore) => IDBRequest<Type>): Promise<Type> {
  const done = <Result>(request: IDBRequest<Result>): Promise<Result> =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error!);
    });
  const database = await done(indexedDB.open(`lightfr ratings ${user}`));
  const result = await done(use(database.transaction(store, "readwrite").objectStore(store)));
  database.close();
  return result;
}

async function keyStays(): Promise<void> {
  await withUser("key", async (open) => {
    const ratings = await open();
    await ratings.like("a");
    const key = await raw<CryptoKey>("key", "keys", (keys) => keys.get(0));
    equal([key.type, key.extractable, key.algorithm.name], ["secret", false, "AES-GCM"]);
    for (const format of ["raw", "jwk"] as const)
      await refuses(() => crypto.subtle.exportKey(format as "raw", key), DOMException, "an export");
    ratings.close();
  });
}

async function nothingShows(): Promise<void> {
  await withUser("shows", async (open) => {
    const ratings = await open();
    await ratings.like("a film that nobody may know of");
    await ratings.startCode(64);
    const records = await raw<Bytes[]>("shows", "records", (store) => store.getAll());
    equal(records.length, 2);
    const text = records.map((record) => String.fromCharCode(...record)).join();
    equal(
      ["film", "know", "2520"].some((word) => text.includes(word)),
      false,
      "words in the records",
    );
    ratings.close();
  });
}

async function tampered(): Promise<void> {
  await withUser("tampered", async (open) => {
    const ratings = await open();
    await ratings.like("a");
    await ratings.dislike("b");
    ratings.close();
    const [first, second] = await raw<Bytes[]>("tampered", "records", (store) => store.getAll());
    await raw("tampered", "records", (store) => store.put(second, 1));
    const moved = await open();
    await refuses(() => moved.opinions(), StoreError, "a record in the place of another");
    const changed = first.map((byte, at) => (at === 20 ? byte ^ 1 : byte));
    await raw("tampered", "records", (store) => store.put(changed, 1));
    await refuses(() => moved.opinions(), StoreError, "a changed record");
    await raw("tampered", "records", (store) => store.put(first, 1));
    equal((await moved.opinions()).length, 2);
    moved.close();
  });
}

async function twoTabs(): Promise<void> {
  await withUser("tabs", async (open) => {
    const [one, other] = [await open(), await open()];
    await Promise.all([one.like("a"), other.like("b"), one.like("c"), other.dislike("a")]);
    equal(await one.opinions(), await other.opinions());
    equal((await one.opinions()).length, 3);
    one.close();
    other.close();
  });
}

async function forgets(): Promise<void> {
  const [ratings, other] = [await Ratings.open("forgotten"), await Ratings.open("forgotten")];
  await ratings.like("a");
  await ratings.forget();
  const names = (await indexedDB.databases()).map(({ name }) => name);
  equal(names.includes("lightfr ratings forgotten"), false, "the database");
  await refuses(() => other.opinions(), StoreError, "ratings that another tab forgot");
  const anew = await Ratings.open("forgotten");
  equal(await anew.opinions(), []);
  await anew.forget();
}

async function cached(): Promise<void> {
  const store = await openCacheStore("https://recs.example:8446");
  equal(await store.get("manifest"), undefined);
  await store.put("manifest", drawnBytes(100, 1));
  equal(await store.get("manifest"), drawnBytes(100, 1));
  equal(await store.names(), ["manifest"]);
  await store.remove("manifest");
  equal(await store.names(), []);
}
