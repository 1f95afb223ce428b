package ec2

import (
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
)

// TestKarpentersCalls: calls that Karpenter makes, and Joist does not, are answered as EC2 answers them.
func TestKarpentersCalls(t *testing.T) {
	model := memcloud.New(memcloud.Options{Now: time.Now, Seed: 1, Region: "eu-west-1"})
	server := httptest.NewServer(New(model))
	defer server.Close()
	client := sdk.NewFromConfig(aws.Config{
		Region: "eu-west-1", BaseEndpoint: &server.URL, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDFAKE", "secret", ""),
	})
	for _, name := range []string{"karpenter.k8s.aws/1", "karpenter.k8s.aws/2"} {
		if err := model.EnsureTemplate(t.Context(), cloud.Template{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	found, err := client.DescribeLaunchTemplates(ctx, &sdk.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"karpenter.k8s.aws/2"}})
	if err != nil || len(found.LaunchTemplates) != 1 || aws.ToString(found.LaunchTemplates[0].LaunchTemplateName) != "karpenter.k8s.aws/2" {
		t.Fatalf("%+v, %v", found, err)
	}
	id := found.LaunchTemplates[0].LaunchTemplateId
	if _, err := client.DeleteLaunchTemplate(ctx, &sdk.DeleteLaunchTemplateInput{LaunchTemplateId: id}); err != nil {
		t.Error(err)
	}
	if _, ok := model.Template("karpenter.k8s.aws/1"); !ok {
		t.Error("another template was deleted")
	}
	for _, call := range []struct {
		name, code string
		do         func() error
	}{
		{"a dry run of DescribeInstanceTypes", "DryRunOperation", func() error {
			_, err := client.DescribeInstanceTypes(ctx, &sdk.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
			return err
		}},
		{"a missing template", "InvalidLaunchTemplateName.NotFoundException", func() error {
			_, err := client.DescribeLaunchTemplates(ctx, &sdk.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"karpenter.k8s.aws/2"}})
			return err
		}},
		{"a missing template id", "InvalidLaunchTemplateId.NotFound", func() error {
			_, err := client.DeleteLaunchTemplate(ctx, &sdk.DeleteLaunchTemplateInput{LaunchTemplateId: id})
			return err
		}},
		{"a missing instance", "InvalidInstanceID.NotFound", func() error {
			_, err := client.DescribeInstances(ctx, &sdk.DescribeInstancesInput{InstanceIds: []string{"i-00000000000000009"}})
			return err
		}},
	} {
		var refused smithy.APIError
		if err := call.do(); !errors.As(err, &refused) || refused.ErrorCode() != call.code {
			t.Errorf("%s: %v, want the code %s", call.name, err, call.code)
		}
	}
}

// TestSpotInstancesHaveARequest: EC2 shows the spot request of an instance, by which Karpenter knows its capacity type.
func TestSpotInstancesHaveARequest(t *testing.T) {
	for capacityType, want := range map[string]string{cloud.Spot: "sir-1", cloud.OnDemand: ""} {
		if got := shown(cloud.Instance{ID: "i-1", CapacityType: capacityType}).SpotRequest; got != want {
			t.Errorf("the spot request of a %s instance is %q, want %q", capacityType, got, want)
		}
	}
}
