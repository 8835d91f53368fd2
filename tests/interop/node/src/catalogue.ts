// Which item has which index, and how that changes between two rounds: docs/protocol.md, "A catalogue that changes".
import { isDeepStrictEqual } from "node:util";
import { hasGate, type Item, type Settings } from "./settings.js";

const MOST_PARTS = 16;

/** The items by their index. It is kept as JSON. */
export interface Catalogue {
  ids: string[];
  /** How many devices rate each item, as whoever lists the items says. */
  counts: number[];
  /** Indices of items that left, ascending. */
  removed: number[];
  /** How many items each part of the catalogue has. */
  parts: number[];
}

/** Another catalogue, and where its items were before: their old indices by the new ones, -1 for those that have none. */
export interface Change {
  catalogue: Catalogue;
  oldIndices: number[];
}

export function catalogueOf(items: Item[]): Catalogue {
  const [ids, counts] = [items.map(({ id }) => id), items.map(({ count }) => count)];
  return { ids, counts, removed: [], parts: [items.length] };
}

/** What becomes of a catalogue when these are its items, most popular first. Undefined: it stays as it is. */
export function changed(old: Catalogue, items: Item[], settings: Settings): Change | undefined {
  const indexOf = new Map(old.ids.map((id, index) => [id, index]));
  const catalogue = extended(old, items, indexOf);
  const tooManyLeft =
    2 * catalogue.removed.length > catalogue.ids.length || (catalogue.removed.length > 0 && !hasGate(settings));
  const mustRenumber = catalogue.parts.length > MOST_PARTS || tooManyLeft;
  const next = mustRenumber || isFarFrom(catalogue, items) ? catalogueOf(items) : catalogue;
  if (isDeepStrictEqual(next, old)) return undefined;
  const wasThere = old.ids.map((_, index) => !old.removed.includes(index));
  const oldIndices = next.ids.map((id) => indexOf.get(id) ?? -1).map((index) => (wasThere[index] ? index : -1));
  return { catalogue: next, oldIndices };
}

/** The catalogue with these items, in which those that it has keep their index and the others come behind. */
function extended(old: Catalogue, items: Item[], indexOf: Map<string, number>): Catalogue {
  const joined = items.filter(({ id }) => !indexOf.has(id)).map(({ id }) => id);
  const ids = [...old.ids, ...joined];
  const countOf = new Map(items.map(({ id, count }) => [id, count]));
  return {
    ids,
    counts: ids.map((id) => countOf.get(id) ?? 0),
    removed: [...ids.keys()].filter((index) => !countOf.has(ids[index])),
    parts: joined.length > 0 ? [...old.parts, joined.length] : old.parts,
  };
}

/** Whether more than a tenth of the items are further than a tenth of the catalogue from their place by popularity. */
function isFarFrom({ ids, removed }: Catalogue, items: Item[]): boolean {
  const left = new Set(removed);
  const placeOf = new Map(items.map(({ id }, place) => [id, place]));
  const present = ids.filter((_, index) => !left.has(index));
  const far = present.filter((id, place) => 10 * Math.abs(placeOf.get(id)! - place) > items.length);
  return 10 * far.length > items.length;
}
