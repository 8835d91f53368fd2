// Which rows are open: docs/protocol.md, "The gate". Devices count who rates what in pairs of refreshes.
import { randomBytes } from "node:crypto";
import type { Model, Shape } from "./aggregate.js";
import type { Item, Settings } from "./settings.js";

/** What is known of who rates what. It is kept as JSON. */
export interface Gate {
  /** Devices that rate each item. */
  counts: number[];
  /** How many devices have counted. Absent: somebody gave the counts. */
  counted?: number;
  /** Rows that have been open at some time, and so have codes of their own. */
  everOpen: number[];
  /** The first refresh of a pair, until the second has come. */
  first?: { counts: number[]; devices: string[] };
}

export const openRowsOf = ({ counts }: Gate, { gate }: Settings): number[] =>
  [...counts.keys()].filter((row) => counts[row] >= gate);

/** Before any device has counted: by the counts that somebody gave, if any. */
export function firstGate(items: Item[], settings: Settings): Gate {
  const gate = { counts: items.map(({ count }) => count), everOpen: [] };
  return { ...gate, everOpen: openRowsOf(gate, settings) };
}

/** Whether the next cohort counts: while no row is open, and when a pair lacks its second refresh. */
export const isRefreshDue = (gate: Gate, settings: Settings): boolean =>
  settings.gateRefreshes && (gate.first !== undefined || openRowsOf(gate, settings).length === 0);

/** After a refresh by these devices: the first of a pair is kept, the second moves rows across the gate. */
export function refreshed(gate: Gate, counts: number[], devices: string[], settings: Settings): Gate {
  const { first, everOpen } = gate;
  if (!first) return { ...gate, first: { counts, devices } };
  const medians = counts.map((count, row) => median([gate.counts[row], first.counts[row], count]));
  const counted = Math.min(first.devices.length, devices.length);
  const next = { counts: medians, counted, everOpen };
  return { ...next, everOpen: [...new Set([...everOpen, ...openRowsOf(next, settings)])] };
}

const median = (three: number[]): number => three.sort((left, right) => left - right)[1];

/** The model with a random code and an empty memory in these rows, which have opened for the first time. */
export function withNewRows(model: Model, rows: number[], { codeBits }: Shape): Model {
  const codes = Buffer.from(model.codes);
  const [memory, trail] = [model.memory, model.trail].map((values) => Int32Array.from(values));
  for (const row of rows) {
    codes.set(randomBytes(codeBits / 8), (row * codeBits) / 8);
    for (const values of [memory, trail]) values.fill(0, row * codeBits, (row + 1) * codeBits);
  }
  return { ...model, codes, memory, trail };
}
