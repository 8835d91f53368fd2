// The files that devices download, by the digest of their content: docs/protocol.md, "Downloads".
import { createReadStream, existsSync, mkdirSync, readdirSync, readFileSync, statSync, unlinkSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { pipeline } from "node:stream";
import { hex, sha256 } from "./bytes.js";
import { writeDurably } from "./journal.js";

/** How a manifest names an artifact. */
export interface Stored {
  sha256: Buffer;
  sizeBytes: bigint;
}

export class Artifacts {
  constructor(private readonly folder: string) {
    mkdirSync(folder, { recursive: true });
  }

  /** Stores what is not there yet; durable on return. */
  put(content: Uint8Array): Stored {
    const digest = sha256(content);
    const path = this.path(hex(digest));
    if (!existsSync(path)) writeDurably(path, content);
    return { sha256: digest, sizeBytes: BigInt(content.length) };
  }

  get(digest: Uint8Array): Buffer {
    return readFileSync(this.path(hex(digest)));
  }

  /** Deletes everything but these. */
  keep(digests: Set<string>): void {
    for (const name of readdirSync(this.folder)) if (!digests.has(name)) unlinkSync(this.path(name));
  }

  /** Answers a GET or HEAD; returns false when there is no such artifact. */
  serve(digest: string, request: IncomingMessage, response: ServerResponse): boolean {
    if (!/^[0-9a-f]{64}$/.test(digest) || !existsSync(this.path(digest))) return false;
    const size = statSync(this.path(digest)).size;
    const answer = answerTo(request.headers, `"${digest}"`, size);
    response.writeHead(answer.status, answer.headers);
    if (request.method === "HEAD" || !answer.range) response.end();
    else this.send(digest, answer.range, response);
    return true;
  }

  private send(digest: string, { first, last }: Range, response: ServerResponse): void {
    // A device that goes away in the middle is no error.
    pipeline(createReadStream(this.path(digest), { start: first, end: last }), response, () => {});
  }

  private path(name: string): string {
    return join(this.folder, name);
  }
}

interface Range {
  first: number;
  last: number;
}

interface Answer {
  status: number;
  headers: Record<string, string | number>;
  /** What the body holds. Absent: there is no body. */
  range?: Range;
}

/** What RFC 9110 answers to these headers, for content that never changes. */
export function answerTo(headers: IncomingMessage["headers"], etag: string, size: number): Answer {
  const common = {
    ETag: etag,
    "Accept-Ranges": "bytes",
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Type": "application/octet-stream",
  };
  if (matches(headers["if-none-match"], etag)) return { status: 304, headers: common };
  const whole: Range | undefined = size > 0 ? { first: 0, last: size - 1 } : undefined;
  const ifRange = headers["if-range"];
  const range = ifRange === undefined || ifRange === etag ? parseRange(headers.range, size) : "whole";
  if (range === "whole") return { status: 200, headers: { ...common, "Content-Length": size }, range: whole };
  if (range === "beyond") {
    return { status: 416, headers: { ...common, "Content-Length": 0, "Content-Range": `bytes */${size}` } };
  }
  const { first, last } = range;
  const contentRange = `bytes ${first}-${last}/${size}`;
  return {
    status: 206,
    headers: { ...common, "Content-Length": last - first + 1, "Content-Range": contentRange },
    range,
  };
}

function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  const named = (ifNoneMatch ?? "").split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return named.includes(etag) || named.includes("*");
}

/** The one range that is asked for; what cannot be understood asks for the whole. */
function parseRange(header: string | undefined, size: number): Range | "whole" | "beyond" {
  const [, from, to] = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? "") ?? [];
  if (from === undefined || (from === "" && to === "")) return "whole";
  if (from === "") {
    // The last `to` bytes.
    if (Number(to) === 0 || size === 0) return "beyond";
    return { first: Math.max(0, size - Number(to)), last: size - 1 };
  }
  if (to !== "" && Number(to) < Number(from)) return "whole";
  if (Number(from) >= size) return "beyond";
  return { first: Number(from), last: to === "" ? size - 1 : Math.min(Number(to), size - 1) };
}
