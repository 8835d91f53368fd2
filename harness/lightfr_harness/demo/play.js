// Generated from web/demo and web/src by `make web-page`.
var __toBinary = /* @__PURE__ */ (() => {
  var table = new Uint8Array(128);
  for (var i = 0; i < 64; i++) table[i < 26 ? i + 65 : i < 52 ? i + 71 : i < 62 ? i - 4 : i * 4 - 205] = i;
  return (base64) => {
    var n = base64.length, bytes = new Uint8Array((n - (base64[n - 1] == "=") - (base64[n - 2] == "=")) * 3 / 4 | 0);
    for (var i2 = 0, j = 0; i2 < n; ) {
      var c0 = table[base64.charCodeAt(i2++)], c1 = table[base64.charCodeAt(i2++)];
      var c2 = table[base64.charCodeAt(i2++)], c3 = table[base64.charCodeAt(i2++)];
      bytes[j++] = c0 << 2 | c1 >> 4;
      bytes[j++] = c1 << 4 | c2 >> 2;
      bytes[j++] = c2 << 6 | c3;
    }
    return bytes;
  };
})();

// src/errors.ts
var LightFRError = class extends Error {
  constructor(message) {
    super(message);
    this.name = new.target.name;
  }
};
var InvalidInputError = class extends LightFRError {
};
var ItemIndexError = class extends InvalidInputError {
  constructor(itemCount) {
    super(`an item index is not a whole number below the number of items, ${itemCount}`);
    this.itemCount = itemCount;
  }
};
var ItemIdError = class extends InvalidInputError {
  constructor() {
    super("an item id is neither a string of 1 to 255 bytes in UTF-8 nor a whole number of 64 bits, signed");
  }
};
var UnsupportedBrowserError = class extends LightFRError {
  constructor(lacks) {
    super(`this browser lacks ${lacks}`);
    this.lacks = lacks;
  }
};
var ServerUnavailableError = class extends LightFRError {
};
var ManifestError = class extends LightFRError {
  constructor(reason) {
    super(`a manifest was refused: ${reason}`);
  }
};
var ArtifactError = class extends LightFRError {
};
var StoreError = class extends LightFRError {
};
var KernelError = class extends LightFRError {
  constructor(call, status) {
    super(`${call} of the kernel gave status ${status}`);
    this.call = call;
    this.status = status;
  }
};

// src/bytes.ts
var hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
var areEqual = (left, right) => left.length === right.length && left.every((byte, at) => byte === right[at]);
var hasBit = (bitmap, bit) => (bitmap[bit >>> 3] >> (bit & 7) & 1) === 1;
function setBit(bitmap, bit) {
  bitmap[bit >>> 3] |= 1 << (bit & 7);
}
function countBits(bitmap) {
  let count2 = 0;
  for (let byte of bitmap) for (; byte; byte &= byte - 1) count2++;
  return count2;
}
function concat(...parts) {
  const whole = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
var viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
function webCrypto() {
  if (!globalThis.crypto?.subtle) throw new UnsupportedBrowserError("WebCrypto here: serve the page over HTTPS");
  return crypto.subtle;
}
function webLocks() {
  if (!globalThis.navigator?.locks) throw new UnsupportedBrowserError("Web Locks here: serve the page over HTTPS");
  return navigator.locks;
}
async function sha256(bytes) {
  return new Uint8Array(await webCrypto().digest("SHA-256", bytes));
}

// src/inflate.ts
var PIECE_BYTES = 1 << 14;
async function inflateAtMost(packed, mostBytes, what) {
  if (typeof DecompressionStream === "undefined") throw new UnsupportedBrowserError("DecompressionStream");
  const pieces = [];
  let total = 0;
  try {
    for await (const piece of inflated(packed)) {
      pieces.push(piece);
      total += piece.length;
      if (total > mostBytes) break;
    }
  } catch {
    throw new ArtifactError(`${what} is corrupt: its stream is corrupt, too short or followed by bytes`);
  }
  if (total > mostBytes) throw new ArtifactError(`${what} is corrupt: its stream is too long`);
  const content = concat(...pieces);
  const [view, sum, last] = [viewOf(packed), adler32(content), packed.length - 4];
  const isLast = view.getUint32(last) === sum;
  const isTwice = isLast && packed.some((_, at) => at < last && view.getUint32(at) === sum);
  if (!isLast || isTwice && await isWhole(packed.subarray(0, -1)))
    throw new ArtifactError(`${what} is corrupt: bytes follow its stream`);
  return content;
}
async function isWhole(packed) {
  try {
    for await (const _ of inflated(packed)) ;
    return true;
  } catch {
    return false;
  }
}
async function inflate(packed, sizeBytes, what) {
  const content = await inflateAtMost(packed, sizeBytes, what);
  if (content.length !== sizeBytes) throw new ArtifactError(`${what} is corrupt: its stream is too short`);
  return content;
}
async function* inflated(packed) {
  let at = 0;
  const source = new ReadableStream({
    pull(controller) {
      if (at < packed.length) controller.enqueue(packed.subarray(at, at += PIECE_BYTES));
      else controller.close();
    }
  });
  const reader = source.pipeThrough(new DecompressionStream("deflate")).getReader();
  try {
    for (let read2 = await reader.read(); !read2.done; read2 = await reader.read()) yield read2.value;
  } finally {
    reader.cancel().catch(() => void 0);
  }
}
function adler32(bytes) {
  let [low, high] = [1, 0];
  for (let start = 0; start < bytes.length; start += 5552) {
    for (const byte of bytes.subarray(start, start + 5552)) {
      low += byte;
      high += low;
    }
    low %= 65521;
    high %= 65521;
  }
  return high * 65536 + low;
}

// src/catalogue_part.ts
var HEADER_BYTES = 16;
var MAGIC = 1129465420;
var FORMAT_VERSION = 2;
var KIND_INT = 1;
var KIND_STR = 2;
var MOST_ITEMS = 2n ** 32n - 1n;
var MOST_ID_BYTES = 255;
var BLOCK_IDS = 256;
var GROUP_IDS = 8192;
var MOST_BLOCK_BYTES = 2 ** 17;
var KEPT_BLOCKS = 64;
function require2(condition, reason) {
  if (!condition) throw new ArtifactError(`catalogue file is corrupt: ${reason}`);
}
var bitLength = (number) => number === 0 ? 0 : Math.floor(Math.log2(number)) + 1;
var packedBytes = (count2, bits) => Math.ceil(count2 * bits / 8);
function compareBytes(left, right) {
  const shared = Math.min(left.length, right.length);
  for (let at = 0; at < shared; at++) if (left[at] !== right[at]) return left[at] - right[at];
  return left.length - right.length;
}
function openPart(file) {
  require2(file.length >= HEADER_BYTES, "it is shorter than its header");
  const view = viewOf(file);
  const [magic, version, kind] = [view.getUint32(0, true), view.getUint8(4), view.getUint8(5)];
  const isKnown = magic === MAGIC && version === FORMAT_VERSION && view.getUint16(6, true) === 0;
  require2(isKnown && (kind === KIND_INT || kind === KIND_STR), `not of format version ${FORMAT_VERSION}`);
  const itemCount = view.getBigUint64(8, true);
  require2(itemCount >= 1n && itemCount <= MOST_ITEMS, `it has ${itemCount} items`);
  const part = kind === KIND_INT ? new IntegerPart(file, Number(itemCount)) : new TextPart(file, Number(itemCount));
  part.check();
  return part;
}
var Part = class {
  constructor(file, itemCount, firstBytes) {
    this.file = file;
    this.itemCount = itemCount;
    this.view = viewOf(file);
    this.blockCount = Math.ceil(itemCount / BLOCK_IDS);
    this.#numberBits = bitLength(itemCount - 1);
    this.#groupBits = bitLength(Math.ceil(itemCount / GROUP_IDS) - 1);
    this.firsts = HEADER_BYTES + 4 * (this.blockCount + 1);
    this.#ids = this.firsts + firstBytes * this.blockCount;
    require2(file.length >= this.#ids, "it is shorter than its directory");
    this.#idsBytes = this.view.getUint32(this.firsts - 4, true);
    this.#numbers = this.#ids + this.#idsBytes;
    this.#groups = this.#numbers + packedBytes(itemCount, this.#numberBits);
    const end = this.#groups + packedBytes(itemCount, this.#groupBits);
    require2(file.length === end, `it has ${file.length} bytes, expected ${end}`);
  }
  view;
  blockCount;
  firsts;
  #ids;
  #idsBytes;
  #numbers;
  #groups;
  #numberBits;
  #groupBits;
  /** The last blocks that were asked for; who asks while one is decoded waits for the same. */
  #decoded = /* @__PURE__ */ new Map();
  check() {
    require2(this.view.getUint32(HEADER_BYTES, true) === 0, "the first block does not begin where the ids do");
    for (let block = 0; block < this.blockCount; block++) this.bounds(block);
    this.#requireClear(this.#groups, this.#numberBits);
    this.#requireClear(this.file.length, this.#groupBits);
  }
  /** The number of an item; undefined when the part lacks the id. */
  async numberOf(key) {
    let [low, high] = [0, this.blockCount];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.compare(this.firstOf(middle), key) <= 0) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return void 0;
    const place = (await this.#keysOf(low - 1)).findIndex((found) => this.compare(found, key) === 0);
    if (place < 0) return void 0;
    const number = this.#packed(this.#numbers, (low - 1) * BLOCK_IDS + place, this.#numberBits);
    require2(number < this.itemCount, `a number is not below its ${this.itemCount} items`);
    return number;
  }
  /** Where the ids of numbers below itemCount stand, in their order. Each group is gone through once. */
  positionsOf(numbers) {
    const wanted = /* @__PURE__ */ new Map();
    for (const number of numbers) {
      const group = this.#packed(this.#groups, number, this.#groupBits);
      wanted.set(group, (wanted.get(group) ?? /* @__PURE__ */ new Set()).add(number));
    }
    const found = [];
    for (const [group, left] of [...wanted].sort(([one], [other]) => one - other)) {
      const end = Math.min((group + 1) * GROUP_IDS, this.itemCount);
      for (let position = group * GROUP_IDS; position < end && left.size > 0; position++) {
        const number = this.#packed(this.#numbers, position, this.#numberBits);
        if (left.delete(number)) found.push([number, position]);
      }
      require2(left.size === 0, "a number is not in its group");
    }
    return found;
  }
  /** The id at a position. */
  async keyAt(position) {
    return (await this.#keysOf(Math.floor(position / BLOCK_IDS)))[position % BLOCK_IDS];
  }
  idsOf(block) {
    return Math.min(BLOCK_IDS, this.itemCount - block * BLOCK_IDS);
  }
  /** Where a block begins and ends in the file. */
  bounds(block) {
    const at = HEADER_BYTES + 4 * block;
    const [start, end] = [this.view.getUint32(at, true), this.view.getUint32(at + 4, true)];
    require2(start <= end && end <= this.#idsBytes, "the offset of a block is above the next or behind the ids");
    require2(end - start <= MOST_BLOCK_BYTES, `a block has more than ${MOST_BLOCK_BYTES} bytes`);
    return [this.#ids + start, this.#ids + end];
  }
  #keysOf(block) {
    const kept = this.#decoded.get(block) ?? this.decode(block);
    this.#decoded.delete(block);
    this.#decoded.set(block, kept);
    if (this.#decoded.size > KEPT_BLOCKS) this.#decoded.delete(this.#decoded.keys().next().value);
    return kept;
  }
  /** One of the packed numbers of a section: at most 32 bits, low bit first. */
  #packed(start, index, bits) {
    const firstBit = index * bits;
    const first = start + Math.floor(firstBit / 8);
    let word = 0;
    for (let at = Math.ceil((firstBit % 8 + bits) / 8) - 1; at >= 0; at--) word = word * 256 + this.file[first + at];
    return Math.floor(word / 2 ** (firstBit % 8)) % 2 ** bits;
  }
  /** Refuses set bits behind the last number of a section that ends here. */
  #requireClear(end, bits) {
    const used = this.itemCount * bits % 8;
    require2(used === 0 || this.file[end - 1] >> used === 0, "bits behind the last number are set");
  }
};
var IntegerPart = class extends Part {
  isText = false;
  constructor(file, itemCount) {
    super(file, itemCount, 8);
  }
  check() {
    super.check();
    for (let block = 1; block < this.blockCount; block++)
      require2(this.firstOf(block) > this.firstOf(block - 1), "the first ids of its blocks do not ascend");
  }
  compare(left, right) {
    return left < right ? -1 : left > right ? 1 : 0;
  }
  firstOf(block) {
    return this.view.getBigInt64(this.firsts + 8 * block, true);
  }
  async decode(block) {
    const [[start, end], count2] = [this.bounds(block), this.idsOf(block)];
    const gapBytes = count2 > 1 ? (end - start) / (count2 - 1) : 0;
    const isSize = [0, 1, 2, 4, 8].includes(gapBytes) && gapBytes * (count2 - 1) === end - start;
    require2(isSize, "the gaps of a block have none of the sizes");
    const ids = [this.firstOf(block)];
    for (let at = start; ids.length < count2; at += gapBytes)
      ids.push(ids[ids.length - 1] + this.#gap(at, gapBytes) + 1n);
    const limit = block + 1 < this.blockCount ? this.firstOf(block + 1) : 2n ** 63n;
    require2(ids[count2 - 1] < limit, "the ids of a block reach the next or go beyond 64 bits");
    return ids;
  }
  #gap(at, gapBytes) {
    if (gapBytes === 8) return this.view.getBigUint64(at, true);
    let gap = 0;
    for (let byte = gapBytes - 1; byte >= 0; byte--) gap = gap * 256 + this.file[at + byte];
    return BigInt(gap);
  }
};
var TextPart = class extends Part {
  isText = true;
  constructor(file, itemCount) {
    super(file, itemCount, 0);
  }
  compare(left, right) {
    return compareBytes(left, right);
  }
  firstOf(block) {
    const [start, end] = this.bounds(block);
    const length = end > start ? this.file[start] : 0;
    require2(length >= 1 && start + 1 + length <= end, "the first id of a block is not 1 to 255 bytes inside it");
    return this.file.subarray(start + 1, start + 1 + length);
  }
  async decode(block) {
    const keys = [this.firstOf(block)];
    const count2 = this.idsOf(block) - 1;
    const content = await this.#inflated(block, 1 + keys[0].length, count2);
    let at = 2 * count2;
    for (let i = 0; i < count2; i++) {
      const [before, shared, further] = [keys[i], content[i], content[count2 + i]];
      const fits = shared <= before.length && shared + further <= MOST_ID_BYTES;
      require2(fits, "an id of a block has more than 255 bytes, or shares more than the id before it has");
      const key = new Uint8Array(shared + further);
      key.set(before.subarray(0, shared));
      key.set(content.subarray(at, at += further), shared);
      require2(compareBytes(before, key) < 0, "the ids of a block do not ascend");
      keys.push(key);
    }
    return keys;
  }
  /** What follows the first id of a block: for `count` ids what they share, their lengths, their rest. */
  async #inflated(block, skipped, count2) {
    const [start, end] = this.bounds(block);
    const packed = this.file.subarray(start + skipped, end);
    if (count2 === 0) {
      require2(packed.length === 0, "bytes follow the only id of a block");
      return packed;
    }
    const content = await inflateAtMost(packed, (2 + MOST_ID_BYTES) * count2, "catalogue file");
    const further = content.subarray(count2, 2 * count2).reduce((total, length) => total + length, 0);
    require2(content.length === 2 * count2 + further, "the lengths of a block do not fit its stream");
    return content;
  }
};

// src/catalogue.ts
function keyOf(itemId) {
  if (typeof itemId === "string") {
    const text = new TextEncoder().encode(itemId);
    const isText = new TextDecoder("utf-8", { ignoreBOM: true }).decode(text) === itemId;
    if (text.length < 1 || text.length > MOST_ID_BYTES || !isText) throw new ItemIdError();
    return text;
  }
  if (typeof itemId !== "bigint" && !Number.isSafeInteger(itemId)) throw new ItemIdError();
  const integer = BigInt(itemId);
  if (BigInt.asIntN(64, integer) !== integer) throw new ItemIdError();
  return integer;
}
var Catalogue = class {
  #parts;
  itemCount;
  /** Opens the parts in their order; throws an ArtifactError unless they have so many items together. */
  constructor(files2, itemCount) {
    this.#parts = files2.map(openPart);
    this.itemCount = this.#parts.reduce((total, part) => total + part.itemCount, 0);
    if (!this.#parts.every((part) => part.isText === this.#parts[0].isText))
      throw new ArtifactError("one catalogue file has integers, another has strings");
    if (this.itemCount !== itemCount)
      throw new ArtifactError(`the catalogue has ${this.itemCount} items, expected ${itemCount}`);
  }
  /** The index of an item; undefined when the catalogue lacks the id or has ids of the other kind. */
  async indexOf(itemId) {
    const key = keyOf(itemId);
    let first = 0;
    for (const part of this.#parts) {
      let number;
      if (part.isText && typeof key !== "bigint") number = await part.numberOf(key);
      if (!part.isText && typeof key === "bigint") number = await part.numberOf(key);
      if (number !== void 0) return first + number;
      first += part.itemCount;
    }
    return void 0;
  }
  /** The id of an item. */
  async idOf(itemIndex) {
    return (await this.idsOf([itemIndex]))[0];
  }
  /** The ids of items. They are read in the order of the catalogue, so that no block is decoded twice. */
  async idsOf(itemIndices) {
    if (!itemIndices.every((index) => Number.isInteger(index) && index >= 0 && index < this.itemCount))
      throw new ItemIndexError(this.itemCount);
    const ids = /* @__PURE__ */ new Map();
    let first = 0;
    for (const part of this.#parts) {
      const numbers = itemIndices.map((index) => index - first).filter((at) => at >= 0 && at < part.itemCount);
      for (const [number, position] of part.positionsOf(numbers))
        ids.set(first + number, idFrom(await part.keyAt(position)));
      first += part.itemCount;
    }
    return itemIndices.map((index) => ids.get(index));
  }
};
function idFrom(key) {
  if (typeof key === "bigint") return Number.isSafeInteger(Number(key)) ? Number(key) : key;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(key);
  } catch {
    throw new ArtifactError("catalogue file is corrupt: an id is not UTF-8");
  }
}

// src/codes.ts
var OPEN_BLOCK = 512;
var MOST_STEPS = 64;
var MOST_OFFSET = 1 << 20;
function requireCodeBits(codeBits) {
  if (!Number.isInteger(codeBits) || codeBits < 8 || codeBits > 1024 || codeBits % 8 !== 0)
    throw new InvalidInputError(`code has ${codeBits} bits, expected 8 to 1024 in steps of 8`);
}
var UserCode = class _UserCode {
  #bits;
  constructor(bits) {
    requireCodeBits(8 * bits.length);
    this.#bits = new Uint8Array(bits);
  }
  /** A uniformly random code, from the browser's cryptographic generator. */
  static random(codeBits) {
    requireCodeBits(codeBits);
    return new _UserCode(crypto.getRandomValues(new Uint8Array(codeBits / 8)));
  }
  get codeBits() {
    return 8 * this.#bits.length;
  }
  /** The packed bits: private data. */
  reveal() {
    return this.#bits.slice();
  }
  toString() {
    return `<UserCode of ${this.codeBits} bits>`;
  }
};
var ItemCodes = class {
  constructor(kernel, codes, codeBits, itemCount, openRows) {
    this.codeBits = codeBits;
    this.itemCount = itemCount;
    requireCodeBits(codeBits);
    this.memory = kernel.newMemory();
    this.codeBytes = codeBits / 8;
    this.rowCount = itemCount;
    if (openRows !== void 0) {
      this.#openRows = openRows;
      [this.#open, this.rowCount] = this.#readOpen(openRows);
    }
    const expected = this.rowCount * this.codeBytes;
    if (codes.length !== expected)
      throw new InvalidInputError(`item codes have ${codes.length} bytes, expected ${expected}`);
    this.address = this.memory.put(codes);
  }
  memory;
  address;
  rowCount;
  codeBytes;
  /** Of a lfr_open; 0: every item has its row. */
  #open = 0;
  #openRows;
  /** The address of a lfr_open, and the number of rows. */
  #readOpen(bitmap) {
    const { memory, itemCount } = this;
    this.#requireBitmap(bitmap);
    const bits = memory.put(bitmap);
    const before = memory.take(4 * (Math.floor(itemCount / OPEN_BLOCK) + 1));
    const open = memory.put(new Uint32Array([bits, before, itemCount, 0]));
    memory.call("lfr_open_count", bits, itemCount, before, open + 12);
    return [open, memory.uint32s(open, 4)[3] + 1];
  }
  #requireBitmap(bitmap) {
    const expected = Math.ceil(this.itemCount / 8);
    if (bitmap.length !== expected)
      throw new InvalidInputError(`a bitmap over the items has ${bitmap.length} bytes, expected ${expected}`);
  }
  /** How many items the last row stands for. */
  get closedCount() {
    return this.#open ? this.itemCount - (this.rowCount - 1) : 1;
  }
  isOpen(itemIndex) {
    return this.#openRows === void 0 || hasBit(this.#openRows, itemIndex);
  }
  /** The codes of these items one behind the other, in memory that the caller gives back. */
  takeRows(itemIndices) {
    if (!itemIndices.every((index) => Number.isInteger(index) && index >= 0 && index < this.itemCount))
      throw new ItemIndexError(this.itemCount);
    const { memory } = this;
    const count2 = itemIndices.length;
    const indices = memory.put(new Uint32Array(itemIndices));
    const rows = memory.take(count2 * this.codeBytes);
    if (this.#open && count2) memory.call("lfr_open_rows", this.#open, indices, count2, indices);
    memory.call("lfr_gather", this.address, this.rowCount, this.codeBits, indices, count2, rows);
    return rows;
  }
  /** The packed code of an item. */
  row(itemIndex) {
    return this.memory.scratch(() => this.memory.bytes(this.takeRows([itemIndex]), this.codeBytes).slice());
  }
  /** In how many bits each of these items differs from the code. */
  distances(code, itemIndices) {
    const { memory } = this;
    return memory.scratch(() => {
      const [rows, query, count2] = [this.takeRows(itemIndices), this.#putQuery(code), itemIndices.length];
      const distances = memory.take(2 * count2);
      memory.call("lfr_distances", rows, count2, this.codeBits, query, distances);
      return Array.from(memory.uint16s(distances, count2));
    });
  }
  /** The k items of the highest score, best first, ties to the lower index; fewer when fewer are left. */
  topK(code, k, { exclude, steps } = {}) {
    if (!Number.isInteger(k) || k < 1) throw new InvalidInputError("k must be a whole number from 1 on");
    const { memory } = this;
    const most = Math.min(k, this.itemCount);
    if (most === 0) return [];
    return memory.scratch(() => {
      if (exclude) this.#requireBitmap(exclude);
      const query = this.#putQuery(code);
      const [left, prior] = [exclude ? memory.put(exclude) : 0, steps ? this.#putPrior(steps) : 0];
      const [hits, count2] = [memory.take(8 * most), memory.take(4)];
      const [rows, bits] = [this.rowCount, this.codeBits];
      memory.call("lfr_topk_open", this.address, rows, bits, query, left, prior, this.#open, most, hits, count2);
      const found = memory.uint32s(hits, 2 * memory.uint32s(count2, 1)[0]);
      return Array.from({ length: found.length / 2 }, (_, i) => ({
        itemIndex: found[2 * i],
        distance: found[2 * i + 1]
      }));
    });
  }
  #putQuery(code) {
    if (code.codeBits !== this.codeBits)
      throw new InvalidInputError(`code has ${code.codeBits} bits, expected ${this.codeBits}`);
    return this.memory.put(code.reveal());
  }
  /** The address of a lfr_prior. */
  #putPrior(steps) {
    requireSteps(steps);
    const numbers = steps.flatMap(({ firstItem, offset }) => [firstItem, offset]);
    return this.memory.put(new Uint32Array([this.memory.put(new Uint32Array(numbers)), steps.length]));
  }
};
function requireSteps(steps) {
  const isStep = ({ firstItem, offset }) => Number.isInteger(firstItem) && firstItem < 2 ** 32 && Number.isInteger(offset) && Math.abs(offset) <= MOST_OFFSET;
  const follows = ({ firstItem, offset }, at) => at === 0 ? firstItem === 0 : firstItem > steps[at - 1].firstItem && offset <= steps[at - 1].offset;
  if (steps.length < 1 || steps.length > MOST_STEPS || !steps.every(isStep) || !steps.every(follows))
    throw new InvalidInputError("a prior has 1 to 64 steps that ascend from item 0, with offsets that do not rise");
}

// src/fit.ts
var LEVELS = 2520;
var MIDDLE = LEVELS / 2;
var WEIGHT_UNIT = 16;
var CATALOGUE_WEIGHT = 2;
var MEAN_PULL = 5 * WEIGHT_UNIT;
var MEAN_UNIT = 256;
var LEAST_CATALOGUE_RATINGS = 32;
var MOST_FITTED = 2 ** 51;
var USE_SWEEPS = 30;
var REFINE_SWEEPS = 20;
var REFINE_FROM_RATINGS = 20;
var REFINE_FROM_BITS = 128;
var REFINE_TO_ITEMS = 2 ** 24;
var TERMS_BYTES = 88;
var Recency = /* @__PURE__ */ ((Recency2) => {
  Recency2[Recency2["Off"] = 1] = "Off";
  Recency2[Recency2["Weak"] = 2] = "Weak";
  Recency2[Recency2["Strong"] = 3] = "Strong";
  return Recency2;
})(Recency || {});
var SURPLUS = { [1 /* Off */]: 0, [2 /* Weak */]: 10, [3 /* Strong */]: 40 };
function weightOfAge(age, recency) {
  const surplus = age < 52 ? SURPLUS[recency] * WEIGHT_UNIT * 2 ** (-age / 5) : 0;
  return WEIGHT_UNIT + Math.floor(surplus + 0.5);
}
function weigh(opinions, recency) {
  const best = opinions.some(({ level }) => level > MIDDLE) ? MIDDLE + 1 : MIDDLE;
  const weighed = opinions.map(({ itemIndex, level }, at) => {
    const weight = weightOfAge(opinions.length - 1 - at, recency);
    return { itemIndex, weight: level >= best ? weight : weight >> 1, isNear: level >= MIDDLE };
  });
  return [...weighed.filter(({ isNear }) => isNear), ...weighed.filter(({ isNear }) => !isNear)];
}
var Fitter = class {
  #codes;
  #gram;
  #columnSums;
  #meanPull;
  #quadratic;
  #linear;
  /** `meanUser` has a number for each bit, in units of 1/256; absent: zeros. */
  constructor(codes, meanUser2) {
    const { memory, codeBits: f } = codes;
    this.#codes = codes;
    this.#gram = memory.take(8 * f * f);
    this.#columnSums = memory.take(8 * f);
    this.#quadratic = memory.take(8 * f * f);
    this.#linear = memory.take(8 * f);
    memory.call("lfr_gram_open", codes.address, codes.rowCount, f, codes.closedCount, this.#gram, this.#columnSums);
    this.#meanPull = memory.put(new BigInt64Array(this.#pullOf(meanUser2).map(BigInt)));
  }
  /** K (G mu) by bit; G mu is rounded down after the sum. Sums stay far below 2^53. */
  #pullOf(meanUser2) {
    const f = this.#codes.codeBits;
    if (meanUser2 === void 0) return new Array(f).fill(0);
    const gram = this.#codes.memory.int64s(this.#gram, f * f);
    return Array.from({ length: f }, (_, k) => {
      const sum = meanUser2.reduce((total, mean, j) => total + Number(gram[k * f + j]) * mean, 0);
      return MEAN_PULL * Math.floor(sum / MEAN_UNIT);
    });
  }
  /**
   * Fits a code to opinions, oldest first, from an older code or a random one. `refine` climbs a ranking objective from
   * there, with 128 bits and 20 items or more, and among no more items than the kernel counts.
   */
  fit(opinions, old, { recency = 1 /* Off */, refine = false } = {}) {
    const { codeBits, itemCount } = this.#codes;
    const most = Math.floor(MOST_FITTED / Math.max(1, codeBits * codeBits * itemCount));
    const weighed = weigh(opinions.slice(Math.max(0, opinions.length - most)), recency);
    const { result } = this.fitWeighed(weighed, old, USE_SWEEPS);
    const near = weighed.filter(({ isNear }) => isNear);
    const pays = codeBits >= REFINE_FROM_BITS && near.length >= REFINE_FROM_RATINGS;
    return refine && pays && itemCount <= REFINE_TO_ITEMS ? this.#refine(near, result) : result;
  }
  /** Fits from two starts, the old code and the signs of the linear term; the second wins if its loss is lower. */
  fitWeighed(weighed, old, maxSweeps) {
    const { memory, codeBits: f } = this.#codes;
    if (old.codeBits !== f) throw new InvalidInputError(`code has ${old.codeBits} bits, expected ${f}`);
    return memory.scratch(() => {
      this.#prepare(weighed);
      const start = memory.put(old.reveal());
      memory.call("lfr_fit_start", this.#linear, f, start);
      const signs = new UserCode(memory.bytes(start, f / 8));
      const [fromOld, fromSigns] = [this.#sweep(old, maxSweeps), this.#sweep(signs, maxSweeps)];
      return { fromOld, fromSigns, result: (fromSigns.loss < fromOld.loss ? fromSigns : fromOld).code };
    });
  }
  /** The linear term and the matrix of the last fit, row after row. */
  terms() {
    const { memory, codeBits: f } = this.#codes;
    return { linear: memory.int64s(this.#linear, f).slice(), quadratic: memory.int64s(this.#quadratic, f * f).slice() };
  }
  /** G and c, row after row. */
  catalogueTerms() {
    const { memory, codeBits: f } = this.#codes;
    return { gram: memory.int64s(this.#gram, f * f).slice(), columnSums: memory.int64s(this.#columnSums, f).slice() };
  }
  #prepare(weighed) {
    const { memory, codeBits: f, itemCount } = this.#codes;
    const [target, catalogueTarget] = [Math.floor((6 * f + 5) / 10), Math.floor((4 * f + 5) / 10)];
    const near = weighed.filter(({ isNear }) => isNear);
    const nearWeight = near.reduce((total, { weight }) => total + weight, 0);
    const short = Math.max(0, LEAST_CATALOGUE_RATINGS - near.length);
    const catalogue = CATALOGUE_WEIGHT * (nearWeight + WEIGHT_UNIT * short);
    const rows = this.#codes.takeRows(weighed.map(({ itemIndex }) => itemIndex));
    const targets = memory.put(new Int32Array(weighed.map(({ isNear }) => isNear ? target : -target)));
    const weights = memory.put(new Uint16Array(weighed.map(({ weight }) => weight)));
    const terms = new DataView(new ArrayBuffer(TERMS_BYTES));
    [f, weighed.length, rows, targets, weights].forEach((word, at) => terms.setUint32(4 * at, word, true));
    terms.setBigInt64(24, BigInt(itemCount), true);
    terms.setBigInt64(32, BigInt(itemCount), true);
    terms.setUint32(40, this.#gram, true);
    terms.setBigInt64(48, BigInt(catalogue + MEAN_PULL), true);
    terms.setUint32(56, this.#columnSums, true);
    terms.setBigInt64(64, BigInt(-catalogue * catalogueTarget), true);
    terms.setUint32(72, this.#meanPull, true);
    memory.call("lfr_fit_prepare", memory.put(new Uint8Array(terms.buffer)), this.#quadratic, this.#linear);
  }
  #sweep(start, maxSweeps) {
    const { memory, codeBits: f } = this.#codes;
    const [code, loss, sweeps] = [memory.put(start.reveal()), memory.take(8), memory.take(4)];
    memory.call("lfr_fit_sweep", this.#quadratic, this.#linear, f, maxSweeps, code, sweeps, loss);
    return {
      code: new UserCode(memory.bytes(code, f / 8)),
      sweeps: memory.uint32s(sweeps, 1)[0],
      loss: memory.int64s(loss, 1)[0]
    };
  }
  #refine(near, fitted) {
    const { memory, codeBits: f, address, rowCount, closedCount } = this.#codes;
    return memory.scratch(() => {
      const rows = this.#codes.takeRows(near.map(({ itemIndex }) => itemIndex));
      const weights = memory.put(new Uint16Array(near.map(({ weight }) => weight)));
      const twiceInverse = 20 / (64 + f);
      const numbers = [twiceInverse / Math.LN2, Math.exp(-twiceInverse), Math.exp(twiceInverse)];
      const temperature = memory.put(new Uint32Array(numbers.map((number) => Math.round(65536 * number))));
      const [distances, code] = [memory.take(2 * rowCount), memory.put(fitted.reveal())];
      const rated = [rows, weights, near.length];
      memory.call(
        "lfr_refine_open",
        address,
        rowCount,
        f,
        closedCount,
        ...rated,
        temperature,
        REFINE_SWEEPS,
        distances,
        code
      );
      return new UserCode(memory.bytes(code, f / 8));
    });
  }
};

// src/kernel.ts
var PAGE_BYTES = 65536;
var ALIGNMENT = 16;
var LFR_OK = 0;
var SIMD_PROBE = new Uint8Array([
  0,
  97,
  115,
  109,
  1,
  0,
  0,
  0,
  1,
  5,
  1,
  96,
  0,
  1,
  123,
  3,
  2,
  1,
  0,
  10,
  10,
  1,
  8,
  0,
  65,
  0,
  253,
  15,
  253,
  98,
  11
]);
var Kernel = class _Kernel {
  #module;
  constructor(module) {
    this.#module = module;
  }
  /** Loads the kernel that lies beside this file, with SIMD where the browser has it; or the one that is passed in. */
  static async load(source) {
    if (typeof WebAssembly !== "object") throw new UnsupportedBrowserError("WebAssembly");
    const code = source ?? await _Kernel.#fetch();
    try {
      return new _Kernel(await WebAssembly.compile(code));
    } catch (error) {
      throw new LightFRError(`the kernel could not be compiled: ${error.name}`);
    }
  }
  static async #fetch() {
    const address = WebAssembly.validate(SIMD_PROBE) ? new URL("./kernel.simd.wasm", import.meta.url) : new URL("./kernel.plain.wasm", import.meta.url);
    let what = "cannot be reached";
    try {
      const answer = await fetch(address);
      if (answer.ok) return await answer.arrayBuffer();
      what = `gave ${answer.status}`;
    } catch {
    }
    throw new LightFRError(`the kernel could not be loaded: ${address.pathname} ${what}`);
  }
  /** A memory of its own, which goes with whoever holds it. */
  newMemory() {
    return new KernelMemory(new WebAssembly.Instance(this.#module).exports);
  }
};
var KernelMemory = class {
  #exports;
  #top;
  constructor(exports) {
    this.#exports = exports;
    this.#top = exports.__heap_base.value;
  }
  /** All of it, taken or not. */
  get byteLength() {
    return this.#exports.memory.buffer.byteLength;
  }
  /** Takes so many bytes, which hold anything, and returns their address. Views that were made before may be gone. */
  take(byteLength) {
    const address = Math.ceil(this.#top / ALIGNMENT) * ALIGNMENT;
    this.#top = address + byteLength;
    const { memory } = this.#exports;
    const missing = this.#top - memory.buffer.byteLength;
    if (missing > 0) this.#grow(Math.ceil(missing / PAGE_BYTES));
    return address;
  }
  #grow(pages) {
    try {
      this.#exports.memory.grow(pages);
    } catch {
      throw new LightFRError(`the browser did not give ${pages * PAGE_BYTES} bytes of memory for the item codes`);
    }
  }
  /** Takes room for these numbers and puts them there. */
  put(numbers) {
    const address = this.take(numbers.byteLength);
    const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
    this.bytes(address, bytes.length).set(bytes);
    return address;
  }
  /** What is taken while `use` runs is given back when it ends. */
  scratch(use) {
    const top = this.#top;
    try {
      return use();
    } finally {
      this.#top = top;
    }
  }
  call(name, ...args) {
    const status = this.#exports[name](...args);
    if (status !== LFR_OK) throw new KernelError(name, status);
  }
  // Views, which hold until more memory is taken.
  bytes(address, length) {
    return new Uint8Array(this.#exports.memory.buffer, address, length);
  }
  uint16s(address, length) {
    return new Uint16Array(this.#exports.memory.buffer, address, length);
  }
  uint32s(address, length) {
    return new Uint32Array(this.#exports.memory.buffer, address, length);
  }
  int64s(address, length) {
    return new BigInt64Array(this.#exports.memory.buffer, address, length);
  }
};

// src/proto.ts
var MalformedMessage = class extends Error {
};
var VARINT = 0;
var FIXED64 = 1;
var LENGTH = 2;
var GROUP = 3;
var END_GROUP = 4;
var FIXED32 = 5;
var MOST_DEPTH = 100;
var MOST_FIELD_NUMBER = 2 ** 29 - 1;
var Cursor = class {
  constructor(bytes) {
    this.bytes = bytes;
  }
  at = 0;
  varint() {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.take(1)[0];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asUintN(64, value);
    }
    throw new MalformedMessage("a number has more than ten bytes");
  }
  take(length) {
    if (length > this.bytes.length - this.at) throw new MalformedMessage("it ends within a field");
    return this.bytes.subarray(this.at, this.at += length);
  }
  tag() {
    const tag = Number(this.varint());
    const fieldNumber = Math.floor(tag / 8);
    if (fieldNumber < 1 || fieldNumber > MOST_FIELD_NUMBER) throw new MalformedMessage("a field has no number");
    return [fieldNumber, tag % 8];
  }
  /** Passes over what follows a tag. */
  skip(fieldNumber, wireType, depth = 0) {
    if (wireType === VARINT) this.varint();
    else if (wireType === FIXED64) this.take(8);
    else if (wireType === LENGTH) this.take(Number(this.varint()));
    else if (wireType === FIXED32) this.take(4);
    else if (wireType === GROUP && depth < MOST_DEPTH) this.#skipGroup(fieldNumber, depth);
    else throw new MalformedMessage("a field has an unknown type");
  }
  #skipGroup(groupNumber, depth) {
    for (; ; ) {
      const [fieldNumber, wireType] = this.tag();
      if (wireType === END_GROUP && fieldNumber === groupNumber) return;
      this.skip(fieldNumber, wireType, depth + 1);
    }
  }
};
function decode(schema, bytes, into = {}) {
  const cursor = new Cursor(bytes);
  while (cursor.at < bytes.length) {
    const [fieldNumber, wireType] = cursor.tag();
    const [name, kind, repeated] = schema[fieldNumber] ?? ["", "bool"];
    const isVarint = kind === "uint32" || kind === "uint64" || kind === "int32" || kind === "bool";
    const isPacked = repeated !== void 0 && isVarint && wireType === LENGTH;
    if (name === "" || !(isPacked || wireType === (isVarint ? VARINT : LENGTH))) cursor.skip(fieldNumber, wireType);
    else if (isPacked) readPacked(cursor, kind, listOf(into, name));
    else if (repeated) listOf(into, name).push(read(cursor, kind));
    else into[name] = read(cursor, kind, into[name]);
  }
  return into;
}
function listOf(message, name) {
  return message[name] ??= [];
}
function readPacked(cursor, kind, list) {
  const packed = new Cursor(cursor.take(Number(cursor.varint())));
  while (packed.at < packed.bytes.length) list.push(read(packed, kind));
}
function read(cursor, kind, before) {
  if (kind === "uint64") return cursor.varint();
  if (kind === "uint32") return Number(BigInt.asUintN(32, cursor.varint()));
  if (kind === "int32") return Number(BigInt.asIntN(32, cursor.varint()));
  if (kind === "bool") return cursor.varint() !== 0n;
  const content = cursor.take(Number(cursor.varint()));
  if (kind === "bytes") return concat(content);
  if (kind === "string") return decodeText(content);
  return decode(kind, content, before);
}
function decodeText(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new MalformedMessage("a text is not UTF-8");
  }
}

// src/rankings.ts
var RankBy = /* @__PURE__ */ ((RankBy2) => {
  RankBy2[RankBy2["Codes"] = 1] = "Codes";
  RankBy2[RankBy2["Popularity"] = 2] = "Popularity";
  RankBy2[RankBy2["Chance"] = 3] = "Chance";
  return RankBy2;
})(RankBy || {});
var GROUPS = [0, 5, 20, 100];
var UNSAID = { by: 1 /* Codes */, priorFourths: 0, recency: 3 /* Strong */, refine: true };
function rankingFor(byGroup, opinionCount) {
  const group = GROUPS.filter((first) => opinionCount >= first).length - 1;
  return byGroup[group] ?? UNSAID;
}
function priorOf(popularities2, ranking2, codeBits) {
  if (popularities2.length === 0 || ranking2.priorFourths === 0) return void 0;
  const scale = ranking2.priorFourths * codeBits;
  return popularities2.map(({ firstItem, popularity }) => ({
    firstItem,
    offset: Math.floor((scale * popularity + 2048) / 4096)
  }));
}
function ranked(itemIndex, distance, codeBits, steps) {
  const offset = steps?.findLast((step) => step.firstItem <= itemIndex)?.offset ?? 0;
  return { itemIndex, similarity: 1 - distance / codeBits, score: codeBits - 2 * distance + offset };
}
function rank(code, codes, k, options = {}) {
  const hits = codes.topK(code, k, options);
  return hits.map(({ itemIndex, distance }) => ranked(itemIndex, distance, codes.codeBits, options.steps));
}
function score(code, codes, itemIndices, steps) {
  const distances = codes.distances(code, itemIndices);
  return itemIndices.map((itemIndex, at) => ranked(itemIndex, distances[at], codes.codeBits, steps));
}

// src/manifest.ts
var WIRE_VERSION = 1;
var MANIFEST_LIMIT_BYTES = 65536;
var SIGNED_LIMIT_BYTES = MANIFEST_LIMIT_BYTES + 128;
var SIGNED_PREFIX = new TextEncoder().encode("lightfr manifest v1\n");
var LARGEST_ARTIFACT_BYTES = 2n ** 40n;
var MOST_BYTES_PER_BLOCK = MOST_BLOCK_BYTES + 2 ** 12;
var MOST_DELTAS = 16;
var MOST_PARTS = 16;
var MOST_STEPS2 = 64;
var MOST_POPULARITY = 1023;
var MOST_FOURTHS = 1024;
var MOST_CANDIDATES = 31;
var OBJECTIVE_CATALOGUE = 1;
var MEAN_UNIT2 = 256;
var LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
var ADDRESS = new RegExp(`^https://(?=[^:]{1,253}:)${LABEL}(\\.${LABEL})*:([1-9][0-9]{0,4})$`);
var ARTIFACT = { 1: ["sha256", "bytes"], 2: ["sizeBytes", "uint64"] };
var DELTA = { 1: ["fromSha256", "bytes"], 2: ["artifact", ARTIFACT] };
var PRIOR = { 1: ["firstItems", "uint32", "repeated"], 2: ["popularities", "uint32", "repeated"] };
var ROUND_MODEL = {
  1: ["codeBits", "uint32"],
  2: ["itemCount", "uint32"],
  3: ["objective", "int32"],
  5: ["meanUser", "bytes"]
};
var RANKING = {
  1: ["by", "int32"],
  2: ["priorFourths", "uint32"],
  3: ["recency", "int32"],
  4: ["refine", "bool"]
};
var MANIFEST = {
  1: ["wireVersion", "uint32"],
  2: ["modelVersion", "uint64"],
  4: ["model", ROUND_MODEL],
  5: ["codes", ARTIFACT],
  6: ["codesDeltas", DELTA, "repeated"],
  7: ["catalogueParts", ARTIFACT, "repeated"],
  8: ["openRows", ARTIFACT],
  9: ["artifactsAddress", "string"],
  10: ["prior", PRIOR],
  11: ["rankings", RANKING, "repeated"],
  12: ["candidates", RANKING, "repeated"],
  13: ["removedItems", ARTIFACT]
};
var SIGNED_MANIFEST = { 1: ["manifest", "bytes"], 2: ["signature", "bytes"], 3: ["keyId", "bytes"] };
function require3(condition, reason) {
  if (!condition) throw new ManifestError(reason);
}
function readTrustedKeys(trust) {
  if (typeof trust !== "string") {
    if (trust.length !== 32) throw new InvalidInputError("a trusted key must be 32 bytes, or PEM text");
    return [new Uint8Array(trust)];
  }
  const blocks = [...trust.matchAll(/-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----/g)];
  const keys = blocks.map(([, base64]) => fromBase64(base64));
  if (keys.length === 0 || !keys.every((key) => key.length === 44 && hex(key).startsWith("302a300506032b6570032100")))
    throw new InvalidInputError("the trusted key is not PEM text with an Ed25519 PUBLIC KEY");
  return keys.map((key) => key.slice(12));
}
function fromBase64(text) {
  try {
    return Uint8Array.from(atob(text.replace(/\s/g, "")), (char) => char.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
async function readManifest(signed, trustedKeys) {
  require3(signed.length <= SIGNED_LIMIT_BYTES, "it is too long");
  const envelope = parse(SIGNED_MANIFEST, signed);
  const manifest = envelope.manifest ?? new Uint8Array();
  require3(manifest.length <= MANIFEST_LIMIT_BYTES, "it is too long");
  await verify(manifest, envelope.signature ?? new Uint8Array(), envelope.keyId ?? new Uint8Array(), trustedKeys);
  return checked(parse(MANIFEST, manifest), hex(await sha256(manifest)));
}
function parse(schema, bytes) {
  try {
    return decode(schema, bytes);
  } catch (error) {
    if (error instanceof MalformedMessage) throw new ManifestError(`${bytes.length} bytes are none: ${error.message}`);
    throw error;
  }
}
async function verify(manifest, signature, keyId, trustedKeys) {
  const ids = await Promise.all(trustedKeys.map(async (key2) => (await sha256(key2)).subarray(0, 8)));
  const key = trustedKeys[ids.findIndex((id) => areEqual(id, keyId))];
  require3(key !== void 0, "it is signed by a key that is not trusted");
  const isGood = await webCrypto().verify("Ed25519", await importKey(key), signature, concat(SIGNED_PREFIX, manifest));
  require3(isGood, "its signature is wrong");
}
async function importKey(key) {
  try {
    return await webCrypto().importKey("raw", key, "Ed25519", false, ["verify"]);
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotSupportedError")
      throw new UnsupportedBrowserError("Ed25519 in WebCrypto, by which models are checked: a newer one has it");
    throw new InvalidInputError("a trusted key is not one of Ed25519");
  }
}
function checked(message, digest) {
  const { wireVersion = 0, modelVersion = 0n, artifactsAddress = "", model = {}, codesDeltas = [] } = message;
  require3(wireVersion === WIRE_VERSION, `its wire version is ${wireVersion}, not ${WIRE_VERSION}`);
  require3(modelVersion >= 1n, "it has no model version");
  const port = ADDRESS.exec(artifactsAddress)?.at(-1);
  require3(artifactsAddress === "" || Number(port) < 65536, "artifacts_address is not https://host:port");
  const { codeBits = 0, itemCount = 0 } = model;
  require3(codeBits >= 8 && codeBits <= 1024 && codeBits % 8 === 0, "code_bits is out of range");
  require3(itemCount >= 1, "it has no items");
  require3(model.objective === OBJECTIVE_CATALOGUE, "a page does not know the objective of this model");
  require3(codesDeltas.length <= MOST_DELTAS, `it has more than ${MOST_DELTAS} deltas`);
  return {
    sha256: digest,
    modelVersion,
    codeBits,
    itemCount,
    meanUser: meanUser(model.meanUser, codeBits),
    ...files(message, codeBits, itemCount),
    codesDeltas: codesDeltas.map((delta) => ({
      fromSha256: digestOf(delta.fromSha256),
      artifact: artifact(delta.artifact)
    })),
    popularities: popularities(message, itemCount),
    ...rankingsOf(message)
  };
}
function files(message, codeBits, itemCount) {
  const { catalogueParts = [], openRows, removedItems } = message;
  const codes = artifact(message.codes);
  const rowCount = codes.sizeBytes / (codeBits / 8);
  const fits = openRows ? rowCount >= 1 && rowCount <= itemCount + 1 : rowCount === itemCount;
  require3(fits && Number.isInteger(rowCount), "the codes have another size");
  require3(openRows !== void 0 || removedItems === void 0, "items have left, and nothing says which are open");
  const isCount = catalogueParts.length >= 1 && catalogueParts.length <= MOST_PARTS;
  require3(isCount, `its catalogue must have 1 to ${MOST_PARTS} parts`);
  const parts = catalogueParts.map(artifact);
  const mostBytes = Math.ceil(itemCount / BLOCK_IDS) * MOST_BYTES_PER_BLOCK;
  const areSmall = parts.every(({ sizeBytes }) => sizeBytes <= mostBytes);
  require3(areSmall, `a part of its catalogue is too large for ${itemCount} items`);
  return {
    codes,
    catalogueParts: parts,
    openRows: openRows && artifact(openRows),
    removedItems: removedItems && artifact(removedItems)
  };
}
function artifact({ sha256: sha2562, sizeBytes = 0n } = {}) {
  require3(sizeBytes <= LARGEST_ARTIFACT_BYTES, "an artifact is too large");
  return { sha256: digestOf(sha2562), sizeBytes: Number(sizeBytes) };
}
function digestOf(digest) {
  require3(digest?.length === 32, "a digest must be 32 bytes");
  return hex(digest);
}
function meanUser(field, codeBits) {
  if (field === void 0 || field.length === 0) return void 0;
  require3(field.length === 2 * codeBits, "mean_user has another length than code_bits");
  const mean = Array.from({ length: codeBits }, (_, k) => viewOf(field).getInt16(2 * k, true));
  require3(mean.every((value) => Math.abs(value) <= MEAN_UNIT2), "mean_user leaves -256 to 256");
  return mean;
}
function popularities({ prior }, itemCount) {
  if (prior === void 0) return [];
  const { firstItems: firsts = [], popularities: heights = [] } = prior;
  const isCount = firsts.length === heights.length && firsts.length >= 1 && firsts.length <= MOST_STEPS2;
  require3(isCount, "its prior must have 1 to 64 steps");
  const ascends = firsts.every((first, at) => at === 0 ? first === 0 : first > firsts[at - 1]);
  require3(ascends, "the steps of its prior do not ascend from 0");
  require3(firsts[firsts.length - 1] < itemCount, "a step of its prior begins behind the last row");
  const falls = heights.every((height, at) => height <= (at === 0 ? MOST_POPULARITY : heights[at - 1]));
  require3(falls, "the popularities of its prior rise, or are above 1,023");
  return firsts.map((firstItem, at) => ({ firstItem, popularity: heights[at] }));
}
function rankingsOf(message) {
  const [rankings, candidates] = [(message.rankings ?? []).map(ranking), (message.candidates ?? []).map(ranking)];
  require3(rankings.length === 0 || rankings.length === GROUPS.length, `it must have ${GROUPS.length} rankings or none`);
  require3(rankings.every(({ by }) => by !== 3 /* Chance */), "chance is only a candidate");
  require3(candidates.length <= MOST_CANDIDATES, `it has more than ${MOST_CANDIDATES} candidates`);
  return { rankings, candidates };
}
function ranking({ by = 0, priorFourths = 0, recency = 0, refine = false }) {
  require3(by in RankBy, "a ranking goes by something unknown");
  require3(recency === 0 || recency in Recency, "the recency of a ranking is unknown");
  require3(priorFourths <= MOST_FOURTHS, "the prior of a ranking is above 1,024 fourths");
  return { by, priorFourths, recency: recency || 1 /* Off */, refine };
}

// src/bitmaps.ts
async function readBitmap(file, itemCount) {
  const bitmap = await inflate(file, Math.ceil(itemCount / 8), "bitmap file");
  if (itemCount % 8 && bitmap[bitmap.length - 1] >> itemCount % 8)
    throw new ArtifactError(`bitmap file is corrupt: a bit behind its ${itemCount} items is set`);
  return bitmap;
}
function requireFewLeft(removed, openRows, itemCount) {
  if (removed.some((byte, at) => byte & openRows[at]))
    throw new ArtifactError("the model is refused: an item that left the catalogue is open");
  if (2 * countBits(removed) > itemCount)
    throw new ArtifactError("the model is refused: more than half of its items have left");
}

// src/deltas.ts
var HEADER_BYTES2 = 44;
var MAGIC2 = 1146242636;
var FORMAT_VERSION2 = 2;
var MOST_ROWS = 2n ** 32n - 1n;
var ZEROS = 2 ** 32 - 1;
function require4(condition, reason) {
  if (!condition) throw new ArtifactError(`delta refused: ${reason}`);
}
async function applyDelta(delta, oldCodes, mostBytes) {
  const header = readHeader(delta);
  const { codeBytes, oldRows, newRows, runs, changed } = header;
  require4(oldRows * codeBytes === oldCodes.length, "made for old codes of another size");
  require4(newRows * codeBytes <= mostBytes, `the new codes would have more than ${mostBytes} bytes`);
  const size = 8 * runs + 4 * changed + changed * codeBytes;
  const content = await inflate(delta.subarray(HEADER_BYTES2), size, "delta");
  const codes = moveRows(viewOf(content), header, oldCodes);
  flipRows(content.subarray(8 * runs), header, codes);
  return codes;
}
function readHeader(delta) {
  require4(delta.length >= HEADER_BYTES2, `it has ${delta.length} bytes, no header`);
  const view = viewOf(delta);
  const isKnown = view.getUint32(0, true) === MAGIC2 && view.getUint32(4, true) === FORMAT_VERSION2;
  require4(isKnown, `not of format version ${FORMAT_VERSION2}`);
  const codeBits = view.getUint32(8, true);
  require4(codeBits >= 8 && codeBits <= 1024 && codeBits % 8 === 0, `codes cannot have ${codeBits} bits`);
  const [oldRows, newRows, runs, changed] = [12, 20, 28, 36].map((at) => view.getBigUint64(at, true));
  require4(oldRows <= MOST_ROWS && newRows <= MOST_ROWS, "codes cannot have so many rows");
  require4(runs <= newRows && changed <= newRows, "there are more runs or changed rows than rows");
  const [old, now, ran, flipped] = [oldRows, newRows, runs, changed].map(Number);
  return { codeBytes: codeBits / 8, oldRows: old, newRows: now, runs: ran, changed: flipped };
}
function moveRows(content, header, oldCodes) {
  const { codeBytes, oldRows, newRows, runs } = header;
  const codes = new Uint8Array(newRows * codeBytes);
  let row = 0;
  for (let run2 = 0; run2 < runs; run2++) {
    const [first, count2] = [content.getUint32(8 * run2, true), content.getUint32(8 * run2 + 4, true)];
    require4(count2 > 0, "a run is empty");
    require4(first === ZEROS || first + count2 <= oldRows, `a run goes beyond the ${oldRows} old rows`);
    require4(row + count2 <= newRows, "its runs have more rows than the new codes");
    if (first !== ZEROS) codes.set(oldCodes.subarray(first * codeBytes, (first + count2) * codeBytes), row * codeBytes);
    row += count2;
  }
  require4(row === newRows, `its runs have ${row} rows, expected ${newRows}`);
  return codes;
}
function flipRows(content, { codeBytes, newRows, changed }, codes) {
  let row = -1;
  for (let i = 0; i < changed; i++) {
    row += 1;
    for (let plane = 0; plane < 4; plane++) row += content[plane * changed + i] * 2 ** (8 * plane);
    require4(row < newRows, `a row is beyond the ${newRows} rows`);
    const flips = 4 * changed + i * codeBytes;
    for (let byte = 0; byte < codeBytes; byte++) codes[row * codeBytes + byte] ^= content[flips + byte];
  }
}

// src/downloads.ts
var MANIFEST2 = "manifest";
var PATIENCE_MS = 4e4;
var MS_PER_BYTE = 1;
var QUIET = { cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer" };
var nameOf = ({ sha256: sha2562 }) => `artifacts/${sha2562}`;
var filesOf = ({ codes, catalogueParts, openRows, removedItems }) => [codes, ...catalogueParts, openRows, removedItems].filter((file) => file !== void 0);
var Downloads = class {
  constructor(baseUrl, store, fetch2, keys) {
    this.baseUrl = baseUrl;
    this.store = store;
    this.fetch = fetch2;
    this.keys = keys;
  }
  /** Files of this visit, whole. Until it keeps their version, another tab may remove them from the store. */
  #opened = /* @__PURE__ */ new Map();
  /** Names of those that the store had no room for. */
  #unkept = /* @__PURE__ */ new Set();
  /** The manifest of the version that is kept; none where nothing is, or what is kept is not trusted any more. */
  async kept() {
    const signed = await this.store.get(MANIFEST2);
    try {
      return signed && await readManifest(signed, this.keys);
    } catch (error) {
      if (error instanceof ManifestError) return void 0;
      throw error;
    }
  }
  /** The newest signed manifest. */
  signedManifest() {
    return this.#get(MANIFEST2, SIGNED_LIMIT_BYTES);
  }
  /** A file of the model, from the store or else from the server. What is damaged is fetched again. */
  async file(artifact2) {
    const kept = await this.stored(artifact2);
    if (kept) return kept;
    const content = await this.#get(nameOf(artifact2), artifact2.sizeBytes);
    if (!await isWhole2(content, artifact2))
      throw new ArtifactError("a download is not what the signed manifest names");
    await this.#add(artifact2, content);
    return content;
  }
  /** A file that the store has, whole, or this visit. */
  async stored(artifact2) {
    const name = nameOf(artifact2);
    const opened = this.#opened.get(name);
    if (opened) return opened;
    const kept = await this.store.get(name);
    if (!kept || !await isWhole2(kept, artifact2)) return void 0;
    this.#opened.set(name, kept);
    return kept;
  }
  /** Files are kept as they come, so that a visit that is cut short was not in vain. */
  async #add(artifact2, content) {
    this.#opened.set(nameOf(artifact2), content);
    if (!await hadRoom(this.store.put(nameOf(artifact2), content))) this.#unkept.add(nameOf(artifact2));
  }
  /** The codes; by the delta from older ones, where there is one, and whole where that does not lead to them. */
  async codes(manifest, old) {
    const { codes, codesDeltas } = manifest;
    const delta = codesDeltas.find(({ fromSha256 }) => fromSha256 === old?.codes.sha256)?.artifact;
    if (old && delta && delta.sizeBytes < codes.sizeBytes && !await this.stored(codes)) {
      const patched = await this.#patched(old.codes, delta, codes);
      if (patched) await this.#add(codes, patched);
    }
    return this.file(codes);
  }
  async #patched(old, delta, codes) {
    const before = await this.stored(old);
    if (!before) return void 0;
    try {
      const patched = await applyDelta(await this.file(delta), before, codes.sizeBytes);
      return await isWhole2(patched, codes) ? patched : void 0;
    } catch (error) {
      if (error instanceof ArtifactError) return void 0;
      throw error;
    }
  }
  /** Runs while no other tab keeps or removes a version. */
  alone(run2) {
    return this.store.alone?.(run2) ?? run2();
  }
  /** Makes a version the one that is kept, unless another tab keeps a newer one by now, or there is no room. */
  async keep(manifest, signed) {
    await this.alone(async () => {
      const kept = await this.kept();
      const isNewer = !kept || manifest.modelVersion > kept.modelVersion || manifest.sha256 === kept.sha256;
      if (isNewer && await hadRoom(this.#putAll(manifest, signed))) await this.sweep(manifest);
      else if (kept) await this.sweep(kept);
    });
  }
  async #putAll(manifest, signed) {
    const there = await this.store.names();
    for (const name of filesOf(manifest).map(nameOf))
      if (!there.includes(name) || this.#unkept.has(name)) await this.store.put(name, this.#opened.get(name));
    await this.store.put(MANIFEST2, signed);
  }
  /** Removes what this version does not name. */
  async sweep(manifest) {
    const named = /* @__PURE__ */ new Set([MANIFEST2, ...filesOf(manifest).map(nameOf)]);
    for (const name of await this.store.names()) if (!named.has(name)) await this.store.remove(name);
  }
  /** At most so many bytes, however many the server sends, and no longer than those may take. */
  async #get(name, mostBytes) {
    const [began, abort] = [performance.now(), new AbortController()];
    const endAfter = (bytes) => setTimeout(() => abort.abort(), began + PATIENCE_MS + bytes * MS_PER_BYTE - performance.now());
    let timer = endAfter(0);
    try {
      const answer = await this.fetch(`${this.baseUrl}/${name}`, { ...QUIET, signal: abort.signal });
      if (!answer.ok || !answer.body)
        throw new ServerUnavailableError(`the server answered with status ${answer.status}`);
      const pieces = [];
      let total = 0;
      const reader = answer.body.getReader();
      for (let read2 = await reader.read(); !read2.done; read2 = await reader.read()) {
        total += read2.value.length;
        if (total > mostBytes) {
          await reader.cancel();
          throw new ArtifactError("a download is longer than the signed manifest says");
        }
        pieces.push(read2.value);
        clearTimeout(timer);
        timer = endAfter(total);
      }
      return concat(...pieces);
    } catch (error) {
      if (error instanceof LightFRError) throw error;
      const what = abort.signal.aborted ? "is too slow" : "cannot be reached";
      throw new ServerUnavailableError(`${new URL(this.baseUrl).host} ${what}`);
    } finally {
      clearTimeout(timer);
    }
  }
};
async function hadRoom(putting) {
  try {
    await putting;
    return true;
  } catch (error) {
    if (error instanceof StoreError) return false;
    throw error;
  }
}
async function isWhole2(content, { sha256: digest, sizeBytes }) {
  return content.length === sizeBytes && hex(await sha256(content)) === digest;
}

// src/store.ts
async function withStorage(use) {
  try {
    return await use();
  } catch (error) {
    if (error instanceof LightFRError) throw error;
    throw new StoreError(`the browser's storage refused: ${error.name}`);
  }
}
async function openCacheStore(baseUrl) {
  if (!globalThis.caches) throw new UnsupportedBrowserError("the Cache API here: serve the page over HTTPS");
  const all = `lightfr model ${baseUrl}`;
  const [cache, locks] = [await withStorage(() => caches.open(all)), webLocks()];
  const addressOf = (name) => `${baseUrl}/${name}`;
  return {
    get: (name) => withStorage(async () => {
      const kept = await cache.match(addressOf(name));
      return kept && new Uint8Array(await kept.arrayBuffer());
    }),
    put(name, content) {
      const file = new Response(content, { headers: { "Content-Type": "application/octet-stream" } });
      return withStorage(() => cache.put(addressOf(name), file));
    },
    names: () => withStorage(async () => (await cache.keys()).map(({ url }) => url.slice(baseUrl.length + 1))),
    remove: (name) => withStorage(async () => void await cache.delete(addressOf(name))),
    alone: async (run2) => await locks.request(all, run2)
  };
}
function memoryStore() {
  const files2 = /* @__PURE__ */ new Map();
  return {
    get: async (name) => files2.get(name),
    put: async (name, content) => void files2.set(name, content),
    names: async () => [...files2.keys()],
    remove: async (name) => void files2.delete(name)
  };
}

// src/model.ts
var Model = class _Model {
  manifest;
  codes;
  catalogue;
  /** Why the newest version of the server is not in use: it could not be reached, or what it sent was refused. */
  updateError;
  #removed;
  #fitter;
  constructor(manifest, codes, catalogue, removed, updateError) {
    this.manifest = manifest;
    this.codes = codes;
    this.catalogue = catalogue;
    this.#removed = removed;
    this.updateError = updateError;
    this.#fitter = new Fitter(codes, manifest.meanUser);
  }
  /**
   * Fetches the newest model from a server, checks it against the trusted key (PEM text, or 32 bytes), and keeps it if
   * there is room. When anything is wrong the model of the last visit is used, and `updateError` says why; without one
   * the error is thrown.
   */
  static async load(baseUrl, trustedKey, options = {}) {
    const [base, keys] = [requireBase(baseUrl), readTrustedKeys(trustedKey)];
    const store = options.store ?? await openCacheStore(base);
    const downloads = new Downloads(base, store, options.fetch ?? globalThis.fetch.bind(globalThis), keys);
    const kernel = options.kernel ?? await Kernel.load();
    try {
      return await _Model.#fetchNewest(downloads, kernel);
    } catch (error) {
      if (!(error instanceof LightFRError)) throw error;
      return await downloads.alone(async () => {
        const kept = await downloads.kept();
        if (kept === void 0) throw error;
        await downloads.sweep(kept);
        return _Model.#open(kept, downloads, kernel, kept, error);
      });
    }
  }
  static async #fetchNewest(downloads, kernel) {
    const kept = await downloads.kept();
    const signed = await downloads.signedManifest();
    const manifest = await readManifest(signed, downloads.keys);
    if (kept && manifest.modelVersion <= kept.modelVersion && manifest.sha256 !== kept.sha256)
      throw new ManifestError(`version ${manifest.modelVersion} after ${kept.modelVersion}`);
    const model = await _Model.#open(manifest, downloads, kernel, kept);
    await downloads.keep(manifest, signed);
    return model;
  }
  /** Opens a version, fetching what the store lacks. Nothing counts before all of it was checked. */
  static async #open(manifest, downloads, kernel, kept, updateError) {
    const { itemCount, codeBits, catalogueParts } = manifest;
    const bitmap = async (file) => file && readBitmap(await downloads.file(file), itemCount);
    const [openRows, removed] = [await bitmap(manifest.openRows), await bitmap(manifest.removedItems)];
    if (removed && openRows) requireFewLeft(removed, openRows, itemCount);
    const parts = [];
    for (const part of catalogueParts) parts.push(await downloads.file(part));
    const catalogue = new Catalogue(parts, itemCount);
    const codes = openCodes(kernel, await downloads.codes(manifest, kept), codeBits, itemCount, openRows);
    return new _Model(manifest, codes, catalogue, removed, updateError);
  }
  /** Number of the version; grows with every new one. */
  get version() {
    return this.manifest.modelVersion;
  }
  /** The k best items for the user, computed here: nothing about the user leaves the page. */
  async recommend(user, k = 10, { excludeRated = true, exclude = [] } = {}) {
    const opinions = await this.#indexed(await user.opinions());
    const leftOut = this.#removed?.slice() ?? new Uint8Array(Math.ceil(this.codes.itemCount / 8));
    for (const itemId of [...exclude, ...await user.hidden()]) {
      const index = await this.indexOf(itemId);
      if (index !== void 0) setBit(leftOut, index);
    }
    for (const { itemIndex, level } of opinions) if (excludeRated || level < MIDDLE) setBit(leftOut, itemIndex);
    const ranking2 = this.rankingFor(opinions.length);
    const found = this.#ranked(await this.#fitted(user, opinions), k, leftOut, ranking2);
    const itemIds = await this.catalogue.idsOf(found.map(({ itemIndex }) => itemIndex));
    return found.map(({ itemIndex: _, ...rest }, at) => ({ itemId: itemIds[at], ...rest }));
  }
  /** The code of the user's taste, by which recommend() ranks: private data. */
  async userCode(user) {
    return this.#fitted(user, await this.#indexed(await user.opinions()));
  }
  /** How the server says to rank for a user with so many opinions. */
  rankingFor(opinionCount) {
    return rankingFor(this.manifest.rankings, opinionCount);
  }
  async #fitted(user, opinions) {
    return this.#fitter.fit(opinions, await user.startCode(this.codes.codeBits), this.rankingFor(opinions.length));
  }
  #ranked(code, k, exclude, ranking2) {
    const steps = priorOf(this.manifest.popularities, ranking2, this.codes.codeBits);
    if (ranking2.by !== 2 /* Popularity */) return rank(code, this.codes, k, { exclude, steps });
    if (!Number.isInteger(k) || k < 1) throw new InvalidInputError("k must be a whole number from 1 on");
    const first = [];
    for (let item = 0; item < this.codes.itemCount && first.length < k; item++)
      if (!hasBit(exclude, item)) first.push(item);
    return score(code, this.codes, first, steps);
  }
  /** The index of an item; undefined when the catalogue lacks the id, or its item left. */
  async indexOf(itemId) {
    const index = await this.catalogue.indexOf(itemId);
    return index !== void 0 && this.#removed && hasBit(this.#removed, index) ? void 0 : index;
  }
  /** Opinions of items that the catalogue lacks wait. */
  async #indexed(opinions) {
    const found = [];
    for (const { itemId, level } of opinions) {
      const itemIndex = await this.indexOf(itemId);
      if (itemIndex !== void 0) found.push({ itemIndex, level });
    }
    return found;
  }
};
function requireBase(baseUrl) {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : void 0;
  const isBase = url && /^https?:$/.test(url.protocol) && !/[?#]/.test(url.href) && !url.username && !url.password;
  if (!isBase) throw new InvalidInputError("the address of the server is not https://host:port");
  return url.href.replace(/\/+$/, "");
}
function openCodes(kernel, codes, codeBits, itemCount, openRows) {
  try {
    return new ItemCodes(kernel, codes, codeBits, itemCount, openRows);
  } catch (error) {
    if (error instanceof InvalidInputError) throw new ArtifactError(`the model is refused: ${error.message}`);
    throw error;
  }
}

// src/kernel.simd.wasm
var kernel_simd_default = __toBinary("AGFzbQEAAAABswEVYAR/f35/AGAGf39/f39/AGAFf39/f38AYAZ/f39/f38Bf2ADf39/AX9gB39/f39/f38Bf2ADf39/AX5gBH9/f38Bf2ACf38Bf2ABfwF/YAJ/fwBgCH9/f39/f39/AGALf39/f39/f39/f38Bf2ABfgF+YAN/f38AYAV/f39/fwF/YAp/f39/f39/f39/AX9gCX9/f39/f39/fwF/YAd/f39/f39/AGAAAX9gBX9+fn5+AAMgHwMEBAUGBwgEBwkCCgMBCwIAAAwNDg8QEQQBEgIAExQEBQFwAQYGBQMBAAIGDwJ/AUGAgAQLfwBBsIAECwe6AQwGbWVtb3J5AgAKbGZyX2dhdGhlcgAAD2xmcl9maXRfcHJlcGFyZQABDWxmcl9maXRfc3RhcnQAAg1sZnJfZml0X3N3ZWVwAAMObGZyX29wZW5fY291bnQABQ1sZnJfb3Blbl9yb3dzAAgNbGZyX2dyYW1fb3BlbgAMD2xmcl9yZWZpbmVfb3BlbgASDWxmcl9kaXN0YW5jZXMAFQ1sZnJfdG9wa19vcGVuABYLX19oZWFwX2Jhc2UDAQkLAQBBAQsFGRobHBEK8f8BH6MCAQV/QQshBgJAAkAgAkH/d2pBh3hJDQAgAkEHcQ0AAkAgBEUNAEEKIQYgAEUNASADRQ0BIAVFDQEgAkEDdiEHIAMhAiAEIQYDQCACKAIAIAFPDQMgAkEEaiECIAZBf2oiBg0AC0EAIQECQCAEQQFGDQAgBEEBcSEIIAdBAXQhCSAEQX5xIQpBACEBIAMhAiAFIQYDQAJAIAdFIgQNACAGIAAgAigCACAHbGogB/wKAAALAkAgBA0AIAYgB2ogACACQQRqKAIAIAdsaiAH/AoAAAsgAkEIaiECIAYgCWohBiAKIAFBAmoiAUcNAAsgCEUNAQsgB0UNACAFIAEgB2xqIAAgAyABQQJ0aigCACAHbGogB/wKAAALQQAhBgsgBg8LQQ0LsCMHBH8FfgZ/BH4CewZ/AXsjgICAgABBsJECayIDJICAgIAAAkACQCAADQBBCiEEDAELQQshBCAAKAIAIgVB/3dqQYd4SQ0AIAVBB3ENAAJAIAAoAgQiBkUNAAJAIAAoAggNAEEKIQQMAgsgACgCDA0AQQohBAwBC0EOIQQgACkDGCIHQgBTDQAgACkDUCIIQgBTDQACQAJAAkAgBg0AQgAhCUIAIQpCASELDAELIAAoAhAhBCAAKAIMIQwCQAJAAkAgBkEBRw0AQQAhDUIAIQkMAQsgBkEBcSEOIAZBfnEhD0EAIQ1CACEJIAQhECAMIREDQCARNAIAIQsCQCAERQ0AIBAzAQAgC34hCwsgCyALQj+HIhKFIBJ9IgsgCSALIAlWGyEJIBFBBGo0AgAhCwJAIARFDQAgEEECajMBACALfiELCyALIAtCP4ciEoUgEn0iCyAJIAsgCVYbIQkgEEEEaiEQIBFBCGohESAPIA1BAmoiDUcNAAsgDkUNAQsgDCANQQJ0ajQCACELAkAgBEUNACAEIA1BAXRqMwEAIAt+IQsLIAsgC0I/hyIShSASfSILIAkgCyAJVhshCQsgBkEDcSEQAkACQAJAIAZBBE8NAEIAIQtBACENDAELIAZBfHEhD0IAIQtBACENIAQhEQNAQgEhEkIBIQoCQCAERQ0AIBEzAQAhCgsgCiALfCELAkAgBEUNACARQQJqMwEAIRILIBIgC3whCkIBIQtCASESAkAgBEUNACARQQRqMwEAIRILIBIgCnwhEgJAIARFDQAgEUEGajMBACELCyARQQhqIREgCyASfCELIA8gDUEEaiINRw0ACyAQRQ0BCyAEIA1BAXRqIREDQAJAAkAgBA0AQgEhEgwBCyARMwEAIRILIBFBAmohESASIAt8IQsgEEF/aiIQDQALCyALQgEgC0IBVhshCyAGrSEKAkAgCVBFDQBCACEJDAELIANB4ABqIAlCACAKQgAQnoCAgABCfyESIAMpA2hCAFINAQsgCSAKfiIJQgEgCUIBVhshEgsCQAJAIAdQDQAgA0HQAGogB0IAIAtCABCegICAAEJ/IQogAykDWEIAUg0BC0J/IAggCyAHfnwiCyALIAhUGyEKCyAAKQMgIgsgC0I/hyIJhSAJfSEJAkACQCALUA0AIANBwABqIAlCACASQgAQnoCAgABCfyETIAMpA0hCAFINAQsgCSASfiETCwJAAkAgACgCKCIQDQAgCiESDAELIAApAzAiEiASQj+HIhSFIRUCQAJAIAUNAEIBIQsMAQsCQAJAIAUgBWwiBEECSQ0A/QwAAAAAAAAAAAAAAAAAAAAAIRYgECERA0AgEf0AAwAiF0E//cwBIBf9USAW/VAhFiARQRBqIREgBEF+aiIEDQALIBYgFiAW/Q0ICQoLDA0ODwABAgMEBQYH/VD9HQAhCwwBC0IAIQsgECERA0AgESkDACIJQj+HIAmFIAuEIQsgEUEIaiERIARBf2oiBA0ACwsgC0IBfCELCyAVIBR9IQkCQCASUA0AIANBMGogCUIAIAtCABCegICAAEJ/IRIgAykDOEIAUg0BC0J/IAsgCX4iCyAKfCIJIAkgC1QbIRILAkACQCAAKAI4Ig8NACATIQsMAQsgACkDQCILIAtCP4ciCoUhFAJAAkAgBQ0AQgEhCQwBC/0MAAAAAAAAAAAAAAAAAAAAACEWIA8hBCAFIREDQCAE/QADACIXQT/9zAEgF/1RIBb9UCEWIARBEGohBCARQX5qIhENAAsgFiAWIBb9DQgJCgsMDQ4PAAECAwQFBgf9UP0dAEIBfCEJCyAUIAp9IQoCQCALUA0AIANBIGogCkIAIAlCABCegICAAEJ/IQsgAykDKEIAUg0BC0J/IAkgCn4iCyATfCIJIAkgC1QbIQsLAkAgACgCSCIMRQ0AAkACQCAFDQBCASEJDAEL/QwAAAAAAAAAAAAAAAAAAAAAIRYgDCEEIAUhEQNAIAT9AAMAIhdBP/3MASAX/VEgFv1QIRYgBEEQaiEEIBFBfmoiEQ0ACyAWIBYgFv0NCAkKCwwNDg8AAQIDBAUGB/1Q/R0AQgF8IQkLQn8gCSALfCILIAsgCVQbIQsLIAWtIQkCQCAFRQ0AIAMgCUIAIBJCABCegICAACADQRBqIAlCAEJ/Qn8gCyASIAl+fCISIBIgC1QbIAMpAwhCAFIbIgtCABCegICAACADKQMYQgBRDQBBFCEEDAELAkAgCyAJfkL//////////x9YDQBBFCEEDAELAkAgAQ0AQQohBAwBC0EKIQQgAkUNAAJAAkAgBg0AQgAhCwwBCyAGQQNxIQ0gACgCECEEAkACQAJAIAZBBE8NAEIAIQtBACEODAELIAZBfHEhGEIAIQtBACEOIAQhEQNAQgEhCUIBIRICQCAERQ0AIBEzAQAhEgsgEiALfCELAkAgBEUNACARQQJqMwEAIQkLIAkgC3whEkIBIQtCASEJAkAgBEUNACARQQRqMwEAIQkLIAkgEnwhCQJAIARFDQAgEUEGajMBACELCyARQQhqIREgCyAJfCELIBggDkEEaiIORw0ACyANRQ0BCyAEIA5BAXRqIREDQAJAAkAgBA0AQgEhCQwBCyARMwEAIQkLIBFBAmohESAJIAt8IQsgDUF/aiINDQALCyALIAd+IQsLAkAgBUUNACALIAh8IRIgBSAFbCENIAEhBCAQIREDQEIAIQtCACEJAkAgEEUNACARKQMAIAApAzB+IQkLIAQgEiAJfDcDAAJAIBBFDQAgEUEIaikDACAAKQMwfiELCyAEQQhqIBIgC3w3AwAgBEEQaiEEIBFBEGohESANQX5qIg0NAAsgBUUNACAFIQ0gAiEEIA8hESAMIRADQEIAIQtCACEJAkAgDEUNACAQKQMAIQkLAkAgD0UNACARKQMAIAApA0B+IQsLIAQgCyAJfDcDAEIAIQtCACEJAkAgDEUNACAQQQhqKQMAIQkLAkAgD0UNACARQQhqKQMAIAApA0B+IQsLIARBCGogCyAJfDcDACAEQRBqIQQgEUEQaiERIBBBEGohECANQX5qIg0NAAsLAkAgBkUNACAAQSBqIQUgA0H4AGpBGGohDCADQfgAakEgaiEYIAIgAEEoak8hGUEAIQ4DQCADIAYgDmsiBEGAAiAEQYACSRsiBDYChAEgA0GQkQJqIAAoAgggACgCACIRQQN2IA5saiAEIBEgA0GQEWoQioCAgAAgAyADKAKYkQI2AoABIAMgAykCkJECNwN4AkACQCAAKAIQIgYNABCdgICAACEEIANB+ABqQQBCACAAKQMYQgGGfSABIAQoAgwRgICAgACAgICAAAwBCyADQgA3A4gBAkAgAygChAEiDUUNACAOQQF0IRoCQAJAAkAgDUEBRw0AQQAhD0IAIQsMAQsgBiAaaiEE/QwAAAAAAAAAAAAAAAAAAAAAIRYgDCERIA1BfnEiDyEQA0AgESAE/VwBAP2pAf3JASIX/QsDACAEQQRqIQQgEUEQaiERIBYgF/1QIRYgEEF+aiIQDQALIBYgFiAW/Q0ICQoLDA0ODwABAgMEBQYH/VD9HQAhCyANIA9GDQELIAYgGiAPQQF0amohBCANIA9rIRAgDCAPQQN0aiERA0AgESAEMwEAIgk3AwAgBEECaiEEIBFBCGohESALIAmEIQsgEEF/aiIQDQALCyADIAs3A4gBCxCdgICAACEEIAMpA4gBIhJQDQBCACAAKQMYQgGGfSEKIAQoAgwhBkIAIQsgEiEJA0ACQCAJQgGDUA0AIAP9DAAAAAAAAAAAAAAAAAAAAAAiFv0LBKCRAiADIBb9CwSQkQICQCADKAKEASIRRQ0AQQAhBAJAIBFBAUYNACARQQFxIQ8gEUF+cSENQQAhBCAYIREDQCADQZCRAmogBEEDdkH4////AXFqIhAgESkDACALiEIBgyAEQQFqrYYgEUF4aikDACALiEIBgyAEQT5xrYYgECkDAISENwMAIBFBEGohESANIARBAmoiBEcNAAsgD0UNAQsgA0GQkQJqIARBA3ZB+P///wFxaiIRIAwgBEEDdGopAwAgC4hCAYMgBK2GIBEpAwCENwMACyADQfgAaiADQZCRAmogCiALhiABIAYRgICAgACAgICAACADKQOIASESCyASIAtCAXwiC4giCUIAUg0ACwsCQAJAIAMoAoQBIhoNAEIAIQsgA0IANwOIAUJ+IQkMAQsgACgCECENIAAoAgwhGwJAAkACQCAaQQFGIhxFDQBC////////////ACESQgAhC0EAIQYMAQsgGkEBcSEdIBpBfnEhDyAbIA5BAnRqIQQgDSAOQQF0aiEQQv///////////wAhEkIAIQtBACEGIBghEQNAIAQ0AgAhCQJAIA1FDQAgEDMBACAJfiEJCyARQXhqIAk3AwAgCSASIAkgElMbIRIgCSALfCEJIARBBGo0AgAhCwJAIA1FDQAgEEECajMBACALfiELCyARIAs3AwAgCyASIAsgElMbIRIgEUEQaiERIARBCGohBCAQQQRqIRAgCyAJfCELIA8gBkECaiIGRw0ACyAdRQ0BCyAbIAYgDmoiBEECdGo0AgAhCQJAIA1FDQAgDSAEQQF0ajMBACAJfiEJCyAMIAZBA3RqIAk3AwAgCSASIAkgElMbIRIgCSALfCELCwJAAkACQCAcRQ0AQQAhEEIAIQkMAQsgEv0SIR79DAAAAAAAAAAAAAAAAAAAAAAhFiAMIQQgGkF+cSIQIREDQCAEIAT9AAMAIB790QEiF/0LAwAgBEEQaiEEIBcgFv1QIRYgEUF+aiIRDQALIBYgFiAW/Q0ICQoLDA0ODwABAgMEBQYH/VD9HQAhCSAaIBBGDQELIBogEGshESAMIBBBA3RqIQQDQCAEIAQpAwAgEn0iCjcDACAEQQhqIQQgCiAJhCEJIBFBf2oiEQ0ACwsgAyAJNwOIASASQgGGIQkLAkAgACgCACIQRQ0AQQAhDQJAIBBBBEkNAAJAIBkNACAFIAIgEEEDdGpJDQELIAUpAwAgC379EiEWIAIhBCAQQX5xIg0hEQNAIAQgBP0AAwAgFv3RAf0LAwAgBEEQaiEEIBFBfmoiEQ0ACyAQIA1GDQELIA0hBgJAIBAgDWtBA3EiEUUNACANIBFqIQYgAiANQQN0aiEEA0AgBCAEKQMAIAUpAwAgC359NwMAIARBCGohBCARQX9qIhENAAsLIA0gEGtBfEsNACAQIAZrIREgAiAGQQN0aiEEA0AgBCAEKQMAIAUpAwAgC359NwMAIARBCGoiECAQKQMAIAUpAwAgC359NwMAIARBEGoiECAQKQMAIAUpAwAgC359NwMAIARBGGoiECAQKQMAIAUpAwAgC359NwMAIARBIGohBCARQXxqIhENAAsLEJ2AgIAAIQQgA0H4AGpBACAFKQMAIAl+IAIgBCgCEBGAgICAAICAgIAAEJ2AgIAAIQQCQCADKQOIASISUA0AIAUpAwBCAYYhCiAEKAIQIQZCACELIBIhCQNAAkAgCUIBg1ANACAD/QwAAAAAAAAAAAAAAAAAAAAAIhb9CwSgkQIgAyAW/QsEkJECAkAgAygChAEiEUUNAEEAIQQCQCARQQFGDQAgEUEBcSEPIBFBfnEhDUEAIQQgGCERA0AgA0GQkQJqIARBA3ZB+P///wFxaiIQIBEpAwAgC4hCAYMgBEEBaq2GIBFBeGopAwAgC4hCAYMgBEE+ca2GIBApAwCEhDcDACARQRBqIREgDSAEQQJqIgRHDQALIA9FDQELIANBkJECaiAEQQN2Qfj///8BcWoiESAMIARBA3RqKQMAIAuIQgGDIASthiARKQMAhDcDAAsgA0H4AGogA0GQkQJqIAogC4YgAiAGEYCAgIAAgICAgAAgAykDiAEhEgsgEiALQgF8IguIIglQRQ0ACwsgAygChAEgDmoiDiAAKAIEIgZJDQALIAAoAgAhBQsgASAFEIuAgIAAQQAhBAsgA0GwkQJqJICAgIAAIAQLigEDAX8BfgJ/QQshAwJAIAFB/3dqQYd4SQ0AIAFBB3ENAEEKIQMgAEUNACACRQ0AQQAhAwNAAkAgACkDACIEUA0AIAIgA0EDdmoiBSAFLQAAIgVBfiADQQdxIgZ3cUEBIAZ0IAVyIARCAVMbOgAACyAAQQhqIQAgASADQQFqIgNHDQALQQAhAwsgAwuNEQkEfwF+AX8BewF/AXsCfg1/A3sjgICAgABBoMAAayIHJICAgIAAQQshCAJAIAJB/3dqQYd4SQ0AIAJBB3ENAEEKIQggAEUNACABRQ0AIARFDQBBDCEIIANBgIB8akGBgHxJDQAgAEEIaiEJIAJBA3RBCGohCkIAIQtBASEMA0D9DAAAAAAAAAAAAAAAAAAAAAAhDSAJIQggAiEOA0AgCP0AAwAiD0E//cwBIA/9USAN/VAhDSAIQRBqIQggDkF+aiIODQALIAkgCmohCSANIA0gDf0NCAkKCwwNDg8AAQIDBAUGB/1Q/R0AIAuEIQsgDEEBaiIMIAJHDQALIAtCAXwhECACrSEL/QwAAAAAAAAAAAAAAAAAAAAAIQ0gASEIIAIhDgNAIAj9AAMAIg9BP/3MASAP/VEgDf1QIQ0gCEEQaiEIIA5BfmoiDg0ACyAHIAtCACAQQgAQnoCAgAAgB0EQaiALQgBCf0J/IA0gDSAN/Q0ICQoLDA0ODwABAgMEBQYH/VD9HQBCAXwiESAQIAt+fCIQIBAgEVQbIAcpAwhCAFIbIhBCABCegICAAEEUIQggECALfkL//////////98AVg0AIAcpAxhCAFINAEEAIRICQCACQQN0IhNFDQAgB0EgakEAIBP8CwALIABBCGohFCACQX9qIRUgE0EIaiEWIAdBIGpBCHIhF0EBIRggACEMA0BBAUF/IAQgEiIKQQN2ai0AACAKQQdxdkEBcRshGQJAIApFDQAgGawhC0EAIQ4CQCAKQQFGDQAgCkF+cSESIApBfnEhDiAL/RIhDSAHQSBqIQggDCEJA0AgCCAI/QAEACAJ/QADACAN/dUB/c4B/QsEACAJQRBqIQkgCEEQaiEIIBJBfmoiEg0ACyAKIA5GDQELIA5BA3QhCANAIAdBIGogCGoiCSAJKQMAIAwgCGopAwAgC358NwMAIAhBCGohCCAKIA5BAWoiDkcNAAsLAkAgCkEBaiISIAJPDQAgGawhCyASIRkCQCACIApBf3MiCGoiDkECSQ0AIBUgGEEBcWshCSASIA4gCEEBcSIKa2ohGSAL/RIhDSAUIQ4gFyEIA0AgCCAI/QADACAO/QADACAN/dUB/c4B/QsDACAOQRBqIQ4gCEEQaiEIIAlBfmoiCQ0ACyAKRQ0BCyAZQQN0IQggAiAZayEOA0AgB0EgaiAIaiIJIAkpAwAgDCAIaikDACALfnw3AwAgCEEIaiEIIA5Bf2oiDg0ACwsgFCAWaiEUIBdBCGohFyAYQQFzIRggFUF/aiEVIAwgE2ohDCASIAJHDQALAkACQCADDQBBACEaDAELIABBCGohGyACQX9qIRwgAkEDdCIZQQhqIRMgB0EgakEIciEdQQAhGgNAIBshFCAdIRVBASEXIBwhGCAAIQ5BACEWQQAhCQNAAkACQAJAIAEgCUEDdCIIaikDACAHQSBqIAhqKQMAfSILQgFTDQBBASAJQQdxdCIIIAQgCUEDdiIMai0AACIKcUUNAQwCCyALQn9VDQFBASAJQQdxdCIIIAQgCUEDdiIMai0AACIKcUUNAQsgBCAMaiAKIAhzIgw6AABBAkF+IAggDHEbIR4CQCAJRQ0AIB6sIQtBACEMAkAgCUEBRg0AIAlBfnEhEiAJQX5xIQwgC/0SIQ0gB0EgaiEIIA4hCgNAIAggCP0ABAAgCv0AAwAgDf3VAf3OAf0LBAAgCkEQaiEKIAhBEGohCCASQX5qIhINAAsgCSAMRg0BCyAMQQN0IQgDQCAHQSBqIAhqIgogCikDACAOIAhqKQMAIAt+fDcDACAIQQhqIQggCSAMQQFqIgxHDQALCwJAIAlBAWoiEiACTw0AIB6sIQsCQCACIAlBf3MiCGoiDEECSQ0AIBggF0EBcWshCiASIAwgCEEBcSIea2ohEiAL/RIhDSAUIQwgFSEIA0AgCCAI/QADACAM/QADACAN/dUB/c4B/QsDACAMQRBqIQwgCEEQaiEIIApBfmoiCg0ACyAeRQ0BCyASQQN0IQggAiASayEMA0AgB0EgaiAIaiIKIAopAwAgDiAIaikDACALfnw3AwAgCEEIaiEIIAxBf2oiDA0ACwsgFkEBaiEWCyAUIBNqIRQgFUEIaiEVIBdBAXMhFyAYQX9qIRggDiAZaiEOIAlBAWoiCSACRw0ACyAaQQFqIhogA08NASAWDQALCwJAIAVFDQAgBSAaNgIACwJAIAZFDQACQAJAIAJBAkkNAP0MAAAAAAEAAAAAAAAAAAAAACEfQQAhCCAHQSBqIQ79DAAAAAAAAAAAAAAAAAAAAAAiICEhA0AgBCAIQQN2av0HAAD9iQH9qQEiDf0bACAf/QwHAAAABwAAAAcAAAAHAAAA/U4iD/0bAHb9ESAN/RsBIA/9GwF2/RwBIA39GwIgD/0bAnb9HAIgDf0bAyAP/RsDdv0cA/0MAQAAAAEAAAABAAAAAQAAAP1O/QwAAAAAAAAAAAAAAAAAAAAA/Tf9xwH9DAEAAAAAAAAAAQAAAAAAAAD9UCINIAH9AAMA/dUBICD9zgEhICANIA79AAQA/dUBICH9zgEhISAOQRBqIQ4gAUEQaiEBIB/9DAIAAAACAAAAAgAAAAIAAAD9rgEhHyACIAhBAmoiCEcNAAsgISAhIA39DQgJCgsMDQ4PAAECAwQFBgf9zgH9HQAhCyAgICAgDf0NCAkKCwwNDg8AAQIDBAUGB/3OAf0dACEQDAELQgAhEEEAIQggB0EgaiEOQgAhCwNAQgFCfyAEIAhBA3ZqLQAAIAhBB3F2QQFxGyIRIAEpAwB+IBB8IRAgESAOKQMAfiALfCELIA5BCGohDiABQQhqIQEgAiAIQQFqIghHDQALCyAGIAtCAn8gEH03AwALQQAhCAsgB0GgwABqJICAgIAAIAgLqAEBAX4CQCACQQN0IgJBCGogAUEDdiABQQdxQQBHaiIBSw0AIAAgAmopAAAPC0IAIQMCQCACIAFPDQAgACACaiEAQQQhAgJAAkAgAUEEcQ0AQgAhA0EAIQIMAQsgADUAACEDCwJAIAFBAnFFDQAgACACajMAACACQQN0rYYgA4QhAyACQQJyIQILIAFBAXFFDQAgACACajEAACACQQN0rYYgA4QhAwsgAwvJAgMIfwF+AX9BCiEEAkAgAEUgAUEAR3ENACACRQ0AIANFDQAgAUEDdiEFAkAgAUEHcSIGRQ0AQQ4hBCAAIAVqLQAAIAZ2DQELIAFBBnZBAWohB0EAIQggBSAGQQBHaiIGQQFxIQkgBkECcSEKIAZBBHEhC0EAIQFBACEFA0AgCCEEAkAgAUEHcQ0AIAIgAUEBdmogBTYCAAsCQAJAIARBCGoiCCAGSw0AIAAgBGopAAAhDAwBC0IAIQwgBCAGTw0AAkACQCALDQBCACEMQQAhDQwBCyAAIARqNQAAIQxBBCENCwJAIApFDQAgACAEIA1qajMAACANQQN0rYYgDIQhDCANQQJyIQ0LIAlFDQAgACANIARqajEAACANQQN0rYYgDIQhDAsgBSAMe6dqIQUgByABQQFqIgFHDQALIAMgBTYCAEEAIQQLIAQLzgMDC38BfgF/IAAoAggiAkEHcSEDIAJBA3YhBCAAKAIEIAFBCXYiBUECdGooAgAhAiAAKAIAIQYCQCABQQZ2IgcgBUEDdCIATQ0AIAVBBnQhBSAHIABrIQggBCADQQBHaiIJQQFxIQogCUECcSELIAlBBHEhDANAAkACQCAFIgBBCGoiBSAJSw0AIAYgAGopAAAhDQwBC0IAIQ0gACAJTw0AAkACQCAMDQBCACENQQAhDgwBCyAGIABqNQAAIQ1BBCEOCwJAIAtFDQAgBiAAIA5qajMAACAOQQN0rYYgDYQhDSAOQQJyIQ4LIApFDQAgBiAOIABqajEAACAOQQN0rYYgDYQhDQsgAiANe6dqIQIgCEF/aiIIDQALIAchAAsCQAJAIABBA3QiAEEIaiAEIANBAEdqIgVLDQAgBiAAaikAACENDAELQgAhDSAAIAVPDQAgBiAAaiEIQQQhAAJAAkAgBUEEcQ0AQgAhDUEAIQAMAQsgCDUAACENCwJAIAVBAnFFDQAgCCAAajMAACAAQQN0rYYgDYQhDSAAQQJyIQALIAVBAXFFDQAgCCAAajEAACAAQQN0rYYgDYQhDQsgAiANQn8gAa2GQn+Fg3unagvCBgMFfwF+A38gACgCCEEJdiEDAkAgAigCACIEIAFBCXYiBU0NACAFIAQgACgCBCAEQQJ0aigCACABSxshBQtBASEEIAMhBgJAAkAgAyAFRg0AIAAoAgQhB0EBIQQCQANAIAcgBSAEaiIGQQJ0aigCACABSw0BIAYhBSAEQQF0IgQgAyAGa00NAAwCCwsgBSEGIARFDQELA0ACQCAEIAMgBmtLDQAgBiAGIARqIgUgACgCBCAFQQJ0aigCACABSxshBgsgBEEBdiIEDQALIAAoAgQhByAGIQULIAIgBTYCACABIAcgBUECdGoiAygCACIHayEGAkAgBSAAKAIIIgRBCXZPDQAgAygCBCAHa0GABEcNACAGIAVBCXRqDwsgACgCACECAkACQCAFQQZ0IgNBCHIgBEEDdiAEQQdxQQBHaiIASw0AIAIgA2opAAAhCAwBC0IAIQggAyAATw0AIAIgA2ohA0EEIQQCQAJAIABBBHENAEIAIQhBACEEDAELIAM1AAAhCAsCQCAAQQJxRQ0AIAMgBGozAAAgBEEDdK2GIAiEIQggBEECciEECyAAQQFxRQ0AIAMgBGoxAAAgBEEDdK2GIAiEIQgLIAVBA3QhAwJAIAYgCHunIgFJDQAgAEEBcSEJIABBAnEhCiAAQQRxIQsgBUEGdEEIciEFA0ACQAJAIAUiBEEIaiIFIABLDQAgAiAEaikAACEIDAELQgAhCCAEIABPDQACQAJAIAsNAEIAIQhBACEHDAELIAIgBGo1AAAhCEEEIQcLAkAgCkUNACACIAQgB2pqMwAAIAdBA3SthiAIhCEIIAdBAnIhBwsgCUUNACACIAcgBGpqMQAAIAdBA3SthiAIhCEICyADQQFqIQMgBiABayIGIAh7pyIBTw0ACwsCQCAGRQ0AAkACQCAGQQdxIgUNACAGIQQMAQsgBiEEA0AgBEF/aiEEIAhCf3wgCIMhCCAFQX9qIgUNAAsLIAZBCEkNAANAIAhCf3wgCIMiCEJ/fCAIgyIIQn98IAiDIghCf3wgCIMiCEJ/fCAIgyIIQn98IAiDIghCf3wgCIMiCEJ/fCAIgyEIIARBeGoiBA0ACwsgA0EGdCAIeqdqC80BAQR/QQohBAJAAkAgAEUNACAAKAIERQ0AAkAgACgCACIFDQAgACgCCA0BCwJAIAJFDQAgAUUNASADRQ0BIAAoAgghBiABIQQgAiEHA0AgBCgCACAGTw0DIARBBGohBCAHQX9qIgcNAAsDQAJAAkAgBSABKAIAIgRBA3ZqLQAAIARBB3F2QQFxRQ0AIAAgBBCGgICAACEEDAELIAAoAgwhBAsgAyAENgIAIAFBBGohASADQQRqIQMgAkF/aiICDQALC0EAIQQLIAQPC0ENCzEBAX9BCiEBAkAgAEUNACAAKAIERQ0AQQAhASAAKAIADQBBCkEAIAAoAggbIQELIAELzAwEFn8BfgF/An4jgICAgABBgARrIgUkgICAgAACQCACQT9qQQZ2IgZFDQAgA0EDdiIHQQZ0IQggBCEJIAIhCkEAIQsDQAJAIAdFDQAgCkHAACAKQcAASRshDEEAIQ0gAiALQQZ0RyEOIAkhDyABIRAgByERA0AgBUEAQYAE/AsAIBFBCCARQQhJG0EDdCISQQEgEkEBSxsiE0H4AHEhFAJAIA5FDQAgByANayIVQQggFUEISSIWGyISQQFxIRcgEkECcSEYIAUhGSAQIRIgDCEaA0ACQAJAIBYNACASKQAAIRsMAQsCQAJAIBVBBE8NAEIAIRtBACEcDAELIBI1AAAhG0EEIRwLAkAgGEUNACASIBxqMwAAIBxBA3SthiAbhCEbIBxBAnIhHAsgF0UNACASIBxqMQAAIBxBA3SthiAbhCEbCyAZIBs3AwAgEiAHaiESIBlBCGohGSAaQX9qIhoNAAsLQQAgFGshFkEAIRIDQCAFIBJBA3RqIhlBgAJqIhogGikDACIbQv////8PgyAZKQMAIh1CIIiFIh4gG4U3AwAgGSAdIB5CIIaFNwMAIAUgEkEhakFfcSIZQQN0aiISQYACaiIaIBopAwAiG0L/////D4MgEikDACIdQiCIhSIeIBuFNwMAIBIgHSAeQiCGhTcDACAZQSFqQV9xIhJBwABIDQALQQAhEgNAIAUgEkEDdGoiGUGAAWoiGiAZKQMAIhtCEIggGikDACIdhUL//4OA8P8/gyIeIB2FNwMAIBkgGyAeQhCGhTcDACAFIBJBEWpBb3EiGUEDdGoiEkGAAWoiGiASKQMAIhtCEIggGikDACIdhUL//4OA8P8/gyIeIB2FNwMAIBIgGyAeQhCGhTcDACAZQRFqQW9xIhJBwABIDQALQQAhEgNAIAUgEkEDdGoiGUHAAGoiGiAZKQMAIhtCCIggGikDACIdhUL/gfyH8J/A/wCDIh4gHYU3AwAgGSAbIB5CCIaFNwMAIAUgEkEJakF3cSIZQQN0aiISQcAAaiIaIBIpAwAiG0IIiCAaKQMAIh2FQv+B/Ifwn8D/AIMiHiAdhTcDACASIBsgHkIIhoU3AwAgGUEJakF3cSISQcAASA0AC0EAIRIDQCAFIBJBA3RqIhlBIGoiGiAZKQMAIhtCBIggGikDACIdhUKPnrz48OHDhw+DIh4gHYU3AwAgGSAbIB5CBIaFNwMAIAUgEkEFakF7cSIZQQN0aiISQSBqIhogEikDACIbQgSIIBopAwAiHYVCj568+PDhw4cPgyIeIB2FNwMAIBIgGyAeQgSGhTcDACAZQQVqQXtxIhJBwABIDQALQQAhEgNAIAUgEkEDdGoiGUEQaiIaIBkpAwAiG0ICiCAaKQMAIh2FQrPmzJmz5syZM4MiHiAdhTcDACAZIBsgHkIChoU3AwAgBSASQQNqQX1xIhlBA3RqIhJBEGoiGiASKQMAIhtCAoggGikDACIdhUKz5syZs+bMmTODIh4gHYU3AwAgEiAbIB5CAoaFNwMAIBlBA2pBfXEiEkHAAEgNAAsgBSESQX4hGQNAIBJBCGoiGiASKQMAIhtCAYggGikDACIdhULVqtWq1arVqtUAgyIeIB2FNwMAIBIgGyAeQgGGhTcDACASQRhqIhogEkEQaiIcKQMAIhtCAYggGikDACIdhULVqtWq1arVqtUAgyIeIB2FNwMAIBwgGyAeQgGGhTcDACASQSBqIRIgGUEEaiIZQT5JDQALQQAhGkEAIRkCQAJAIBFFDQAgE0EBcSEVIAUhEkEAIRwgDyEZA0AgGSASKQMANwMAIBlBIGogEkEIaikDADcDACAZQcAAaiASQRBqKQMANwMAIBlB4ABqIBJBGGopAwA3AwAgGUGAAWohGSASQSBqIRIgFiAcQXxqIhxHDQALIBVFDQFBACAcayEZCyAPIBlBBXRqIRIgBSAZQQN0aiEZA0AgEiAZIBpqKQMANwMAIBJBIGohEiAaQQhqIhpBCEcNAAsLIA9BgBBqIQ8gEEEIaiEQIBFBeGohESANQQhqIg0gB0kNAAsLIAlBCGohCSABIAhqIQEgCkFAaiEKIAtBAWoiCyAGRw0ACwsgACAENgIIIAAgBjYCBCAAIAM2AgAgBUGABGokgICAgAAL+AIBEH8CQCABRQ0AIAFBBXQhAiABQQNqIQMgAEEIaiEEIAFBfmohBSABQQN0IgZBCGohByAAIAZqIQggACEJQQAhCgNAAkAgCiILQQFqIgogAU8NACAKIQwCQCABIAtBf3NqQQNxRQ0AQQAgA0EDcWshDUEAIQ4gBCEPIAghDANAIAwgDykDADcDACAPQQhqIQ8gDCAGaiEMIA0gDkF/aiIORw0ACyALIA5rQQFqIQwLIAUgC2tBA0kNACAGIAxsIQ0gASAMayEOIAYgDEEBamwhCyAGIAxBAmpsIRAgCSAMQQN0aiEPIAYgDEEDamwhESAAIQwDQCAMIA1qIA8pAwA3AwAgDCALaiAPQQhqKQMANwMAIAwgEGogD0EQaikDADcDACAMIBFqIA9BGGopAwA3AwAgD0EgaiEPIAwgAmohDCAOQXxqIg4NAAsLIAkgBmohCSAAQQhqIQAgA0EDaiEDIAQgB2ohBCAIIAdqIQggCiABRw0ACwsL5QYGAn8BfgF/AX4Bewl/I4CAgIAAQZCAAmsiBiSAgICAAEELIQcCQCACQf93akGHeEkNACACQQdxDQBBCiEHIABFIAFBAEdxDQAgBEUNACAFRQ0AIAOtIgggASABQQBHayIJrXxCACABGyIK/RIhCyACIAJsIQMgBCEHA0AgByAL/QsDACAHQRBqIQcgA0F+aiIDDQALQgAgCn0hCgJAAkAgAkEBSw0AIAUhByACIQMDQCAHIAo3AwAgB0EIaiEHIANBf2oiAw0ADAILCyAK/RIhCyAFIQcgAiEDA0AgByAL/QsDACAHQRBqIQcgA0F+aiIDDQALCwJAAkACQCABQQJJDQAgAkEDdiEBQQAhBwNAIAZBBGogACAHIAFsaiAJIAdrIgNBgAIgA0GAAkkbIgMgAiAGQRBqEIqAgIAAIAZBBGpBAEJ+IAQQnYCAgAAoAgwRgICAgACAgICAACAGQQRqQQBCAiAFEJ2AgIAAKAIQEYCAgIAAgICAgAAgAyAHaiIHIAlJDQAMAgsLIAFFDQELIAZBBGogACACQQN2IAlsakEBIAIgBkEQahCKgICAACAGQQRqQQBCACAIQgGGIgp9IAQQnYCAgAAoAgwRgICAgACAgICAACAGQQRqQQAgCiAFEJ2AgIAAKAIQEYCAgIAAgICAgAALIAJBBXQhDCAEQQhqIQ0gAkF+aiEOIAJBA3QiAEEIaiEPIAQgAGohEEEAIREgBCESA0ACQCARIhNBAWoiESACTw0AIBEhAwJAIBNBA3EiAUEDRg0AQQEhByANIQMgECEJA0AgCSADKQMANwMAIANBCGohAyAJIABqIQkgASAHcyEFIAdBAWoiFCEHIAVBA0cNAAsgEyAUaiEDCyAOIBNrQQNJDQAgACADbCEFIAIgA2shCSAAIANBAWpsIQEgACADQQJqbCEUIBIgA0EDdGohByAAIANBA2psIRMgBCEDA0AgAyAFaiAHKQMANwMAIAMgAWogB0EIaikDADcDACADIBRqIAdBEGopAwA3AwAgAyATaiAHQRhqKQMANwMAIAdBIGohByADIAxqIQMgCUF8aiIJDQALCyASIABqIRIgBEEIaiEEIA0gD2ohDSAQIA9qIRAgESACRw0AC0EAIQcLIAZBkIACaiSAgICAACAHC4oDAgh/An4CQCABIAJPDQAgA0EBcSEGIANBAnEhByADQQRxIQggACADIAFsaiEJIANBCEkhCgNAQQAhC0EAIQwCQCAKDQBBACELQQAhDANAIAwgBCALIgBqKQAAIAkgAGopAACFe6dqIQwgAEEIaiELIABBEGogA00NAAsLAkAgCyADTw0AIAkgC2ohDQJAAkAgCA0AQgAhDkEAIQAMAQsgDTUAACEOQQQhAAsCQCAHRQ0AIA0gAGozAAAgAEEDdK2GIA6EIQ4gAEECciEACwJAIAZFDQAgDSAAajEAACAAQQN0rYYgDoQhDgsgBCALaiELAkACQCAIDQBCACEPQQAhAAwBCyALNQAAIQ9BBCEACwJAIAdFDQAgCyAAajMAACAAQQN0rYYgD4QhDyAAQQJyIQALAkAgBkUNACALIABqMQAAIABBA3SthiAPhCEPCyAMIA8gDoV7p2ohDAsCQCAMIAUoAgxPDQAgBSABIAwQlICAgAALIAkgA2ohCSABQQFqIgEgAkcNAAsLC+oBAQh/QYCAASAEbiEIAkAgAiADTw0AIARBAXQhCSAGQX5xIQogBkEBcSELA0AgAiIMIAhqIAMgAyAMayAISxshAkEAIQ0CQAJAAkAgBg4CAgEAC0EAIQ0gByEOIAUhDwNAIAEgDCACIAQgDyAOIAARgYCAgACAgICAACABIAwgAiAEIA8gBGogDkEkaiAAEYGAgIAAgICAgAAgDkHIAGohDiAPIAlqIQ8gCiANQQJqIg1HDQALIAtFDQELIAEgDCACIAQgBSANIARsaiAHIA1BJGxqIAARgYCAgACAgICAAAsgAiADSQ0ACwsLgAMCCn8CfgJAIAFFDQAgAkEBcSEFIAJBAnEhBiACQQRxIQdBACEIIAJBCEkhCSAAIQoDQEEAIQtBACEMAkAgCQ0AQQAhC0EAIQwDQCAMIAMgCyINaikAACAKIA1qKQAAhXunaiEMIA1BCGohCyANQRBqIAJNDQALCwJAIAsgAk8NACAAIAggAmxqIAtqIQ4CQAJAIAcNAEIAIQ9BACENDAELIA41AAAhD0EEIQ0LAkAgBkUNACAOIA1qMwAAIA1BA3SthiAPhCEPIA1BAnIhDQsCQCAFRQ0AIA4gDWoxAAAgDUEDdK2GIA+EIQ8LIAMgC2ohCwJAAkAgBw0AQgAhEEEAIQ0MAQsgCzUAACEQQQQhDQsCQCAGRQ0AIAsgDWozAAAgDUEDdK2GIBCEIRAgDUECciENCwJAIAVFDQAgCyANajEAACANQQN0rYYgEIQhEAsgDCAQIA+Fe6dqIQwLIAQgCEEBdGogDDsBACAKIAJqIQogCEEBaiIIIAFHDQALCwusAwQMfwF+A38CfgJAIAAoAgAiBEUNACAAKAIEIgVBAXEhBiAAKAIIIgdBIGohCEEAIAVBfnFrIQkgByEKQQAhCwNAAkAgCyIAQQFqIgsgBE8NACAHIABBBXRqIQwgAyAAIARsQQN0aiENIAghDiALIQ8DQEEAIQBCACEQAkACQAJAAkAgBQ4CAwEAC0IAIRBBACERIA4hACABIRIgCiETA0AgACkDACATKQMAhSEUAkAgAUUNACASKQMAIBSDIRQLIABBCGopAwAgE0EIaikDAIUhFSAUeyAQfCEUAkAgAUUNACASQQhqKQMAIBWDIRULIABBEGohACASQRBqIRIgE0EQaiETIBV7IBR8IRAgCSARQX5qIhFHDQALIAZFDQFBACARayEACyAHIA9BBXRqIABBA3QiAGopAwAgDCAAaikDAIUhFAJAIAFFDQAgASAAaikDACAUgyEUCyAUeyAQfCEQCyAQIAJ+IRALIA0gD0EDdGoiACAAKQMAIBB8NwMAIA5BIGohDiAPQQFqIg8gBEcNAAsLIAhBIGohCCAKQSBqIQogCyAERw0ACwsLsAIEB38BfgJ/AX4CQCAAKAIAIgRFDQAgACgCBCIFQX5xIQYgBUEBcSEHQQAhCCAAKAIIIgkhCgNAQgAhC0EAIQwCQAJAAkACQCAFDgIDAQALQgAhC0EAIQwgASENIAohAANAIAApAwAhDgJAIAFFDQAgDSkDACAOgyEOCyAOeyALfCELIABBCGopAwAhDgJAIAFFDQAgDUEIaikDACAOgyEOCyANQRBqIQ0gAEEQaiEAIA57IAt8IQsgBiAMQQJqIgxHDQALIAdFDQELIAkgCEEFdGogDEEDdCIAaikDACEOAkAgAUUNACABIABqKQMAIA6DIQ4LIA57IAt8IQsLIAsgAn4hCwsgAyAIQQN0aiIAIAApAwAgC3w3AwAgCkEgaiEKIAhBAWoiCCAERw0ACwsLyg0MAn8BfgF/AX4CfwF+AX8BfgF/BXsLfwN+I4CAgIAAQaDgAGsiCySAgICAAEELIQwCQCACQf93akGHeEkNACACQQdxDQBBDCEMIAFBAEcgAa0gA60iDXxCf3xCgICACFZxDQAgBkGAgIAISw0AIAhBgIB8akGBgHxJDQACQCAHDQBBCiEMDAELQQ4hDCAHKAIAQf//v39qQYCAQEkNACAHKAIEIg5BgIB8akGBgHxJDQAgBygCCEH//3dqQYCAfEkNAAJAIAoNAEEKIQwMAQsCQCAEDQAgBkUNAEEKIQwMAQsCQCABRQ0AAkAgAA0AQQohDAwCC0EKIQwgCUUNAQsgC0EcakEAQYQg/AsAAkAgAkEDdCIMRQ0AIAtBoCBqQQAgDPwLAAsgAkEDdiEDAkACQCAGDQBCACEPDAELQQAhECACQQFLIRFCACEPA0ACQAJAIAUNAEIBIRIMAQsgBSAQQQF0ajMBACESCyAEIBAgA2xqIRNCACASfSEUAkACQCARDQBBACEMIAtBoCBqIRUDQCAVIBIgFCATIAxBA3ZqLQAAIAxBB3F2QQFxGyAVKQMAfDcDACAVQQhqIRUgAiAMQQFqIgxHDQAMAgsLIBT9EiEWIBL9EiEX/QwAAAAAAQAAAAAAAAAAAAAAIRhBACEVIAtBoCBqIQwDQCAMIBYgFyATIBVBA3Zq/QcAAP2JAf2pASIZ/RsAIBj9DAcAAAAHAAAABwAAAAcAAAD9TiIa/RsAdv0RIBn9GwEgGv0bAXb9HAEgGf0bAiAa/RsCdv0cAiAZ/RsDIBr9GwN2/RwD/QwBAAAAAQAAAAEAAAABAAAA/U79DAAAAAAAAAAAAAAAAAAAAAD9N/3HAf1SIAz9AAQA/c4B/QsEACAMQRBqIQwgGP0MAgAAAAIAAAACAAAAAgAAAP2uASEYIAIgFUECaiIVRw0ACwsgEiAPfCEPIBBBAWoiECAGRw0ACwsgC0GAgICABDYCHCALQSxqIQwgC0EcaiERIA6tIRJCgICAgAQhFCACIRUDQCAMQXRqIBRC/////w+DIBJ+QhCIIhQ+AgAgDEF4aiAUIBJ+QhCIIhQ+AgAgDEF8aiAUQv////8PgyASfkIQiCIUPgIAIAwgFCASfkIQiCIUPgIAIAxBEGohDCAVQXxqIhUNAAsgACABIAMgCiAJEJ2AgIAAKAIIEYKAgIAAgICAgAACQCAIRQ0AIAFBfnEhGyABQQFxIRwgAUF/aiIdQX5xIR4gHUEBcSEfIAMgHWwhICAJIB1BAXRqISFBACEiA0BBACEjQQAhJANAIAtBoCBqICNBA3RqKQMAIhJCACASfSAKICNBA3YiDGoiJS0AACIEICNBB3EiBXZBAXEiEBtBACAHKAIAa6x+ISYCQAJAAkACQAJAAkACQCABRQ0AQgAhJyAAIAxqIhUhDEIAIRJCACEUIB1FDQRBACEOQgAhFAJAIAFBAkcNAEIAIRIgFSETDAMLIAkhDEIAIRIgFSETA0AgFCASIBQgEy0AACAFdkEBcSAQRiIGGyARIAwvAQBBAnRqNQIAfCIoIAYbIhQgKCASIAYbIhIgFCATIANqIgYtAAAgBXZBAXEgEEYiExsgESAMQQJqLwEAQQJ0ajUCAHwiKCATGyEUICggEiATGyESIAxBBGohDCAGIANqIRMgHiAOQQJqIg5HDQAMAgsLICZCAVMNBUEBIAV0IRMMBAsgH0UNAQsgFCASIBQgEy0AACAFdkEBcSAQRiIMGyARIAkgDkEBdGovAQBBAnRqNQIAfCIoIAwbIRQgKCASIAwbIRILIBUgIGohDAsCQCAUIBIgFCAMLQAAIAV2QQFxIBBGIgwbIBEgIS8BAEECdGo1AgAgDX58IiggDBsiFCAoIBIgDBsiEnwiKFANACASQgiIIAc1AgR+IBRCCIggBzUCCH58QgiIIhJCAFENACASEJOAgIAAICgQk4CAgAB9IA9+IScLICYgJ1cNAUEBIAV0IRMCQAJAAkAgHQ0AQQAhBgwBC0EAIQYgCSEMA0AgDEF/QQEgFS0AACAEcyATcRsgDC8BAGo7AQAgDEECaiIFQX9BASAVIANqIhUtAAAgBHMgE3EbIAUvAQBqOwEAIAxBBGohDCAVIANqIRUgGyAGQQJqIgZHDQALIBxFDQELIAkgBkEBdGoiDEF/QQEgEyAVLQAAIARzcRsgDC8BAGo7AQALICUtAAAhBAsgJSAEIBNzOgAAICRBAWohJAsgI0EBaiIjIAJHDQALICJBAWoiIiAITw0BICQNAAsLQQAhDAsgC0Gg4ABqJICAgIAAIAwLswMDAX4Bfw5+AkACQCAAeSIBp0E/cyICQR9JDQAgAEIgIAF9Qv////8Pg4ghAAwBCyAAQR8gAmuthiEACyAAIAB+IgBCH4ggAEI/iCIAiCIBIAF+IgFCH4ggAUI/iCIBiCIDIAN+IgNCH4ggA0I/iCIDiCIEIAR+IgRCH4ggBEI/iCIEiCIFIAV+IgVCH4ggBUI/iCIFiCIGIAZ+IgZCH4ggBkI/iCIGiCIHIAd+IgdCH4ggB0I/iCIHiCIIIAh+IghCH4ggCEI/iCIIiCIJIAl+IglCH4ggCUI/iCIJiCIKIAp+IgpCH4ggCkI/iCIKiCILIAt+IgtCH4ggC0I/iCILiCIMIAx+IgxCH4ggDEI/iCIMiCINIA1+Ig1CH4ggDUI/iCINiCIOIA5+Ig5CH4ggDkI/iCIOiCIPIA9+Ig9CP4giECANIAsgCSAHIAUgAyAAIAJBAXSthEIChiABQgGGhIRCAoYgBEIBhoSEQgKGIAZCAYaEhEIChiAIQgGGhIRCAoYgCkIBhoSEQgKGIAxCAYaEhEIChiAOQgGGhIRCAYYgD0IfiCAQiCIAIAB+Qj+IhAvnAwIEfwJ+IAAoAhAhAwJAAkAgACgCGCIERQ0AIAEhBQJAIAAoAhwiBkUNACAGIAEgAEEgahCHgICAACEFCyAEIAVBA3ZqLQAAIAVBB3F2QQFxDQELIAMgAkEBdGohAiAAKAIAIQUCQAJAAkAgACgCCCIEIAAoAgRPDQAgACAEQQFqNgIIIAKtQiCGIAGthCEHQQAhAiAERQ0BA0ACQCAHIAUgBEF/akEBdiIBQQN0aikCACIIVg0AIAQhAgwDCyAFIARBA3RqIAg3AgAgASEEIAENAAwCCwsgBSkCACACrUIghiABrYQiB1gNAUEAIQNBASECAkAgBEEDSQ0AQQAhA0ECIQFBASECA0ACQCAFIAIgBSABQQN0aikCACAFIAJBA3RqKQIAVmoiAUEDdGopAgAiCCAHVg0AIAEhAgwCCyAFIANBA3RqIAg3AgAgAUEBdCIGQQFyIQIgASEDIAZBAmoiASAESQ0ACwsCQCACQQFqIARGDQAgAyECDAELAkAgBSACQQN0aikCACIIIAdWDQAgAyECDAELIAUgA0EDdGogCDcCAAsgBSACQQN0aiAHNwIAIAAoAgggACgCBEkNAQsgACAAKAIAKAIEIgUgACgCECIEa0EBakEBdkEAIAUgBEsbNgIMCwtdAQF/QQshBQJAIAJB/3dqQYd4SQ0AIAJBB3ENAEEKIQUgA0UNACABQQBHIABFIARFcnENACAAIAEgAkEDdiADIAQQnYCAgAAoAggRgoCAgACAgICAAEEAIQULIAUL/AMBBn8jgICAgABBwABrIgokgICAgAACQCAAIAEgAiADIAUgBiAHIAggCRCXgICAACILDQBBACELIAlBADYCACABRQ0AIAogADYCKCABIQwCQCAGRQ0AIAYoAgghDCAGKAIMIQELIAogBjYCPCAKIAw2AjAgCiABNgIsIAogBUGIgISAACAFGyINNgI4IAogAjYCNCAKQQA2AiQgCiAGNgIgIAogBDYCHCAKQQA2AhQgCiACQQFqNgIQIApBADYCDCAKIAc2AgggCiAINgIEIAogASACQQN2IgRsQYCAgAhLNgIYAkAgAUUNACAKQShqQQhqIQ5BASEFQQghC0EAIQgDQCAKIA0oAgAiAigCBCACIAtqIgdBfGooAgBrIgI2AhQCQAJAIAooAgwgCigCCEkNACAKIAooAgQoAgQiDyACa0EBakEBdkEAIA8gAksbIgI2AhAMAQsgCigCECECCyACRQ0BIAcgDiAFIA0oAgRJGygCACICIAwgAiAMSRshAgJAIAZFDQAgBiACEIaAgIAAIQILIAAgCCACIAQgAyAKQQRqEJ2AgIAAKAIAEYGAgIAAgICAgAAgBUEBaiEFIAtBCGohCyACIQggAiABSQ0ACwsgCSAKQShqIAMgCkEEahCYgICAADYCAEEAIQsLIApBwABqJICAgIAAIAsLlwIBAX9BCyEJAkAgAkH/d2pBh3hJDQAgAkEHcQ0AQQohCSADRQ0AIAFBAEcgAEUgB0VycQ0AAkAgBEUNACAEKAIAIgJFDQFBDCEJIAQoAgQiBEG/f2pBQEkNAUEOIQkgAigCAA0BIAIoAgRB//+/f2pB////fkkNASAEQQFGDQAgBEF/aiEDA0AgAkEMaigCACIEQf//v39qQf///35JDQIgAkEIaiIHKAIAIAIoAgBNDQIgBCACQQRqKAIASg0CIAchAiADQX9qIgMNAAsLAkAgBUUNACAFEImAgIAAIgkNAQtBCiEJIAhFDQBBDEEAIAZBAUgiAhshCSAFRQ0AIAINAEEAQQwgAUF/aiAFKAIMRhshCQsgCQvaDgcKfwF7AX8BewJ+An8EfgJAIAAoAhQiA0UNACACQSBqIQRBACEFQX8hBgJAA0AgBkEBaiIGIAIoAghPDQEgAyACKAIAIAVqKAIAIAQQh4CAgAAhAyACKAIAIAVqIAM2AgAgBUEIaiEFIAAoAhQiAw0ADAILCyAAKAIAIAAoAgQgACgCDCIHQQN2IghsaiEJQQAhBkEAIQUCQCAHQcAASQ0AAkACQCAIQQ8gCEEPSxtBeGpBA3YiBQ0AQQAhBUEIIQNBACEEDAELIAVBAWoiCkH+////A3EiC0EDdCEEIApBA3QiDEEIciED/QwAAAAAAAAAAAAAAAAAAAAAIQ0gCyEOIAEhBSAJIQYDQCANIAX9AAAAIAb9AAAA/VEiD/0dAHv9EiAP/R0Be/0eASAN/Q0AAQIDCAkKCwABAgMAAQID/a4BIQ0gBUEQaiEFIAZBEGohBiAOQX5qIg4NAAsgDSANIA39DQQFBgcAAQIDAAECAwABAgP9rgH9GwAhBSAKIAtHDQAgDEFwcSEGDAELA0AgBSABIAQiBmopAAAgCSAGaikAAIV7p2ohBSADIgRBCGoiAyAITQ0ACyADQXhqIQYLAkAgBiAITw0AIAkgBmohBAJAAkAgB0EgcSIODQBCACEQQQAhAwwBCyAENQAAIRBBBCEDCwJAIAdBEHEiCEUNACAEIANqMwAAIANBA3SthiAQhCEQIANBAnIhAwsCQCAHQQhxIglFDQAgBCADajEAACADQQN0rYYgEIQhEAsgASAGaiEDAkACQCAODQBCACERQQAhBgwBCyADNQAAIRFBBCEGCwJAIAhFDQAgAyAGajMAACAGQQN0rYYgEYQhESAGQQJyIQYLAkAgCUUNACADIAZqMQAAIAZBA3SthiARhCERCyAFIBEgEIV7p2ohBQsgBUEBdCESIABBCGohCkEAIQcDQCAKIQUCQCAHIAAoAhAiAygCBCIGTw0AIAMoAgAgB0EDdGohBQsgBSgCACAKKAIAIgVPDQEgAygCACIDKAIEIAMgB0EDdGoiBCgCBGsgEmohDgJAIAIoAgggAigCBEcNACACKAIAKAIEIA5JDQILIAQgCiAHIAZJGygCACIEIAUgBCAFSRshBAJAIAdBAWoiByAGTw0AIAMgB0EDdGooAgAiBiAFIAYgBUkbIQULIARBBnYiDCAFQX9qIgVBBnYiE0sNACAOrUIghiEUQn8gBK2GIRVCfyAFQX9zrYghFiAMIQkDQCAAKAIUKAIAIAAoAgggCRCEgICAAEJ/hSEQAkAgAigCGCIFRQ0AIAUgCigCACAJEISAgIAAQn+FIBCDIRALAkAgFkJ/IAkgE0YiCxsgFUJ/IAkgDEYbgyAQgyIXUA0AIAlBBnQhCANAIAggF3qnciEDIAIoAgAhBQJAAkAgAigCCCIGIAIoAgRPDQAgAiAGQQFqNgIIIBQgA62EIRBBACEDIAZFDQEDQAJAIBAgBSAGQX9qQQF2IgRBA3RqKQIAIhFWDQAgBiEDDAMLIAUgBkEDdGogETcCACAEIQYgBA0ADAILCyAFKQIAIBQgA62EIhBYDQUCQAJAIAZBA08NAEEBIQNBACEODAELQQAhDkEBIQNBAiEEA0ACQCAFIAMgBSAEQQN0aikCACAFIANBA3RqKQIAVmoiBEEDdGopAgAiESAQVg0AIAQhAwwCCyAFIA5BA3RqIBE3AgAgBEEBdCIBQQFyIQMgBCEOIAFBAmoiBCAGSQ0ACwsCQCADQQFqIAZGDQAgDiEDDAELAkAgBSADQQN0aikCACIRIBBWDQAgDiEDDAELIAUgDkEDdGogETcCAAsgBSADQQN0aiAQNwIAIBdCf3wgF4MiF0IAUg0ACwsgCUEBaiEJIAsNAQwACwsLAkAgAigCCCIIQQJJDQAgAigCACEFA0AgBSAIIgFBf2oiCEEDdGoiCSkCACERIAUpAgAhF0EAIQRBASEGAkAgCEEDSQ0AQQAhBEEBIQZBAiEDA0ACQCAFIAYgBSADQQN0aikCACAFIAZBA3RqKQIAVmoiA0EDdGopAgAiECARVg0AIAMhBgwCCyAFIARBA3RqIBA3AgAgA0EBdCIOQQFyIQYgAyEEIA5BAmoiAyAISQ0ACwsCQAJAIAYgAUF+akYNACAEIQYMAQsCQCAFIAZBA3RqKQIAIhAgEVYNACAEIQYMAQsgBSAEQQN0aiAQNwIACyAFIAZBA3RqIBE3AgAgCSAXNwIAIAhBAUsNAAsgAigCCCEICwJAIAhFDQAgAigCACEHIAAoAhAiBSgCACIOKAIEIQpBACECIAUoAgQiC0ECSSEMA0AgByACQQN0aiIJKAIEIQBBACEFAkAgDA0AIAkoAgAhAUEAIQUgCyEGIAshAwNAIAZBAXYgBWoiBiADIA4gBkEDdGooAgAgAUsiBBsiAyAFIAYgBBsiBWsiBkEBSw0ACwsgCSAAIAprIA4gBUEDdGooAgRqQQF2NgIEIAJBAWoiAiAIRw0ACwsgCAu/SQwBfwF7An8Bewh/AXsXfwF7BH8DewZ/AXsjgICAgABBgAFrIgYkgICAgAACQAJAAkACQAJAIANBeGoOGQADAwMDAwMDAQMDAwMDAwMDAwMDAwMDAwIDCwJAIAIgAWtBIEkNACAE/QoAACEHIAAgAUEDdGohCANAIAEhCSAI/QAAACAH/VH9Yv19IAj9AAAQIAf9Uf1i/X39Zv19IAj9AAAgIAf9Uf1i/X0gCP0AADAgB/1R/WL9ff1m/X39Zv19IQpBACEBIAghCwNAIAtB8ABqIQwgC0HgAGohDSALQdAAaiEOIAogC0HAAGoiC/0AAAAgB/1R/WL9fSAO/QAAACAH/VH9Yv19/Wb9fSAN/QAAACAH/VH9Yv19IAz9AAAAIAf9Uf1i/X39Zv19/Wb9ff2WASEKIAFBCGoiAUEYSQ0ACyAJQSBqIQECQCAKIAX9CAEM/S/9U0UNACAJQV9LDQAgACAJQQN0aiELA0ACQCAFKAIMIAQpAAAgCykAAIV7pyIMTQ0AIAUgCSAMEJSAgIAACyALQQhqIQsgCUEBaiIJIAFJDQALCyAIQYACaiEIIAIgAWtBH0sNAAsLIAEgAk8NAyAAIAFBA3RqIQsDQAJAIAUoAgwgBCkAACALKQAAhXunIgxNDQAgBSABIAwQlICAgAALIAtBCGohCyACIAFBAWoiAUcNAAwECwsCQCACIAFrQSBJDQAgBP0AAAAhByAAIAFBBHRqIQ8DQCABIRAgD/0AAAAgB/1R/WL9fSAP/QAAECAH/VH9Yv19/Wb9fSAP/QAAICAH/VH9Yv19IA/9AAAwIAf9Uf1i/X39Zv19/Wb9fSAP/QAAQCAH/VH9Yv19IA/9AABQIAf9Uf1i/X39Zv19IA/9AABgIAf9Uf1i/X0gD/0AAHAgB/1R/WL9ff1m/X39Zv19/Wb9fSEKQQAhASAPIQsDQCALQfABaiEMIAtB4AFqIQ0gC0HQAWohDiALQcABaiEIIAtBsAFqIQkgC0GgAWohESALQZABaiESIAogC0GAAWoiC/0AAAAgB/1R/WL9fSAS/QAAACAH/VH9Yv19/Wb9fSAR/QAAACAH/VH9Yv19IAn9AAAAIAf9Uf1i/X39Zv19/Wb9fSAI/QAAACAH/VH9Yv19IA79AAAAIAf9Uf1i/X39Zv19IA39AAAAIAf9Uf1i/X0gDP0AAAAgB/1R/WL9ff1m/X39Zv19/Wb9ff2WASEKIAFBCGoiAUEYSQ0ACyAQQSBqIQECQCAKIAX9CAEM/S/9U0UNACAQQV9LDQAgACAQQQR0aiELA0ACQCAEKQAAIAspAACFe6cgBCkACCALQQhqKQAAhXunaiIMIAUoAgxPDQAgBSAQIAwQlICAgAALIAtBEGohCyAQQQFqIhAgAUkNAAsLIA9BgARqIQ8gAiABa0EfSw0ACwsgASACTw0CIAAgAUEEdGohCwNAAkAgBCkAACALKQAAhXunIAQpAAggC0EIaikAAIV7p2oiDCAFKAIMTw0AIAUgASAMEJSAgIAACyALQRBqIQsgAiABQQFqIgFHDQAMAwsLAkAgAiABa0EgSQ0AIAT9AAAQIQcgBP0AAAAhCiAAIAFBBXRqIQ0DQCABIQ4gDf0AABAgB/1R/WIgDf0AAAAgCv1R/WL9bv19IA39AAAwIAf9Uf1iIA39AAAgIAr9Uf1i/W79ff1m/X0gDf0AAFAgB/1R/WIgDf0AAEAgCv1R/WL9bv19IA39AABwIAf9Uf1iIA39AABgIAr9Uf1i/W79ff1m/X39Zv19IA39AACQASAH/VH9YiAN/QAAgAEgCv1R/WL9bv19IA39AACwASAH/VH9YiAN/QAAoAEgCv1R/WL9bv19/Wb9fSAN/QAA0AEgB/1R/WIgDf0AAMABIAr9Uf1i/W79fSAN/QAA8AEgB/1R/WIgDf0AAOABIAr9Uf1i/W79ff1m/X39Zv19/Wb9fSETQQAhASANIQsDQCATIAtBkAJq/QAAACAH/VH9YiALQYACaiIM/QAAACAK/VH9Yv1u/X0gC0GwAmr9AAAAIAf9Uf1iIAtBoAJq/QAAACAK/VH9Yv1u/X39Zv19IAtB0AJq/QAAACAH/VH9YiALQcACav0AAAAgCv1R/WL9bv19IAtB8AJq/QAAACAH/VH9YiALQeACav0AAAAgCv1R/WL9bv19/Wb9ff1m/X0gC0GQA2r9AAAAIAf9Uf1iIAtBgANq/QAAACAK/VH9Yv1u/X0gC0GwA2r9AAAAIAf9Uf1iIAtBoANq/QAAACAK/VH9Yv1u/X39Zv19IAtB0ANq/QAAACAH/VH9YiALQcADav0AAAAgCv1R/WL9bv19IAtB8ANq/QAAACAH/VH9YiALQeADav0AAAAgCv1R/WL9bv19/Wb9ff1m/X39Zv19/ZYBIRMgDCELIAFBCGoiAUEYSQ0ACyAOQSBqIQECQCATIAX9CAEM/S/9U0UNACAOQV9LDQAgACAOQQV0aiELA0ACQCAEKQAAIAspAACFe6cgBCkACCALQQhqKQAAhXunaiAEKQAQIAtBEGopAACFe6dqIAQpABggC0EYaikAAIV7p2oiDCAFKAIMTw0AIAUgDiAMEJSAgIAACyALQSBqIQsgDkEBaiIOIAFJDQALCyANQYAIaiENIAIgAWtBH0sNAAsLIAEgAk8NASAAIAFBBXRqIQsDQAJAIAQpAAAgCykAAIV7pyAEKQAIIAtBCGopAACFe6dqIAQpABAgC0EQaikAAIV7p2ogBCkAGCALQRhqKQAAhXunaiIMIAUoAgxPDQAgBSABIAwQlICAgAALIAtBIGohCyACIAFBAWoiAUcNAAwCCwsCQAJAIANBCEYNACADQQ9xDQELAkACQCADQQhHDQAgBiAE/QoAAP0LBABBACELDAELAkAgA0EEdiILDQBBACELDAELIANBcHEiDEUNACAGIAQgDPwKAAALAkAgAiABa0EgSQ0AIANBA3QhDiALQX5qIRQgA0EFdCEVIANBBmwhFiADQQJ0IRcgA0EBdCEYIAtBf2oiC0EBcSEZIAtBfnEhCyAAIAMgAWxqIRogACADIAFBB2psaiEbIAAgAyABQQZqbGohHCAAIAMgAUEFamxqIR0gACADIAFBBGpsaiEeIAAgAyABQQNqbGohHyAAIAMgAUECamxqISAgACADIAFBAWpsaiEhIAMgAUEPamwgAGpBEGohIiADIAFBDmpsIABqQRBqISMgAyABQQ1qbCAAakEQaiEkIAMgAUEMamwgAGpBEGohJSADIAFBC2psIABqQRBqISYgAyABQQpqbCAAakEQaiEnIAMgAUEJamwgAGpBEGohKCADIAFBCGpsIABqQRBqISkgBkEQaiEqIAb9AAQAISsgA0EhSSEsIANBIEkhLQNAIAEhLiAa/QAAACAr/VH9YiEHAkACQCADQQhHIi8NACAH/X0gGv0AABAgK/1R/WL9ff1m/X0gGv0AACAgK/1R/WL9fSAa/QAAMCAr/VH9Yv19/Wb9ff1m/X0hMAwBCwJAAkACQAJAAkACQCAsDQAgFA0BQQEhAQwCCyAtDQMCQAJAAkAgFA0AQQEhAQwBC0EAIQFBACEMA0AgGiABaiINQSBq/QAAACAGIAFqIghBIGr9AAQA/VH9YiANQRBq/QAAACAIQRBq/QAEAP1R/WIgB/1u/W4hByABQSBqIQEgCyAMQQJqIgxHDQALIBlFDQEgDEEBaiEBCyAaIAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAH/W4hBwsgGiADaiIJ/QAAACAr/VH9YiEKAkACQCAUDQBBASEBDAELQQAhAUEAIQwDQCAhIAFqIg1BIGr9AAAAIAYgAWoiCEEgav0ABAD9Uf1iIA1BEGr9AAAAIAhBEGr9AAQA/VH9YiAK/W79biEKIAFBIGohASALIAxBAmoiDEcNAAsgGUUNBSAMQQFqIQELIAkgAUEEdCIBav0AAAAgBiABav0ABAD9Uf1iIAr9biEKDAQLQQAhAUEAIQwDQCAaIAFqIg1BIGr9AAAAIAYgAWoiCEEgav0ABAD9Uf1iIA1BEGr9AAAAIAhBEGr9AAQA/VH9YiAH/W79biEHIAFBIGohASALIAxBAmoiDEcNAAsgGUUNASAMQQFqIQELIBogAUEEdCIBav0AAAAgBiABav0ABAD9Uf1iIAf9biEHCyAaIANqIgn9AAAAICv9Uf1iIQoCQAJAAkAgFA0AQQEhAQwBC0EAIQFBACEMA0AgISABaiINQSBq/QAAACAGIAFqIghBIGr9AAQA/VH9YiANQRBq/QAAACAIQRBq/QAEAP1R/WIgCv1u/W4hCiABQSBqIQEgCyAMQQJqIgxHDQALIBlFDQEgDEEBaiEBCyAJIAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAK/W4hCgsgGiAYaiIJ/QAAACAr/VH9YiETAkACQAJAIBQNAEEBIQEMAQtBACEBQQAhDANAICAgAWoiDUEgav0AAAAgBiABaiIIQSBq/QAEAP1R/WIgDUEQav0AAAAgCEEQav0ABAD9Uf1iIBP9bv1uIRMgAUEgaiEBIAsgDEECaiIMRw0ACyAZRQ0BIAxBAWohAQsgCSABQQR0IgFq/QAAACAGIAFq/QAEAP1R/WIgE/1uIRMLIAkgA2oiCf0AAAAgK/1R/WIhMQJAAkACQCAUDQBBASEBDAELQQAhAUEAIQwDQCAfIAFqIg1BIGr9AAAAIAYgAWoiCEEgav0ABAD9Uf1iIA1BEGr9AAAAIAhBEGr9AAQA/VH9YiAx/W79biExIAFBIGohASALIAxBAmoiDEcNAAsgGUUNASAMQQFqIQELIAkgAUEEdCIBav0AAAAgBiABav0ABAD9Uf1iIDH9biExCyAaIBdqIgn9AAAAICv9Uf1iITICQAJAAkAgFA0AQQEhAQwBC0EAIQFBACEMA0AgHiABaiINQSBq/QAAACAGIAFqIghBIGr9AAQA/VH9YiANQRBq/QAAACAIQRBq/QAEAP1R/WIgMv1u/W4hMiABQSBqIQEgCyAMQQJqIgxHDQALIBlFDQEgDEEBaiEBCyAJIAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAy/W4hMgsgCv19IQogB/19ITAgMf19ITEgE/19IRMgCSADaiIJ/QAAACAr/VH9YiEHAkACQAJAIBQNAEEBIQEMAQtBACEBQQAhDANAIB0gAWoiDUEgav0AAAAgBiABaiIIQSBq/QAEAP1R/WIgDUEQav0AAAAgCEEQav0ABAD9Uf1iIAf9bv1uIQcgAUEgaiEBIAsgDEECaiIMRw0ACyAZRQ0BIAxBAWohAQsgCSABQQR0IgFq/QAAACAGIAFq/QAEAP1R/WIgB/1uIQcLIDAgCv1mIQogEyAx/WYhEyAy/X0gB/19/WYhMSAaIBZqIgn9AAAAICv9Uf1iIQcCQAJAAkAgFA0AQQEhAQwBC0EAIQFBACEMA0AgHCABaiINQSBq/QAAACAGIAFqIghBIGr9AAQA/VH9YiANQRBq/QAAACAIQRBq/QAEAP1R/WIgB/1u/W4hByABQSBqIQEgCyAMQQJqIgxHDQALIBlFDQEgDEEBaiEBCyAJIAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAH/W4hBwsgCv19ITIgE/19IRMgMf19ITEgCSADaiIJ/QAAACAr/VH9YiEKAkACQAJAIBQNAEEBIQEMAQtBACEBQQAhDANAIBsgAWoiDUEgav0AAAAgBiABaiIIQSBq/QAEAP1R/WIgDUEQav0AAAAgCEEQav0ABAD9Uf1iIAr9bv1uIQogAUEgaiEBIAsgDEECaiIMRw0ACyAZRQ0BIAxBAWohAQsgCSABQQR0IgFq/QAAACAGIAFq/QAEAP1R/WIgCv1uIQoLIDL9fiAT/X79hQH9fiAx/X4gB/19IAr9ff1m/X39fv2FAf1+/YUBITAMAgsgGiADav0AAAAgK/1R/WIhCgsgGiAYaiIJ/QAAACAr/VH9YiETAkACQCAtDQACQAJAAkAgFA0AQQEhAQwBC0EAIQFBACEMA0AgICABaiINQSBq/QAAACAGIAFqIghBIGr9AAQA/VH9YiANQRBq/QAAACAIQRBq/QAEAP1R/WIgE/1u/W4hEyABQSBqIQEgCyAMQQJqIgxHDQALIBlFDQEgDEEBaiEBCyAJIAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAT/W4hEwsgCSADaiIJ/QAAACAr/VH9YiExAkACQCAUDQBBASEBDAELQQAhAUEAIQwDQCAfIAFqIg1BIGr9AAAAIAYgAWoiCEEgav0ABAD9Uf1iIA1BEGr9AAAAIAhBEGr9AAQA/VH9YiAx/W79biExIAFBIGohASALIAxBAmoiDEcNAAsgGUUNAiAMQQFqIQELIAkgAUEEdCIBav0AAAAgBiABav0ABAD9Uf1iIDH9biExDAELIAkgA2r9AAAAICv9Uf1iITELIAr9fSEyIAf9fSEwIDH9fSExIBP9fSETIBogF2oiCf0AAAAgK/1R/WIhBwJAAkAgLQ0AAkACQAJAIBQNAEEBIQEMAQtBACEBQQAhDANAIB4gAWoiDUEgav0AAAAgBiABaiIIQSBq/QAEAP1R/WIgDUEQav0AAAAgCEEQav0ABAD9Uf1iIAf9bv1uIQcgAUEgaiEBIAsgDEECaiIMRw0ACyAZRQ0BIAxBAWohAQsgCSABQQR0IgFq/QAAACAGIAFq/QAEAP1R/WIgB/1uIQcLIAkgA2oiCf0AAAAgK/1R/WIhCgJAAkAgFA0AQQEhAQwBC0EAIQFBACEMA0AgHSABaiINQSBq/QAAACAGIAFqIghBIGr9AAQA/VH9YiANQRBq/QAAACAIQRBq/QAEAP1R/WIgCv1u/W4hCiABQSBqIQEgCyAMQQJqIgxHDQALIBlFDQIgDEEBaiEBCyAJIAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAK/W4hCgwBCyAJIANq/QAAACAr/VH9YiEKCyAwIDL9ZiEyIBMgMf1mIRMgB/19IAr9ff1mITEgGiAWaiIJ/QAAACAr/VH9YiEHAkACQCAtDQACQAJAAkAgFA0AQQEhAQwBC0EAIQFBACEMA0AgHCABaiINQSBq/QAAACAGIAFqIghBIGr9AAQA/VH9YiANQRBq/QAAACAIQRBq/QAEAP1R/WIgB/1u/W4hByABQSBqIQEgCyAMQQJqIgxHDQALIBlFDQEgDEEBaiEBCyAJIAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAH/W4hBwsgCSADaiIJ/QAAACAr/VH9YiEKAkACQCAUDQBBASEBDAELQQAhAUEAIQwDQCAbIAFqIg1BIGr9AAAAIAYgAWoiCEEgav0ABAD9Uf1iIA1BEGr9AAAAIAhBEGr9AAQA/VH9YiAK/W79biEKIAFBIGohASALIAxBAmoiDEcNAAsgGUUNAiAMQQFqIQELIAkgAUEEdCIBav0AAAAgBiABav0ABAD9Uf1iIAr9biEKDAELIAkgA2r9AAAAICv9Uf1iIQoLIDL9fSAT/X39Zv19IDH9fSAH/X0gCv19/Wb9ff1m/X39Zv19ITALQQghMyAiIREgIyESICQhDyAlIRAgJiE0ICchNSAoITYgKSE3A0AgGiAzIANsaiIJ/QAAACAr/VH9YiEHAkACQCAvDQAgB/19IAn9AAAQICv9Uf1i/X39Zv19IAn9AAAgICv9Uf1i/X0gCf0AADAgK/1R/WL9ff1m/X39Zv19IQcMAQsCQAJAAkACQAJAAkAgLA0AIBQNAUEBIQEMAgsgLQ0DAkACQAJAIBQNAEEBIQEMAQtBACEBQQAhDANAIDcgAWoiDUEQav0AAAAgBiABaiIIQSBq/QAEAP1R/WIgDf0AAAAgCEEQav0ABAD9Uf1iIAf9bv1uIQcgAUEgaiEBIAsgDEECaiIMRw0ACyAZRQ0BIAxBAWohAQsgCSABQQR0IgFq/QAAACAGIAFq/QAEAP1R/WIgB/1uIQcLIAkgA2oiOP0AAAAgK/1R/WIhCgJAAkAgFA0AQQEhAQwBC0EAIQFBACEMA0AgNiABaiINQRBq/QAAACAGIAFqIghBIGr9AAQA/VH9YiAN/QAAACAIQRBq/QAEAP1R/WIgCv1u/W4hCiABQSBqIQEgCyAMQQJqIgxHDQALIBlFDQUgDEEBaiEBCyA4IAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAK/W4hCgwEC0EAIQ0gKiEBIDchDANAIAxBEGr9AAAAIAFBEGr9AAQA/VH9YiAM/QAAACAB/QAEAP1R/WIgB/1u/W4hByABQSBqIQEgDEEgaiEMIAsgDUECaiINRw0ACyAZRQ0BIA1BAWohAQsgCSABQQR0IgFq/QAAACAGIAFq/QAEAP1R/WIgB/1uIQcLIAkgA2oiCP0AAAAgK/1R/WIhCgJAAkACQCAUDQBBASEBDAELQQAhDSAqIQEgNiEMA0AgDEEQav0AAAAgAUEQav0ABAD9Uf1iIAz9AAAAIAH9AAQA/VH9YiAK/W79biEKIAFBIGohASAMQSBqIQwgCyANQQJqIg1HDQALIBlFDQEgDUEBaiEBCyAIIAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAK/W4hCgsgCSAYaiII/QAAACAr/VH9YiETAkACQAJAIBQNAEEBIQEMAQtBACENICohASA1IQwDQCAMQRBq/QAAACABQRBq/QAEAP1R/WIgDP0AAAAgAf0ABAD9Uf1iIBP9bv1uIRMgAUEgaiEBIAxBIGohDCALIA1BAmoiDUcNAAsgGUUNASANQQFqIQELIAggAUEEdCIBav0AAAAgBiABav0ABAD9Uf1iIBP9biETCyAIIANqIgj9AAAAICv9Uf1iITECQAJAAkAgFA0AQQEhAQwBC0EAIQ0gKiEBIDQhDANAIAxBEGr9AAAAIAFBEGr9AAQA/VH9YiAM/QAAACAB/QAEAP1R/WIgMf1u/W4hMSABQSBqIQEgDEEgaiEMIAsgDUECaiINRw0ACyAZRQ0BIA1BAWohAQsgCCABQQR0IgFq/QAAACAGIAFq/QAEAP1R/WIgMf1uITELIAkgF2oiCP0AAAAgK/1R/WIhMgJAAkACQCAUDQBBASEBDAELQQAhDSAqIQEgECEMA0AgDEEQav0AAAAgAUEQav0ABAD9Uf1iIAz9AAAAIAH9AAQA/VH9YiAy/W79biEyIAFBIGohASAMQSBqIQwgCyANQQJqIg1HDQALIBlFDQEgDUEBaiEBCyAIIAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAy/W4hMgsgCv19IQogB/19ITkgMf19ITEgE/19IRMgCCADaiII/QAAACAr/VH9YiEHAkACQAJAIBQNAEEBIQEMAQtBACENICohASAPIQwDQCAMQRBq/QAAACABQRBq/QAEAP1R/WIgDP0AAAAgAf0ABAD9Uf1iIAf9bv1uIQcgAUEgaiEBIAxBIGohDCALIA1BAmoiDUcNAAsgGUUNASANQQFqIQELIAggAUEEdCIBav0AAAAgBiABav0ABAD9Uf1iIAf9biEHCyA5IAr9ZiEKIBMgMf1mIRMgMv19IAf9ff1mITEgCSAWaiII/QAAACAr/VH9YiEHAkACQAJAIBQNAEEBIQEMAQtBACENICohASASIQwDQCAMQRBq/QAAACABQRBq/QAEAP1R/WIgDP0AAAAgAf0ABAD9Uf1iIAf9bv1uIQcgAUEgaiEBIAxBIGohDCALIA1BAmoiDUcNAAsgGUUNASANQQFqIQELIAggAUEEdCIBav0AAAAgBiABav0ABAD9Uf1iIAf9biEHCyAK/X0hMiAT/X0hEyAx/X0hMSAIIANqIgj9AAAAICv9Uf1iIQoCQAJAAkAgFA0AQQEhAQwBC0EAIQ0gKiEBIBEhDANAIAxBEGr9AAAAIAFBEGr9AAQA/VH9YiAM/QAAACAB/QAEAP1R/WIgCv1u/W4hCiABQSBqIQEgDEEgaiEMIAsgDUECaiINRw0ACyAZRQ0BIA1BAWohAQsgCCABQQR0IgFq/QAAACAGIAFq/QAEAP1R/WIgCv1uIQoLIDL9fiAT/X79hQH9fiAx/X4gB/19IAr9ff1m/X39fv2FAf1+/YUBIQcMAgsgCSADav0AAAAgK/1R/WIhCgsgCSAYaiI4/QAAACAr/VH9YiETAkACQCAtDQACQAJAAkAgFA0AQQEhAQwBC0EAIQFBACEMA0AgNSABaiINQRBq/QAAACAGIAFqIghBIGr9AAQA/VH9YiAN/QAAACAIQRBq/QAEAP1R/WIgE/1u/W4hEyABQSBqIQEgCyAMQQJqIgxHDQALIBlFDQEgDEEBaiEBCyA4IAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAT/W4hEwsgOCADaiI4/QAAACAr/VH9YiExAkACQCAUDQBBASEBDAELQQAhAUEAIQwDQCA0IAFqIg1BEGr9AAAAIAYgAWoiCEEgav0ABAD9Uf1iIA39AAAAIAhBEGr9AAQA/VH9YiAx/W79biExIAFBIGohASALIAxBAmoiDEcNAAsgGUUNAiAMQQFqIQELIDggAUEEdCIBav0AAAAgBiABav0ABAD9Uf1iIDH9biExDAELIDggA2r9AAAAICv9Uf1iITELIAr9fSEyIAf9fSE5IDH9fSExIBP9fSETIAkgF2oiOP0AAAAgK/1R/WIhBwJAAkAgLQ0AAkACQAJAIBQNAEEBIQEMAQtBACEBQQAhDANAIBAgAWoiDUEQav0AAAAgBiABaiIIQSBq/QAEAP1R/WIgDf0AAAAgCEEQav0ABAD9Uf1iIAf9bv1uIQcgAUEgaiEBIAsgDEECaiIMRw0ACyAZRQ0BIAxBAWohAQsgOCABQQR0IgFq/QAAACAGIAFq/QAEAP1R/WIgB/1uIQcLIDggA2oiOP0AAAAgK/1R/WIhCgJAAkAgFA0AQQEhAQwBC0EAIQFBACEMA0AgDyABaiINQRBq/QAAACAGIAFqIghBIGr9AAQA/VH9YiAN/QAAACAIQRBq/QAEAP1R/WIgCv1u/W4hCiABQSBqIQEgCyAMQQJqIgxHDQALIBlFDQIgDEEBaiEBCyA4IAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAK/W4hCgwBCyA4IANq/QAAACAr/VH9YiEKCyA5IDL9ZiEyIBMgMf1mIRMgB/19IAr9ff1mITEgCSAWaiIJ/QAAACAr/VH9YiEHAkACQCAtDQACQAJAAkAgFA0AQQEhAQwBC0EAIQFBACEMA0AgEiABaiINQRBq/QAAACAGIAFqIghBIGr9AAQA/VH9YiAN/QAAACAIQRBq/QAEAP1R/WIgB/1u/W4hByABQSBqIQEgCyAMQQJqIgxHDQALIBlFDQEgDEEBaiEBCyAJIAFBBHQiAWr9AAAAIAYgAWr9AAQA/VH9YiAH/W4hBwsgCSADaiIJ/QAAACAr/VH9YiEKAkACQCAUDQBBASEBDAELQQAhAUEAIQwDQCARIAFqIg1BEGr9AAAAIAYgAWoiCEEgav0ABAD9Uf1iIA39AAAAIAhBEGr9AAQA/VH9YiAK/W79biEKIAFBIGohASALIAxBAmoiDEcNAAsgGUUNAiAMQQFqIQELIAkgAUEEdCIBav0AAAAgBiABav0ABAD9Uf1iIAr9biEKDAELIAkgA2r9AAAAICv9Uf1iIQoLIDL9fSAT/X39Zv19IDH9fSAH/X0gCv19/Wb9ff1m/X39Zv19IQcLIBEgDmohESASIA5qIRIgDyAOaiEPIBAgDmohECA0IA5qITQgNSAOaiE1IDYgDmohNiA3IA5qITcgMCAH/ZYBITAgM0EYSSEBIDNBCGohMyABDQALIC5BIGohAQJAIDAgBf0IAQz9L/1TRQ0AIC5BX0sNACAAIC4gA2xqIQkDQEEAIQ0CQCADQQhJDQBBACEMQQAhDQNAIA0gBCAMaikAACAJIAxqKQAAhXunaiENIAxBEGohCCAMQQhqIQwgCCADTQ0ACwsCQCANIAUoAgxPDQAgBSAuIA0QlICAgAALIAkgA2ohCSAuQQFqIi4gAUkNAAsLICIgFWohIiAjIBVqISMgJCAVaiEkICUgFWohJSAmIBVqISYgJyAVaiEnICggFWohKCApIBVqISkgGyAVaiEbIBwgFWohHCAdIBVqIR0gHiAVaiEeIB8gFWohHyAgIBVqISAgISAVaiEhIBogFWohGiACIAFrQR9LDQALCyABIAJPDQEgACABIANsaiEOIANBCEkhCANAQQAhDAJAIAgNAEEAIQtBACEMA0AgDCAEIAtqKQAAIA4gC2opAACFe6dqIQwgC0EQaiENIAtBCGohCyANIANNDQALCwJAIAwgBSgCDE8NACAFIAEgDBCUgICAAAsgDiADaiEOIAFBAWoiASACRw0ADAILCyAAIAEgAiADIAQgBRCNgICAAAsgBkGAAWokgICAgAALHABBgYCAgAAgACABIAIgAyAEIAUgBhCOgICAAAuEHAgTfwF7BX8BewN/AXsBfwR7I4CAgIAAQYABayIFJICAgIAAAkACQCACQQhGDQBBACEGIAJBD3ENAQsCQAJAIAJBCEcNACAFIAP9CgAA/QsEAEEAIQcMAQsCQCACQQR2IgcNAEEAIQcMAQsgAkFwcSIIRQ0AIAUgAyAI/AoAAAtBACEGIAFBCEkNACAAIAJqIQkgAkEDdCEKIABBEGohCyAHQX5qIQwgACACQQdsaiENIAAgAkEGbCIOaiEPIAAgAkEFbGohECAAIAJBAnQiEWohEiAAIAJBA2xqIRMgACACQQF0IhRqIRUgB0F/aiIHQQFxIRYgB0F+cSEHIAVBEGohF0EAIQYgBf0ABAAhGCACQQhHIRkgAkEhSSEaIAJBIEkhGwNAIAQgBkEBdGohHCAAIAYgAmxqIh39AAAAIBj9Uf1iIR4CQAJAIBkNACAe/X0gHf0AABAgGP1R/WL9ff1m/X0gHf0AACAgGP1R/WL9fSAd/QAAMCAY/VH9Yv19/Wb9ff1m/X0hHgwBCwJAAkACQAJAAkACQCAaDQAgDA0BQQEhCAwCCyAbDQMCQAJAAkAgDA0AQQEhCAwBC0EAIR8gFyEIIAshIANAICBBEGr9AAAAIAhBEGr9AAQA/VH9YiAg/QAAACAI/QAEAP1R/WIgHv1u/W4hHiAIQSBqIQggIEEgaiEgIAcgH0ECaiIfRw0ACyAWRQ0BIB9BAWohCAsgHSAIQQR0Ighq/QAAACAFIAhq/QAEAP1R/WIgHv1uIR4LIB0gAmoiIf0AAAAgGP1R/WIhIgJAAkAgDA0AQQEhCAwBC0EAIQhBACEgA0AgCSAIaiIfQSBq/QAAACAFIAhqIiNBIGr9AAQA/VH9YiAfQRBq/QAAACAjQRBq/QAEAP1R/WIgIv1u/W4hIiAIQSBqIQggByAgQQJqIiBHDQALIBZFDQUgIEEBaiEICyAhIAhBBHQiCGr9AAAAIAUgCGr9AAQA/VH9YiAi/W4hIgwEC0EAIR8gFyEIIAshIANAICBBEGr9AAAAIAhBEGr9AAQA/VH9YiAg/QAAACAI/QAEAP1R/WIgHv1u/W4hHiAIQSBqIQggIEEgaiEgIAcgH0ECaiIfRw0ACyAWRQ0BIB9BAWohCAsgHSAIQQR0Ighq/QAAACAFIAhq/QAEAP1R/WIgHv1uIR4LIB0gAmoiIf0AAAAgGP1R/WIhIgJAAkACQCAMDQBBASEIDAELQQAhCEEAISADQCAJIAhqIh9BIGr9AAAAIAUgCGoiI0Egav0ABAD9Uf1iIB9BEGr9AAAAICNBEGr9AAQA/VH9YiAi/W79biEiIAhBIGohCCAHICBBAmoiIEcNAAsgFkUNASAgQQFqIQgLICEgCEEEdCIIav0AAAAgBSAIav0ABAD9Uf1iICL9biEiCyAdIBRqIiH9AAAAIBj9Uf1iISQCQAJAAkAgDA0AQQEhCAwBC0EAIQhBACEgA0AgFSAIaiIfQSBq/QAAACAFIAhqIiNBIGr9AAQA/VH9YiAfQRBq/QAAACAjQRBq/QAEAP1R/WIgJP1u/W4hJCAIQSBqIQggByAgQQJqIiBHDQALIBZFDQEgIEEBaiEICyAhIAhBBHQiCGr9AAAAIAUgCGr9AAQA/VH9YiAk/W4hJAsgISACaiIh/QAAACAY/VH9YiElAkACQAJAIAwNAEEBIQgMAQtBACEIQQAhIANAIBMgCGoiH0Egav0AAAAgBSAIaiIjQSBq/QAEAP1R/WIgH0EQav0AAAAgI0EQav0ABAD9Uf1iICX9bv1uISUgCEEgaiEIIAcgIEECaiIgRw0ACyAWRQ0BICBBAWohCAsgISAIQQR0Ighq/QAAACAFIAhq/QAEAP1R/WIgJf1uISULIB0gEWoiIf0AAAAgGP1R/WIhJgJAAkACQCAMDQBBASEIDAELQQAhCEEAISADQCASIAhqIh9BIGr9AAAAIAUgCGoiI0Egav0ABAD9Uf1iIB9BEGr9AAAAICNBEGr9AAQA/VH9YiAm/W79biEmIAhBIGohCCAHICBBAmoiIEcNAAsgFkUNASAgQQFqIQgLICEgCEEEdCIIav0AAAAgBSAIav0ABAD9Uf1iICb9biEmCyAi/X0hIiAe/X0hJyAl/X0hJSAk/X0hJCAhIAJqIiH9AAAAIBj9Uf1iIR4CQAJAAkAgDA0AQQEhCAwBC0EAIQhBACEgA0AgECAIaiIfQSBq/QAAACAFIAhqIiNBIGr9AAQA/VH9YiAfQRBq/QAAACAjQRBq/QAEAP1R/WIgHv1u/W4hHiAIQSBqIQggByAgQQJqIiBHDQALIBZFDQEgIEEBaiEICyAhIAhBBHQiCGr9AAAAIAUgCGr9AAQA/VH9YiAe/W4hHgsgJyAi/WYhIiAkICX9ZiEkICb9fSAe/X39ZiElIB0gDmoiHf0AAAAgGP1R/WIhHgJAAkACQCAMDQBBASEIDAELQQAhCEEAISADQCAPIAhqIh9BIGr9AAAAIAUgCGoiI0Egav0ABAD9Uf1iIB9BEGr9AAAAICNBEGr9AAQA/VH9YiAe/W79biEeIAhBIGohCCAHICBBAmoiIEcNAAsgFkUNASAgQQFqIQgLIB0gCEEEdCIIav0AAAAgBSAIav0ABAD9Uf1iIB79biEeCyAi/X0hJiAk/X0hJCAl/X0hJSAdIAJqIh39AAAAIBj9Uf1iISICQAJAAkAgDA0AQQEhCAwBC0EAIQhBACEgA0AgDSAIaiIfQSBq/QAAACAFIAhqIiNBIGr9AAQA/VH9YiAfQRBq/QAAACAjQRBq/QAEAP1R/WIgIv1u/W4hIiAIQSBqIQggByAgQQJqIiBHDQALIBZFDQEgIEEBaiEICyAdIAhBBHQiCGr9AAAAIAUgCGr9AAQA/VH9YiAi/W4hIgsgJv1+ICT9fv2FAf1+ICX9fiAe/X0gIv19/Wb9ff1+/YUB/X79hQEhHgwCCyAdIAJq/QAAACAY/VH9YiEiCyAdIBRqIiH9AAAAIBj9Uf1iISQCQAJAIBsNAAJAAkACQCAMDQBBASEIDAELQQAhCEEAISADQCAVIAhqIh9BIGr9AAAAIAUgCGoiI0Egav0ABAD9Uf1iIB9BEGr9AAAAICNBEGr9AAQA/VH9YiAk/W79biEkIAhBIGohCCAHICBBAmoiIEcNAAsgFkUNASAgQQFqIQgLICEgCEEEdCIIav0AAAAgBSAIav0ABAD9Uf1iICT9biEkCyAhIAJqIiH9AAAAIBj9Uf1iISUCQAJAIAwNAEEBIQgMAQtBACEIQQAhIANAIBMgCGoiH0Egav0AAAAgBSAIaiIjQSBq/QAEAP1R/WIgH0EQav0AAAAgI0EQav0ABAD9Uf1iICX9bv1uISUgCEEgaiEIIAcgIEECaiIgRw0ACyAWRQ0CICBBAWohCAsgISAIQQR0Ighq/QAAACAFIAhq/QAEAP1R/WIgJf1uISUMAQsgISACav0AAAAgGP1R/WIhJQsgIv19ISYgHv19IScgJf19ISUgJP19ISQgHSARaiIh/QAAACAY/VH9YiEeAkACQCAbDQACQAJAAkAgDA0AQQEhCAwBC0EAIQhBACEgA0AgEiAIaiIfQSBq/QAAACAFIAhqIiNBIGr9AAQA/VH9YiAfQRBq/QAAACAjQRBq/QAEAP1R/WIgHv1u/W4hHiAIQSBqIQggByAgQQJqIiBHDQALIBZFDQEgIEEBaiEICyAhIAhBBHQiCGr9AAAAIAUgCGr9AAQA/VH9YiAe/W4hHgsgISACaiIh/QAAACAY/VH9YiEiAkACQCAMDQBBASEIDAELQQAhCEEAISADQCAQIAhqIh9BIGr9AAAAIAUgCGoiI0Egav0ABAD9Uf1iIB9BEGr9AAAAICNBEGr9AAQA/VH9YiAi/W79biEiIAhBIGohCCAHICBBAmoiIEcNAAsgFkUNAiAgQQFqIQgLICEgCEEEdCIIav0AAAAgBSAIav0ABAD9Uf1iICL9biEiDAELICEgAmr9AAAAIBj9Uf1iISILICcgJv1mISYgJCAl/WYhJCAe/X0gIv19/WYhJSAdIA5qIh39AAAAIBj9Uf1iIR4CQAJAIBsNAAJAAkACQCAMDQBBASEIDAELQQAhCEEAISADQCAPIAhqIh9BIGr9AAAAIAUgCGoiI0Egav0ABAD9Uf1iIB9BEGr9AAAAICNBEGr9AAQA/VH9YiAe/W79biEeIAhBIGohCCAHICBBAmoiIEcNAAsgFkUNASAgQQFqIQgLIB0gCEEEdCIIav0AAAAgBSAIav0ABAD9Uf1iIB79biEeCyAdIAJqIh39AAAAIBj9Uf1iISICQAJAIAwNAEEBIQgMAQtBACEIQQAhIANAIA0gCGoiH0Egav0AAAAgBSAIaiIjQSBq/QAEAP1R/WIgH0EQav0AAAAgI0EQav0ABAD9Uf1iICL9bv1uISIgCEEgaiEIIAcgIEECaiIgRw0ACyAWRQ0CICBBAWohCAsgHSAIQQR0Ighq/QAAACAFIAhq/QAEAP1R/WIgIv1uISIMAQsgHSACav0AAAAgGP1R/WIhIgsgJv19ICT9ff1m/X0gJf19IB79fSAi/X39Zv19/Wb9ff1m/X0hHgsgHCAe/QsAACANIApqIQ0gDyAKaiEPIBAgCmohECASIApqIRIgEyAKaiETIBUgCmohFSAJIApqIQkgCyAKaiELIAEgBkEIaiIGa0EHSw0ACwsgACAGIAJsaiABIAZrIAIgAyAEIAZBAXRqEI+AgIAAIAVBgAFqJICAgIAAC8sCAgl/AnsCQAJAIAAoAgRBBEYNACAAIAEgAiADEJCAgIAADAELIAAoAgAiBEUNACADQQhqIQUgBEF/aiEGIARBA3RBCGohByAAKAIIIghBMGohCUEAIQoDQAJAIAoiAEEBaiIKIARPDQAgCCAAQQV0aiELIAUhACAJIQMgBiEMA0AgA0Fwav0AAAAgC/0AAAD9USENAkACQCABDQAgA/0AAAAgC/0AABD9USEOIA39YiENDAELIAP9AAAAIAv9AAAQ/VEgAf0AABD9TiEOIAH9AAAAIA39Tv1iIQ0LIAAgDv1iIA39bv19/X4iDUEg/cwBIA39zgEiDf0dACAN/R0BfEL/////D4MgAn4gACkDAHw3AwAgAEEIaiEAIANBIGohAyAMQX9qIgwNAAsLIAUgB2ohBSAJQSBqIQkgBkF/aiEGIAogBEcNAAsLCwgAQZCAhIAAC3UBAX4gACAEIAF+IAIgA358IANCIIgiAiABQiCIIgR+fCADQv////8PgyIDIAFC/////w+DIgF+IgVCIIggAyAEfnwiA0IgiHwgA0L/////D4MgAiABfnwiAUIgiHw3AwggACABQiCGIAVC/////w+DhDcDAAsLLAEAQYCABAskAAAAAAAAAAAAAAEAAQAAAAEAAAACAAAAAwAAAAQAAAAFAAAA");

// demo/visitor.ts
var TELLING = 2;
var ADDRESS2 = "https://page.invalid";
function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}
async function openModel({ trust, files: files2 }) {
  const answer = async (address) => {
    const file = files2[String(address).slice(ADDRESS2.length + 1)];
    return file === void 0 ? new Response(null, { status: 404 }) : new Response(bytesOf(file));
  };
  return Model.load(ADDRESS2, trust, { store: memoryStore(), kernel: await Kernel.load(kernel_simd_default), fetch: answer });
}
var Items = class {
  #model;
  #titles;
  constructor(model, titles) {
    this.#model = model;
    this.#titles = titles;
  }
  async byId(id) {
    const [name, ...genres] = this.#titles[String(id)] ?? [String(id)];
    return { id, index: await this.#model.indexOf(id), name, genres };
  }
  /**
   * Items to ask about, of each genre in turn. What everybody likes says little about anybody: from the more popular
   * half, those come first whose codes are the farthest from the average user's.
   */
  async toAskAbout(most) {
    const { codes, catalogue } = this.#model;
    const half = Array.from({ length: Math.max(most, Math.ceil(codes.itemCount / 2)) }, (_, index) => index);
    const popular = half.filter((index) => index < codes.itemCount);
    const distances = codes.distances(await this.#model.userCode(new Visitor()), popular);
    const telling = popular.sort((left, right) => distances[right] - distances[left]);
    const byGenre = /* @__PURE__ */ new Map();
    for (const index of telling.slice(0, TELLING * most)) {
      const item = await this.byId(await catalogue.idOf(index));
      const genre = item.genres[0] ?? "";
      byGenre.set(genre, [...byGenre.get(genre) ?? [], item]);
    }
    const genres = [...byGenre.values()];
    const turns = Math.max(...genres.map((items) => items.length));
    const inTurn = Array.from({ length: turns }, (_, turn) => genres.map((items) => items[turn])).flat();
    return inTurn.filter((item) => item !== void 0).slice(0, most);
  }
};
var Visitor = class {
  #levels = /* @__PURE__ */ new Map();
  #start;
  get count() {
    return this.#levels.size;
  }
  likes(id) {
    const level = this.#levels.get(id);
    return level === void 0 ? void 0 : level > 0;
  }
  /** Keeps an opinion as the newest; the same opinion twice takes it back. */
  say(id, isLiked) {
    const isTakenBack = this.likes(id) === isLiked;
    this.#levels.delete(id);
    if (!isTakenBack) this.#levels.set(id, isLiked ? LEVELS : 0);
  }
  forget() {
    this.#levels.clear();
  }
  async opinions() {
    return [...this.#levels].map(([itemId, level]) => ({ itemId, level }));
  }
  async hidden() {
    return [];
  }
  async startCode(codeBits) {
    return this.#start ??= UserCode.random(codeBits);
  }
};

// demo/play.ts
var SHOWN = 10;
var ASKED_AT_ONCE = 8;
var ASKED_AT_MOST = 96;
var ENOUGH = 5;
var COLOURS = 8;
var element = (id) => document.getElementById(id);
var count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;
function make(tag, className, ...children) {
  const made = document.createElement(tag);
  made.className = className;
  made.append(...children);
  return made;
}
var Page = class {
  #model;
  #items;
  #visitor = new Visitor();
  #asked;
  #colours = /* @__PURE__ */ new Map();
  #firstAsked = 0;
  #list = [];
  #atFirst = [];
  #code;
  constructor(model, items, asked) {
    this.#model = model;
    this.#items = items;
    this.#asked = asked;
    this.#code = new Uint8Array(model.codes.codeBytes);
    for (const item of asked) this.#colourOf(item);
    element("others").onclick = () => this.#askOthers();
    element("forget").onclick = () => {
      this.#visitor.forget();
      this.#firstAsked = 0;
      void this.update();
    };
  }
  /** Computes the code and the list anew, and shows both. */
  async update() {
    const started = performance.now();
    const code = (await this.#model.userCode(this.#visitor)).reveal();
    const found = await this.#model.recommend(this.#visitor, SHOWN);
    const milliseconds = performance.now() - started;
    const before = this.#list;
    this.#list = await Promise.all(found.map(({ itemId }) => this.#items.byId(itemId)));
    if (this.#visitor.count === 0) this.#atFirst = this.#list;
    this.#showBits(code);
    this.#showList(before);
    this.#showMix();
    this.#showAsked();
    this.#showProgress(milliseconds);
  }
  /** Each genre has a colour for as long as the page lives. */
  #colourOf({ genres: [genre = ""] }) {
    if (genre && !this.#colours.has(genre)) this.#colours.set(genre, this.#colours.size % COLOURS);
    return genre ? `genre g${this.#colours.get(genre)}` : "genre";
  }
  #titleOf(item) {
    const genres = make("span", this.#colourOf(item), item.genres.join(", "));
    return make("span", "title", make("span", "name", item.name), ...item.genres.length ? [genres] : []);
  }
  #button(item, isLiked) {
    const button = make("button", isLiked ? "like" : "dislike", isLiked ? "Like" : "Not for me");
    button.setAttribute("aria-pressed", String(this.#visitor.likes(item.id) === isLiked));
    button.setAttribute("aria-label", `${button.textContent}: ${item.name}`);
    button.onclick = async () => {
      this.#visitor.say(item.id, isLiked);
      await this.update();
    };
    return button;
  }
  #askOthers() {
    this.#firstAsked = (this.#firstAsked + ASKED_AT_ONCE) % this.#asked.length;
    this.#showAsked();
  }
  #showAsked() {
    const shown = this.#asked.slice(this.#firstAsked, this.#firstAsked + ASKED_AT_ONCE);
    const list = element("asked");
    const focused = document.activeElement?.closest("#asked") ? document.activeElement.getAttribute("aria-label") : null;
    list.replaceChildren(
      ...shown.map((item) => {
        const card = make("li", "card", this.#titleOf(item), this.#buttons(item));
        this.#compareAt(card, item);
        return card;
      })
    );
    if (focused) list.querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
  }
  #buttons(item) {
    return make("span", "buttons", this.#button(item, true), this.#button(item, false));
  }
  #showList(before) {
    const list = element("list");
    const places = new Map(
      [...list.children].map((row) => [row.dataset.id, row.getBoundingClientRect()])
    );
    const rows = this.#list.map((item, place) => {
      const old = before.findIndex(({ id }) => id === item.id);
      const row = make("li", "row", this.#titleOf(item), moved(old, place, before.length > 0), this.#buttons(item));
      row.dataset.id = String(item.id);
      this.#compareAt(row, item);
      return row;
    });
    list.replaceChildren(...rows);
    rows.forEach((row) => slide(row, places.get(row.dataset.id)));
    const fresh = this.#list.filter(({ id }) => !before.some((old) => old.id === id)).length;
    if (before.length)
      element("said").textContent = `${count(fresh, "new title")} in your list. First: ${this.#list[0]?.name}.`;
    const isPopular = this.#model.rankingFor(this.#visitor.count).by === 2 /* Popularity */;
    element("popular").hidden = !isPopular;
  }
  /** The genres of the list as it was before any answer, and as it is now. */
  #showMix() {
    element("mix").hidden = !this.#list.some(({ genres }) => genres.length);
    for (const [name, items] of Object.entries({ first: this.#atFirst, now: this.#list })) {
      const inOrder = [...items].sort((a, b) => this.#colourOf(a).localeCompare(this.#colourOf(b)));
      element(name).replaceChildren(...inOrder.map((item) => make("span", this.#colourOf(item))));
      const counts = /* @__PURE__ */ new Map();
      for (const {
        genres: [genre = "other"]
      } of items)
        counts.set(genre, (counts.get(genre) ?? 0) + 1);
      const said = [...counts].sort((a, b) => b[1] - a[1]).map(([genre, times]) => `${times} ${genre}`);
      element(`${name}-said`).textContent = said.join(", ");
    }
  }
  #showBits(code) {
    const [picture, old] = [element("bits"), this.#code];
    const bits = Array.from({ length: this.#model.codes.codeBits }, (_, bit) => hasBit(code, bit));
    const isFirst = picture.childElementCount === 0;
    if (isFirst) picture.append(...bits.map(() => make("span", "")));
    const changed = bits.map((isSet, bit) => !isFirst && isSet !== hasBit(old, bit));
    bits.forEach((isSet, bit) => {
      const square = picture.children[bit];
      square.className = `${isSet ? "set" : ""} ${changed[bit] ? "changed" : ""}`;
    });
    this.#code = code;
    const changes = changed.filter(Boolean).length;
    const set = bits.filter(Boolean).length;
    element("changes").textContent = isFirst || !this.#visitor.count ? "So far this is everybody's average taste." : `Your last answer changed ${count(changes, "bit")}.`;
    picture.setAttribute("aria-label", `${bits.length} bits, ${set} of them set. ${element("changes").textContent}`);
  }
  /** While somebody points at an item, the picture shows which bits its code shares with the user's. */
  #compareAt(place, item) {
    const picture = element("bits");
    const show = () => {
      const row = this.#model.codes.row(item.index);
      let same = 0;
      [...picture.children].forEach((square, bit) => {
        const isSame = hasBit(row, bit) === hasBit(this.#code, bit);
        square.classList.toggle("other", !isSame);
        same += Number(isSame);
      });
      element("shared").textContent = `${item.name} shares ${same} of your ${picture.childElementCount} bits.`;
    };
    const hide = () => {
      for (const square of picture.children) square.classList.remove("other");
      element("shared").textContent = "Point at a title to see which bits it shares with you.";
    };
    for (const event of ["pointerenter", "focusin"]) place.addEventListener(event, show);
    for (const event of ["pointerleave", "focusout"]) place.addEventListener(event, hide);
  }
  #showProgress(milliseconds) {
    const rated = this.#visitor.count;
    element("progress").setAttribute("aria-valuenow", String(Math.min(rated, ENOUGH)));
    [...element("progress").children].forEach((dot, at) => dot.classList.toggle("done", at < rated));
    element("rated").textContent = rated < ENOUGH ? `${rated} of ${ENOUGH} rated` : `${rated} rated`;
    element("time").textContent = `${milliseconds.toFixed(milliseconds < 10 ? 1 : 0)} ms`;
    element("forget").disabled = rated === 0;
  }
};
function moved(old, place, isLater) {
  if (!isLater || old === place) return make("span", "moved");
  if (old < 0) return make("span", "moved new", "new");
  const [sign, word] = old > place ? ["▲", "up"] : ["▼", "down"];
  const mark = make("span", `moved ${word}`, `${sign} ${Math.abs(old - place)}`);
  mark.setAttribute("aria-label", `${word} by ${Math.abs(old - place)}`);
  return mark;
}
function slide(row, from) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const start = from ? { transform: `translateY(${from.top - row.getBoundingClientRect().top}px)` } : { opacity: 0, transform: "translateY(0.5rem)" };
  row.animate([start, { opacity: 1, transform: "none" }], { duration: 350, easing: "ease-out" });
}
function watchRequests() {
  const show = () => {
    const requests = performance.getEntriesByType("resource").length;
    element("sent").textContent = requests === 0 ? "0 bytes sent" : `${count(requests, "request")} sent`;
    element("requests").textContent = String(requests);
  };
  new PerformanceObserver(show).observe({ type: "resource" });
  show();
}
async function run() {
  watchRequests();
  const data = JSON.parse(element("data").textContent);
  const model = await openModel(data);
  const items = new Items(model, data.titles);
  await new Page(model, items, await items.toAskAbout(ASKED_AT_MOST)).update();
  performance.mark("ready");
  document.body.classList.add("ready");
}
run().catch((error) => {
  element("failed").hidden = false;
  element("failed").textContent = error instanceof LightFRError ? `The page cannot recommend here: ${error.message}.` : `The page failed: ${error.name}.`;
});
