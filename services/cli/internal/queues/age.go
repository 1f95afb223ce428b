package queues

import (
	"context"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/joist-autoscaler/joist/shared/aws/awsfault"
)

// ageWindow is the period of metrics that is read. SQS reports to CloudWatch every minute for
// queues in use, with a delay of some minutes.
const ageWindow = 10 * time.Minute

// Metrics is the part of the CloudWatch client that is used.
type Metrics interface {
	GetMetricData(context.Context, *cloudwatch.GetMetricDataInput, ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricDataOutput, error)
}

// ReadAges reads the latest ApproximateAgeOfOldestMessage of each queue from CloudWatch
// (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html).
func ReadAges(ctx context.Context, metrics Metrics, now time.Time, names []string) (map[string]time.Duration, error) {
	in := cloudwatch.GetMetricDataInput{StartTime: aws.Time(now.Add(-ageWindow)), EndTime: aws.Time(now), ScanBy: types.ScanByTimestampDescending}
	for i, name := range names {
		in.MetricDataQueries = append(in.MetricDataQueries, types.MetricDataQuery{
			Id: aws.String("q" + strconv.Itoa(i)),
			MetricStat: &types.MetricStat{
				Metric: &types.Metric{
					Namespace: aws.String("AWS/SQS"), MetricName: aws.String("ApproximateAgeOfOldestMessage"),
					Dimensions: []types.Dimension{{Name: aws.String("QueueName"), Value: aws.String(name)}},
				},
				Period: aws.Int32(60), Stat: aws.String("Maximum"),
			},
		})
	}
	out, err := metrics.GetMetricData(ctx, &in)
	if err != nil {
		return nil, awsfault.ReadCall("reading message ages from CloudWatch", "cloudwatch:GetMetricData").Wrap(err)
	}
	ages := map[string]time.Duration{}
	for _, result := range out.MetricDataResults {
		i, err := strconv.Atoi(aws.ToString(result.Id)[min(1, len(aws.ToString(result.Id))):])
		if err == nil && i >= 0 && i < len(names) && len(result.Values) > 0 {
			ages[names[i]] = time.Duration(result.Values[0] * float64(time.Second))
		}
	}
	return ages, nil
}
