// A round in the clear: docs/protocol.md, "A round in the clear" and "What a server must refuse".
import { addUpload, emptySums, type RowOf, type Sums } from "./aggregate.js";
import { isAscending, readU32s } from "./bytes.js";
import { ErrorReason, refusal } from "./errors.js";
import { RoundKind, type UploadRequest } from "./gen/lightfr/v1/coordinator_pb.js";
import { Objective, UploadKind } from "./gen/lightfr/v1/model_pb.js";
import type { RowUpdate } from "./gen/lightfr/v1/update_pb.js";
import { rowBytes } from "./limits.js";
import { Round, type Step } from "./round.js";
import type { Settings } from "./settings.js";

export class ClearRound extends Round {
  readonly kind = RoundKind.TRAINING;
  readonly steps: Step[] = ["upload"];

  protected isComplete(): boolean {
    return this.uploads.size >= this.settings.goal;
  }

  protected isEnough(): boolean {
    return this.uploads.size >= this.settings.minimum;
  }

  updates(): RowUpdate[] {
    return [...this.uploads.values()].map(({ body }) => body.value as RowUpdate);
  }

  sums(): Sums {
    const { model, openRows } = this.version;
    const sums = emptySums(model);
    for (const update of this.updates()) addUpload(sums, update, openRows);
    return sums;
  }
}

/** Refuses an upload whole when anything of it is not what the round asked for. */
export function checkRowUpdate(body: UploadRequest["body"], settings: Settings, openRows: RowOf): void {
  const fault = body.case === "rowUpdate" ? faultOf(body.value, settings, openRows) : "there is no row_update";
  if (fault) throw refusal(ErrorReason.UPLOAD_INVALID, fault);
}

function faultOf(update: RowUpdate, settings: Settings, openRows: RowOf): string | undefined {
  const { codeBits, maxRows, uploadKind } = settings;
  if (update.codeBits !== codeBits) return `code_bits is ${update.codeBits}, the round has ${codeBits}`;
  if (update.itemIndices.length % 4)
    return `${update.itemIndices.length} bytes of item_indices are no whole number of them`;
  const items = readU32s(update.itemIndices);
  if (items.length > maxRows && maxRows > 0) return `${items.length} rows, at most ${maxRows} are allowed`;
  if (!isAscending(items)) return "item_indices are not strictly ascending";
  if (!items.every((item) => openRows.has(item))) return "an item is closed or beyond the catalogue";
  const codeBytes = settings.objective === Objective.CATALOGUE ? codeBits / 8 : 0;
  if (update.userCode.length !== codeBytes) return `a user code of ${update.userCode.length} bytes, not ${codeBytes}`;
  if (update.rows.case !== NAMES[uploadKind]) return `the rows are not ${NAMES[uploadKind]}`;
  return rowsFault(update.rows, items.length * rowBytes(uploadKind, codeBits));
}

const NAMES: Partial<Record<UploadKind, RowUpdate["rows"]["case"]>> = {
  [UploadKind.TERNARY]: "ternary",
  [UploadKind.EXACT]: "exact",
  [UploadKind.CODES]: "codes",
};

/** `size` is that of all rows, in bytes. */
function rowsFault(rows: RowUpdate["rows"], size: number): string | undefined {
  if (rows.case === "exact") return rows.value.gradients.length === size ? undefined : `not ${size} bytes of gradients`;
  if (rows.case === "codes") return rows.value.codes.length === size ? undefined : `not ${size} bytes of codes`;
  const { nonzero, positive } = rows.value!;
  if (nonzero.length !== size / 2 || positive.length !== size / 2) return `bit planes of other than ${size / 2} bytes`;
  return positive.some((byte, at) => byte & ~nonzero[at]) ? "an element is positive and zero at once" : undefined;
}
