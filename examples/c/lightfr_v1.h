/*
 * The messages of lightfr.v1 for plain C: the number of each field, beside it the tag byte that stands before it on the
 * wire and its type, and the values of enums. Made by make_fields.py from proto/lightfr/v1, which says what they mean.
 */
#ifndef LIGHTFR_V1_H
#define LIGHTFR_V1_H

/* clang-format off */

enum { /* enum Objective */
  LFR_V1_OBJECTIVE_UNSPECIFIED = 0,
  LFR_V1_OBJECTIVE_CATALOGUE = 1,
  LFR_V1_OBJECTIVE_PAPER = 2,
};

enum { /* enum UploadKind */
  LFR_V1_UPLOAD_KIND_UNSPECIFIED = 0,
  LFR_V1_UPLOAD_KIND_TERNARY = 1,
  LFR_V1_UPLOAD_KIND_EXACT = 2,
  LFR_V1_UPLOAD_KIND_CODES = 3,
};

enum { /* enum PrivacyMode */
  LFR_V1_PRIVACY_MODE_UNSPECIFIED = 0,
  LFR_V1_PRIVACY_MODE_CLEAR = 1,
  LFR_V1_PRIVACY_MODE_SECAGG = 2,
  LFR_V1_PRIVACY_MODE_SECAGG_DP = 3,
};

enum { /* message RoundModel */
  LFR_V1_ROUND_MODEL_CODE_BITS = 1, /* 08 uint32 */
  LFR_V1_ROUND_MODEL_ITEM_COUNT = 2, /* 10 uint32 */
  LFR_V1_ROUND_MODEL_OBJECTIVE = 3, /* 18 Objective */
  LFR_V1_ROUND_MODEL_UPLOAD_KIND = 4, /* 20 UploadKind */
  LFR_V1_ROUND_MODEL_MEAN_USER = 5, /* 2a bytes */
  LFR_V1_ROUND_MODEL_MAX_ROWS = 6, /* 30 uint32 */
  LFR_V1_ROUND_MODEL_BALANCE = 7, /* 38 uint64 */
  LFR_V1_ROUND_MODEL_PRIVACY_MODE = 8, /* 40 PrivacyMode */
  LFR_V1_ROUND_MODEL_NOISE = 9, /* 4a Noise */
};

enum { /* message Noise */
  LFR_V1_NOISE_ROWS_THOUSANDTHS = 1, /* 08 uint32 */
  LFR_V1_NOISE_SUMS_THOUSANDTHS = 2, /* 10 uint32 */
  LFR_V1_NOISE_COUNTS_THOUSANDTHS = 3, /* 18 uint32 */
};

enum { /* enum RankBy */
  LFR_V1_RANK_BY_UNSPECIFIED = 0,
  LFR_V1_RANK_BY_CODES = 1,
  LFR_V1_RANK_BY_POPULARITY = 2,
  LFR_V1_RANK_BY_CHANCE = 3,
};

enum { /* enum Recency */
  LFR_V1_RECENCY_UNSPECIFIED = 0,
  LFR_V1_RECENCY_OFF = 1,
  LFR_V1_RECENCY_WEAK = 2,
  LFR_V1_RECENCY_STRONG = 3,
};

enum { /* message Artifact */
  LFR_V1_ARTIFACT_SHA256 = 1, /* 0a bytes */
  LFR_V1_ARTIFACT_SIZE_BYTES = 2, /* 10 uint64 */
};

enum { /* message CodesDelta */
  LFR_V1_CODES_DELTA_FROM_SHA256 = 1, /* 0a bytes */
  LFR_V1_CODES_DELTA_ARTIFACT = 2, /* 12 Artifact */
};

enum { /* message Manifest */
  LFR_V1_MANIFEST_WIRE_VERSION = 1, /* 08 uint32 */
  LFR_V1_MANIFEST_MODEL_VERSION = 2, /* 10 uint64 */
  LFR_V1_MANIFEST_CREATED_UNIX_SECONDS = 3, /* 18 uint64 */
  LFR_V1_MANIFEST_MODEL = 4, /* 22 RoundModel */
  LFR_V1_MANIFEST_CODES = 5, /* 2a Artifact */
  LFR_V1_MANIFEST_CODES_DELTAS = 6, /* 32 repeated CodesDelta */
  LFR_V1_MANIFEST_CATALOGUE_PARTS = 7, /* 3a repeated Artifact */
  LFR_V1_MANIFEST_OPEN_ROWS = 8, /* 42 Artifact */
  LFR_V1_MANIFEST_ARTIFACTS_ADDRESS = 9, /* 4a string */
  LFR_V1_MANIFEST_PRIOR = 10, /* 52 Prior */
  LFR_V1_MANIFEST_RANKINGS = 11, /* 5a repeated Ranking */
  LFR_V1_MANIFEST_CANDIDATES = 12, /* 62 repeated Ranking */
  LFR_V1_MANIFEST_REMOVED_ITEMS = 13, /* 6a Artifact */
};

enum { /* message Prior */
  LFR_V1_PRIOR_FIRST_ITEMS = 1, /* 0a repeated uint32 */
  LFR_V1_PRIOR_POPULARITIES = 2, /* 12 repeated uint32 */
};

enum { /* message Ranking */
  LFR_V1_RANKING_BY = 1, /* 08 RankBy */
  LFR_V1_RANKING_PRIOR_FOURTHS = 2, /* 10 uint32 */
  LFR_V1_RANKING_RECENCY = 3, /* 18 Recency */
  LFR_V1_RANKING_REFINE = 4, /* 20 bool */
};

enum { /* message SignedManifest */
  LFR_V1_SIGNED_MANIFEST_MANIFEST = 1, /* 0a bytes */
  LFR_V1_SIGNED_MANIFEST_SIGNATURE = 2, /* 12 bytes */
  LFR_V1_SIGNED_MANIFEST_KEY_ID = 3, /* 1a bytes */
};

enum { /* message RowUpdate */
  LFR_V1_ROW_UPDATE_CODE_BITS = 1, /* 08 uint32 */
  LFR_V1_ROW_UPDATE_ITEM_INDICES = 2, /* 12 bytes */
  LFR_V1_ROW_UPDATE_TERNARY = 3, /* 1a TernaryRows */
  LFR_V1_ROW_UPDATE_EXACT = 4, /* 22 ExactRows */
  LFR_V1_ROW_UPDATE_CODES = 5, /* 2a CodeRows */
  LFR_V1_ROW_UPDATE_USER_CODE = 6, /* 32 bytes */
};

enum { /* message TernaryRows */
  LFR_V1_TERNARY_ROWS_NONZERO = 1, /* 0a bytes */
  LFR_V1_TERNARY_ROWS_POSITIVE = 2, /* 12 bytes */
};

enum { /* message ExactRows */
  LFR_V1_EXACT_ROWS_GRADIENTS = 1, /* 0a bytes */
};

enum { /* message CodeRows */
  LFR_V1_CODE_ROWS_CODES = 1, /* 0a bytes */
};

enum { /* message AdvertiseKeysRequest */
  LFR_V1_ADVERTISE_KEYS_REQUEST_ROUND_ID = 1, /* 0a bytes */
  LFR_V1_ADVERTISE_KEYS_REQUEST_MASK_PUBLIC_KEY = 2, /* 12 bytes */
  LFR_V1_ADVERTISE_KEYS_REQUEST_SHARE_PUBLIC_KEY = 3, /* 1a bytes */
  LFR_V1_ADVERTISE_KEYS_REQUEST_MEMBERSHIP = 4, /* 22 bytes */
  LFR_V1_ADVERTISE_KEYS_REQUEST_SIGNATURE = 5, /* 2a bytes */
};

enum { /* message ShareKeysRequest */
  LFR_V1_SHARE_KEYS_REQUEST_ROUND_ID = 1, /* 0a bytes */
  LFR_V1_SHARE_KEYS_REQUEST_SEALED_SHARES = 2, /* 12 bytes */
};

enum { /* message AcknowledgeSharesRequest */
  LFR_V1_ACKNOWLEDGE_SHARES_REQUEST_ROUND_ID = 1, /* 0a bytes */
  LFR_V1_ACKNOWLEDGE_SHARES_REQUEST_UNOPENED = 2, /* 12 bytes */
};

enum { /* message SignIncludedRequest */
  LFR_V1_SIGN_INCLUDED_REQUEST_ROUND_ID = 1, /* 0a bytes */
  LFR_V1_SIGN_INCLUDED_REQUEST_SIGNATURE = 2, /* 12 bytes */
};

enum { /* message SignSurvivorsRequest */
  LFR_V1_SIGN_SURVIVORS_REQUEST_ROUND_ID = 1, /* 0a bytes */
  LFR_V1_SIGN_SURVIVORS_REQUEST_SIGNATURE = 2, /* 12 bytes */
};

enum { /* message RevealSharesRequest */
  LFR_V1_REVEAL_SHARES_REQUEST_ROUND_ID = 1, /* 0a bytes */
  LFR_V1_REVEAL_SHARES_REQUEST_SEEDS = 2, /* 12 bytes */
  LFR_V1_REVEAL_SHARES_REQUEST_MASK_KEYS = 3, /* 1a bytes */
};

enum { /* message GetStepRequest */
  LFR_V1_GET_STEP_REQUEST_ROUND_ID = 1, /* 0a bytes */
  LFR_V1_GET_STEP_REQUEST_MAX_WAIT_MS = 2, /* 10 uint32 */
};

enum { /* message GetStepResponse */
  LFR_V1_GET_STEP_RESPONSE_WAIT_MS = 1, /* 08 uint32 */
  LFR_V1_GET_STEP_RESPONSE_SHARE = 2, /* 12 ShareStep */
  LFR_V1_GET_STEP_RESPONSE_ACKNOWLEDGE = 3, /* 1a AcknowledgeStep */
  LFR_V1_GET_STEP_RESPONSE_INCLUDED = 4, /* 22 IncludedStep */
  LFR_V1_GET_STEP_RESPONSE_UPLOAD = 5, /* 2a UploadStep */
  LFR_V1_GET_STEP_RESPONSE_SURVIVORS = 6, /* 32 SurvivorsStep */
  LFR_V1_GET_STEP_RESPONSE_REVEAL = 7, /* 3a RevealStep */
  LFR_V1_GET_STEP_RESPONSE_DONE = 8, /* 42 RoundDone */
};

enum { /* message ShareStep */
  LFR_V1_SHARE_STEP_ENTRIES = 1, /* 0a bytes */
  LFR_V1_SHARE_STEP_VOUCHERS = 2, /* 12 bytes */
  LFR_V1_SHARE_STEP_DEGREE = 3, /* 18 uint32 */
  LFR_V1_SHARE_STEP_HOLDERS = 4, /* 20 uint32 */
  LFR_V1_SHARE_STEP_THRESHOLD = 5, /* 28 uint32 */
  LFR_V1_SHARE_STEP_SIGNATURE = 6, /* 32 bytes */
};

enum { /* message AcknowledgeStep */
  LFR_V1_ACKNOWLEDGE_STEP_SEALED_SHARES = 1, /* 0a bytes */
};

enum { /* message IncludedStep */
  LFR_V1_INCLUDED_STEP_INCLUDED = 1, /* 0a bytes */
  LFR_V1_INCLUDED_STEP_SIGNATURE = 2, /* 12 bytes */
};

enum { /* message UploadStep */
  LFR_V1_UPLOAD_STEP_SIGNERS = 1, /* 0a bytes */
  LFR_V1_UPLOAD_STEP_SIGNATURES = 2, /* 12 bytes */
};

enum { /* message SurvivorsStep */
  LFR_V1_SURVIVORS_STEP_SURVIVORS = 1, /* 0a bytes */
  LFR_V1_SURVIVORS_STEP_SIGNATURE = 2, /* 12 bytes */
};

enum { /* message RevealStep */
  LFR_V1_REVEAL_STEP_SIGNERS = 1, /* 0a bytes */
  LFR_V1_REVEAL_STEP_SIGNATURES = 2, /* 12 bytes */
};

enum { /* enum RoundKind */
  LFR_V1_ROUND_KIND_UNSPECIFIED = 0,
  LFR_V1_ROUND_KIND_TRAINING = 1,
  LFR_V1_ROUND_KIND_GATE_REFRESH = 2,
  LFR_V1_ROUND_KIND_EVALUATION = 3,
};

enum { /* enum RetryReason */
  LFR_V1_RETRY_REASON_UNSPECIFIED = 0,
  LFR_V1_RETRY_REASON_ROUND_FULL = 1,
  LFR_V1_RETRY_REASON_ALREADY_UPLOADED = 2,
  LFR_V1_RETRY_REASON_AGGREGATING = 3,
  LFR_V1_RETRY_REASON_TRAINING_FINISHED = 4,
  LFR_V1_RETRY_REASON_NOT_CAPABLE = 5,
  LFR_V1_RETRY_REASON_FAULTY = 6,
};

enum { /* enum RoundState */
  LFR_V1_ROUND_STATE_UNSPECIFIED = 0,
  LFR_V1_ROUND_STATE_OPEN = 1,
  LFR_V1_ROUND_STATE_AGGREGATING = 2,
  LFR_V1_ROUND_STATE_FINISHED = 3,
  LFR_V1_ROUND_STATE_ABANDONED = 4,
};

enum { /* message Capabilities */
  LFR_V1_CAPABILITIES_WIRE_VERSIONS = 1, /* 0a repeated uint32 */
  LFR_V1_CAPABILITIES_UPLOAD_KINDS = 2, /* 12 repeated UploadKind */
  LFR_V1_CAPABILITIES_PRIVACY_MODES = 3, /* 1a repeated PrivacyMode */
};

enum { /* message GetManifestRequest */
  LFR_V1_GET_MANIFEST_REQUEST_CAPABILITIES = 1, /* 0a Capabilities */
  LFR_V1_GET_MANIFEST_REQUEST_KNOWN_MODEL_VERSION = 2, /* 10 uint64 */
};

enum { /* message GetManifestResponse */
  LFR_V1_GET_MANIFEST_RESPONSE_SIGNED_MANIFEST = 1, /* 0a SignedManifest */
};

enum { /* message CheckInRequest */
  LFR_V1_CHECK_IN_REQUEST_CAPABILITIES = 1, /* 0a Capabilities */
  LFR_V1_CHECK_IN_REQUEST_KNOWN_MODEL_VERSION = 2, /* 10 uint64 */
};

enum { /* message CheckInResponse */
  LFR_V1_CHECK_IN_RESPONSE_ASSIGNMENT = 1, /* 0a Assignment */
  LFR_V1_CHECK_IN_RESPONSE_RETRY_WINDOW = 2, /* 12 RetryWindow */
};

enum { /* message Assignment */
  LFR_V1_ASSIGNMENT_ROUND_ID = 1, /* 0a bytes */
  LFR_V1_ASSIGNMENT_MODEL_VERSION = 2, /* 10 uint64 */
  LFR_V1_ASSIGNMENT_MANIFEST_SHA256 = 3, /* 1a bytes */
  LFR_V1_ASSIGNMENT_DEADLINE_MS = 4, /* 20 uint32 */
  LFR_V1_ASSIGNMENT_UPLOAD_LIMIT_BYTES = 5, /* 28 uint32 */
  LFR_V1_ASSIGNMENT_PEER_ID = 6, /* 32 bytes */
  LFR_V1_ASSIGNMENT_KIND = 7, /* 38 RoundKind */
};

enum { /* message RetryWindow */
  LFR_V1_RETRY_WINDOW_EARLIEST_MS = 1, /* 08 uint32 */
  LFR_V1_RETRY_WINDOW_LATEST_MS = 2, /* 10 uint32 */
  LFR_V1_RETRY_WINDOW_REASON = 3, /* 18 RetryReason */
};

enum { /* message UploadRequest */
  LFR_V1_UPLOAD_REQUEST_ROUND_ID = 1, /* 0a bytes */
  LFR_V1_UPLOAD_REQUEST_MANIFEST_SHA256 = 2, /* 12 bytes */
  LFR_V1_UPLOAD_REQUEST_UPLOAD_ID = 3, /* 1a bytes */
  LFR_V1_UPLOAD_REQUEST_ROW_UPDATE = 4, /* 22 RowUpdate */
  LFR_V1_UPLOAD_REQUEST_MASKED_VECTOR = 5, /* 2a bytes */
};

enum { /* message UploadResponse */
  LFR_V1_UPLOAD_RESPONSE_UPLOAD_ID = 1, /* 0a bytes */
  LFR_V1_UPLOAD_RESPONSE_REQUEST_SHA256 = 2, /* 12 bytes */
};

enum { /* message GetRoundStatusRequest */
  LFR_V1_GET_ROUND_STATUS_REQUEST_ROUND_ID = 1, /* 0a bytes */
};

enum { /* message GetRoundStatusResponse */
  LFR_V1_GET_ROUND_STATUS_RESPONSE_STATE = 1, /* 08 RoundState */
  LFR_V1_GET_ROUND_STATUS_RESPONSE_UPLOAD_COUNT = 2, /* 10 uint32 */
  LFR_V1_GET_ROUND_STATUS_RESPONSE_UPLOAD_GOAL = 3, /* 18 uint32 */
  LFR_V1_GET_ROUND_STATUS_RESPONSE_HAS_YOUR_UPLOAD = 4, /* 20 bool */
  LFR_V1_GET_ROUND_STATUS_RESPONSE_NEXT_MODEL_VERSION = 5, /* 28 uint64 */
};

enum { /* message EnrollRequest */
  LFR_V1_ENROLL_REQUEST_TOKEN = 1, /* 0a string */
  LFR_V1_ENROLL_REQUEST_SIGNING_REQUEST = 2, /* 12 bytes */
  LFR_V1_ENROLL_REQUEST_MEMBER_KEY = 3, /* 1a bytes */
};

enum { /* message EnrollResponse */
  LFR_V1_ENROLL_RESPONSE_CERTIFICATES = 1, /* 0a repeated bytes */
  LFR_V1_ENROLL_RESPONSE_MEMBERSHIP = 2, /* 12 bytes */
};

enum { /* message RenewCertificateRequest */
  LFR_V1_RENEW_CERTIFICATE_REQUEST_SIGNING_REQUEST = 1, /* 0a bytes */
  LFR_V1_RENEW_CERTIFICATE_REQUEST_MEMBER_KEY = 2, /* 12 bytes */
};

enum { /* message RenewCertificateResponse */
  LFR_V1_RENEW_CERTIFICATE_RESPONSE_CERTIFICATES = 1, /* 0a repeated bytes */
  LFR_V1_RENEW_CERTIFICATE_RESPONSE_MEMBERSHIP = 2, /* 12 bytes */
};

enum { /* enum ErrorReason */
  LFR_V1_ERROR_REASON_UNSPECIFIED = 0,
  LFR_V1_ERROR_REASON_MALFORMED = 1,
  LFR_V1_ERROR_REASON_WIRE_VERSION = 2,
  LFR_V1_ERROR_REASON_TOO_LARGE = 3,
  LFR_V1_ERROR_REASON_IDENTITY = 4,
  LFR_V1_ERROR_REASON_TOKEN = 5,
  LFR_V1_ERROR_REASON_ROUND_UNKNOWN = 6,
  LFR_V1_ERROR_REASON_ROUND_CLOSED = 7,
  LFR_V1_ERROR_REASON_NOT_ASSIGNED = 8,
  LFR_V1_ERROR_REASON_MODEL_MISMATCH = 9,
  LFR_V1_ERROR_REASON_UPLOAD_CONFLICT = 10,
  LFR_V1_ERROR_REASON_UPLOAD_INVALID = 11,
  LFR_V1_ERROR_REASON_OVERLOADED = 12,
  LFR_V1_ERROR_REASON_RENEWAL_EARLY = 13,
};

enum { /* message ErrorDetail */
  LFR_V1_ERROR_DETAIL_REASON = 1, /* 08 ErrorReason */
  LFR_V1_ERROR_DETAIL_LIMIT_BYTES = 2, /* 10 uint64 */
  LFR_V1_ERROR_DETAIL_WIRE_VERSIONS = 3, /* 1a repeated uint32 */
  LFR_V1_ERROR_DETAIL_RENEWABLE_UNIX_SECONDS = 4, /* 20 uint64 */
};

#endif
