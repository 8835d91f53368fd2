// How a device gets its identity and keeps it: docs/protocol.md, "Enrolment" and "Renewal".
import { createPrivateKey, createPublicKey, randomBytes, sign, webcrypto, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import * as x509 from "@peculiar/x509";
import { base64, fromBase64, hex, sha256 } from "./bytes.js";
import { ErrorReason, refusal, requireThat } from "./errors.js";
import type { EnrollmentService, EnrollRequest, RenewCertificateRequest } from "./gen/lightfr/v1/enrollment_pb.js";
import type { Journal } from "./journal.js";
import { MEMBER_KEY_BYTES, MEMBER_LABEL, memberStatement } from "./secure/members.js";
import { callerKey } from "./service.js";
import type { Token } from "./settings.js";

const FIVE_MINUTES_MS = 5 * 60 * 1000;
const YEAR_MS = 365 * 24 * 3600 * 1000;
const MOST_UNENDED = 2;
const P256 = { name: "ECDSA", namedCurve: "P-256" };

x509.cryptoProvider.set(webcrypto as Crypto);

/** What a device gets. */
interface Issued {
  certificate: Buffer;
  membership: Buffer;
}

/** Of token and request only digests are kept. */
export interface Enrolled {
  type: "enrolled";
  token: string;
  device: string;
  request: string;
  memberKey: string;
  certificate: string;
  membership: string;
}

export interface Renewed extends Omit<Enrolled, "type" | "token"> {
  type: "renewed";
}

type Wish = Pick<EnrollRequest, "signingRequest" | "memberKey">;

export class Enrollment implements ServiceImpl<typeof EnrollmentService> {
  private readonly expiry = new Map<string, number>();
  private readonly spent = new Map<string, Enrolled>();
  /** By device, what it got and what has not ended. */
  private readonly issued = new Map<string, (Enrolled | Renewed)[]>();
  /** The device of each member key. */
  private readonly owners = new Map<string, string>();

  constructor(
    private readonly authority: Pick<Authority, "certify">,
    tokens: Token[],
    private readonly journal: Pick<Journal<Enrolled | Renewed>, "append">,
  ) {
    for (const { token, expires_unix_seconds } of tokens)
      this.expiry.set(digest(Buffer.from(token)), expires_unix_seconds * 1000);
  }

  /** Takes up what the journal remembers. */
  replay(record: Enrolled | Renewed): void {
    this.owners.set(record.memberKey, record.device);
    this.issued.set(record.device, [...this.unendedOf(record.device), record]);
    if (record.type === "enrolled") this.spent.set(record.token, record);
  }

  enroll = async (request: EnrollRequest) => {
    requireThat(
      /^[\x00-\x7f]{16,128}$/.test(request.token),
      ErrorReason.MALFORMED,
      "a token has 16 to 128 ASCII characters",
    );
    checkSizes(request);
    const token = digest(Buffer.from(request.token));
    return answerOf(this.enrolledBefore(token, request) ?? (await this.issue(token, request)));
  };

  /** Another certificate for the device whose certificate opened the connection. */
  renewCertificate = async (request: RenewCertificateRequest, context: HandlerContext) => {
    const { device } = context.values.get(callerKey);
    requireThat(device !== "", ErrorReason.IDENTITY, "renewal needs a certificate that is good now");
    checkSizes(request);
    return answerOf(this.renewedBefore(device, request) ?? (await this.issueRenewal(device, request)));
  };

  private unendedOf(device: string): (Enrolled | Renewed)[] {
    return (this.issued.get(device) ?? []).filter((record) => endOf(record) * 1000 > Date.now());
  }

  /** What this very request of the device got before. */
  private renewedBefore(device: string, wish: Wish): Enrolled | Renewed | undefined {
    const request = digestOf(wish);
    return this.unendedOf(device).find((record) => record.type === "renewed" && record.request === request);
  }

  private async issueRenewal(device: string, wish: Wish): Promise<Enrolled | Renewed> {
    const issued = await this.authority.certify(await checkedKey(wish.signingRequest), wish.memberKey, device, newId());
    // Checking and signing let others in between, perhaps with this very request.
    const earlier = this.renewedBefore(device, wish);
    if (earlier) return earlier;
    this.requireOwn(wish.memberKey, device);
    const ends = this.unendedOf(device).map(endOf);
    if (ends.length >= MOST_UNENDED) {
      const numbers = { renewableUnixSeconds: BigInt(Math.min(...ends)) };
      throw refusal(ErrorReason.RENEWAL_EARLY, `${MOST_UNENDED} certificates of this device have not ended`, numbers);
    }
    return this.record({ type: "renewed", ...recordOf(device, wish, issued) });
  }

  /** What this very request got before. */
  private enrolledBefore(token: string, wish: Wish): Enrolled | undefined {
    const record = this.spent.get(token);
    requireThat(!record || record.request === digestOf(wish), ErrorReason.TOKEN, "the token is spent");
    return record;
  }

  private async issue(token: string, wish: Wish): Promise<Enrolled> {
    const expiresMs = this.expiry.get(token);
    requireThat(
      expiresMs !== undefined && Date.now() < expiresMs,
      ErrorReason.TOKEN,
      "the token is unknown or has expired",
    );
    const device = newId();
    const issued = await this.authority.certify(await checkedKey(wish.signingRequest), wish.memberKey, device, device);
    // Signing let others in between: whoever came first has spent the token.
    const earlier = this.enrolledBefore(token, wish);
    if (earlier) return earlier;
    this.requireOwn(wish.memberKey, device);
    return this.record({ type: "enrolled", token, ...recordOf(device, wish, issued) });
  }

  private requireOwn(memberKey: Uint8Array, device: string): void {
    const owner = this.owners.get(hex(memberKey)) ?? device;
    requireThat(owner === device, ErrorReason.MALFORMED, "another device has this member key");
  }

  private record<Kind extends Enrolled | Renewed>(record: Kind): Kind {
    this.journal.append(record);
    this.replay(record);
    return record;
  }
}

const newId = (): string => hex(randomBytes(16));
const recordOf = (device: string, wish: Wish, { certificate, membership }: Issued) => ({
  device,
  request: digestOf(wish),
  memberKey: hex(wish.memberKey),
  certificate: base64(certificate),
  membership: base64(membership),
});
const answerOf = ({ certificate, membership }: Enrolled | Renewed) => ({
  certificates: [fromBase64(certificate)],
  membership: fromBase64(membership),
});

/** When the membership ends, and the certificate with it, in Unix seconds. */
const endOf = ({ membership }: Enrolled | Renewed): number =>
  Number(fromBase64(membership).readBigUInt64LE(MEMBER_KEY_BYTES));

const digest = (bytes: Uint8Array): string => hex(sha256(bytes));

/** The member key has a fixed size, so nothing runs together. */
const digestOf = ({ memberKey, signingRequest }: Wish): string => digest(Buffer.concat([memberKey, signingRequest]));

function checkSizes({ signingRequest: { length }, memberKey }: Wish): void {
  const isInRange = length >= 1 && length <= 4096;
  requireThat(isInRange, ErrorReason.MALFORMED, `a signing request of ${length} bytes; 1 to 4,096 are allowed`);
  const isKey = memberKey.length === MEMBER_KEY_BYTES;
  requireThat(isKey, ErrorReason.MALFORMED, `a member key of ${memberKey.length} bytes, not ${MEMBER_KEY_BYTES}`);
}

/** Bytes of the outermost DER element. The parser does not mind bytes behind it; we do. */
function derSize([, length, ...more]: Uint8Array): number {
  const lengthBytes = length < 0x80 ? 0 : length - 0x80;
  const content = more.slice(0, lengthBytes).reduce((size, byte) => size * 256 + byte, 0);
  return 2 + lengthBytes + (lengthBytes === 0 ? length : content);
}

/** The public key of a signing request that signs itself. Its subject is ignored: the server names devices. */
async function checkedKey(signingRequest: Uint8Array): Promise<x509.PublicKey> {
  try {
    const request = new x509.Pkcs10CertificateRequest(Buffer.from(signingRequest));
    const { name, namedCurve } = request.publicKey.algorithm as EcKeyAlgorithm;
    const isP256 = name === P256.name && namedCurve === P256.namedCurve;
    if (isP256 && derSize(signingRequest) === signingRequest.length && (await request.verify()))
      return request.publicKey;
  } catch {
    // What does not parse is refused as what does not verify.
  }
  throw refusal(ErrorReason.MALFORMED, "the signing request is not a PKCS #10 request that a P-256 key signed itself");
}

/** The authority's keys, which sign the certificates and memberships of devices. */
export class Authority {
  private constructor(
    private readonly issuer: x509.X509Certificate,
    private readonly key: webcrypto.CryptoKey,
    private readonly membershipKey: KeyObject,
  ) {}

  static async open(folder: string): Promise<Authority> {
    const issuer = new x509.X509Certificate(readFileSync(join(folder, "authority.pem"), "utf8"));
    const der = createPrivateKey(readFileSync(join(folder, "authority.key"))).export({ format: "der", type: "pkcs8" });
    const key = await webcrypto.subtle.importKey("pkcs8", der, P256, false, ["sign"]);
    return new Authority(issuer, key, createPrivateKey(readFileSync(join(folder, "membership.key"))));
  }

  /** The public half of the key that signs memberships, 32 raw bytes. */
  membershipPublicKey(): Buffer {
    return createPublicKey(this.membershipKey).export({ format: "der", type: "spki" }).subarray(-32);
  }

  /** The first certificate of a device has its id as serial number, a later one another. */
  async certify(publicKey: x509.PublicKey, memberKey: Uint8Array, device: string, serial: string): Promise<Issued> {
    const begins = Date.now() - FIVE_MINUTES_MS;
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: serial,
      subject: `CN=${device}`,
      issuer: this.issuer.subjectName,
      notBefore: new Date(begins),
      notAfter: new Date(begins + YEAR_MS),
      publicKey,
      signingKey: this.key as CryptoKey,
      signingAlgorithm: { name: "ECDSA", hash: "SHA-256" },
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth]),
        await x509.AuthorityKeyIdentifierExtension.create(this.issuer.publicKey),
      ],
    });
    const membership = this.vouch(memberKey, Math.floor(certificate.notAfter.getTime() / 1000));
    return { certificate: Buffer.from(certificate.rawData), membership };
  }

  private vouch(memberKey: Uint8Array, endUnixSeconds: number): Buffer {
    const statement = memberStatement(memberKey, endUnixSeconds);
    const signature = sign(null, Buffer.concat([Buffer.from(MEMBER_LABEL), statement]), this.membershipKey);
    return Buffer.concat([statement, signature]);
  }
}
