// Package spotrole makes sure of the account's service-linked role of EC2 spot, without
// which no spot instance can be launched. It answers CloudFormation as a
// custom resource: CloudFormation's own resource for such roles fails where the role
// exists. The invariants: that the role exists already is success; and nothing is ever
// removed, because other spot users of the account have the same role.
package spotrole

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

const (
	// service is whose role it is, and name the role's.
	service = "spot.amazonaws.com"
	name    = "AWSServiceRoleForEC2Spot"
)

// IAM is the one call.
type IAM interface {
	CreateServiceLinkedRole(ctx context.Context, in *iam.CreateServiceLinkedRoleInput, options ...func(*iam.Options)) (*iam.CreateServiceLinkedRoleOutput, error)
}

// Handler answers CloudFormation's events.
func Handler(client IAM) cfn.CustomResourceFunction {
	return func(ctx context.Context, e cfn.Event) (id string, data map[string]any, err error) {
		if e.RequestType == cfn.RequestDelete {
			return name, nil, nil
		}
		_, err = client.CreateServiceLinkedRole(ctx, &iam.CreateServiceLinkedRoleInput{AWSServiceName: aws.String(service)})
		if err != nil && !roleExists(err) {
			return name, nil, fmt.Errorf("creating the service-linked role of %s (try: aws iam create-service-linked-role --aws-service-name %s): %w", service, service, err)
		}
		return name, nil, nil
	}
}

// roleExists reports IAM's answer for a role that exists: "Service role name
// AWSServiceRoleForEC2Spot has been taken in this account".
func roleExists(err error) bool {
	var invalid *types.InvalidInputException
	return errors.As(err, &invalid) && strings.Contains(invalid.ErrorMessage(), "has been taken")
}
