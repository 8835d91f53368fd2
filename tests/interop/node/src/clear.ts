// A round in the clear: docs/protocol.md, "A round in the clear" and "What a server must refuse".
import { addUpload, emptySums, type Sums } from "./aggregate.js";
import { readU32s } from "./bytes.js";
import { ErrorReason, refusal } from "./errors.js";
import type { UploadRequest } from "./gen/lightfr/v1/coordinator_pb.js";
import type { RowUpdate } from "./gen/lightfr/v1/update_pb.js";
import { Round, type Step } from "./round.js";
import type { Settings } from "./settings.js";

export class ClearRound extends Round {
  readonly steps: Step[] = ["upload"];

  protected isComplete(): boolean {
    return this.uploads.size >= this.settings.goal;
  }

  protected isEnough(): boolean {
    return this.uploads.size >= this.settings.minimum;
  }

  sums(): Sums {
    const sums = emptySums(this.settings);
    for (const { body } of this.uploads.values())
      if (body.case === "rowUpdate") addUpload(sums, body.value, this.settings);
    return sums;
  }
}

/** Refuses an upload whole when anything of it is not what the round asked for. */
export function checkRowUpdate(body: UploadRequest["body"], settings: Settings, openRows: ReadonlySet<number>): void {
  const fault = body.case === "rowUpdate" ? faultOf(body.value, settings, openRows) : "there is no row_update";
  if (fault) throw refusal(ErrorReason.UPLOAD_INVALID, fault);
}

function faultOf(update: RowUpdate, settings: Settings, openRows: ReadonlySet<number>): string | undefined {
  const { codeBits, maxRows } = settings;
  if (update.codeBits !== codeBits) return `code_bits is ${update.codeBits}, the round has ${codeBits}`;
  if (update.itemIndices.length % 4)
    return `${update.itemIndices.length} bytes of item_indices are no whole number of them`;
  const rows = readU32s(update.itemIndices);
  if (rows.length > maxRows && maxRows > 0) return `${rows.length} rows, at most ${maxRows} are allowed`;
  if (rows.some((row, at) => at > 0 && row <= rows[at - 1])) return "item_indices are not strictly ascending";
  if (!rows.every((row) => openRows.has(row))) return "a row is closed or beyond the matrix";
  if (update.userCode.length !== codeBits / 8)
    return `a user code of ${update.userCode.length} bytes, not ${codeBits / 8}`;
  if (update.rows.case !== "ternary") return "the rows are not ternary";
  return ternaryFault(update.rows.value, (rows.length * codeBits) / 8);
}

function ternaryFault(
  { nonzero, positive }: { nonzero: Uint8Array; positive: Uint8Array },
  size: number,
): string | undefined {
  if (nonzero.length !== size || positive.length !== size) return `bit planes of another size than ${size} bytes`;
  return positive.some((byte, at) => byte & ~nonzero[at]) ? "an element is positive and zero at once" : undefined;
}
