// What the server is started with: the folder of a kit. The files are described in the README.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Objective, PrivacyMode, UploadKind } from "./gen/lightfr/v1/model_pb.js";
import type { Noise } from "./plausible.js";

export interface Settings {
  privacy: PrivacyMode;
  objective: Objective;
  uploadKind: UploadKind;
  /** Objective PAPER: 4 f^2 lambda 2520. */
  balance: number;
  /** Mode SECAGG_DP only. */
  noise?: Noise;
  codeBits: number;
  /** An item is open when at least so many devices rate it. 0 or 1: there is no gate, and every item is open. */
  gate: number;
  /** Whether nobody gives counts, so that devices count in pairs of gate refreshes. */
  gateRefreshes: boolean;
  /** Most rows in one upload. */
  maxRows: number;
  /** Devices that a round admits. */
  places: number;
  /** Uploads that end a round in the clear. */
  goal: number;
  /** Deliveries below which a round is abandoned. */
  minimum: number;
  /** Length of a round in the clear, or of each phase of secure aggregation. */
  deadlineMs: number;
  integerIds: boolean;
  /** Training rounds between two in which the cohort evaluates how to rank. 0: it never does. */
  evaluateEvery: number;
}

export const hasGate = ({ gate }: Pick<Settings, "gate">): boolean => gate > 1;

export interface Item {
  id: string;
  /** Devices that rate it; 0 where nobody has counted yet. */
  count: number;
}

export interface Token {
  token: string;
  expires_unix_seconds: number;
}

const privacyModes = {
  clear: PrivacyMode.CLEAR,
  secagg: PrivacyMode.SECAGG,
  "secagg+dp": PrivacyMode.SECAGG_DP,
};
const objectives = { catalogue: Objective.CATALOGUE, paper: Objective.PAPER };
const uploadKinds = { ternary: UploadKind.TERNARY, exact: UploadKind.EXACT, codes: UploadKind.CODES };

const USUAL_EVALUATE_EVERY = 10;

export function readSettings(kit: string): Settings {
  const json = JSON.parse(readFileSync(join(kit, "settings.json"), "utf8"));
  return {
    privacy: chosen(privacyModes, "privacy", json.privacy),
    objective: chosen(objectives, "objective", json.objective),
    uploadKind: chosen(uploadKinds, "upload_kind", json.upload_kind),
    balance: json.balance,
    noise: json.noise && {
      rowsThousandths: json.noise.rows_thousandths,
      sumsThousandths: json.noise.sums_thousandths,
      countsThousandths: json.noise.counts_thousandths,
    },
    codeBits: json.code_bits,
    gate: json.gate,
    gateRefreshes: json.gate_refreshes,
    maxRows: json.max_rows,
    places: json.places,
    goal: json.goal,
    minimum: json.minimum,
    deadlineMs: json.deadline_seconds * 1000,
    integerIds: json.integer_ids,
    evaluateEvery: json.evaluate_every ?? USUAL_EVALUATE_EVERY,
  };
}

function chosen<Value>(known: Record<string, Value>, name: string, value: string): Value {
  if (value in known) return known[value];
  throw new Error(`settings.json: ${name} is ${value}; this server knows ${Object.keys(known).join(", ")}`);
}

/** Most popular first. Throws unless there are some, and each once. */
export function readItems(kit: string): Item[] {
  const lines = readFileSync(join(kit, "items.tsv"), "utf8")
    .split("\n")
    .filter((line) => line !== "");
  const items = lines.map((line) => {
    const [id, count] = line.split("\t");
    return { id, count: Number(count ?? 0) };
  });
  const isGood = items.length > 0 && new Set(items.map(({ id }) => id)).size === items.length;
  if (!isGood) throw new Error("items.tsv has no item, or one twice");
  return items;
}

export function readTokens(kit: string): Token[] {
  return JSON.parse(readFileSync(join(kit, "tokens.json"), "utf8"));
}
