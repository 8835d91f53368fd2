// Manifests, checked: signed by a trusted key, of a wire version that we speak, and free of contradictions.
import { areEqual, type Bytes, concat, hex, sha256, viewOf, webCrypto } from "./bytes.js";
import { BLOCK_IDS, MOST_BLOCK_BYTES } from "./catalogue_part.js";
import { InvalidInputError, ManifestError, UnsupportedBrowserError } from "./errors.js";
import { Recency } from "./fit.js";
import { decode, MalformedMessage, type Schema } from "./proto.js";
import { GROUPS, type Popularity, RankBy, type Ranking } from "./rankings.js";

const WIRE_VERSION = 1;
const MANIFEST_LIMIT_BYTES = 65_536;
/** A signed manifest adds its signature, its key id and the tags around them. */
export const SIGNED_LIMIT_BYTES = MANIFEST_LIMIT_BYTES + 128;
const SIGNED_PREFIX = new TextEncoder().encode("lightfr manifest v1\n");
const LARGEST_ARTIFACT_BYTES = 2n ** 40n;
// Of a part of the catalogue, for each block of ids: what the directory, the numbers and the groups add to the ids is
// less than 2^12. See docs/artifacts.md.
const MOST_BYTES_PER_BLOCK = MOST_BLOCK_BYTES + 2 ** 12;
const MOST_DELTAS = 16;
const MOST_PARTS = 16;
const MOST_STEPS = 64;
const MOST_POPULARITY = 1_023;
const MOST_FOURTHS = 1_024;
const MOST_CANDIDATES = 31;
const OBJECTIVE_CATALOGUE = 1;
const MEAN_UNIT = 256;
const LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
const ADDRESS = new RegExp(`^https://(?=[^:]{1,253}:)${LABEL}(\\.${LABEL})*:([1-9][0-9]{0,4})$`);

// manifest.proto and model.proto, as far as a page needs them.
const ARTIFACT: Schema = { 1: ["sha256", "bytes"], 2: ["sizeBytes", "uint64"] };
const DELTA: Schema = { 1: ["fromSha256", "bytes"], 2: ["artifact", ARTIFACT] };
const PRIOR: Schema = { 1: ["firstItems", "uint32", "repeated"], 2: ["popularities", "uint32", "repeated"] };
const ROUND_MODEL: Schema = {
  1: ["codeBits", "uint32"],
  2: ["itemCount", "uint32"],
  3: ["objective", "int32"],
  5: ["meanUser", "bytes"],
};
const RANKING: Schema = {
  1: ["by", "int32"],
  2: ["priorFourths", "uint32"],
  3: ["recency", "int32"],
  4: ["refine", "bool"],
};
export const MANIFEST: Schema = {
  1: ["wireVersion", "uint32"],
  2: ["modelVersion", "uint64"],
  4: ["model", ROUND_MODEL],
  5: ["codes", ARTIFACT],
  6: ["codesDeltas", DELTA, "repeated"],
  7: ["catalogueParts", ARTIFACT, "repeated"],
  8: ["openRows", ARTIFACT],
  9: ["artifactsAddress", "string"],
  10: ["prior", PRIOR],
  11: ["rankings", RANKING, "repeated"],
  12: ["candidates", RANKING, "repeated"],
  13: ["removedItems", ARTIFACT],
};
export const SIGNED_MANIFEST: Schema = { 1: ["manifest", "bytes"], 2: ["signature", "bytes"], 3: ["keyId", "bytes"] };

// The same as they are read: what is absent may be undefined.
interface ArtifactMessage {
  sha256?: Bytes;
  sizeBytes?: bigint;
}
interface RankingMessage {
  by?: number;
  priorFourths?: number;
  recency?: number;
  refine?: boolean;
}
interface ManifestMessage {
  wireVersion?: number;
  modelVersion?: bigint;
  model?: { codeBits?: number; itemCount?: number; objective?: number; meanUser?: Bytes };
  codes?: ArtifactMessage;
  codesDeltas?: { fromSha256?: Bytes; artifact?: ArtifactMessage }[];
  catalogueParts?: ArtifactMessage[];
  openRows?: ArtifactMessage;
  artifactsAddress?: string;
  prior?: { firstItems?: number[]; popularities?: number[] };
  rankings?: RankingMessage[];
  candidates?: RankingMessage[];
  removedItems?: ArtifactMessage;
}

/** A file, named by its content. */
export interface Artifact {
  /** In lower-case hexadecimal digits. */
  sha256: string;
  sizeBytes: number;
}

/** One version of the model, as its server signed it. */
export interface Manifest {
  sha256: string;
  modelVersion: bigint;
  codeBits: number;
  itemCount: number;
  /** By bit, in units of 1/256; absent: the server knows none yet. */
  meanUser?: number[];
  codes: Artifact;
  codesDeltas: { fromSha256: string; artifact: Artifact }[];
  catalogueParts: Artifact[];
  openRows?: Artifact;
  removedItems?: Artifact;
  popularities: Popularity[];
  rankings: Ranking[];
  candidates: Ranking[];
}

function require(condition: boolean, reason: string): asserts condition {
  if (!condition) throw new ManifestError(reason);
}

/** The raw Ed25519 keys of a trust: PEM text, whose blocks PUBLIC KEY count, or one key of 32 bytes. */
export function readTrustedKeys(trust: string | Uint8Array): Bytes[] {
  if (typeof trust !== "string") {
    if (trust.length !== 32) throw new InvalidInputError("a trusted key must be 32 bytes, or PEM text");
    return [new Uint8Array(trust)];
  }
  const blocks = [...trust.matchAll(/-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----/g)];
  const keys = blocks.map(([, base64]) => fromBase64(base64));
  // A SubjectPublicKeyInfo of Ed25519 has 12 bytes before the key.
  if (keys.length === 0 || !keys.every((key) => key.length === 44 && hex(key).startsWith("302a300506032b6570032100")))
    throw new InvalidInputError("the trusted key is not PEM text with an Ed25519 PUBLIC KEY");
  return keys.map((key) => key.slice(12));
}

/** Nothing for what is no base64, as where a file broke off. */
function fromBase64(text: string): Bytes {
  try {
    return Uint8Array.from(atob(text.replace(/\s/g, "")), (char) => char.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

/** Takes a serialised SignedManifest; throws a ManifestError unless all of it is in order. */
export async function readManifest(signed: Bytes, trustedKeys: readonly Bytes[]): Promise<Manifest> {
  require(signed.length <= SIGNED_LIMIT_BYTES, "it is too long");
  const envelope = parse<{ manifest?: Bytes; signature?: Bytes; keyId?: Bytes }>(SIGNED_MANIFEST, signed);
  const manifest = envelope.manifest ?? new Uint8Array();
  require(manifest.length <= MANIFEST_LIMIT_BYTES, "it is too long");
  await verify(manifest, envelope.signature ?? new Uint8Array(), envelope.keyId ?? new Uint8Array(), trustedKeys);
  return checked(parse<ManifestMessage>(MANIFEST, manifest), hex(await sha256(manifest)));
}

function parse<Type>(schema: Schema, bytes: Bytes): Type {
  try {
    return decode(schema, bytes) as Type;
  } catch (error) {
    if (error instanceof MalformedMessage) throw new ManifestError(`${bytes.length} bytes are none: ${error.message}`);
    throw error;
  }
}

async function verify(manifest: Bytes, signature: Bytes, keyId: Bytes, trustedKeys: readonly Bytes[]): Promise<void> {
  const ids = await Promise.all(trustedKeys.map(async (key) => (await sha256(key)).subarray(0, 8)));
  const key = trustedKeys[ids.findIndex((id) => areEqual(id, keyId))];
  require(key !== undefined, "it is signed by a key that is not trusted");
  const isGood = await webCrypto().verify("Ed25519", await importKey(key), signature, concat(SIGNED_PREFIX, manifest));
  require(isGood, "its signature is wrong");
}

async function importKey(key: Bytes): Promise<CryptoKey> {
  try {
    return await webCrypto().importKey("raw", key, "Ed25519", false, ["verify"]);
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotSupportedError")
      throw new UnsupportedBrowserError("Ed25519 in WebCrypto, by which models are checked: a newer one has it");
    throw new InvalidInputError("a trusted key is not one of Ed25519");
  }
}

function checked(message: ManifestMessage, digest: string): Manifest {
  const { wireVersion = 0, modelVersion = 0n, artifactsAddress = "", model = {}, codesDeltas = [] } = message;
  require(wireVersion === WIRE_VERSION, `its wire version is ${wireVersion}, not ${WIRE_VERSION}`);
  require(modelVersion >= 1n, "it has no model version");
  const port = ADDRESS.exec(artifactsAddress)?.at(-1);
  require(artifactsAddress === "" || Number(port) < 65_536, "artifacts_address is not https://host:port");
  const { codeBits = 0, itemCount = 0 } = model;
  require(codeBits >= 8 && codeBits <= 1024 && codeBits % 8 === 0, "code_bits is out of range");
  require(itemCount >= 1, "it has no items");
  require(model.objective === OBJECTIVE_CATALOGUE, "a page does not know the objective of this model");
  require(codesDeltas.length <= MOST_DELTAS, `it has more than ${MOST_DELTAS} deltas`);
  return {
    sha256: digest,
    modelVersion,
    codeBits,
    itemCount,
    meanUser: meanUser(model.meanUser, codeBits),
    ...files(message, codeBits, itemCount),
    codesDeltas: codesDeltas.map((delta) => ({
      fromSha256: digestOf(delta.fromSha256),
      artifact: artifact(delta.artifact),
    })),
    popularities: popularities(message, itemCount),
    ...rankingsOf(message),
  };
}

function files(message: ManifestMessage, codeBits: number, itemCount: number) {
  const { catalogueParts = [], openRows, removedItems } = message;
  const codes = artifact(message.codes);
  const rowCount = codes.sizeBytes / (codeBits / 8);
  // Only the bitmap says how many items are open.
  const fits = openRows ? rowCount >= 1 && rowCount <= itemCount + 1 : rowCount === itemCount;
  require(fits && Number.isInteger(rowCount), "the codes have another size");
  // Without the bitmap every item is open, and none that left may be.
  require(openRows !== undefined || removedItems === undefined, "items have left, and nothing says which are open");
  const isCount = catalogueParts.length >= 1 && catalogueParts.length <= MOST_PARTS;
  require(isCount, `its catalogue must have 1 to ${MOST_PARTS} parts`);
  const parts = catalogueParts.map(artifact);
  // Before anything is fetched, since the memory would be full before a digest is wrong.
  const mostBytes = Math.ceil(itemCount / BLOCK_IDS) * MOST_BYTES_PER_BLOCK;
  const areSmall = parts.every(({ sizeBytes }) => sizeBytes <= mostBytes);
  require(areSmall, `a part of its catalogue is too large for ${itemCount} items`);
  return {
    codes,
    catalogueParts: parts,
    openRows: openRows && artifact(openRows),
    removedItems: removedItems && artifact(removedItems),
  };
}

function artifact({ sha256, sizeBytes = 0n }: ArtifactMessage = {}): Artifact {
  require(sizeBytes <= LARGEST_ARTIFACT_BYTES, "an artifact is too large");
  return { sha256: digestOf(sha256), sizeBytes: Number(sizeBytes) };
}

function digestOf(digest: Bytes | undefined): string {
  require(digest?.length === 32, "a digest must be 32 bytes");
  return hex(digest);
}

function meanUser(field: Bytes | undefined, codeBits: number): number[] | undefined {
  if (field === undefined || field.length === 0) return undefined;
  require(field.length === 2 * codeBits, "mean_user has another length than code_bits");
  const mean = Array.from({ length: codeBits }, (_, k) => viewOf(field).getInt16(2 * k, true));
  require(mean.every((value) => Math.abs(value) <= MEAN_UNIT), "mean_user leaves -256 to 256");
  return mean;
}

function popularities({ prior }: ManifestMessage, itemCount: number): Popularity[] {
  if (prior === undefined) return [];
  const { firstItems: firsts = [], popularities: heights = [] } = prior;
  const isCount = firsts.length === heights.length && firsts.length >= 1 && firsts.length <= MOST_STEPS;
  require(isCount, "its prior must have 1 to 64 steps");
  const ascends = firsts.every((first, at) => (at === 0 ? first === 0 : first > firsts[at - 1]));
  require(ascends, "the steps of its prior do not ascend from 0");
  require(firsts[firsts.length - 1] < itemCount, "a step of its prior begins behind the last row");
  const falls = heights.every((height, at) => height <= (at === 0 ? MOST_POPULARITY : heights[at - 1]));
  require(falls, "the popularities of its prior rise, or are above 1,023");
  return firsts.map((firstItem, at) => ({ firstItem, popularity: heights[at] }));
}

function rankingsOf(message: ManifestMessage) {
  const [rankings, candidates] = [(message.rankings ?? []).map(ranking), (message.candidates ?? []).map(ranking)];
  require(rankings.length === 0 || rankings.length === GROUPS.length, `it must have ${GROUPS.length} rankings or none`);
  require(rankings.every(({ by }) => by !== RankBy.Chance), "chance is only a candidate");
  require(candidates.length <= MOST_CANDIDATES, `it has more than ${MOST_CANDIDATES} candidates`);
  return { rankings, candidates };
}

function ranking({ by = 0, priorFourths = 0, recency = 0, refine = false }: RankingMessage): Ranking {
  require(by in RankBy, "a ranking goes by something unknown");
  require(recency === 0 || recency in Recency, "the recency of a ranking is unknown");
  require(priorFourths <= MOST_FOURTHS, "the prior of a ranking is above 1,024 fourths");
  return { by, priorFourths, recency: recency || Recency.Off, refine };
}
