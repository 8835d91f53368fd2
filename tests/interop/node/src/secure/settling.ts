// Who goes on after the shares were acknowledged: docs/secagg.md, "The server settles who goes on".
import type { Numbers } from "./roster.js";

/** Devices by roster index. */
export interface Settlement {
  included: Set<number>;
  faulty: Set<number>;
}

/**
 * `holdersOf` has the holders of each device that shared; `unopened`, for each device that acknowledged, the senders
 * whose shares it could not open.
 */
export function settle(
  { holders, threshold }: Numbers,
  holdersOf: ReadonlyMap<number, number[]>,
  unopened: ReadonlyMap<number, ReadonlySet<number>>,
): Settlement {
  const sentTo = new Map<number, number>();
  for (const receivers of holdersOf.values())
    for (const receiver of receivers) sentTo.set(receiver, (sentTo.get(receiver) ?? 0) + 1);
  const isLiar = ([device, { size }]: [number, ReadonlySet<number>]) =>
    size >= 2 && 2 * size > (sentTo.get(device) ?? 0);
  const faulty = new Set([...unopened].filter(isLiar).map(([device]) => device));
  const believed = new Map([...unopened].filter(([device]) => !faulty.has(device)));
  const included = new Set<number>();
  for (const owner of believed.keys()) {
    const present = (holdersOf.get(owner) ?? []).filter((holder) => believed.has(holder));
    const complaints = present.filter((holder) => believed.get(holder)!.has(owner)).length;
    if (complaints > Math.floor((holders + 1 - threshold) / 2)) faulty.add(owner);
    else if (holdersOf.has(owner) && 1 + present.length - complaints >= threshold) included.add(owner);
  }
  return { included, faulty };
}
