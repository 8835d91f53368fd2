// What the user thinks of items, in IndexedDB. Every record is encrypted with a key that no script can read.
import { areEqual, type Bytes, webCrypto, webLocks } from "./bytes.js";
import { type ItemId, keyOf } from "./catalogue.js";
import { UserCode } from "./codes.js";
import { RatingError, StoreError, UnsupportedBrowserError } from "./errors.js";
import { LEVELS, MIDDLE } from "./fit.js";
import { withStorage } from "./store.js";

const KEYS = "keys";
const RECORDS = "records";
const THE_KEY = 0;
/** The number of the record that holds the start code. Opinions have those from 1 on, the newest the highest. */
const START_CODE = 0;
/** In place of a level, for an item that shall not be shown. It teaches nothing. */
const HIDDEN = -1;
const NONCE_BYTES = 12;

/** The range of an app's ratings. */
export interface RatingScale {
  min: number;
  max: number;
}

/** What the user thinks of an item: a level from 0 to 2520, the rating as a part of its scale. */
export interface ItemOpinion {
  itemId: ItemId;
  level: number;
}

/** A record of the database, and what it says. */
interface OpinionRecord extends ItemOpinion {
  sealed: Bytes;
}

/** A rating as a level. Halves go to the even level, as in the SDK. */
export function levelOf(rating: number, scale: RatingScale): number {
  const { min, max } = scale ?? { min: NaN, max: NaN };
  // What is no number may come from a form: in comparisons alone an empty field would pass for 0.
  const areNumbers = [rating, min, max, max - min].every(Number.isFinite);
  if (!areNumbers || min >= max || rating < min || rating > max) throw new RatingError(min, max);
  const exact = ((rating - min) / (max - min)) * LEVELS;
  const floor = Math.floor(exact);
  const isUp = exact - floor > 0.5 || (exact - floor === 0.5 && floor % 2 === 1);
  return isUp ? floor + 1 : floor;
}

function settled<Type>(request: IDBRequest<Type>): Promise<Type> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(new StoreError(`the browser's database refused: ${request.error?.name}`));
  });
}

function committed(transaction: IDBTransaction): Promise<void> {
  const refused = () => new StoreError(`the browser's database refused: ${transaction.error?.name ?? "aborted"}`);
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(refused());
  });
}

async function openDatabase(name: string): Promise<IDBDatabase> {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => [KEYS, RECORDS].forEach((store) => request.result.createObjectStore(store));
  const database = await settled(request);
  // Another tab forgets everything, and waits until all have closed.
  database.onversionchange = () => database.close();
  return database;
}

/** The opinions of one user of this browser. Several tabs may hold the same. */
export class Ratings {
  readonly #name: string;
  readonly #database: IDBDatabase;
  readonly #key: CryptoKey;
  /** Records by their numbers, the oldest opinion first, as they were read last. */
  #opinions = new Map<number, OpinionRecord>();

  private constructor(name: string, database: IDBDatabase, key: CryptoKey) {
    this.#name = name;
    this.#database = database;
    this.#key = key;
  }

  /** Opens the ratings, or begins with none. Apps with several users give each of them a name. */
  static async open(user = ""): Promise<Ratings> {
    if (!globalThis.indexedDB) throw new UnsupportedBrowserError("indexedDB");
    const name = `lightfr ratings ${user}`;
    const open = async (): Promise<Ratings> => {
      const database = await openDatabase(name);
      const stored = await settled<CryptoKey | undefined>(database.transaction(KEYS).objectStore(KEYS).get(THE_KEY));
      return new Ratings(name, database, stored ?? (await Ratings.#makeKey(database)));
    };
    return withStorage(async () => await webLocks().request(name, open));
  }

  static async #makeKey(database: IDBDatabase): Promise<CryptoKey> {
    const key = await webCrypto().generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
    const transaction = database.transaction([KEYS, RECORDS], "readwrite");
    // What a forget() left that was cut off half way; no key opens it any more.
    transaction.objectStore(RECORDS).clear();
    transaction.objectStore(KEYS).add(key, THE_KEY);
    await committed(transaction);
    return key;
  }

  /** Keeps a rating; it replaces an older one of the item. Items that no catalogue has are kept too. */
  async rate(itemId: ItemId, rating: number, scale: RatingScale): Promise<void> {
    await this.#put(itemId, () => levelOf(rating, scale));
  }

  /** Keeps that the user likes an item: the highest rating. */
  async like(itemId: ItemId): Promise<void> {
    await this.#put(itemId, () => LEVELS);
  }

  /** Keeps that the user dislikes an item: the lowest rating. Recommendations move away from it. */
  async dislike(itemId: ItemId): Promise<void> {
    await this.#put(itemId, () => 0);
  }

  /** Keeps an event that is no rating: a play, a click. A rating that the item has stays, as the newest opinion. */
  async seen(itemId: ItemId): Promise<void> {
    await this.#put(itemId, (before) => (before === undefined || before === HIDDEN ? MIDDLE : before));
  }

  /** Never recommend an item again. It teaches nothing, and takes the place of a rating; unrate() undoes it. */
  async hide(itemId: ItemId): Promise<void> {
    await this.#put(itemId, () => HIDDEN);
  }

  /** Forgets what the user thinks of an item. */
  async unrate(itemId: ItemId): Promise<void> {
    keyOf(itemId);
    await this.#locked(async () => {
      const old = this.#recordOf(itemId);
      if (old !== undefined) await this.#write([old]);
    });
  }

  /** The opinions, oldest first. */
  async opinions(): Promise<ItemOpinion[]> {
    // Copies, with which an app may do as it likes.
    return this.#locked(async () =>
      [...this.#opinions.values()]
        .filter(({ level }) => level !== HIDDEN)
        .map(({ itemId, level }) => ({ itemId, level })),
    );
  }

  /** The items that the user does not want to see and has no other opinion of. */
  async hidden(): Promise<ItemId[]> {
    return this.#locked(async () =>
      [...this.#opinions.values()].filter(({ level }) => level === HIDDEN).map(({ itemId }) => itemId),
    );
  }

  /** The random code that fits begin with. It is kept, so that a list does not change by itself. */
  async startCode(codeBits: number): Promise<UserCode> {
    return this.#locked(async () => {
      const sealed = await settled<Bytes | undefined>(this.#storeOf(RECORDS, "readonly").get(START_CODE));
      const kept = sealed && new UserCode(await this.#open(START_CODE, sealed));
      if (kept?.codeBits === codeBits) return kept;
      const code = UserCode.random(codeBits);
      await this.#write([], START_CODE, code.reveal());
      return code;
    });
  }

  /** Destroys the key first, and then everything else. Open ratings of this user are of no use any more. */
  async forget(): Promise<void> {
    await webLocks().request(this.#name, async () => {
      const keys = this.#storeOf(KEYS, "readwrite");
      keys.clear();
      await committed(keys.transaction);
      this.#opinions.clear();
      this.#database.close();
      await settled(indexedDB.deleteDatabase(this.#name));
    });
  }

  /** Closes the database; what is kept stays. */
  close(): void {
    this.#database.close();
  }

  #recordOf(itemId: ItemId): number | undefined {
    const name = nameOf(itemId);
    return [...this.#opinions].find(([, opinion]) => nameOf(opinion.itemId) === name)?.[0];
  }

  /** An opinion that changes becomes the newest. */
  async #put(itemId: ItemId, levelAfter: (before: number | undefined) => number): Promise<void> {
    keyOf(itemId);
    await this.#locked(async () => {
      const old = this.#recordOf(itemId);
      const level = levelAfter(old === undefined ? undefined : this.#opinions.get(old)!.level);
      const newest = 1 + Math.max(START_CODE, ...this.#opinions.keys());
      const content = new TextEncoder().encode(JSON.stringify([nameOf(itemId), level]));
      await this.#write(old === undefined ? [] : [old], newest, content);
    });
  }

  /** Runs while no other tab writes, with all opinions read. */
  async #locked<Result>(run: () => Promise<Result>): Promise<Result> {
    return await webLocks().request(this.#name, async () => {
      const [records, behindStart] = [this.#storeOf(RECORDS, "readonly"), IDBKeyRange.lowerBound(START_CODE, true)];
      const keys = settled(records.getAllKeys(behindStart)) as Promise<number[]>;
      const [numbers, contents] = await Promise.all([keys, settled<Bytes[]>(records.getAll(behindStart))]);
      const reading = numbers.map(async (number, at): Promise<[number, OpinionRecord]> => {
        const known = this.#opinions.get(number);
        // Another tab may have used the number again, so a record is known by all of its bytes.
        const isKnown = known !== undefined && areEqual(known.sealed, contents[at]);
        return [number, isKnown ? known : await this.#read(number, contents[at])];
      });
      this.#opinions = new Map(await Promise.all(reading));
      return run();
    });
  }

  async #read(number: number, sealed: Bytes): Promise<OpinionRecord> {
    const content = await this.#open(number, sealed);
    const [name, level] = JSON.parse(new TextDecoder().decode(content)) as [string, number];
    return { itemId: idOf(name), level, sealed };
  }

  #storeOf(name: string, mode: IDBTransactionMode): IDBObjectStore {
    try {
      return this.#database.transaction(name, mode).objectStore(name);
    } catch {
      throw new StoreError("these ratings are closed or forgotten: open them anew");
    }
  }

  /** Removes records and adds one, all in one step. */
  async #write(removed: number[], number?: number, content?: Bytes): Promise<void> {
    const sealed = number === undefined ? undefined : await this.#seal(number, content!);
    const records = this.#storeOf(RECORDS, "readwrite");
    removed.forEach((each) => records.delete(each));
    if (sealed) records.put(sealed, number);
    await committed(records.transaction);
  }

  /** A random nonce, and the content under the key; the number of the record is signed with it, so none can move. */
  async #seal(number: number, content: Bytes): Promise<Bytes> {
    const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
    const sealed = await webCrypto().encrypt(cipher(nonce, number), this.#key, content);
    return Uint8Array.from([...nonce, ...new Uint8Array(sealed)]);
  }

  async #open(number: number, sealed: Bytes): Promise<Bytes> {
    const nonce = sealed.subarray(0, NONCE_BYTES);
    try {
      const content = await webCrypto().decrypt(cipher(nonce, number), this.#key, sealed.subarray(NONCE_BYTES));
      return new Uint8Array(content);
    } catch {
      throw new StoreError("a record of the ratings was damaged or tampered with: forget() begins anew");
    }
  }
}

function cipher(iv: Bytes, number: number): AesGcmParams {
  return { name: "AES-GCM", iv, additionalData: new TextEncoder().encode(`lightfr record ${number}`) };
}

/** Strings and integers of the same digits are different ids. */
const nameOf = (itemId: ItemId): string => (typeof itemId === "string" ? `s${itemId}` : `i${itemId}`);

function idOf(name: string): ItemId {
  if (name.startsWith("s")) return name.slice(1);
  return Number.isSafeInteger(Number(name.slice(1))) ? Number(name.slice(1)) : BigInt(name.slice(1));
}
