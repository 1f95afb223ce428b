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

// readAWS looks at an account.
func (g *collector) readAWS(ctx context.Context) {
	g.readQueues(ctx)
	g.readTagged(ctx)
	roles := iam.NewFromConfig(g.config)
	g.start("the role "+spotRole, "iam:GetRole", func() error {
		_, err := roles.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(spotRole)})
		there := err == nil
		if err != nil && !isMissing(err) {
			return err
		}
		g.setFact(func(f *doctor.Facts) { f.SpotRole = &there })
		return nil
	})
	g.start("the role "+g.NodeRole, "iam:GetRole and iam:ListAttachedRolePolicies", func() error { return g.nodeRole(ctx, roles) })
	g.all.Go(func() { g.readPlace(ctx) })
}

// nodeRole looks at the role of nodes, and then whether the cluster lets it in.
func (g *collector) nodeRole(ctx context.Context, client *iam.Client) error {
	out := &doctor.NodeRole{Name: g.NodeRole}
	told, err := client.GetRole(ctx, &iam.GetRoleInput{RoleName: &g.NodeRole})
	switch {
	case isMissing(err):
		out.Missing = true
		g.setFact(func(f *doctor.Facts) { f.NodeRole = out })
		return nil
	case err != nil:
		return err
	}
	out.ARN, out.Trust = aws.ToString(told.Role.Arn), decodePolicy(told.Role.AssumeRolePolicyDocument)
	g.start("access entries of the cluster", "eks:DescribeCluster and eks:DescribeAccessEntry", func() error {
		if !g.asksEKS(ctx) {
			return nil
		}
		return g.access(ctx, out.ARN)
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

// decodePolicy is a policy as IAM gives it: encoded as part of a URL.
func decodePolicy(encoded *string) string {
	text, err := url.QueryUnescape(aws.ToString(encoded))
	if err != nil {
		return aws.ToString(encoded)
	}
	return text
}

// access looks at the cluster's mode, and for the nodes' access entry.
func (g *collector) access(ctx context.Context, role string) error {
	client := eks.NewFromConfig(g.config)
	told, err := client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: &g.Plan.Cluster})
	if err != nil {
		return err
	}
	mode := ""
	if c := told.Cluster.AccessConfig; c != nil {
		mode = string(c.AuthenticationMode)
	}
	if i := told.Cluster.Identity; i != nil && i.Oidc != nil {
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

// readTagged looks for what has the discovery tag.
func (g *collector) readTagged(ctx context.Context) {
	client := ec2.NewFromConfig(g.config)
	filters := []ec2types.Filter{{Name: aws.String("tag:karpenter.sh/discovery"), Values: []string{g.Plan.Cluster}}}
	g.start("subnets", "ec2:DescribeSubnets", func() error {
		told, err := client.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: filters})
		if err != nil {
			return err
		}
		list := []doctor.Tagged{}
		for _, s := range told.Subnets {
			list = append(list, doctor.Tagged{ID: aws.ToString(s.SubnetId), VPC: aws.ToString(s.VpcId), Zone: aws.ToString(s.AvailabilityZone)})
		}
		g.setFact(func(f *doctor.Facts) { f.Subnets = list })
		return nil
	})
	g.start("security groups", "ec2:DescribeSecurityGroups", func() error {
		told, err := client.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: filters})
		if err != nil {
			return err
		}
		list := []doctor.Tagged{}
		for _, s := range told.SecurityGroups {
			list = append(list, doctor.Tagged{ID: aws.ToString(s.GroupId), VPC: aws.ToString(s.VpcId)})
		}
		g.setFact(func(f *doctor.Facts) { f.SecurityGroups = list })
		return nil
	})
}

// readPlace asks AWS who we are, and what time it is.
func (g *collector) readPlace(ctx context.Context) {
	told, err := sts.NewFromConfig(g.config).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		g.recordSkipped("AWS identity", fault.E("calling STS", fault.Retry, err).WithHint("check the AWS credentials of this shell"), "")
		return
	}
	partition, _, _ := strings.Cut(strings.TrimPrefix(aws.ToString(told.Arn), "arn:"), ":")
	g.setFact(func(f *doctor.Facts) {
		f.Place = doctor.Place{Partition: partition, Account: aws.ToString(told.Account), Region: g.config.Region}
	})
	if at, known := middleware.GetServerTime(told.ResultMetadata); known {
		skew := g.Now().Sub(at)
		g.setFact(func(f *doctor.Facts) { f.Skew = &skew })
	}
}

// readDocuments looks into the bucket.
func (g *collector) readDocuments(ctx context.Context, sofar doctor.Facts) {
	if g.Store == nil {
		return
	}
	bucket := g.bucket(sofar)
	store, err := g.Store(ctx, bucket, g.Prefix)
	if err != nil {
		g.recordSkipped("the bucket "+bucket, err, "")
		return
	}
	g.all.Go(func() {
		g.latest(ctx, bucket, store, planning.SnapshotKind, func(f *doctor.Facts, at *time.Time) { f.Snapshot = at })
	})
	g.all.Go(func() {
		g.latest(ctx, bucket, store, catalog.Kind, func(f *doctor.Facts, at *time.Time) { f.Catalogue = at })
	})
}

// bucket is where documents are: the one that is named, else the one that the functions are
// told of, which a stack of several clusters names after itself, else the cluster's own.
func (g *collector) bucket(sofar doctor.Facts) string {
	for _, service := range topology.Outside {
		if fn := sofar.Functions[service]; g.Bucket == "" && fn != nil && fn.Bucket != "" {
			return fn.Bucket
		}
	}
	return cmp.Or(g.Bucket, "joist-"+g.Plan.Cluster+"-"+sofar.Place.Account+"-"+g.config.Region)
}

// latest looks when the latest document of a kind was made.
func (g *collector) latest(ctx context.Context, bucket string, store blob.Store, kind string, put func(f *doctor.Facts, at *time.Time)) {
	var at time.Time
	ref, err := blob.Latest(ctx, store, kind)
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
