// Package s3blob is blob.Store over S3: one bucket, one prefix per cluster.
//
// Objects have the bucket's default encryption, so that its owner chooses the key. With a custom endpoint
// (AWS_ENDPOINT_URL) the bucket is part of the path, because a loopback address has no subdomains.
package s3blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
	"github.com/joist-autoscaler/joist/shared/aws/awshttp"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/fault"
)

type api interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	HeadObject(context.Context, *s3.HeadObjectInput, ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// Store stores the objects of a bucket under a prefix.
type Store struct {
	client  api
	bucket  string
	prefix  string
	setting string
}

var _ blob.Lister = (*Store)(nil)

// New returns a store for the bucket; prefix precedes all keys and may be empty. setting is the variable that
// configures the bucket ("JOIST_BUCKET"), for the hint if the bucket does not exist.
func New(config aws.Config, bucket, prefix, setting string) *Store {
	client := s3.NewFromConfig(awshttp.WithSafeBodies(config), func(o *s3.Options) {
		o.UsePathStyle = o.BaseEndpoint != nil
		// Documents are verified by their digest.
		o.DisableLogOutputChecksumValidationSkipped = true
	})
	return &Store{client: client, bucket: bucket, prefix: strings.Trim(prefix, "/"), setting: setting}
}

// Put writes the object.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	if key == "" || len(data) > blob.MaxObject {
		return fault.F("writing "+key, fault.Invalid, "%d bytes under a key of %d characters", len(data), len(key))
	}
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: s.objectKey(key), Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
	})
	return s.wrapError(ctx, "writing", key, awsfault.WriteCall("", "s3:PutObject"), err)
}

// Get reads the object, of at most blob.MaxObject bytes.
func (s *Store) Get(ctx context.Context, key string) (data []byte, err error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: s.objectKey(key)})
	if err != nil {
		return nil, s.wrapError(ctx, "reading", key, awsfault.ReadCall("", "s3:GetObject"), err)
	}
	defer func() { err = errors.Join(err, out.Body.Close()) }()
	data, err = io.ReadAll(io.LimitReader(out.Body, blob.MaxObject+1))
	if err != nil {
		return nil, s.wrapError(ctx, "reading", key, awsfault.ReadCall("", "s3:GetObject"), err)
	}
	if len(data) > blob.MaxObject {
		return nil, fault.F("reading "+key, fault.Invalid, "the object exceeds the limit of %d bytes", blob.MaxObject)
	}
	return data, nil
}

// LastWritten returns the object's Last-Modified, which has a precision of one second.
func (s *Store) LastWritten(ctx context.Context, key string) (time.Time, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.objectKey(key)})
	if err != nil {
		return time.Time{}, s.wrapError(ctx, "checking for", key, awsfault.ReadCall("", "s3:GetObject"), err)
	}
	return aws.ToTime(out.LastModified), nil
}

// List yields the objects whose keys begin with prefix, in pages of a thousand.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.StoredObject, error] {
	return func(yield func(blob.StoredObject, error) bool) {
		ask := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.objectKey(prefix)}
		for {
			page, err := s.client.ListObjectsV2(ctx, ask)
			if err != nil {
				yield(blob.StoredObject{}, s.wrapError(ctx, "listing", prefix, awsfault.ReadCall("", "s3:ListBucket"), err))
				return
			}
			for _, one := range page.Contents {
				key := strings.TrimPrefix(strings.TrimPrefix(aws.ToString(one.Key), s.prefix), "/")
				if !yield(blob.StoredObject{Key: key, Size: int(aws.ToInt64(one.Size)), LastWritten: aws.ToTime(one.LastModified)}, nil) {
					return
				}
			}
			if ask.ContinuationToken = page.NextContinuationToken; ask.ContinuationToken == nil || !aws.ToBool(page.IsTruncated) {
				return
			}
		}
	}
}

func (s *Store) objectKey(key string) *string {
	if s.prefix == "" {
		return &key
	}
	return aws.String(s.prefix + "/" + key)
}

// wrapError converts an SDK error and sets its kind. A bucket that does not exist is Invalid, because Missing means
// that the caller may write the object.
func (s *Store) wrapError(ctx context.Context, doing, key string, call awsfault.Call, err error) error {
	op := fmt.Sprintf("%s %s in bucket %s", doing, key, s.bucket)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, ctx.Err())
	}
	switch code := awsfault.ErrorCode(err); {
	case code == "NoSuchKey", code == "NotFound":
		return fault.E(op, fault.Missing, err)
	case code == "NoSuchBucket":
		return fault.E(op, fault.Invalid, err).WithHint("create the bucket with `cdk deploy`, or correct %s", s.setting)
	case !call.Writes && (code == "AccessDenied" || code == "Forbidden"):
		return fault.E(op, fault.Denied, err).WithHint(
			"grant %s on the objects of bucket %s, and s3:ListBucket on the bucket: without it S3 returns AccessDenied for missing objects",
			call.Action, s.bucket)
	}
	call.Op = op
	return call.Wrap(err)
}
