// Who is a device of the authority, and what devices sign: docs/secagg.md, "Keys that last" and steps 1, 4 and 6.
import { createPublicKey, verify } from "node:crypto";

export const MEMBER_KEY_BYTES = 32;
export const MEMBERSHIP_BYTES = 104;
const STATEMENT_BYTES = 40;
// What stands before a raw Ed25519 key in the format that node:crypto reads (RFC 8410).
const PUBLIC_PREFIX = Buffer.from("302a300506032b6570032100", "hex");

export const MEMBER_LABEL = "lightfr member v1\n";

/** Whether the raw Ed25519 key signed the parts, one behind the other, after the label. */
export function isSigned(key: Uint8Array, signature: Uint8Array, label: string, ...parts: Uint8Array[]): boolean {
  try {
    const publicKey = createPublicKey({ key: Buffer.concat([PUBLIC_PREFIX, key]), format: "der", type: "spki" });
    return verify(null, Buffer.concat([Buffer.from(label), ...parts]), publicKey, signature);
  } catch {
    return false; // the key is no point of the curve
  }
}

/** What the authority signs of a member key, and what a membership begins with. */
export function memberStatement(memberKey: Uint8Array, endUnixSeconds: number): Buffer {
  const end = Buffer.alloc(8);
  end.writeBigUInt64LE(BigInt(endUnixSeconds));
  return Buffer.concat([memberKey, end]);
}

/** The member key that a membership vouches for. Undefined: it is not one of the authority, or it has ended. */
export function memberOf(
  membership: Uint8Array,
  authorityKeys: Uint8Array[],
  nowUnixSeconds: number,
): Buffer | undefined {
  const bytes = Buffer.from(membership);
  if (bytes.length !== MEMBERSHIP_BYTES) return undefined;
  const [statement, signature] = [bytes.subarray(0, STATEMENT_BYTES), bytes.subarray(STATEMENT_BYTES)];
  if (!authorityKeys.some((key) => isSigned(key, signature, MEMBER_LABEL, statement))) return undefined;
  const end = statement.readBigUInt64LE(MEMBER_KEY_BYTES);
  return Number(end) > nowUnixSeconds ? statement.subarray(0, MEMBER_KEY_BYTES) : undefined;
}
