// How a device gets its identity: docs/protocol.md, "Enrolment".
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
const P256 = { name: "ECDSA", namedCurve: "P-256" };

x509.cryptoProvider.set(webcrypto as Crypto);

/** Of token and request only digests are kept. */
export interface Enrolled {
  type: "enrolled";
  token: string;
  request: string;
  certificate: string;
}

export class Enrollment implements ServiceImpl<typeof EnrollmentService> {
  private readonly expiry = new Map<string, number>();
  private readonly spent = new Map<string, Enrolled>();

  constructor(
    private readonly authority: Pick<Authority, "certify">,
    tokens: Token[],
    private readonly journal: Pick<Journal<Enrolled>, "append">,
  ) {
    for (const { token, expires_unix_seconds } of tokens)
      this.expiry.set(digest(Buffer.from(token)), expires_unix_seconds * 1000);
  }

  /** Takes up what the journal remembers. */
  replay(record: Enrolled): void {
    this.spent.set(record.token, record);
  }

  enroll = async (request: EnrollRequest) => {
    requireThat(
      /^[\x00-\x7f]{16,128}$/.test(request.token),
      ErrorReason.MALFORMED,
      "a token has 16 to 128 ASCII characters",
    );
    const size = request.signingRequest.length;
    requireThat(
      size >= 1 && size <= 4096,
      ErrorReason.MALFORMED,
      `a signing request of ${size} bytes; 1 to 4,096 are allowed`,
    );
    const token = digest(Buffer.from(request.token));
    return { certificates: [this.certificateOf(token, request) ?? (await this.issue(token, request))] };
  };

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

  async certify(publicKey: x509.PublicKey): Promise<Buffer> {
    const device = hex(randomBytes(16));
    const begins = Date.now() - FIVE_MINUTES_MS;
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: device,
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
