// Reads the zlib streams of downloads, and inflates no more of them than a caller asks for.
import { type Bytes, concat, viewOf } from "./bytes.js";
import { ArtifactError, UnsupportedBrowserError } from "./errors.js";

// An inflated piece can be a thousand times as long, and comes whole.
const PIECE_BYTES = 1 << 14;

/** Inflates a stream of at most so many bytes, with which `packed` ends. `what` names it in errors. */
export async function inflateAtMost(packed: Bytes, mostBytes: number, what: string): Promise<Bytes> {
  if (typeof DecompressionStream === "undefined") throw new UnsupportedBrowserError("DecompressionStream");
  const pieces: Bytes[] = [];
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
  // The stream's checksum comes last. Some browsers leave what follows it unread, which may end with a copy of it: then
  // the stream ends also without the last byte.
  const [view, sum, last] = [viewOf(packed), adler32(content), packed.length - 4];
  const isLast = view.getUint32(last) === sum;
  const isTwice = isLast && packed.some((_, at) => at < last && view.getUint32(at) === sum);
  if (!isLast || (isTwice && (await isWhole(packed.subarray(0, -1)))))
    throw new ArtifactError(`${what} is corrupt: bytes follow its stream`);
  return content;
}

/** Whether a stream ends within these bytes. */
async function isWhole(packed: Bytes): Promise<boolean> {
  try {
    for await (const _ of inflated(packed));
    return true;
  } catch {
    return false;
  }
}

/** The same, of exactly so many bytes. */
export async function inflate(packed: Bytes, sizeBytes: number, what: string): Promise<Bytes> {
  const content = await inflateAtMost(packed, sizeBytes, what);
  if (content.length !== sizeBytes) throw new ArtifactError(`${what} is corrupt: its stream is too short`);
  return content;
}

async function* inflated(packed: Bytes): AsyncGenerator<Bytes> {
  let at = 0;
  const source = new ReadableStream<Bytes>({
    pull(controller) {
      if (at < packed.length) controller.enqueue(packed.subarray(at, (at += PIECE_BYTES)));
      else controller.close();
    },
  });
  const reader = source.pipeThrough(new DecompressionStream("deflate")).getReader();
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value as Bytes;
  } finally {
    // A stream that has failed cannot be cancelled, and need not be.
    reader.cancel().catch(() => undefined);
  }
}

/** The checksum of RFC 1950. */
function adler32(bytes: Bytes): number {
  let [low, high] = [1, 0];
  // Within so many bytes no sum passes 2^32.
  for (let start = 0; start < bytes.length; start += 5552) {
    for (const byte of bytes.subarray(start, start + 5552)) {
      low += byte;
      high += low;
    }
    low %= 65_521;
    high %= 65_521;
  }
  return high * 65_536 + low;
}
