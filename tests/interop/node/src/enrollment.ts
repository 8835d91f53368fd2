// How a device gets its identity and keeps it: docs/protocol.md, "Enrolment" and "Renewal".
import { createPrivateKey, randomBytes, sign, webcrypto, type KeyObject } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import * as x509 from "@peculiar/x509";
import { base64, fromBase64, hex, sha256 } from "./bytes.js";
import { ErrorReason, refusal, requireThat } from "./errors.js";
import type { EnrollmentService, EnrollRequest, RenewCertificateRequest } from "./gen/lightfr/v1/enrollment_pb.js";
import type { Journal } from "./journal.js";
import { callerKey } from "./service.js";
import type { Token } from "./settings.js";

const FIVE_MINUTES_MS = 5 * 60 * 1000;
const YEAR_MS = 365 * 24 * 3600 * 1000;
const MOST_RENEWALS = 32;
const MEMBER_KEY_BYTES = 32;
const MEMBERSHIP_CONTEXT = Buffer.from("lightfr member v1\n");
const P256 = { name: "ECDSA", namedCurve: "P-256" };

x509.cryptoProvider.set(webcrypto as Crypto);

/** What a device got. Of its request only a digest is kept. */
interface Issued {
  device: string;
  request: string;
  memberKey: string;
  certificate: string;
  membership: string;
}

/** Of the token, too, only a digest is kept. */
export interface Enrolled extends Issued {
  type: "enrolled";
  token: string;
}

export interface Renewed extends Issued {
  type: "renewed";
}

type Asked = Pick<EnrollRequest, "signingRequest" | "memberKey">;

export class Enrollment implements ServiceImpl<typeof EnrollmentService> {
  private readonly expiry = new Map<string, number>();
  private readonly spent = new Map<string, Enrolled>();
  /** By device, then by the digest of the request. */
  private readonly renewals = new Map<string, Map<string, Renewed>>();
  /** The device that has a member key, also one of before a renewal. */
  private readonly owners = new Map<string, string>();

  constructor(
    private readonly authority: Pick<Authority, "certify" | "vouch">,
    tokens: Token[],
    private readonly journal: Pick<Journal<Enrolled | Renewed>, "append">,
  ) {
    for (const { token, expires_unix_seconds } of tokens)
      this.expiry.set(digest(Buffer.from(token)), expires_unix_seconds * 1000);
  }

  /** Takes up what the journal remembers. */
  replay(record: Enrolled | Renewed): void {
    this.owners.set(record.memberKey, record.device);
    if (record.type === "enrolled") this.spent.set(record.token, record);
    else this.renewals.set(record.device, this.renewalsOf(record.device).set(record.request, record));
  }

  enroll = async (request: EnrollRequest) => {
    requireThat(
      /^[\x00-\x7f]{16,128}$/.test(request.token),
      ErrorReason.MALFORMED,
      "a token has 16 to 128 ASCII characters",
    );
    checkSizes(request);
    const token = digest(Buffer.from(request.token));
    return answer(this.enrolledBefore(token, request) ?? (await this.issue(token, request)));
  };

  /** Another certificate for the device whose certificate opened the connection. */
  renewCertificate = async (request: RenewCertificateRequest, context: HandlerContext) => {
    const { device } = context.values.get(callerKey);
    requireThat(device !== "", ErrorReason.IDENTITY, "renewal needs a certificate that has not ended");
    checkSizes(request);
    const earlier = this.renewalsOf(device).get(digestOf(request));
    return answer(earlier ?? (await this.issueRenewal(device, request)));
  };

  private renewalsOf(device: string): Map<string, Renewed> {
    return this.renewals.get(device) ?? new Map();
  }

  private async issueRenewal(device: string, request: Asked): Promise<Renewed> {
    const issued = await this.issued(device, request, hex(randomBytes(16)));
    // Checking and signing let others in between, perhaps with this very request.
    const earlier = this.renewalsOf(device).get(issued.request);
    if (earlier) return earlier;
    this.checkOwner(issued);
    const isInRange = this.renewalsOf(device).size < MOST_RENEWALS;
    requireThat(isInRange, ErrorReason.IDENTITY, `this device has renewed ${MOST_RENEWALS} times`);
    const record: Renewed = { type: "renewed", ...issued };
    this.journal.append(record);
    this.replay(record);
    return record;
  }

  /** What this very request got before. */
  private enrolledBefore(token: string, request: Asked): Enrolled | undefined {
    const record = this.spent.get(token);
    if (!record) return undefined;
    requireThat(record.request === digestOf(request), ErrorReason.TOKEN, "the token is spent");
    return record;
  }

  private async issue(token: string, request: Asked): Promise<Enrolled> {
    const expiresMs = this.expiry.get(token);
    requireThat(
      expiresMs !== undefined && Date.now() < expiresMs,
      ErrorReason.TOKEN,
      "the token is unknown or has expired",
    );
    const device = hex(randomBytes(16));
    const issued = await this.issued(device, request, device);
    // Signing let others in between: whoever came first has spent the token.
    const earlier = this.enrolledBefore(token, request);
    if (earlier) return earlier;
    this.checkOwner(issued);
    const record: Enrolled = { type: "enrolled", token, ...issued };
    this.journal.append(record);
    this.replay(record);
    return record;
  }

  private async issued(device: string, request: Asked, serial: string): Promise<Issued> {
    const certificate = await this.authority.certify(await checkedKey(request.signingRequest), device, serial);
    return {
      device,
      request: digestOf(request),
      memberKey: hex(request.memberKey),
      certificate: base64(certificate),
      membership: base64(this.authority.vouch(request.memberKey, certificate)),
    };
  }

  private checkOwner({ device, memberKey }: Issued): void {
    const owner = this.owners.get(memberKey) ?? device;
    requireThat(owner === device, ErrorReason.MALFORMED, "another device has this member key");
  }
}

const answer = ({ certificate, membership }: Issued) => ({
  certificates: [fromBase64(certificate)],
  membership: fromBase64(membership),
});

const digest = (bytes: Uint8Array): string => hex(sha256(bytes));

/** What makes two requests the same. */
const digestOf = ({ signingRequest, memberKey }: Asked): string => digest(Buffer.concat([memberKey, signingRequest]));

function checkSizes({ signingRequest: { length }, memberKey }: Asked): void {
  const isInRange = length >= 1 && length <= 4096;
  requireThat(isInRange, ErrorReason.MALFORMED, `a signing request of ${length} bytes; 1 to 4,096 are allowed`);
  const isKey = memberKey.length === MEMBER_KEY_BYTES;
  requireThat(isKey, ErrorReason.MALFORMED, `a member key of ${memberKey.length} bytes, not ${MEMBER_KEY_BYTES}`);
}

/** A membership: the key, its end, and the authority's signature over both. */
export function membershipOf(memberKey: Uint8Array, endsUnixSeconds: number, key: KeyObject): Buffer {
  const ends = Buffer.alloc(8);
  ends.writeBigUInt64LE(BigInt(endsUnixSeconds));
  const statement = Buffer.concat([memberKey, ends]);
  return Buffer.concat([statement, sign(null, Buffer.concat([MEMBERSHIP_CONTEXT, statement]), key)]);
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

/** The authority's keys, which sign the certificates of devices and their memberships. */
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

  /** The first certificate of a device has its id as serial number, a later one another. */
  async certify(publicKey: x509.PublicKey, device: string, serial: string): Promise<Buffer> {
    // A certificate says its times in whole seconds.
    const begins = Math.floor((Date.now() - FIVE_MINUTES_MS) / 1000) * 1000;
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
    return Buffer.from(certificate.rawData);
  }

  /** The membership of a member key, which ends with the certificate. */
  vouch(memberKey: Uint8Array, certificate: Buffer): Buffer {
    const { notAfter } = new x509.X509Certificate(Buffer.from(certificate));
    return membershipOf(memberKey, notAfter.getTime() / 1000, this.membershipKey);
  }
}
