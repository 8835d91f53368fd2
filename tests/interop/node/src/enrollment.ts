// How a device gets its identity and keeps it: docs/protocol.md, "Enrolment" and "Renewal".
import { createPrivateKey, randomBytes, webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ServiceImpl } from "@connectrpc/connect";
import * as x509 from "@peculiar/x509";
import { base64, fromBase64, hex, sha256 } from "./bytes.js";
import { ErrorReason, refusal, requireThat } from "./errors.js";
import type { EnrollmentService, EnrollRequest } from "./gen/lightfr/v1/enrollment_pb.js";
import type { Journal } from "./journal.js";
import type { Token } from "./settings.js";

const FIVE_MINUTES_MS = 5 * 60 * 1000;
const YEAR_MS = 365 * 24 * 3600 * 1000;
const MOST_RENEWALS = 32;
const P256 = { name: "ECDSA", namedCurve: "P-256" };

x509.cryptoProvider.set(webcrypto as Crypto);

/** Of token and request only digests are kept. */
export interface Enrolled {
  type: "enrolled";
  token: string;
  request: string;
  certificate: string;
}

export interface Renewed {
  type: "renewed";
  device: string;
  request: string;
  certificate: string;
}

export class Enrollment implements ServiceImpl<typeof EnrollmentService> {
  private readonly expiry = new Map<string, number>();
  private readonly spent = new Map<string, Enrolled>();
  /** By device, then by the digest of the request. */
  private readonly renewals = new Map<string, Map<string, Renewed>>();

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
    if (record.type === "enrolled") this.spent.set(record.token, record);
    else this.renewals.set(record.device, this.renewalsOf(record.device).set(record.request, record));
  }

  enroll = async (request: EnrollRequest) => {
    requireThat(
      /^[\x00-\x7f]{16,128}$/.test(request.token),
      ErrorReason.MALFORMED,
      "a token has 16 to 128 ASCII characters",
    );
    checkSize(request.signingRequest);
    const token = digest(Buffer.from(request.token));
    return { certificates: [this.certificateOf(token, request) ?? (await this.issue(token, request))] };
  };

  /** Another certificate for a device that has one. */
  async renew(device: string, signingRequest: Uint8Array): Promise<Buffer> {
    checkSize(signingRequest);
    const request = digest(signingRequest);
    return this.renewedBefore(device, request) ?? (await this.issueRenewal(device, request, signingRequest));
  }

  private renewalsOf(device: string): Map<string, Renewed> {
    return this.renewals.get(device) ?? new Map();
  }

  private renewedBefore(device: string, request: string): Buffer | undefined {
    const record = this.renewalsOf(device).get(request);
    return record && fromBase64(record.certificate);
  }

  private async issueRenewal(device: string, request: string, signingRequest: Uint8Array): Promise<Buffer> {
    const key = await checkedKey(signingRequest);
    const certificate = await this.authority.certify(key, device, hex(randomBytes(16)));
    // Checking and signing let others in between, perhaps with this very request.
    const earlier = this.renewedBefore(device, request);
    if (earlier) return earlier;
    const isInRange = this.renewalsOf(device).size < MOST_RENEWALS;
    requireThat(isInRange, ErrorReason.IDENTITY, `this device has renewed ${MOST_RENEWALS} times`);
    const record: Renewed = { type: "renewed", device, request, certificate: base64(certificate) };
    this.journal.append(record);
    this.replay(record);
    return certificate;
  }

  /** The certificate that this very request got before. */
  private certificateOf(token: string, request: EnrollRequest): Buffer | undefined {
    const record = this.spent.get(token);
    if (!record) return undefined;
    requireThat(record.request === digest(request.signingRequest), ErrorReason.TOKEN, "the token is spent");
    return fromBase64(record.certificate);
  }

  private async issue(token: string, request: EnrollRequest): Promise<Buffer> {
    const expiresMs = this.expiry.get(token);
    requireThat(
      expiresMs !== undefined && Date.now() < expiresMs,
      ErrorReason.TOKEN,
      "the token is unknown or has expired",
    );
    const certificate = await this.authority.certify(await checkedKey(request.signingRequest));
    // Signing let others in between: whoever came first has spent the token.
    const earlier = this.certificateOf(token, request);
    if (earlier) return earlier;
    const record: Enrolled = {
      type: "enrolled",
      token,
      request: digest(request.signingRequest),
      certificate: base64(certificate),
    };
    this.journal.append(record);
    this.replay(record);
    return certificate;
  }
}

const digest = (bytes: Uint8Array): string => hex(sha256(bytes));

function checkSize({ length }: Uint8Array): void {
  const isInRange = length >= 1 && length <= 4096;
  requireThat(isInRange, ErrorReason.MALFORMED, `a signing request of ${length} bytes; 1 to 4,096 are allowed`);
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

/** The authority's key, which signs the certificates of devices. */
export class Authority {
  private constructor(
    private readonly issuer: x509.X509Certificate,
    private readonly key: webcrypto.CryptoKey,
  ) {}

  static async open(folder: string): Promise<Authority> {
    const issuer = new x509.X509Certificate(readFileSync(join(folder, "authority.pem"), "utf8"));
    const der = createPrivateKey(readFileSync(join(folder, "authority.key"))).export({ format: "der", type: "pkcs8" });
    return new Authority(issuer, await webcrypto.subtle.importKey("pkcs8", der, P256, false, ["sign"]));
  }

  /** The first certificate of a device has its id as serial number, a later one another. */
  async certify(publicKey: x509.PublicKey, device = hex(randomBytes(16)), serial = device): Promise<Buffer> {
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
    return Buffer.from(certificate.rawData);
  }
}
