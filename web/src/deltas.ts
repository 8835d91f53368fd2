// Makes new item codes from old ones and a downloaded delta. docs/artifacts.md describes the format.
import { type Bytes, viewOf } from "./bytes.js";
import { ArtifactError } from "./errors.js";
import { inflate } from "./inflate.js";

const HEADER_BYTES = 44;
const MAGIC = 0x4452464c; // LFRD
const FORMAT_VERSION = 2;
const MOST_ROWS = 2n ** 32n - 1n;
/** In place of the first row of a run: rows of zeros. */
const ZEROS = 2 ** 32 - 1;

function require(condition: boolean, reason: string): asserts condition {
  if (!condition) throw new ArtifactError(`delta refused: ${reason}`);
}

interface Header {
  codeBytes: number;
  oldRows: number;
  newRows: number;
  runs: number;
  changed: number;
}

/** The new codes, whose digest the caller compares with the announced one. They may have `mostBytes`. */
export async function applyDelta(delta: Bytes, oldCodes: Bytes, mostBytes: number): Promise<Bytes> {
  const header = readHeader(delta);
  const { codeBytes, oldRows, newRows, runs, changed } = header;
  require(oldRows * codeBytes === oldCodes.length, "made for old codes of another size");
  require(newRows * codeBytes <= mostBytes, `the new codes would have more than ${mostBytes} bytes`);
  const size = 8 * runs + 4 * changed + changed * codeBytes;
  const content = await inflate(delta.subarray(HEADER_BYTES), size, "delta");
  const codes = moveRows(viewOf(content), header, oldCodes);
  flipRows(content.subarray(8 * runs), header, codes);
  return codes;
}

function readHeader(delta: Bytes): Header {
  require(delta.length >= HEADER_BYTES, `it has ${delta.length} bytes, no header`);
  const view = viewOf(delta);
  const isKnown = view.getUint32(0, true) === MAGIC && view.getUint32(4, true) === FORMAT_VERSION;
  require(isKnown, `not of format version ${FORMAT_VERSION}`);
  const codeBits = view.getUint32(8, true);
  require(codeBits >= 8 && codeBits <= 1024 && codeBits % 8 === 0, `codes cannot have ${codeBits} bits`);
  const [oldRows, newRows, runs, changed] = [12, 20, 28, 36].map((at) => view.getBigUint64(at, true));
  require(oldRows <= MOST_ROWS && newRows <= MOST_ROWS, "codes cannot have so many rows");
  require(runs <= newRows && changed <= newRows, "there are more runs or changed rows than rows");
  const [old, now, ran, flipped] = [oldRows, newRows, runs, changed].map(Number);
  return { codeBytes: codeBits / 8, oldRows: old, newRows: now, runs: ran, changed: flipped };
}

/** The rows that the runs name, one behind the other. */
function moveRows(content: DataView, header: Header, oldCodes: Bytes): Bytes {
  const { codeBytes, oldRows, newRows, runs } = header;
  const codes = new Uint8Array(newRows * codeBytes);
  let row = 0;
  for (let run = 0; run < runs; run++) {
    const [first, count] = [content.getUint32(8 * run, true), content.getUint32(8 * run + 4, true)];
    require(count > 0, "a run is empty");
    require(first === ZEROS || first + count <= oldRows, `a run goes beyond the ${oldRows} old rows`);
    require(row + count <= newRows, "its runs have more rows than the new codes");
    if (first !== ZEROS) codes.set(oldCodes.subarray(first * codeBytes, (first + count) * codeBytes), row * codeBytes);
    row += count;
  }
  require(row === newRows, `its runs have ${row} rows, expected ${newRows}`);
  return codes;
}

/** XORs the flips into the changed rows. Their gaps come as four planes of bytes, the low bytes first. */
function flipRows(content: Bytes, { codeBytes, newRows, changed }: Header, codes: Bytes): void {
  let row = -1;
  for (let i = 0; i < changed; i++) {
    row += 1;
    for (let plane = 0; plane < 4; plane++) row += content[plane * changed + i] * 2 ** (8 * plane);
    require(row < newRows, `a row is beyond the ${newRows} rows`);
    const flips = 4 * changed + i * codeBytes;
    for (let byte = 0; byte < codeBytes; byte++) codes[row * codeBytes + byte] ^= content[flips + byte];
  }
}
