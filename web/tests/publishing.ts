// A server of models for tests: it signs manifests and writes artifacts as docs/artifacts.md has them, and may lie.
import { type Bytes, concat, hex, setBit, sha256, webCrypto } from "../src/bytes.js";

const uint32 = (...numbers: number[]): Bytes => new Uint8Array(new Uint32Array(numbers).buffer);
const uint64 = (...numbers: number[]): Bytes => new Uint8Array(new BigUint64Array(numbers.map(BigInt)).buffer);

// ---- protobuf, as far as a manifest needs it
function varint(number: number): Bytes {
  const bytes: number[] = [];
  for (; number > 127; number = Math.floor(number / 128)) bytes.push((number % 128) | 128);
  return Uint8Array.from([...bytes, number]);
}
export const number = (field: number, value: number): Bytes => concat(varint(8 * field), varint(value));
export const bytes = (field: number, value: Uint8Array): Bytes =>
  concat(varint(8 * field + 2), varint(value.length), value);

export async function deflated(content: Bytes): Promise<Bytes> {
  const packed = new Blob([content]).stream().pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(packed).arrayBuffer());
}

export function bitmapOf(itemCount: number, items: readonly number[]): Bytes {
  const bitmap = new Uint8Array(Math.ceil(itemCount / 8));
  for (const item of items) setBit(bitmap, item);
  return bitmap;
}

/** A catalogue whose ids are 1000 and so on, in the order of their indices: blocks of 256, groups of 8,192. */
export function catalogueFile(itemCount: number): Bytes {
  const packed = (largest: number, numberOf: (item: number) => number): Bytes => {
    const bits = largest === 0 ? 0 : Math.floor(Math.log2(largest)) + 1;
    const section = new Uint8Array(Math.ceil((itemCount * bits) / 8));
    for (let item = 0; item < itemCount; item++)
      for (let bit = 0; bit < bits; bit++) if ((numberOf(item) >> bit) & 1) setBit(section, item * bits + bit);
    return section;
  };
  const header = Uint8Array.from([76, 70, 82, 67, 2, 1, 0, 0]);
  const firsts = Array.from({ length: Math.ceil(itemCount / 256) }, (_, block) => 1000 + 256 * block);
  // No gap takes any bytes, since the ids follow each other.
  const offsets = new Uint8Array(4 * (firsts.length + 1));
  const numbers = packed(itemCount - 1, (item) => item);
  const groups = packed(Math.ceil(itemCount / 8192) - 1, (item) => item >> 13);
  return concat(header, uint64(itemCount), offsets, uint64(...firsts), numbers, groups);
}

/** A delta between codes of as many rows, all of which it names as changed. */
export async function deltaFile(codeBytes: number, old: Bytes, codes: Bytes): Promise<Bytes> {
  const rows = codes.length / codeBytes;
  const header = concat(
    Uint8Array.from([76, 70, 82, 68, 2, 0, 0, 0]),
    uint32(8 * codeBytes),
    uint64(rows, rows, 1, rows),
  );
  const flips = codes.map((byte, at) => byte ^ old[at]);
  return concat(header, await deflated(concat(uint32(0, rows), new Uint8Array(4 * rows), flips)));
}

export interface Version {
  number: number;
  codes: Bytes;
  codeBits: number;
  itemCount: number;
  open?: number[];
  removed?: number[];
  deltaFrom?: Bytes;
  /** As it is announced; that of the file, if absent. */
  catalogueBytes?: number;
  /** Where the delta leads; to the codes, if absent. */
  deltaTo?: Bytes;
  /** One for all groups of users. */
  ranking?: Bytes;
}

/** What a page can ask for, by path. Tests change it as they like. */
export class Publisher {
  readonly files = new Map<string, Bytes>();
  readonly asked: string[] = [];
  isDown = false;
  private constructor(
    readonly keys: CryptoKeyPair,
    readonly publicKey: Bytes,
  ) {}

  static async make(): Promise<Publisher> {
    const keys = (await webCrypto().generateKey("Ed25519", true, ["sign", "verify"])) as CryptoKeyPair;
    return new Publisher(keys, new Uint8Array(await webCrypto().exportKey("raw", keys.publicKey)));
  }

  readonly fetch = async (address: RequestInfo | URL): Promise<Response> => {
    const path = new URL(String(address)).pathname.slice(1);
    this.asked.push(path);
    if (this.isDown) throw new TypeError("Failed to fetch");
    const content = this.files.get(path);
    return new Response(content ?? null, { status: content ? 200 : 404 });
  };

  async artifact(content: Bytes, announced = content.length): Promise<Bytes> {
    const digest = await sha256(content);
    this.files.set(`artifacts/${hex(digest)}`, content);
    return concat(bytes(1, digest), number(2, announced));
  }

  async publish(version: Version): Promise<void> {
    const { codes, codeBits, itemCount, catalogueBytes, open, removed, deltaFrom, deltaTo = codes, ranking } = version;
    const model = concat(number(1, codeBits), number(2, itemCount), number(3, 1), number(4, 1));
    const parts = [number(1, 1), number(2, version.number), bytes(4, model), bytes(5, await this.artifact(codes))];
    if (deltaFrom) {
      const delta = await this.artifact(await deltaFile(codeBits / 8, deltaFrom, deltaTo));
      parts.push(bytes(6, concat(bytes(1, await sha256(deltaFrom)), bytes(2, delta))));
    }
    parts.push(bytes(7, await this.artifact(catalogueFile(itemCount), catalogueBytes)));
    if (open) parts.push(bytes(8, await this.artifact(await deflated(bitmapOf(itemCount, open)))));
    for (let group = 0; ranking && group < 4; group++) parts.push(bytes(11, ranking));
    if (removed) parts.push(bytes(13, await this.artifact(await deflated(bitmapOf(itemCount, removed)))));
    await this.sign(concat(...parts));
  }

  async sign(manifest: Bytes): Promise<void> {
    const signed = concat(new TextEncoder().encode("lightfr manifest v1\n"), manifest);
    const signature = new Uint8Array(await webCrypto().sign("Ed25519", this.keys.privateKey, signed));
    const keyId = (await sha256(this.publicKey)).subarray(0, 8);
    this.files.set("manifest", concat(bytes(1, manifest), bytes(2, signature), bytes(3, keyId)));
  }
}
