// Ratings in a real IndexedDB. Node.js has none, so these run in a browser alone.
import { type Bytes, hex } from "../src/bytes.js";
import { RatingError, StoreError } from "../src/errors.js";
import { Kernel } from "../src/kernel.js";
import { Model } from "../src/model.js";
import { Ratings } from "../src/ratings.js";
import { openCacheStore } from "../src/store.js";
import { type Case, drawnBytes, equal, refuses } from "./check.js";
import { Publisher } from "./publishing.js";

const STARS = { min: 1, max: 5 };

export const ratingCases: Case[] = [
  ["opinions come back oldest first, also after the page is opened anew", comesBack],
  ["an opinion that changes becomes the newest", becomesNewest],
  ["the key cannot be exported", keyStays],
  ["records show neither ids nor levels", nothingShows],
  ["a record that was changed or moved is refused", tampered],
  ["two tabs see each other's opinions", twoTabs],
  ["a tab sees what another tab likes in place of what it took back", takenBack],
  ["a tab does not delete what another tab has put in the place of what it took back", hiddenElsewhere],
  ["opinions are read all at once, not one by one", readAtOnce],
  ["what an app does with the list that it got changes nothing that is kept", ownList],
  ["an id is of the same type before and after the page is opened anew", sameType],
  ["forgetting leaves nothing", forgets],
  ["forgetting what another tab forgot is a typed error", forgetsTwice],
  ["forgetting that was cut off is finished by the next visit", finishesForgetting],
  ["forgetting ends also when another tab just opens", forgetsWhileOpening],
  ["what the cache keeps comes back by name", cached],
  ["old versions leave the cache, however the address of the server is written", sweeps],
  ["a browser that denies its database gives a typed error", denied],
];

const itemIds = (opinions: { itemId: unknown }[]): unknown[] => opinions.map(({ itemId }) => itemId);

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

/** One tab takes its newest opinion back and has another one, whose record may get the same number. */
async function takenBack(): Promise<void> {
  await withUser("taken back", async (open) => {
    const [one, other] = [await open(), await open()];
    await one.like("a");
    await one.like("mistake");
    equal(itemIds(await other.opinions()), ["a", "mistake"]);
    await one.unrate("mistake");
    await one.like("b");
    equal(itemIds(await other.opinions()), ["a", "b"], "what the other tab sees");
    one.close();
    other.close();
  });
}

/** The same, and then the other tab takes back what the first one has already taken back. */
async function hiddenElsewhere(): Promise<void> {
  await withUser("hidden elsewhere", async (open) => {
    const [one, other] = [await open(), await open()];
    await one.like("mistake");
    await other.opinions();
    await one.unrate("mistake");
    await one.hide("never again");
    await other.unrate("mistake");
    const anew = await open();
    for (const tab of [one, other, anew]) {
      equal(await tab.hidden(), ["never again"], "what the user has hidden");
      tab.close();
    }
  });
}

async function readAtOnce(): Promise<void> {
  await withUser("at once", async (open) => {
    const ratings = await open();
    for (let item = 0; item < 40; item++) await ratings.like(item);
    ratings.close();
    const anew = await open();
    const { transaction } = IDBDatabase.prototype;
    let begun = 0;
    IDBDatabase.prototype.transaction = function (...given) {
      begun++;
      return transaction.apply(this, given);
    };
    try {
      equal([(await anew.opinions()).length, begun], [40, 1], "opinions, and transactions that read them");
    } finally {
      IDBDatabase.prototype.transaction = transaction;
    }
    anew.close();
  });
}

/** An app shows stars, and writes them over the levels of the list that it got. */
async function ownList(): Promise<void> {
  await withUser("own list", async (open) => {
    const ratings = await open();
    await ratings.like("a");
    for (const opinion of await ratings.opinions()) opinion.level = 5;
    equal((await ratings.opinions())[0].level, 2520, "level in this tab");
    await ratings.seen("a");
    ratings.close();
    const anew = await open();
    equal((await anew.opinions())[0].level, 2520, "level that is kept");
    anew.close();
  });
}

async function sameType(): Promise<void> {
  await withUser("types", async (open) => {
    const ratings = await open();
    await ratings.like(17n);
    await ratings.hide(-0);
    const shown = async (tab: Ratings): Promise<unknown[]> =>
      [...itemIds(await tab.opinions()), ...(await tab.hidden())].map((id) => [typeof id, Object.is(id, -0)]);
    equal(await shown(ratings), [
      ["number", false],
      ["number", false],
    ]);
    ratings.close();
    const anew = await open();
    equal(await shown(anew), [
      ["number", false],
      ["number", false],
    ]);
    anew.close();
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

async function forgetsTwice(): Promise<void> {
  const [one, other] = [await Ratings.open("twice"), await Ratings.open("twice")];
  await one.forget();
  await refuses(() => other.forget(), StoreError, "ratings that another tab forgot");
}

/** The key was destroyed; then the tab was closed. */
async function finishesForgetting(): Promise<void> {
  await withUser("half", async (open) => {
    const ratings = await open();
    await ratings.like("a");
    await ratings.startCode(64);
    ratings.close();
    await raw("half", "keys", (keys) => keys.clear());
    const anew = await open();
    await anew.startCode(64);
    equal(await anew.opinions(), [], "opinions of a user who is forgotten");
    anew.close();
    equal(await raw("half", "records", (records) => records.count()), 1, "records: the new start code");
  });
}

async function forgetsWhileOpening(): Promise<void> {
  for (let at = 0; at < 20; at++) {
    const ratings = await Ratings.open("opening");
    const opening = Ratings.open("opening");
    await new Promise((resolve) => setTimeout(resolve, at % 6));
    const late = new Promise((resolve) => setTimeout(() => resolve("late"), 4000));
    equal(await Promise.race([ratings.forget(), late]), undefined, `forgetting, time ${at}`);
    (await opening).close();
  }
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

async function sweeps(): Promise<void> {
  const [server, kernel] = [await Publisher.make(), await Kernel.load()];
  for (const number of [3, 4, 5]) {
    await server.publish({ number, codes: drawnBytes(40 * 8, number), codeBits: 64, itemCount: 40 });
    await Model.load("https://Recs.example:443/", server.publicKey, { kernel, fetch: server.fetch });
  }
  const store = await openCacheStore("https://recs.example");
  equal((await store.names()).length, 3, "files that are kept: manifest, codes, catalogue");
}

async function denied(): Promise<void> {
  const { open } = IDBFactory.prototype;
  IDBFactory.prototype.open = () => {
    throw new DOMException("denied", "SecurityError");
  };
  try {
    await refuses(() => Ratings.open("denied"), StoreError, "a database that may not be used");
  } finally {
    IDBFactory.prototype.open = open;
  }
}
