// What must survive a crash (docs/protocol.md, "Durability"): one JSON record a line, on the disk before anybody hears
// of it.
import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";

export class Journal<Record> {
  private constructor(
    private readonly file: number,
    private size: number,
  ) {}

  /** Opens or makes a journal; returns it and the records that it holds. */
  static open<Record>(path: string): { journal: Journal<Record>; records: Record[] } {
    const content = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
    // A crash in the middle of a write leaves a torn last line. Nobody was answered for it, so it goes.
    const size = content.lastIndexOf("\n") + 1;
    const file = openSync(path, "a");
    ftruncateSync(file, size);
    fsyncSync(file);
    syncFolder(dirname(path));
    const lines = content.toString("utf8", 0, size).split("\n").slice(0, -1);
    return { journal: new Journal<Record>(file, size), records: lines.map((line) => JSON.parse(line)) };
  }

  /** Returns when the record is on the disk. A record that could not be written whole is taken back. */
  append(record: Record): void {
    const line = Buffer.from(JSON.stringify(record) + "\n");
    try {
      writeAll(this.file, line);
      fdatasyncSync(this.file);
    } catch (error) {
      ftruncateSync(this.file, this.size);
      throw error;
    }
    this.size += line.length;
  }

  close(): void {
    closeSync(this.file);
  }
}

/** Writes a file so that after a crash it is there whole or not at all. */
export function writeDurably(path: string, content: Uint8Array): void {
  const temporary = `${path}.tmp`;
  const file = openSync(temporary, "w");
  try {
    writeAll(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  syncFolder(dirname(path));
}

function writeAll(file: number, content: Uint8Array): void {
  for (let written = 0; written < content.length;) written += writeSync(file, content, written);
}

/** A new name in a folder is durable only when the folder is. */
function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  fsyncSync(folder);
  closeSync(folder);
}
