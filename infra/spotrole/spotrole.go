// Package spotrole creates the account's service-linked role for EC2 spot, without which no
// spot instance can be launched. It is a CloudFormation custom resource, because
// CloudFormation's own resource fails if the role exists. It never deletes the role, because
// other users of spot instances in the account need it.
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
	// service is the service of the role, name the role's name.
	service = "spot.amazonaws.com"
	name    = "AWSServiceRoleForEC2Spot"
)

// IAM is the used part of the IAM client.
type IAM interface {
	CreateServiceLinkedRole(ctx context.Context, in *iam.CreateServiceLinkedRoleInput, options ...func(*iam.Options)) (*iam.CreateServiceLinkedRoleOutput, error)
}

// Handler returns the handler of CloudFormation's events.
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

// roleExists reports whether the error is IAM's for an existing role: "Service role name
// AWSServiceRoleForEC2Spot has been taken in this account".
func roleExists(err error) bool {
	var invalid *types.InvalidInputException
	return errors.As(err, &invalid) && strings.Contains(invalid.ErrorMessage(), "has been taken")
}
