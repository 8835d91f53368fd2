// What the server is started with: the folder of a kit. The files are described in the README.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PrivacyMode } from "./gen/lightfr/v1/model_pb.js";

export interface Settings {
  privacy: PrivacyMode.CLEAR | PrivacyMode.SECAGG;
  codeBits: number;
  itemCount: number;
  /** A row is open when at least so many devices rate its item. */
  gate: number;
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
}

export interface Item {
  id: string;
  /** Devices that rate it. */
  count: number;
}

export interface Token {
  token: string;
  expires_unix_seconds: number;
}

const privacyModes: Record<string, Settings["privacy"]> = { clear: PrivacyMode.CLEAR, secagg: PrivacyMode.SECAGG };

export function readSettings(kit: string): Settings {
  const json = JSON.parse(readFileSync(join(kit, "settings.json"), "utf8"));
  const privacy = privacyModes[json.privacy];
  if (!privacy) throw new Error(`settings.json: privacy is ${json.privacy}; this server knows clear and secagg`);
  return {
    privacy,
    codeBits: json.code_bits,
    itemCount: json.item_count,
    gate: json.gate,
    maxRows: json.max_rows,
    places: json.places,
    goal: json.goal,
    minimum: json.minimum,
    deadlineMs: json.deadline_seconds * 1000,
    integerIds: json.integer_ids,
  };
}

export function readItems(kit: string): Item[] {
  const lines = readFileSync(join(kit, "items.tsv"), "utf8")
    .split("\n")
    .filter((line) => line !== "");
  return lines.map((line) => {
    const [id, count] = line.split("\t");
    return { id, count: Number(count) };
  });
}

export function readTokens(kit: string): Token[] {
  return JSON.parse(readFileSync(join(kit, "tokens.json"), "utf8"));
}
