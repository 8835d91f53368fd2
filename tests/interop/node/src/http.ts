// From an HTTP request to a call and back: docs/protocol.md, "Calls", "Errors" and "Limits". Connect does the protocol;
// what stands before it here are the checks that need the connection or the very bytes of the body.
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { TLSSocket } from "node:tls";
import { fromBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues, createConnectRouter, type ConnectRouter } from "@connectrpc/connect";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorToJson } from "@connectrpc/connect/protocol-connect";
import type { Artifacts } from "./artifacts.js";
import { ErrorReason, refusal } from "./errors.js";
import { callerKey, type Caller } from "./service.js";

const LONGEST_TIMER_MS = 2 ** 31 - 1;
const LINGER_MS = 5000;

export interface Door {
  routes: (router: ConnectRouter) => void;
  limitOf: (path: string) => number;
  /** Throws when the connection has no right to ask. */
  deviceOf: (socket: TLSSocket) => string;
  artifacts?: Artifacts;
}

/** What is no call at all: a status, and nothing more. */
class NoCall extends Error {
  constructor(readonly status: number) {
    super(`HTTP ${status}`);
  }
}

/** What https.createServer takes, also for "checkContinue": a body that is too large need not even be sent. */
export function listener(door: Door): RequestListener {
  const router = createConnectRouter({ grpc: false, grpcWeb: false, acceptCompression: [] });
  door.routes(router);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  return (request, response) => {
    answer(door, handlers, request, response).catch((error) => sendError(request, response, error));
  };
}

async function answer(
  door: Door,
  handlers: Map<string, UniversalHandler>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const device = door.deviceOf(request.socket as TLSSocket);
  const path = request.url!.split("?", 1)[0];
  if (path.startsWith("/artifacts/") && door.artifacts) return download(door.artifacts, path, request, response);
  const handler = handlers.get(path);
  if (!handler) throw new NoCall(404);
  checkHeaders(request);
  const body = await readBody(request, response, door.limitOf(path));
  checkParses(handler, body);
  await invoke(handler, { device, body }, request, response);
}

/** Lets Connect answer a call whose body has been read. */
async function invoke(
  handler: UniversalHandler,
  caller: Caller,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const values = createContextValues().set(callerKey, caller);
  const call = universalRequestFromNodeRequest(request, response, undefined, values);
  // Beyond what Node's timers can count is as good as no limit; Connect would take it for none at all left.
  const timeout = call.header.get("Connect-Timeout-Ms") ?? "";
  if (/^\d{10}$/.test(timeout) && Number(timeout) > LONGEST_TIMER_MS) call.header.delete("Connect-Timeout-Ms");
  await universalResponseToNodeResponse(await handler({ ...call, body: once(caller.body) }), response);
}

function download(artifacts: Artifacts, path: string, request: IncomingMessage, response: ServerResponse): void {
  if (request.method !== "GET" && request.method !== "HEAD") throw new NoCall(405);
  const isThere = artifacts.serve(path.slice("/artifacts/".length), request, response);
  if (!isThere) throw new NoCall(404);
}

function checkHeaders({ method, headers }: IncomingMessage): void {
  if (method !== "POST") throw new NoCall(405);
  const type = (headers["content-type"] ?? "").split(";", 1)[0].trim().toLowerCase();
  if (type !== "application/proto") throw new NoCall(415);
  const version = headers["connect-protocol-version"] ?? "1";
  if (version !== "1") throw new ConnectError("only version 1 of Connect", Code.InvalidArgument);
}

/** Reads the body, or refuses it before reading more than the limit. */
async function readBody(request: IncomingMessage, response: ServerResponse, limit: number): Promise<Buffer> {
  const tooLarge = () => refusal(ErrorReason.TOO_LARGE, `at most ${limit} bytes`, { limitBytes: BigInt(limit) });
  if (Number(request.headers["content-length"] ?? 0) > limit) throw tooLarge();
  if (request.headers.expect) response.writeContinue();
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    size += chunk.length;
    if (size > limit) throw tooLarge();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Connect would refuse it too, but without the reason that devices act on. */
function checkParses(handler: UniversalHandler, body: Uint8Array): void {
  try {
    fromBinary(handler.method.input, body);
  } catch {
    throw refusal(ErrorReason.MALFORMED, `the body is no ${handler.method.input.typeName}`);
  }
}

async function* once(body: Uint8Array): AsyncIterable<Uint8Array> {
  yield body;
}

function sendError(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  // What is left of a body is thrown away, so that the device gets to read the answer; but not for ever.
  if (!request.complete) {
    request.resume();
    setTimeout(() => request.complete || request.destroy(), LINGER_MS).unref();
  }
  if (error instanceof NoCall) return void response.writeHead(error.status, { "Content-Length": 0 }).end();
  const known = error instanceof ConnectError ? error : new ConnectError("internal error", Code.Internal);
  if (known !== error) console.error(error);
  const json = Buffer.from(JSON.stringify(errorToJson(known, undefined)));
  const headers = { "Content-Type": "application/json", "Content-Length": json.length };
  response.writeHead(codeToHttpStatus(known.code), headers).end(json);
}
