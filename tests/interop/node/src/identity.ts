// Who may speak with the server: docs/protocol.md, "TLS". The client certificate is the device.
import { constants } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { Server } from "node:https";
import { join } from "node:path";
import type { SecureContextOptions, TLSSocket, TlsOptions } from "node:tls";
import { X509Crl } from "@peculiar/x509";
import { ErrorReason, refusal } from "./errors.js";

/** TLS of the devices' door. OpenSSL checks the chain, the dates, the revocation list and the purpose `clientAuth`. */
export function deviceTls(folder: string): TlsOptions {
  return { ...context(folder), requestCert: true, rejectUnauthorized: true };
}

/** TLS of the authority's door: whoever shows no good certificate is a newcomer. */
export function enrollmentTls(folder: string): TlsOptions {
  return { ...context(folder), requestCert: true, rejectUnauthorized: false };
}

/** Of a folder with a server's key and certificate, those of the authority, and its revocation list. */
function context(folder: string): SecureContextOptions {
  return {
    key: readFileSync(join(folder, "server.key")),
    cert: readFileSync(join(folder, "server.pem")),
    minVersion: "TLSv1.3",
    ca: readFileSync(join(folder, "authority.pem")),
    crl: readFileSync(join(folder, "crl.pem")),
    // In TLS 1.3 tickets are sent all the same, as devices want, but they only name a session that this server does not
    // keep. So nobody resumes, and a device revoked meanwhile is looked at again.
    secureOptions: constants.SSL_OP_NO_TICKET,
  };
}

/** The devices that lost their names, followed as the list changes. */
export class Revocations {
  private revoked = new Set<bigint>();
  private readAtMs = -1;
  private server?: Server;

  constructor(private readonly folder: string) {
    this.refresh();
  }

  /** Keeps the handshakes of a server up to date: the list is looked at before each. */
  guard(server: Server): void {
    this.server = server;
    server.prependListener("connection", () => this.refresh());
  }

  /** The device on this connection, 32 hexadecimal digits. A connection may outlive the right to it. */
  deviceOf(socket: TLSSocket): string {
    const device = this.knownDevice(socket);
    if (device === undefined) throw refusal(ErrorReason.IDENTITY, "the certificate names no device, or a revoked one");
    return device;
  }

  /** The device on this connection, or nothing: without a certificate, or with one that is not good (any more). */
  knownDevice(socket: TLSSocket): string | undefined {
    const name: unknown = socket.getPeerCertificate().subject?.CN;
    if (!socket.authorized || typeof name !== "string" || !/^[0-9a-f]{32}$/.test(name)) return undefined;
    this.refresh();
    // By the id, which the list has as the serial number of the first certificate: renewed ones have others.
    return this.revoked.has(BigInt(`0x${name}`)) ? undefined : name;
  }

  /** Reads the list anew when it has changed. */
  private refresh(): void {
    const path = join(this.folder, "crl.pem");
    const changedAtMs = statSync(path).mtimeMs;
    if (changedAtMs === this.readAtMs) return;
    const list = new X509Crl(readFileSync(path, "utf8"));
    this.revoked = new Set(list.entries.map((entry) => BigInt(`0x${entry.serialNumber}`)));
    this.server?.setSecureContext(context(this.folder));
    this.readAtMs = changedAtMs;
  }
}
