// The paper's objective, for audits: docs/protocol.md, "The paper's objective".
import { addRows, bySign, signsOf, type Model } from "./aggregate.js";
import { UploadKind } from "./gen/lightfr/v1/model_pb.js";
import type { RowUpdate } from "./gen/lightfr/v1/update_pb.js";
import type { Settings } from "./settings.js";

/** Agg_grad for exact gradients, Agg_para for codes, which their devices have balanced. Only the codes move. */
export function nextPaperModel(model: Model, updates: RowUpdate[], settings: Settings): Model {
  const { codeBits: f, itemCount: m, balance, uploadKind } = settings;
  const signs = signsOf(model.codes);
  const votes = new Float64Array(m * f);
  for (const update of updates) addRows(votes, update, f);
  for (let item = 0; item < m && uploadKind === UploadKind.EXACT; item++) {
    const row = signs.subarray(item * f, (item + 1) * f);
    const total = row.reduce((sum, sign) => sum + sign, 0);
    row.forEach((sign, k) => (votes[item * f + k] -= balance * (total - sign)));
  }
  return { ...model, codes: bySign(votes, signs) };
}
