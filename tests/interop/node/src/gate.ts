// Which items are open, and which rows the model has: docs/protocol.md, "The gate". Devices count who rates what in pairs
// of refreshes.
//
// The model has a row for each item that was ever open, by ascending index, and behind them the row that all others share.
// Without a gate every item has a row, and none is shared.
import { randomBytes } from "node:crypto";
import type { Model } from "./aggregate.js";
import type { Catalogue, Change } from "./catalogue.js";
import { hasGate, type Settings } from "./settings.js";

/** What is known of who rates what. It is kept as JSON. */
export interface Gate {
  /** Devices that rate each item. */
  counts: number[];
  /** How many devices have counted. Absent: somebody gave the counts. */
  counted?: number;
  /** Items that have been open at some time and have rows of their own, by ascending index. */
  everOpen: number[];
  /** The first refresh of a pair, until the second has come. */
  first?: { counts: number[]; devices: string[] };
  /** Whether items have joined about which no pair has asked yet. */
  hasNewcomers?: boolean;
}

export const openItemsOf = ({ counts }: Gate, settings: Settings): number[] =>
  [...counts.keys()].filter((item) => !hasGate(settings) || counts[item] >= settings.gate);

const withOpened = (gate: Gate, settings: Settings): Gate => {
  const items = new Set([...gate.everOpen, ...openItemsOf(gate, settings)]);
  return { ...gate, everOpen: [...items].sort((left, right) => left - right) };
};

/** Before any device has counted: by the counts that somebody gave, if any. */
export const firstGate = ({ counts }: Catalogue, settings: Settings): Gate =>
  withOpened({ counts, everOpen: [] }, settings);

/** Whether the next cohort counts: while no row is open, when a pair lacks its second refresh, and for new items. */
export const isRefreshDue = (gate: Gate, settings: Settings): boolean =>
  settings.gateRefreshes &&
  (gate.first !== undefined || gate.hasNewcomers === true || openItemsOf(gate, settings).length === 0);

/** After a refresh by these devices: the first of a pair is kept, the second moves items across the gate. */
export function refreshed(
  gate: Gate,
  counts: number[],
  devices: string[],
  { removed }: Pick<Catalogue, "removed">,
  settings: Settings,
): Gate {
  const { first, everOpen, hasNewcomers } = gate;
  if (!first) return { ...gate, first: { counts, devices }, hasNewcomers: undefined };
  const medians = counts.map((count, item) => median([gate.counts[item], first.counts[item], count]));
  // Whatever devices say: what left stays closed.
  for (const item of removed) medians[item] = 0;
  const counted = Math.min(first.devices.length, devices.length);
  return withOpened({ counts: medians, counted, everOpen, hasNewcomers }, settings);
}

const median = (three: number[]): number => three.sort((left, right) => left - right)[1];

/** After a change of the catalogue: what devices counted moves with its items, and the rows of those that left are gone. */
export function gateAfter(gate: Gate, { catalogue, oldIndices }: Change, settings: Settings): Gate {
  const left = new Set(catalogue.removed);
  const moved = (counts: number[]) => oldIndices.map((old, item) => (left.has(item) ? 0 : (counts[old] ?? 0)));
  const had = new Set(gate.everOpen);
  const everOpen = [...oldIndices.keys()].filter((item) => had.has(oldIndices[item]) && !left.has(item));
  const first = gate.first && { ...gate.first, counts: moved(gate.first.counts) };
  const counts = settings.gateRefreshes ? moved(gate.counts) : catalogue.counts;
  const hasJoined = oldIndices.some((old, item) => old < 0 && !left.has(item));
  const hasNewcomers = gate.hasNewcomers || hasJoined || undefined;
  return withOpened({ ...gate, counts, everOpen, first, hasNewcomers }, settings);
}

/** The row before for each row of the model after: of the same item, or -1. The shared row stays the last. */
export function rowsBefore(
  before: Gate,
  after: Gate,
  settings: Settings,
  oldIndexOf = (item: number) => item,
): number[] {
  const rowOf = new Map(before.everOpen.map((item, row) => [item, row]));
  const rows = after.everOpen.map((item) => rowOf.get(oldIndexOf(item)) ?? -1);
  return hasGate(settings) ? [...rows, before.everOpen.length] : rows;
}

/** The model made of these rows; -1 is a new one with a random code and an empty memory. */
export function withRows(model: Model, rows: number[], codeBits: number): Model {
  const rowBytes = codeBits / 8;
  const codes = rows.map((row) =>
    row < 0 ? randomBytes(rowBytes) : model.codes.subarray(row * rowBytes, (row + 1) * rowBytes),
  );
  const [memory, trail] = [model.memory, model.trail].map((values) => {
    const result = new Int32Array(rows.length * codeBits);
    rows.forEach((row, at) => {
      if (row >= 0) result.set(values.subarray(row * codeBits, (row + 1) * codeBits), at * codeBits);
    });
    return result;
  });
  return { ...model, codes: Buffer.concat(codes), memory, trail };
}

/** The row of each open item in the model, by ascending index. */
export function openRowsOf(gate: Gate, settings: Settings): Map<number, number> {
  const rowOf = new Map(gate.everOpen.map((item, row) => [item, row]));
  return new Map(openItemsOf(gate, settings).map((item) => [item, rowOf.get(item)!]));
}

/** What devices get of the model's codes: the rows of the open items and, with a gate, the shared one. */
export function publishedCodes({ codes }: Model, gate: Gate, settings: Settings): Buffer {
  const rowBytes = settings.codeBits / 8;
  const shared = hasGate(settings) ? [gate.everOpen.length] : [];
  const rows = [...openRowsOf(gate, settings).values(), ...shared];
  return Buffer.concat(rows.map((row) => codes.subarray(row * rowBytes, (row + 1) * rowBytes)));
}
