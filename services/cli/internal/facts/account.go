package facts

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/joist-autoscaler/joist/services/cli/internal/doctor"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/topology"
)

// spotRole is the service-linked role of EC2 Spot.
const spotRole = "AWSServiceRoleForEC2Spot"

// readAWS starts the reads of an AWS account.
func (g *collector) readAWS(ctx context.Context) {
	g.readQueues(ctx)
	g.readTagged(ctx)
	roles := iam.NewFromConfig(g.config)
	g.startCall("the role "+spotRole, "iam:GetRole", func() error {
		_, err := roles.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(spotRole)})
		there := err == nil
		if err != nil && !isMissing(err) {
			return err
		}
		g.setFact(func(f *doctor.Facts) { f.SpotRole = &there })
		return nil
	})
	g.startCall("the role "+g.NodeRole, "iam:GetRole and iam:ListAttachedRolePolicies", func() error { return g.readNodeRole(ctx, roles) })
	g.calls.Go(func() { g.readLocation(ctx) })
}

// readNodeRole reads the node role, and then its access to the cluster.
func (g *collector) readNodeRole(ctx context.Context, client *iam.Client) error {
	out := &doctor.NodeRole{Name: g.NodeRole}
	found, err := client.GetRole(ctx, &iam.GetRoleInput{RoleName: &g.NodeRole})
	switch {
	case isMissing(err):
		out.Missing = true
		g.setFact(func(f *doctor.Facts) { f.NodeRole = out })
		return nil
	case err != nil:
		return err
	}
	out.ARN, out.Trust = aws.ToString(found.Role.Arn), decodePolicy(found.Role.AssumeRolePolicyDocument)
	g.startCall("access entries of the cluster", "eks:DescribeCluster and eks:DescribeAccessEntry", func() error {
		if !g.usesEKS(ctx) {
			return nil
		}
		return g.readAccess(ctx, out.ARN)
	})
	attached, err := client.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: &g.NodeRole})
	if err != nil {
		return err
	}
	for _, p := range attached.AttachedPolicies {
		out.Policies = append(out.Policies, aws.ToString(p.PolicyName))
	}
	g.setFact(func(f *doctor.Facts) { f.NodeRole = out })
	return nil
}

// decodePolicy decodes a policy, which IAM returns URL-encoded.
func decodePolicy(encoded *string) string {
	text, err := url.QueryUnescape(aws.ToString(encoded))
	if err != nil {
		return aws.ToString(encoded)
	}
	return text
}

// readAccess reads the cluster's authentication mode and the access entry of the node role.
func (g *collector) readAccess(ctx context.Context, role string) error {
	client := eks.NewFromConfig(g.config)
	described, err := client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &g.Plan.Cluster})
	if err != nil {
		return err
	}
	mode := ""
	if c := described.Cluster.AccessConfig; c != nil {
		mode = string(c.AuthenticationMode)
	}
	if ca := described.Cluster.CertificateAuthority; ca != nil {
		g.setFact(func(f *doctor.Facts) { f.CertificateAuthority = aws.ToString(ca.Data) })
	}
	if i := described.Cluster.Identity; i != nil && i.Oidc != nil {
		issuer := strings.TrimPrefix(aws.ToString(i.Oidc.Issuer), "https://")
		g.setFact(func(f *doctor.Facts) { f.Issuer = &issuer })
	}
	var entry *bool
	if mode != "CONFIG_MAP" {
		found, err := client.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &g.Plan.Cluster, PrincipalArn: &role})
		if err != nil && !isMissing(err) {
			return err
		}
		there := err == nil && strings.HasPrefix(aws.ToString(found.AccessEntry.Type), "EC2")
		entry = &there
	}
	g.setFact(func(f *doctor.Facts) {
		if f.Access == nil {
			f.Access = &doctor.Access{}
		}
		f.Access.Mode, f.Access.Entry = mode, entry
	})
	return nil
}

// readTagged reads the subnets and security groups with the discovery tag.
func (g *collector) readTagged(ctx context.Context) {
	client := ec2.NewFromConfig(g.config)
	filters := []ec2types.Filter{{Name: aws.String("tag:karpenter.sh/discovery"), Values: []string{g.Plan.Cluster}}}
	g.startCall("subnets", "ec2:DescribeSubnets", func() error {
		found, err := client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: filters})
		if err != nil {
			return err
		}
		list := []doctor.Tagged{}
		for _, s := range found.Subnets {
			list = append(list, doctor.Tagged{ID: aws.ToString(s.SubnetId), VPC: aws.ToString(s.VpcId), Zone: aws.ToString(s.AvailabilityZone)})
		}
		g.setFact(func(f *doctor.Facts) { f.Subnets = list })
		return nil
	})
	g.startCall("security groups", "ec2:DescribeSecurityGroups", func() error {
		found, err := client.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: filters})
		if err != nil {
			return err
		}
		list := []doctor.Tagged{}
		for _, s := range found.SecurityGroups {
			list = append(list, doctor.Tagged{ID: aws.ToString(s.GroupId), VPC: aws.ToString(s.VpcId)})
		}
		g.setFact(func(f *doctor.Facts) { f.SecurityGroups = list })
		return nil
	})
}

// readLocation reads the caller's account, and compares the clock with that of AWS.
func (g *collector) readLocation(ctx context.Context) {
	caller, err := sts.NewFromConfig(g.config).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		g.recordSkipped("AWS identity", fault.E("calling STS", fault.Retry, err).WithHint("check the AWS credentials of this shell"), "")
		return
	}
	partition, _, _ := strings.Cut(strings.TrimPrefix(aws.ToString(caller.Arn), "arn:"), ":")
	g.setFact(func(f *doctor.Facts) {
		f.Location = doctor.Location{Partition: partition, Account: aws.ToString(caller.Account), Region: g.config.Region}
	})
	if at, known := middleware.GetServerTime(caller.ResultMetadata); known {
		skew := g.Now().Sub(at)
		g.setFact(func(f *doctor.Facts) { f.Skew = &skew })
	}
}

// readDocuments starts the reads of documents in the bucket.
func (g *collector) readDocuments(ctx context.Context, sofar doctor.Facts) {
	if g.Store == nil {
		return
	}
	bucket := g.bucketName(sofar)
	store, err := g.Store(ctx, bucket, g.Prefix)
	if err != nil {
		g.recordSkipped("the bucket "+bucket, err, "")
		return
	}
	g.calls.Go(func() {
		g.readLatest(ctx, bucket, store, planning.SnapshotKind, func(f *doctor.Facts, at *time.Time) { f.Snapshot = at })
	})
	g.calls.Go(func() {
		g.readLatest(ctx, bucket, store, catalog.Kind, func(f *doctor.Facts, at *time.Time) { f.Catalogue = at })
	})
}

// bucketName returns the bucket of the documents: the configured one, else the one in the
// functions' settings, else the one that the stack creates.
func (g *collector) bucketName(sofar doctor.Facts) string {
	for _, service := range topology.ExternalServices {
		if fn := sofar.Functions[service]; g.Bucket == "" && fn != nil && fn.Bucket != "" {
			return fn.Bucket
		}
	}
	return cmp.Or(g.Bucket, "joist-"+g.Plan.Cluster+"-"+sofar.Location.Account+"-"+g.config.Region)
}

// readLatest reads the time of the latest document of a kind.
func (g *collector) readLatest(ctx context.Context, bucket string, store blob.Store, kind string, put func(f *doctor.Facts, at *time.Time)) {
	var at time.Time
	ref, err := blob.GetLatest(ctx, store, kind)
	switch {
	case err != nil:
	case kind == catalog.Kind:
		var c catalog.Catalogue
		c, err = blob.Get[catalog.Catalogue](ctx, store, ref)
		at = c.AsOf
	default:
		var s planning.Snapshot
		s, err = blob.Get[planning.Snapshot](ctx, store, ref)
		at = s.TakenAt
	}
	if err != nil && !fault.Is(err, fault.Missing) {
		g.recordSkipped("the latest of "+kind+" in the bucket "+bucket, err, "s3:GetObject")
		return
	}
	g.setFact(func(f *doctor.Facts) { put(f, &at) })
}
