package batch_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/joist-autoscaler/joist/services/launcher/internal/batch"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// launchInstances launches n instances in a model of EC2.
func launchInstances(t *testing.T, n int) (*memcloud.Cloud, []string) {
	t.Helper()
	model := memcloud.New(memcloud.Options{Now: time.Now, RateDivisor: -1})
	world := model.Furnish("prod")
	if err := model.EnsureTemplate(t.Context(), cloud.Template{Name: "template", ImageID: world.ImageAMD64.ID}); err != nil {
		t.Fatal(err)
	}
	result, err := model.CreateFleet(t.Context(), cloud.FleetRequest{Count: n, CapacityType: cloud.OnDemand, Configs: []cloud.FleetConfig{{
		Template: "template", Overrides: []cloud.Override{{InstanceType: "m6i.large", SubnetID: world.Subnets[0].ID}},
	}}})
	if err != nil || len(result.Instances) == 0 {
		t.Fatal(result, err)
	}
	return model, result.Instances[0].IDs
}

// Handlers that describe, tag and terminate one instance each share calls, and an instance that
// must not be terminated does not protect the others.
func TestEC2SharesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model, ids := launchInstances(t, 200)
		model.Protect(ids[77], true)
		ec2 := batch.New(model, time.Minute)
		var group sync.WaitGroup
		for i, id := range ids {
			group.Go(func() {
				found, err := ec2.DescribeInstances(t.Context(), cloud.InstanceFilter{IDs: []string{id}})
				if err != nil || len(found) != 1 || found[0].ID != id {
					t.Errorf("%s: %v %v", id, found, err)
				}
				if err := ec2.Tag(t.Context(), []string{id}, map[string]string{"half": strconv.Itoa(i % 2)}); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				if err := ec2.Terminate(t.Context(), []string{id}); fault.Is(err, fault.Invalid) != (i == 77) {
					t.Errorf("%s: %v", id, err)
				}
			})
		}
		group.Go(func() {
			found, err := ec2.DescribeInstances(t.Context(), cloud.InstanceFilter{IDs: []string{"i-0123456789abcdef0"}})
			if err != nil || len(found) != 0 {
				t.Errorf("an unknown instance returned %v, %v", found, err)
			}
		})
		group.Wait()
		for action, most := range map[memcloud.Action]int{memcloud.DescribeInstances: 1, memcloud.CreateTags: 2, memcloud.TerminateInstances: 20} {
			if n := model.Counts()[action].Calls; n > most {
				t.Errorf("%s was called %d times", action, n)
			}
		}
		for i, id := range ids {
			r, _ := model.Record(id)
			if r.Tags["half"] != strconv.Itoa(i%2) || (r.State == cloud.ShuttingDown) == (i == 77) {
				t.Errorf("%s is %s with the tags %v", id, r.State, r.Tags)
			}
		}
	})
}

// Calls for several ids or by tag are not batched.
func TestEC2PassesOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model, ids := launchInstances(t, 3)
		ec2 := batch.New(model, time.Minute)
		began := time.Now()
		for _, filter := range []cloud.InstanceFilter{{}, {IDs: ids}, {IDs: ids[:1], States: []cloud.State{cloud.Pending}}, {IDs: ids[:1], Tags: map[string]string{"a": ""}}, {Tags: map[string]string{"a": ""}}} {
			if _, err := ec2.DescribeInstances(t.Context(), filter); err != nil {
				t.Error(err)
			}
		}
		if err := ec2.Tag(t.Context(), ids, map[string]string{"a": "b"}); err != nil {
			t.Error(err)
		}
		if err := ec2.Terminate(t.Context(), ids); err != nil {
			t.Error(err)
		}
		if time.Since(began) != 0 {
			t.Error("the calls were batched")
		}
	})
}
