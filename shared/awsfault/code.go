package awsfault

import (
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// codes is what AWS's codes mean, where their shape does not say it. A code
// that is Retry here says that a server failed; for a write that is Unknown.
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

	"NoSuchEntity":              fault.Missing,
	"ParameterNotFound":         fault.Missing,
	"ResourceNotFoundException": fault.Missing,

	"IdempotentParameterMismatch": fault.Conflict,
	"EntityAlreadyExists":         fault.Conflict,
	"DeleteConflict":              fault.Conflict,

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

// harmless are the codes of Retry that say that nothing was done, so that a
// write need not be Unknown.
var harmless = map[string]bool{
	"ExpiredToken": true, "ExpiredTokenException": true, "RequestExpired": true, "ConcurrentModification": true,
}

// hints are for codes that need another remedy than a right.
var hints = map[string]string{ //nolint:gosec // the sentences speak of credentials and hold none
	"AuthFailure.ServiceLinkedRoleCreationNotPermitted": "create the role once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
	"InvalidClientTokenId":                              "check which AWS credentials this process finds; these are of no account",
	"UnrecognizedClientException":                       "check which AWS credentials this process finds; these are of no account",
	"SignatureDoesNotMatch":                             "check the AWS secret key and this machine's clock",
	"OptInRequired":                                     "enable the region, or the service, for this account",
	"VcpuLimitExceeded":                                 "ask AWS for a higher vCPU quota of these instance families",
	"MaxSpotInstanceCountExceeded":                      "ask AWS for a higher spot quota of these instance families",
}

// kindOf reads a code by table, then by shape.
func kindOf(code string) (fault.Kind, bool) {
	if kind, ok := codes[code]; ok {
		return kind, true
	}
	switch {
	case strings.HasSuffix(code, ".NotFound"), strings.HasSuffix(code, ".NotFoundException"):
		return fault.Missing, true
	case strings.HasSuffix(code, ".AlreadyExistsException"), strings.HasSuffix(code, ".Duplicate"):
		return fault.Conflict, true
	}
	return "", false
}
