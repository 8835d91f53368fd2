// How large a request may be, in bytes: docs/protocol.md, "Limits".
import { candidatesFor } from "./evaluation.js";
import { CoordinatorService } from "./gen/lightfr/v1/coordinator_pb.js";
import { EnrollmentService } from "./gen/lightfr/v1/enrollment_pb.js";
import { PrivacyMode, UploadKind } from "./gen/lightfr/v1/model_pb.js";
import { mostHolders } from "./secure/roster.js";
import { evaluationBlocks, packedSize, trainingBlocks } from "./secure/vector.js";
import type { Settings } from "./settings.js";

const SMALL = 1024;
const SIGNING_REQUEST = 4352;
const AROUND_AN_UPLOAD = 200;

/** Room for the largest legal upload, whichever rows are open and in every kind of round, and for the fields around it. */
export function uploadLimit(settings: Settings, itemCount: number): number {
  const { privacy, codeBits, maxRows, places, noise, uploadKind } = settings;
  if (privacy !== PrivacyMode.CLEAR) {
    const training = trainingBlocks(places, itemCount, codeBits, noise);
    const evaluation = evaluationBlocks(places, candidatesFor(codeBits, true).length, noise);
    return AROUND_AN_UPLOAD + Math.max(packedSize(training), packedSize(evaluation));
  }
  const rows = maxRows > 0 ? Math.min(maxRows, itemCount) : itemCount;
  return AROUND_AN_UPLOAD + rows * (4 + rowBytes(uploadKind, codeBits)) + codeBits / 8;
}

/** What one row takes in an upload in the clear: two bit planes, int32 or a code. */
export function rowBytes(kind: UploadKind, codeBits: number): number {
  if (kind === UploadKind.EXACT) return 4 * codeBits;
  return kind === UploadKind.CODES ? codeBits / 8 : codeBits / 4;
}

/** The limit of each method by its path; `itemCount` is that of the catalogue as it is now. */
export function limitsOf(settings: Settings, itemCount: () => number): (path: string) => number {
  const { places } = settings;
  const { upload, shareKeys, acknowledgeShares, revealShares } = CoordinatorService.method;
  const { enroll, renewCertificate } = EnrollmentService.method;
  const limits = new Map([
    [`/${CoordinatorService.typeName}/${shareKeys.name}`, SMALL + 98 * mostHolders(places)],
    [`/${CoordinatorService.typeName}/${acknowledgeShares.name}`, SMALL + ((places + 7) >> 3)],
    [`/${CoordinatorService.typeName}/${revealShares.name}`, SMALL + 37 * places],
    [`/${EnrollmentService.typeName}/${enroll.name}`, SIGNING_REQUEST],
    [`/${EnrollmentService.typeName}/${renewCertificate.name}`, SIGNING_REQUEST],
  ]);
  const uploadPath = `/${CoordinatorService.typeName}/${upload.name}`;
  return (path) => (path === uploadPath ? uploadLimit(settings, itemCount()) : (limits.get(path) ?? SMALL));
}
