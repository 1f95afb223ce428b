package awsfault

import (
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// codes maps AWS error codes to kinds where KindOf's prefixes and suffixes do not. A code with Retry is a server
// failure; for a write it becomes Unknown. The codes are from "Error codes for the Amazon EC2 API" and from the API
// references of the other services that Joist calls.
var codes = map[string]fault.Kind{
	"RequestLimitExceeded":      fault.Throttled,
	"Throttling":                fault.Throttled,
	"ThrottlingException":       fault.Throttled,
	"ThrottledException":        fault.Throttled,
	"TooManyRequestsException":  fault.Throttled,
	"RequestThrottled":          fault.Throttled,
	"RequestThrottledException": fault.Throttled,
	"EC2ThrottledException":     fault.Throttled,
	"SlowDown":                  fault.Throttled,
	"OverLimit":                 fault.Throttled,
	"KmsThrottled":              fault.Throttled,

	"UnauthorizedOperation":       fault.Denied,
	"AccessDenied":                fault.Denied,
	"AccessDeniedException":       fault.Denied,
	"AuthFailure":                 fault.Denied,
	"OptInRequired":               fault.Denied,
	"InvalidClientTokenId":        fault.Denied,
	"SignatureDoesNotMatch":       fault.Denied,
	"UnrecognizedClientException": fault.Denied,
	"MissingAuthenticationToken":  fault.Denied,
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": fault.Denied,
	"Blocked":                             fault.Denied,
	"PendingVerification":                 fault.Denied,
	"IncompleteSignature":                 fault.Denied,
	"AccountProblem":                      fault.Denied,
	"AllAccessDisabled":                   fault.Denied,
	"NotAuthorized":                       fault.Denied,
	"NotAuthorizedForSourceException":     fault.Denied,
	"NotAuthorizedForDetailTypeException": fault.Denied,
	"RegionDisabledException":             fault.Denied,
	"InvalidSecurity":                     fault.Denied,
	"KmsAccessDenied":                     fault.Denied,

	"NotFoundException":         fault.Missing,
	"ParameterVersionNotFound":  fault.Missing,
	"NoSuchEntity":              fault.Missing,
	"ParameterNotFound":         fault.Missing,
	"ResourceNotFoundException": fault.Missing,

	"IdempotentParameterMismatch":  fault.Conflict,
	"EntityAlreadyExists":          fault.Conflict,
	"IdempotentInstanceTerminated": fault.Conflict,
	"ConflictException":            fault.Conflict,
	"DeleteConflict":               fault.Conflict,

	"InsufficientInstanceCapacity":         fault.Invalid,
	"InsufficientHostCapacity":             fault.Invalid,
	"InsufficientReservedInstanceCapacity": fault.Invalid,
	"InsufficientCapacity":                 fault.Invalid,
	"InsufficientFreeAddressesInSubnet":    fault.Invalid,
	"ReservationCapacityExceeded":          fault.Invalid,
	"UnfulfillableCapacity":                fault.Invalid,
	"MaxSpotInstanceCountExceeded":         fault.Invalid,
	"MaxFleetCountExceeded":                fault.Invalid,
	"SpotMaxPriceTooLow":                   fault.Invalid,
	"ResourceCountExceeded":                fault.Invalid,
	"RequestResourceCountExceeded":         fault.Invalid,
	"OperationNotPermitted":                fault.Invalid,
	"TagPolicyViolation":                   fault.Invalid,
	"VolumeTypeNotAvailableInZone":         fault.Invalid,
	"UnavailableHostRequirements":          fault.Invalid,
	"NonEBSInstance":                       fault.Invalid,
	"UnknownParameter":                     fault.Invalid,
	"UnmodifiableEntity":                   fault.Invalid,
	"PackedPolicyTooLarge":                 fault.Invalid,
	"PolicyLengthExceededException":        fault.Invalid,
	"ReceiptHandleIsInvalid":               fault.Invalid,
	"MessageNotInflight":                   fault.Invalid,
	"EmptyBatchRequest":                    fault.Invalid,
	"BatchRequestTooLong":                  fault.Invalid,
	"BatchEntryIdsNotDistinct":             fault.Invalid,
	"TooManyEntriesInBatchRequest":         fault.Invalid,
	"NoSuchBucket":                         fault.Invalid,
	"EntityTooLarge":                       fault.Invalid,
	"EntityTooSmall":                       fault.Invalid,
	"KeyTooLongError":                      fault.Invalid,
	"MethodNotAllowed":                     fault.Invalid,
	"NotImplemented":                       fault.Invalid,

	// These have the prefix of a definite code, but are not definite.
	"InvalidPaginationToken":    fault.Rejected,
	"InvalidNextTokenException": fault.Rejected,
	"InvalidState":              fault.Rejected,
	"InvalidStateException":     fault.Rejected,
	"InvalidStateTransition":    fault.Rejected,

	"ExpiredToken":           fault.Retry,
	"ExpiredTokenException":  fault.Retry,
	"RequestExpired":         fault.Retry,
	"ConcurrentModification": fault.Retry,
	"RequestTimeout":         fault.Retry,
	"InternalError":          fault.Retry,
	"InternalFailure":        fault.Retry,
	"ServerInternal":         fault.Retry,
	"InternalServerError":    fault.Retry,
	"ServiceFailure":         fault.Retry,
	"ServiceUnavailable":     fault.Retry,
	"Unavailable":            fault.Retry,
}

// definiteFailures are the codes with Retry that guarantee that nothing was done, so a write is not Unknown.
var definiteFailures = map[string]bool{
	"ExpiredToken": true, "ExpiredTokenException": true, "RequestExpired": true, "ConcurrentModification": true,
}

// hints are for codes whose cause is not a missing permission.
var hints = map[string]string{ //nolint:gosec // the sentences speak of credentials and hold none
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": "create the role once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
	"InvalidClientTokenId":                              "check which AWS credentials this process finds; these are of no account",
	"UnrecognizedClientException":                       "check which AWS credentials this process finds; these are of no account",
	"SignatureDoesNotMatch":                             "check the AWS secret key and this machine's clock",
	"OptInRequired":                                     "enable the region, or the service, for this account",
	"VcpuLimitExceeded":                                 "ask AWS for a higher vCPU quota of these instance families",
	"MaxSpotInstanceCountExceeded":                      "ask AWS for a higher spot quota of these instance families",
}

// KindOf returns the kind of a code by the table, then by its prefix or suffix. Others are fault.Rejected.
func KindOf(code string) fault.Kind {
	code = strings.TrimPrefix(code, "AWS.SimpleQueueService.")
	if kind, ok := codes[code]; ok {
		return kind
	}
	switch {
	case hasAnySuffix(code, ".NotFound", ".NotFoundException"):
		return fault.Missing
	case hasAnySuffix(code, ".AlreadyExistsException", ".Duplicate"):
		return fault.Conflict
	case hasAnySuffix(code, ".InUse"):
		return fault.Rejected
	case hasAnyPrefix(code, "Invalid", "Malformed", "Missing", "Unsupported", "Validation"),
		hasAnySuffix(code, "LimitExceeded", "LimitExceededException", "NotSupported"):
		return fault.Invalid
	}
	return fault.Rejected
}

func hasAnySuffix(code string, ends ...string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(code, end) })
}

func hasAnyPrefix(code string, starts ...string) bool {
	return slices.ContainsFunc(starts, func(start string) bool { return strings.HasPrefix(code, start) })
}
