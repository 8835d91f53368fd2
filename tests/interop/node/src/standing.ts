// What is known against devices: docs/protocol.md, "CheckIn", and "Plausible sums", "Who spoilt it". All of it follows from
// the rounds that ended, so the journal keeps it.
import { sha256 } from "./bytes.js";
import type { RoundSummary } from "./round.js";

/** What the end of a round says about its devices. */
export type Verdict = "good" | "spoilt" | "too few" | "nothing";

// A device that delivered so many times what did not fit together gets no place until this time has passed.
const MOST_FAULTS = 3;
const BARRED_MS = 24 * 3600 * 1000;
// So many good sums clear a suspect, and so many spoilt ones name the last.
const CLEARING_SUMS = 3;
const CONFIRMING_SUMS = 2;

export class Standing {
  private readonly faults = new Map<string, { count: number; lastMs: number }>();
  private readonly suspects = new Suspects();

  /** Takes up what a round that ended says. */
  note({ faulty, verdict, receipts, delivered, endedMs }: RoundSummary): void {
    for (const device of faulty) this.blame(device, 1, endedMs);
    if (verdict === "too few") this.suspects.tooFew();
    if (verdict === "good") this.suspects.good(receipts.map(([device]) => device));
    if (verdict !== "spoilt") return;
    const signed = delivered.filter(([, step]) => step === "include").map(([device]) => device);
    const liar = this.suspects.spoilt(signed);
    if (liar) this.blame(liar, MOST_FAULTS, endedMs);
  }

  private blame(device: string, weight: number, lastMs: number): void {
    this.faults.set(device, { count: (this.faults.get(device)?.count ?? 0) + weight, lastMs });
    console.error(`device ${device} delivered what did not fit together`);
  }

  /** For how long a device gets no place, because it has been faulty too often. */
  barredMs(device: string, nowMs: number): number {
    const fault = this.faults.get(device);
    return fault && fault.count >= MOST_FAULTS ? Math.max(0, fault.lastMs + BARRED_MS - nowMs) : 0;
  }

  /** Whether a round turns the device away, to find out whether sums are spoilt without it. */
  isLeftOut(device: string, roundId: Uint8Array): boolean {
    return this.suspects.isLeftOut(device, roundId);
  }
}

/** Finds a device that spoils sums, by halving. */
export class Suspects {
  /** By suspect, the good sums that it was in since the last spoilt one. */
  private suspected = new Map<string, number>();
  /** Spoilt sums in a row with the only suspect in them. */
  private confirmed = 0;
  /** Whether a round had too few devices, so that the next one turns nobody away. */
  private isLifted = false;

  isLeftOut(device: string, roundId: Uint8Array): boolean {
    if (this.isLifted || !this.suspected.has(device)) return false;
    const keyOf = (one: string) => sha256(roundId, Buffer.from(one));
    const order = [...this.suspected.keys()].sort((left, right) => Buffer.compare(keyOf(left), keyOf(right)));
    // Chance decides which half is the larger one, and so whether a last suspect has a place.
    return order.indexOf(device) >= (order.length + (roundId[0] & 1)) >> 1;
  }

  /** Returns the liar, if the sum of these devices, which was spoilt, has named it. */
  spoilt(devices: string[]): string | undefined {
    const both = devices.filter((device) => this.suspected.has(device));
    this.confirmed = both.length > 0 && this.suspected.size === 1 ? this.confirmed + 1 : 0;
    this.isLifted = false;
    const isNamed = this.confirmed >= CONFIRMING_SUMS;
    const next = isNamed ? [] : both.length > 0 ? both : devices;
    this.suspected = new Map(next.map((device) => [device, 0]));
    if (isNamed) this.confirmed = 0;
    return isNamed ? both[0] : undefined;
  }

  good(devices: string[]): void {
    for (const device of devices) {
      const count = this.suspected.get(device);
      if (count === undefined) continue;
      if (count + 1 < CLEARING_SUMS) this.suspected.set(device, count + 1);
      else this.suspected.delete(device);
    }
    this.isLifted = false;
  }

  tooFew(): void {
    this.isLifted = this.suspected.size > 0 && !this.isLifted;
  }
}
