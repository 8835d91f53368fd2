// Which items are open, and which have left: bitmaps over the items, as docs/artifacts.md has them.
import { type Bytes, countBits } from "./bytes.js";
import { ArtifactError } from "./errors.js";
import { inflate } from "./inflate.js";

/** One bit for each item. Throws an ArtifactError for what is not a bitmap over so many items. */
export async function readBitmap(file: Bytes, itemCount: number): Promise<Bytes> {
  const bitmap = await inflate(file, Math.ceil(itemCount / 8), "bitmap file");
  if (itemCount % 8 && bitmap[bitmap.length - 1] >> (itemCount % 8))
    throw new ArtifactError(`bitmap file is corrupt: a bit behind its ${itemCount} items is set`);
  return bitmap;
}

/** Refuses a model in which an item that left is open, or more than half of the items have left. */
export function requireFewLeft(removed: Bytes, openRows: Bytes, itemCount: number): void {
  if (removed.some((byte, at) => byte & openRows[at]))
    throw new ArtifactError("the model is refused: an item that left the catalogue is open");
  if (2 * countBits(removed) > itemCount)
    throw new ArtifactError("the model is refused: more than half of its items have left");
}
