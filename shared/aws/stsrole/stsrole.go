// Package stsrole takes roles by STS, so that a process may do for somebody what that
// one's role may do, and nothing else.
//
// The invariants: a role is taken when it is needed first, and again before its
// credentials end; nobody is asked twice for what is still good; and a role that cannot be
// had is fault.Retry, whatever STS said, because nothing was done with it.
package stsrole

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// expiryMargin is how long before credentials end others are asked for: a call that is signed
// with ending ones is refused when it arrives, and sooner by a clock that is behind.
const expiryMargin = time.Minute

// AssumeRole gives a configuration whose calls are made with a role, which is taken with the
// credentials of the given one (sts:AssumeRole). The session is what CloudTrail calls
// whoever takes it, and what the role's trust policy may ask for.
func AssumeRole(config aws.Config, role, session string) aws.Config {
	taken := config.Copy()
	taken.Credentials = aws.NewCredentialsCache(roleProvider{role, session, stscreds.NewAssumeRoleProvider(sts.NewFromConfig(config), role,
		func(o *stscreds.AssumeRoleOptions) { o.RoleSessionName = session })},
		func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = expiryMargin })
	return taken
}

// roleProvider says what is wrong where a role cannot be had: every call would say it in words
// of its own, and ask for a right to itself.
type roleProvider struct {
	role, session string
	aws.CredentialsProvider
}

// Retrieve implements aws.CredentialsProvider.
func (a roleProvider) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := a.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		// The text alone: STS's own error would be taken for the answer to the call.
		return found, fault.F("taking the role "+a.role, fault.Retry, "%v", err).
			WithHint("let the process's own role call sts:AssumeRole on it, and its trust policy that role, under the session %s", a.session)
	}
	return found, nil
}
