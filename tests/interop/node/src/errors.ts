// How this server refuses: docs/protocol.md, "Errors". One table from reason to Connect code.
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema, ErrorReason } from "./gen/lightfr/v1/error_pb.js";

const codes: Record<Exclude<ErrorReason, ErrorReason.UNSPECIFIED>, Code> = {
  [ErrorReason.MALFORMED]: Code.InvalidArgument,
  [ErrorReason.WIRE_VERSION]: Code.FailedPrecondition,
  [ErrorReason.TOO_LARGE]: Code.ResourceExhausted,
  [ErrorReason.IDENTITY]: Code.PermissionDenied,
  [ErrorReason.TOKEN]: Code.PermissionDenied,
  [ErrorReason.ROUND_UNKNOWN]: Code.NotFound,
  [ErrorReason.ROUND_CLOSED]: Code.FailedPrecondition,
  [ErrorReason.NOT_ASSIGNED]: Code.PermissionDenied,
  [ErrorReason.MODEL_MISMATCH]: Code.FailedPrecondition,
  [ErrorReason.UPLOAD_CONFLICT]: Code.AlreadyExists,
  [ErrorReason.UPLOAD_INVALID]: Code.InvalidArgument,
  [ErrorReason.OVERLOADED]: Code.Unavailable,
  [ErrorReason.RENEWAL_EARLY]: Code.FailedPrecondition,
};

type Reason = keyof typeof codes;
type Numbers = { limitBytes?: bigint; wireVersions?: number[]; renewableUnixSeconds?: bigint };

/** The error to throw. `message` is for people: numbers, no user data. */
export function refusal(reason: Reason, message: string, numbers: Numbers = {}): ConnectError {
  const detail = create(ErrorDetailSchema, { ...numbers, reason });
  return new ConnectError(message, codes[reason], undefined, [{ desc: ErrorDetailSchema, value: detail }]);
}

/** Throws unless `holds`. */
export function requireThat(holds: boolean, reason: Reason, message: string): asserts holds {
  if (!holds) throw refusal(reason, message);
}

export { ErrorReason };
