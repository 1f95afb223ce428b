package memcloud

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// maxFleet is the maximum number of instances in one instant fleet.
const maxFleet = 1000

// CreateFleet creates a fleet of type instant. A repeated token with the same request gets the first answer again,
// also if it was an error.
func (c *Cloud) CreateFleet(ctx context.Context, request cloud.FleetRequest) (cloud.FleetResult, error) {
	var out cloud.FleetResult
	err := c.call(ctx, CreateFleet, func(now time.Time) error {
		var err error
		out, err = c.fleet(request, now)
		return err
	})
	if err != nil {
		return cloud.FleetResult{}, err
	}
	return out, nil
}

// answer is the stored result of a ClientToken.
type answer struct {
	body   [sha256.Size]byte
	result cloud.FleetResult
}

func (c *Cloud) fleet(request cloud.FleetRequest, now time.Time) (cloud.FleetResult, error) {
	body, err := digest(request)
	if err != nil {
		return cloud.FleetResult{}, err
	}
	if seen, ok := c.tokens[request.Token]; ok && request.Token != "" {
		if seen.body != body {
			return cloud.FleetResult{}, refuse(fault.Conflict, "IdempotentParameterMismatch",
				"The client token %q was used with other parameters.", request.Token)
		}
		return clone(seen.result), nil
	}
	if err := c.acceptable(request); err != nil {
		return cloud.FleetResult{}, err
	}
	result := c.fulfil(request, now)
	if request.Token != "" {
		c.tokens[request.Token] = answer{body, clone(result)}
	}
	return result, nil
}

// digest hashes the request without its token.
func digest(request cloud.FleetRequest) ([sha256.Size]byte, error) {
	request.Token = ""
	raw, err := json.Marshal(request)
	if err != nil {
		return [sha256.Size]byte{}, fault.E("reading the fleet request", fault.Invalid, err)
	}
	return sha256.Sum256(raw), nil
}

// acceptable rejects what EC2 rejects with status 400. Such a call does not use up its token.
func (c *Cloud) acceptable(request cloud.FleetRequest) error {
	overrides, pools := 0, map[[2]string]bool{}
	for _, config := range request.Configs {
		overrides += len(config.Overrides)
		for _, o := range config.Overrides {
			pools[[2]string{o.InstanceType, c.zoneOf(o)}] = true
		}
	}
	switch {
	case len(request.Token) > 64:
		return refuse(fault.Invalid, "InvalidParameterValue", "The client token is longer than 64 characters.")
	case request.Count < 1 || request.Count > maxFleet:
		return refuse(fault.Invalid, "InvalidTargetCapacity", "TotalTargetCapacity must be 1 to %d.", maxFleet)
	case overrides == 0 || overrides > 300:
		return refuse(fault.Invalid, "InvalidFleetConfig", "The request needs 1 to 300 overrides and has %d.", overrides)
	case len(request.Configs) > 50:
		return refuse(fault.Invalid, "InvalidFleetConfig", "The request has %d launch templates, and at most 50 are allowed.", len(request.Configs))
	case len(pools) < overrides:
		return refuse(fault.Invalid, "InvalidFleetConfig", "The fleet configuration contains duplicate instance pools.")
	case !knows(request.CapacityType, request.Strategy):
		return refuse(fault.Invalid, "InvalidParameterValue",
			"The allocation strategy %q is not valid for %s.", request.Strategy, request.CapacityType)
	}
	return nil
}

// fulfil tries the candidates in order until there are enough instances. Each candidate that could not launch all of
// its share leaves an error.
func (c *Cloud) fulfil(request cloud.FleetRequest, now time.Time) cloud.FleetResult {
	out := cloud.FleetResult{FleetID: "fleet-" + c.uuid("fleet")}
	if !c.buckets[resources].take(now, float64(request.Count)) {
		return c.overrun(request, out)
	}
	var ids, codes []string
	left := request.Count
	for _, candidate := range c.candidates(request) {
		if left == 0 {
			break
		}
		launched, refusal := c.draft(request, candidate, left, out.FleetID)
		if len(launched) > 0 {
			out.Instances = append(out.Instances, given(candidate, request, launched))
			ids = append(ids, launched...)
			left -= len(launched)
		}
		if refusal != nil {
			out.Errors = append(out.Errors, failed(candidate, refusal))
			codes = append(codes, refusal.Code)
		}
	}
	c.note(CreateFleet, request.Token, strings.Join(codes, ","), ids...)
	return out
}

// overrun returns the result of a fleet that exceeds the bucket of instances. EC2 calls RunInstances for the fleet,
// so the throttling is in the 200 response.
func (c *Cloud) overrun(request cloud.FleetRequest, out cloud.FleetResult) cloud.FleetResult {
	c.counts[CreateFleet].Throttled++
	first := c.candidates(request)[0]
	out.Errors = append(out.Errors, failed(first, &Refusal{"RequestLimitExceeded", "Request limit exceeded."}))
	c.note(CreateFleet, request.Token, "RequestLimitExceeded")
	return out
}

// draft launches up to n instances of a candidate.
func (c *Cloud) draft(request cloud.FleetRequest, from candidate, n int, fleet string) ([]string, *Refusal) {
	if refusal := c.unlaunchable(from); refusal != nil {
		return nil, refusal
	}
	if about := strconv.Itoa(from.index); c.faults.Shortage > 0 && c.share("shortage", fleet, about) < c.faults.Shortage {
		return nil, c.short(from)
	}
	var ids []string
	for range n {
		if refusal := c.exhausted(from); refusal != nil {
			return ids, refusal
		}
		ids = append(ids, c.launch(request, from, fleet).ID)
	}
	return ids, nil
}

func given(from candidate, request cloud.FleetRequest, ids []string) cloud.FleetInstances {
	return cloud.FleetInstances{
		IDs: ids, InstanceType: from.InstanceType, Zone: from.offering.Zone, SubnetID: from.SubnetID,
		Template: from.template, CapacityType: request.CapacityType,
	}
}

func failed(from candidate, refusal *Refusal) cloud.FleetError {
	return cloud.FleetError{
		Code: refusal.Code, Message: refusal.Message, InstanceType: from.InstanceType,
		Zone: from.offering.Zone, SubnetID: from.SubnetID, Template: from.template,
	}
}

// clone copies a stored answer, so that callers cannot modify it.
func clone(r cloud.FleetResult) cloud.FleetResult {
	out := cloud.FleetResult{FleetID: r.FleetID}
	for _, group := range r.Instances {
		group.IDs = append([]string(nil), group.IDs...)
		out.Instances = append(out.Instances, group)
	}
	out.Errors = append(out.Errors, r.Errors...)
	return out
}
