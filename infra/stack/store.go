package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/joist-autoscaler/joist/shared/blob"
)

// newStore adds the bucket of all documents, with a prefix for each cluster. Objects expire
// blob.Retention after their last write. Documents in use, including the pointers, are
// written again after half of that.
func newStore(scope constructs.Construct, id string, name string, policy func(bucket string) map[string]any) {
	scope = constructs.NewConstruct(scope, jsii.String(id))
	bucket := awss3.NewCfnBucket(scope, jsii.String("Bucket"), &awss3.CfnBucketProps{
		BucketName: jsii.String(name),
		BucketEncryption: &awss3.CfnBucket_BucketEncryptionProperty{ServerSideEncryptionConfiguration: []any{
			&awss3.CfnBucket_ServerSideEncryptionRuleProperty{
				ServerSideEncryptionByDefault: &awss3.CfnBucket_ServerSideEncryptionByDefaultProperty{SseAlgorithm: jsii.String("AES256")},
			},
		}},
		OwnershipControls: &awss3.CfnBucket_OwnershipControlsProperty{Rules: []any{
			&awss3.CfnBucket_OwnershipControlsRuleProperty{ObjectOwnership: jsii.String("BucketOwnerEnforced")},
		}},
		PublicAccessBlockConfiguration: &awss3.CfnBucket_PublicAccessBlockConfigurationProperty{
			BlockPublicAcls: true, BlockPublicPolicy: true, IgnorePublicAcls: true, RestrictPublicBuckets: true,
		},
		LifecycleConfiguration: &awss3.CfnBucket_LifecycleConfigurationProperty{Rules: []any{
			&awss3.CfnBucket_RuleProperty{
				Id: jsii.String("forget"), Status: jsii.String("Enabled"), ExpirationInDays: jsii.Number(blob.Retention.Hours() / 24),
				AbortIncompleteMultipartUpload: &awss3.CfnBucket_AbortIncompleteMultipartUploadProperty{DaysAfterInitiation: jsii.Number(1)},
			},
		}},
	})
	// CloudFormation cannot delete a bucket with objects.
	bucket.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE, nil)
	suppress(bucket, bucketAccessLog)
	awss3.NewCfnBucketPolicy(scope, jsii.String("Policy"), &awss3.CfnBucketPolicyProps{Bucket: bucket.Ref(), PolicyDocument: policy(*bucket.Ref())})
}
