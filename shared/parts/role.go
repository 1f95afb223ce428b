package parts

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// taking is a configuration whose calls are made with a role that is taken when it is
// needed first, and again before it expires; without a role it is the given one.
func taking(config aws.Config, role, service, cluster string) aws.Config {
	if role == "" {
		return config
	}
	taken := config.Copy()
	taken.Credentials = aws.NewCredentialsCache(asked{role, stscreds.NewAssumeRoleProvider(sts.NewFromConfig(config), role, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = topology.Session(service, cluster)
	})})
	return taken
}

// asked says what is wrong where a role cannot be had: every call would say it in words
// of its own, and ask for a right to itself.
type asked struct {
	role string
	aws.CredentialsProvider
}

// Retrieve implements aws.CredentialsProvider. Nothing was done with the role, so the
// call that wanted it may be made again.
func (a asked) Retrieve(ctx context.Context) (aws.Credentials, error) {
	found, err := a.CredentialsProvider.Retrieve(ctx)
	if err != nil {
		// The text alone: AWS's own error would be taken for the answer to that call.
		return found, fault.F("taking the role "+a.role, fault.Retry, "%v", err).
			WithHint("let the process's own role take it (sts:AssumeRole), and have its trust policy name that role and this session")
	}
	return found, nil
}
