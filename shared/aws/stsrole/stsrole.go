// Package stsrole assumes IAM roles, so that a process can work for a cluster with exactly that role's permissions.
//
// The invariants: a role is assumed at its first use, and again before its credentials expire; valid credentials are
// cached; and a role that cannot be assumed is fault.Retry, regardless of the error of STS, because the call itself was not
// made.
package stsrole

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// expiryMargin is how long before their expiry credentials are renewed: a call with expiring credentials fails when
// it arrives, and earlier if the clock is behind.
const expiryMargin = time.Minute

// AssumeRole returns a configuration whose calls use a role, which is assumed (sts:AssumeRole) with the credentials
// of the given configuration. CloudTrail shows the session name, and the role's trust policy can require it.
func AssumeRole(config aws.Config, role, session string) aws.Config {
	taken := config.Copy()
	taken.Credentials = aws.NewCredentialsCache(roleProvider{role, session, stscreds.NewAssumeRoleProvider(sts.NewFromConfig(config), role,
		func(o *stscreds.AssumeRoleOptions) { o.RoleSessionName = session })},
		func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = expiryMargin })
	return taken
}

// roleProvider reports that the role cannot be assumed. Otherwise each call would return its own error, with a hint
// to grant its own action.
type roleProvider struct {
	role, session string
	aws.CredentialsProvider
}

// Retrieve implements aws.CredentialsProvider.
func (a roleProvider) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := a.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		// Use only the text: STS's error code would be read as that of the call.
		return found, fault.F("taking the role "+a.role, fault.Retry, "%v", err).
			WithHint("let the process's own role call sts:AssumeRole on it, and its trust policy that role, under the session %s", a.session)
	}
	return found, nil
}
