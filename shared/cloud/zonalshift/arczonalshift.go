// Package zonalshift is the adapter to Amazon Application Recovery Controller: the zones that a cluster is shifted
// away from.
//
// It returns zonal shifts and autoshifts that are in force. A cluster that is not registered with the controller has
// none.
package zonalshift

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/aws/awshttp"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// timeout is the timeout of one call.
const timeout = 20 * time.Second

// Shifts reads zonal shifts with one client.
type Shifts struct {
	client *arczonalshift.Client
}

var _ cloud.ZonalShifts = Shifts{}

// New returns Shifts with an AWS configuration.
func New(config aws.Config) Shifts {
	return Shifts{client: arczonalshift.NewFromConfig(awshttp.WithSafeBodies(config))}
}

// ZonalShifts is arc-zonal-shift:GetManagedResource.
func (s Shifts) ZonalShifts(ctx context.Context, arn string) ([]cloud.ZonalShift, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	found, err := s.client.GetManagedResource(ctx, &arczonalshift.GetManagedResourceInput{ResourceIdentifier: aws.String(arn)})
	if err != nil {
		err = awsfault.ReadCall("reading the zonal shifts of "+arn, "arc-zonal-shift:GetManagedResource").Wrap(err)
		if fault.Is(err, fault.Missing) {
			return nil, nil
		}
		return nil, err
	}
	var out []cloud.ZonalShift
	for _, z := range found.ZonalShifts {
		if z.AppliedStatus == types.AppliedStatusApplied {
			out = append(out, cloud.ZonalShift{ZoneID: aws.ToString(z.AwayFrom), Until: aws.ToTime(z.ExpiryTime)})
		}
	}
	for _, z := range found.Autoshifts {
		if z.AppliedStatus == types.AutoshiftAppliedStatusApplied {
			out = append(out, cloud.ZonalShift{ZoneID: aws.ToString(z.AwayFrom)})
		}
	}
	return out, nil
}
