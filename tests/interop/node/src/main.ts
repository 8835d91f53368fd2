// Starts the coordinator: node dist/main.js KIT STATE [--port P] [--enrollment-port P]
import { createPrivateKey } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { TlsOptions } from "node:tls";
import { parseArgs } from "node:util";
import { Artifacts } from "./artifacts.js";
import { Coordinator, type ServerEvent } from "./coordinator.js";
import { Authority, Enrollment } from "./enrollment.js";
import { CoordinatorService } from "./gen/lightfr/v1/coordinator_pb.js";
import { EnrollmentService } from "./gen/lightfr/v1/enrollment_pb.js";
import { listener, type Door } from "./http.js";
import { deviceTls, enrollmentTls, Revocations } from "./identity.js";
import { Journal } from "./journal.js";
import { limitsOf } from "./limits.js";
import { Service } from "./service.js";
import { readItems, readSettings, readTokens } from "./settings.js";
import { Versions } from "./versions.js";

const HOST = "localhost";
const KEEP_ALIVE_MS = 75_000; // devices pause between the steps of a round

async function main(kit: string, state: string, port: number, enrollmentPort: number): Promise<void> {
  mkdirSync(state, { recursive: true });
  const [authority, credentials] = [join(kit, "authority"), join(kit, "authority", "coordinator")];
  const settings = readSettings(kit);
  const artifacts = new Artifacts(join(state, "artifacts"));
  const manifestKey = createPrivateKey(readFileSync(join(credentials, "manifest.key")));
  const versions = new Versions(settings, artifacts, manifestKey, state);
  const { journal, records } = Journal.open<ServerEvent>(join(state, "server.jsonl"));
  const issuer = await Authority.open(authority);
  const enrollment = new Enrollment(issuer, readTokens(kit), journal);
  const coordinator = new Coordinator(settings, versions, journal, state, [issuer.membershipPublicKey()]);
  for (const record of records) {
    if (record.type === "enrolled" || record.type === "renewed") enrollment.replay(record);
    else coordinator.replay(record);
  }
  coordinator.start(readItems(kit), readFileSync(join(kit, "codes.bin")));
  process.on("SIGHUP", () => {
    try {
      coordinator.changeItems(readItems(kit));
    } catch (error) {
      console.error("the catalogue stays as it is:", error);
    }
  });

  const limitOf = limitsOf(settings, () => versions.current.itemCount);
  const revocations = new Revocations(credentials);
  const devices = open(deviceTls(credentials), {
    limitOf,
    artifacts,
    deviceOf: (socket) => revocations.deviceOf(socket),
    routes: (router) => router.service(CoordinatorService, new Service(coordinator)),
  });
  revocations.guard(devices);
  const renewing = new Revocations(authority);
  const newcomers = open(enrollmentTls(authority), {
    limitOf,
    deviceOf: (socket) => renewing.possibleDeviceOf(socket),
    routes: (router) => router.service(EnrollmentService, enrollment),
  });
  renewing.guard(newcomers);
  console.log(
    JSON.stringify({ server: await listen(devices, port), enrollment: await listen(newcomers, enrollmentPort) }),
  );
}

function open(tls: TlsOptions, door: Door): Server {
  const answer = listener(door);
  return createServer({ ...tls, keepAliveTimeout: KEEP_ALIVE_MS }, answer).on("checkContinue", answer);
}

async function listen(server: Server, port: number): Promise<string> {
  await new Promise<void>((resolve) => server.listen(port, HOST, resolve));
  return `https://${HOST}:${(server.address() as AddressInfo).port}`;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { port: { type: "string", default: "0" }, "enrollment-port": { type: "string", default: "0" } },
});
if (positionals.length !== 2) {
  console.error("usage: node dist/main.js KIT STATE [--port P] [--enrollment-port P]");
  process.exit(2);
}
await main(positionals[0], positionals[1], Number(values.port), Number(values["enrollment-port"]));
