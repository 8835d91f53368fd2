// X25519 and HKDF on raw 32-byte keys: docs/secagg.md, "Notation" and "Masks".
import {
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
} from "node:crypto";

// What stands before the raw key in the formats that node:crypto reads (RFC 8410).
const PRIVATE_PREFIX = Buffer.from("302e020100300506032b656e04220420", "hex");
const PUBLIC_PREFIX = Buffer.from("302a300506032b656e032100", "hex");

const privateKey = (raw: Uint8Array): KeyObject =>
  createPrivateKey({ key: Buffer.concat([PRIVATE_PREFIX, raw]), format: "der", type: "pkcs8" });
const publicKey = (raw: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([PUBLIC_PREFIX, raw]), format: "der", type: "spki" });

const probe = generateKeyPairSync("x25519").privateKey;

/** Whether a key is a point of low order: every shared secret with it is zero, which OpenSSL refuses. */
export function isLowOrder(raw: Uint8Array): boolean {
  try {
    diffieHellman({ privateKey: probe, publicKey: publicKey(raw) });
    return false;
  } catch {
    return true;
  }
}

export function publicOf(rawPrivate: Uint8Array): Buffer {
  return createPublicKey(privateKey(rawPrivate)).export({ format: "der", type: "spki" }).subarray(-32);
}

const derive = (secret: Uint8Array, salt: Uint8Array, ...info: Uint8Array[]): Buffer =>
  Buffer.from(hkdfSync("sha256", secret, salt, Buffer.concat(info), 32));

/** The key of the mask that two neighbours share; the smaller peer id stands first. */
export function pairKey(
  rawPrivate: Uint8Array,
  rawPublic: Uint8Array,
  roundId: Uint8Array,
  one: Buffer,
  other: Buffer,
): Buffer {
  const secret = diffieHellman({ privateKey: privateKey(rawPrivate), publicKey: publicKey(rawPublic) });
  const ids = [one, other].sort(Buffer.compare);
  return derive(secret, roundId, Buffer.from("lightfr pair mask v1"), ...ids);
}

/** The key of the mask that a device adds alone. */
export function selfKey(seed: Uint8Array, roundId: Uint8Array, peer: Uint8Array): Buffer {
  return derive(seed, roundId, Buffer.from("lightfr self mask v1"), peer);
}
