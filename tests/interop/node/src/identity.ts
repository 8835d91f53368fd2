// Who may speak with the server: docs/protocol.md, "TLS". The client certificate is the device.
import { constants } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { Server } from "node:https";
import { join } from "node:path";
import type { SecureContextOptions, TLSSocket, TlsOptions } from "node:tls";
import { ConnectError } from "@connectrpc/connect";
import { X509Crl } from "@peculiar/x509";
import { ErrorReason, refusal, requireThat } from "./errors.js";

/** TLS of the devices' door. OpenSSL checks the chain, the dates, the revocation list and the purpose `clientAuth`. */
export const deviceTls = (folder: string): TlsOptions => ({
  ...contextOf(folder),
  requestCert: true,
  rejectUnauthorized: true,
});

/** TLS of the authority's door: newcomers have no certificate, and who has one shows it to renew it. */
export const enrollmentTls = (folder: string): TlsOptions => ({ ...deviceTls(folder), rejectUnauthorized: false });

function contextOf(folder: string): SecureContextOptions {
  return {
    key: readFileSync(join(folder, "server.key")),
    cert: readFileSync(join(folder, "server.pem")),
    ca: readFileSync(join(folder, "authority.pem")),
    crl: readFileSync(join(folder, "crl.pem")),
    minVersion: "TLSv1.3",
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
    const certificate = socket.getPeerCertificate();
    const name: unknown = certificate.subject?.CN;
    if (typeof name !== "string" || !/^[0-9a-f]{32}$/.test(name)) {
      throw refusal(ErrorReason.IDENTITY, "the certificate names no device");
    }
    requireThat(Date.parse(certificate.valid_to) > Date.now(), ErrorReason.IDENTITY, "the certificate has ended");
    this.refresh();
    // By the id, which the list has as the serial number of the first certificate: renewed ones have others.
    const isRevoked = this.revoked.has(BigInt(`0x${name}`));
    requireThat(!isRevoked, ErrorReason.IDENTITY, "this device is revoked");
    return name;
  }

  /** The device on a connection that needs none; empty when there is none, or it has no right to its name any more. */
  possibleDeviceOf(socket: TLSSocket): string {
    if (!socket.authorized) return "";
    try {
      return this.deviceOf(socket);
    } catch (error) {
      if (error instanceof ConnectError) return "";
      throw error;
    }
  }

  /** Reads the list anew when it has changed. */
  private refresh(): void {
    const path = join(this.folder, "crl.pem");
    const changedAtMs = statSync(path).mtimeMs;
    if (changedAtMs === this.readAtMs) return;
    const list = new X509Crl(readFileSync(path, "utf8"));
    this.revoked = new Set(list.entries.map((entry) => BigInt(`0x${entry.serialNumber}`)));
    this.server?.setSecureContext(contextOf(this.folder));
    this.readAtMs = changedAtMs;
  }
}
