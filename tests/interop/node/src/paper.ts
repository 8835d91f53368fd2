// The paper's objective, for audits: docs/protocol.md, "The paper's objective".
import { addRows, bySign, signsOf, type Model, type RowOf } from "./aggregate.js";
import { UploadKind } from "./gen/lightfr/v1/model_pb.js";
import type { RowUpdate } from "./gen/lightfr/v1/update_pb.js";
import type { Settings } from "./settings.js";

/** Agg_grad for exact gradients, Agg_para for codes, which their devices have balanced. Only the codes move. */
export function nextPaperModel(model: Model, updates: RowUpdate[], rowOf: RowOf, settings: Settings): Model {
  const { codeBits: f, balance, uploadKind } = settings;
  const signs = signsOf(model.codes);
  const votes = new Float64Array(signs.length);
  for (const update of updates) addRows(votes, update, f, rowOf);
  for (let at = 0; at < signs.length && uploadKind === UploadKind.EXACT; at += f) {
    const code = signs.subarray(at, at + f);
    const total = code.reduce((sum, sign) => sum + sign, 0);
    code.forEach((sign, k) => (votes[at + k] -= balance * (total - sign)));
  }
  return { ...model, codes: bySign(votes, signs) };
}
