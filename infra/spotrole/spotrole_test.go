package spotrole_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"github.com/joist-autoscaler/joist/infra/spotrole"
)

// fakeIAM is an IAM client that returns err and records its calls.
type fakeIAM struct {
	err   error
	asked []string
}

func (a *fakeIAM) CreateServiceLinkedRole(_ context.Context, in *iam.CreateServiceLinkedRoleInput, _ ...func(*iam.Options)) (*iam.CreateServiceLinkedRoleOutput, error) {
	a.asked = append(a.asked, aws.ToString(in.AWSServiceName))
	return &iam.CreateServiceLinkedRoleOutput{}, a.err
}

func TestCreateServiceLinkedRole(t *testing.T) {
	for name, test := range map[string]struct {
		kind  cfn.RequestType
		err   error
		fails bool
		calls int
	}{
		"made":          {cfn.RequestCreate, nil, false, 1},
		"existing role": {cfn.RequestCreate, &types.InvalidInputException{Message: aws.String("Service role name AWSServiceRoleForEC2Spot has been taken in this account, please try a different suffix.")}, false, 1},
		"update":        {cfn.RequestUpdate, nil, false, 1},
		"invalid input": {cfn.RequestCreate, &types.InvalidInputException{Message: aws.String("no such service")}, true, 1},
		"denied":        {cfn.RequestCreate, errors.New("AccessDenied"), true, 1},
		"delete":        {cfn.RequestDelete, errors.New("must not be called"), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := &fakeIAM{err: test.err}
			id, _, err := spotrole.Handler(a)(t.Context(), cfn.Event{RequestType: test.kind})
			if (err != nil) != test.fails || id != "AWSServiceRoleForEC2Spot" || len(a.asked) != test.calls {
				t.Errorf("got id %s, error %v, calls %v", id, err, a.asked)
			}
			if test.calls > 0 && a.asked[0] != "spot.amazonaws.com" {
				t.Errorf("got calls %v", a.asked)
			}
		})
	}
}
