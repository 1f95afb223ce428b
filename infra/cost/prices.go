package cost

// Price is the price of one billed item.
type Price struct {
	// What names the billed item: Per units of it cost Dollars.
	What    string
	Per     float64
	Dollars float64
	// Source is AWS's page. Seen is the page from which the price was taken, with its date.
	Source, Seen string
}

// PricesOf is the region of the prices and the day of the lookup. AWS's pages load their
// prices dynamically, so each price was checked against another page (Price.Seen).
const PricesOf = "us-east-1 on 2026-11-22"

// AWS's pages.
const (
	ofSQS         = "https://aws.amazon.com/sqs/pricing/"
	ofEventBridge = "https://aws.amazon.com/eventbridge/pricing/"
	ofLambda      = "https://aws.amazon.com/lambda/pricing/"
	ofS3          = "https://aws.amazon.com/s3/pricing/"
	ofFargate     = "https://aws.amazon.com/fargate/pricing/"
	ofEC2         = "https://aws.amazon.com/ec2/pricing/on-demand/"
	ofCloudWatch  = "https://aws.amazon.com/cloudwatch/pricing/"
)

// Pages that quote AWS's prices.
const (
	sqsAccount        = "https://cloudburn.io/blog/amazon-sqs-pricing, March 2026"
	eventsAccount     = "https://cloudburn.io/blog/amazon-eventbridge-pricing, March 2026"
	lambdaAccount     = "https://cloudchipr.com/blog/aws-lambda-pricing, 2024"
	s3Account         = "https://c3x.dev/blog/s3-request-fees-explained, without a date"
	storageAccount    = "https://devnotes.tech/understanding-aws-s3-pricing-a-complete-cost-breakdown-with-examples, without a date"
	cloudWatchAccount = "https://www.factualminds.com/blog/amazon-cloudwatch-pricing-metrics-logs-alarms-dashboards/, June 2026"
	metricAccount     = "https://signoz.io/guides/cloudwatch-pricing, February 2026"
	alarmAccount      = "https://c3x.dev/resources/aws/aws_cloudwatch_metric_alarm, without a date"
	fargateAccount    = "https://www.wring.co/blog/aws-fargate-pricing-guide, March 2026"
	unverified        = "not verified"
)

// Prices without free tiers and volume discounts.
var (
	sqsRequest   = Price{"SQS requests, standard queues", 1e6, 0.40, ofSQS, sqsAccount}
	busEvent     = Price{"EventBridge custom events", 1e6, 1.00, ofEventBridge, eventsAccount}
	archiveGB    = Price{"EventBridge archive, GB written", 1, 0.10, ofEventBridge, eventsAccount}
	archivedGB   = Price{"EventBridge archive, GB in a month", 1, 0.023, ofEventBridge, eventsAccount}
	tick         = Price{"EventBridge Scheduler invocations", 1e6, 1.00, ofEventBridge, eventsAccount}
	invocation   = Price{"Lambda requests", 1e6, 0.20, ofLambda, lambdaAccount}
	gigaSecond   = Price{"Lambda GB-seconds, arm64", 1, 0.0000133334, ofLambda, lambdaAccount}
	s3Write      = Price{"S3 PUT and LIST requests", 1e3, 0.005, ofS3, s3Account}
	s3Read       = Price{"S3 GET and HEAD requests", 1e3, 0.0004, ofS3, s3Account}
	s3GB         = Price{"S3 storage, GB in a month", 1, 0.023, ofS3, storageAccount}
	logGB        = Price{"CloudWatch Logs, GB written", 1, 0.50, ofCloudWatch, cloudWatchAccount}
	loggedGB     = Price{"CloudWatch Logs, GB in a month", 1, 0.03, ofCloudWatch, unverified}
	customMetric = Price{"CloudWatch custom metrics", 1, 0.30, ofCloudWatch, metricAccount}
	alarm        = Price{"CloudWatch alarms, by metric", 1, 0.10, ofCloudWatch, alarmAccount}
	fargateCore  = Price{"Fargate, core-hours of Linux on x86", 1, 0.04048, ofFargate, fargateAccount}
	fargateGB    = Price{"Fargate, GB-hours of Linux on x86", 1, 0.004445, ofFargate, fargateAccount}
	smallNode    = Price{"EC2, hours of t4g.small", 1, 0.0168, ofEC2, unverified}
	dashboard    = Price{"CloudWatch dashboards", 1, 3.00, ofCloudWatch, cloudWatchAccount}
)

// Line is one line of a bill.
type Line struct {
	Price
	// Units is the number of units per month.
	Units float64
}

// Dollars returns the cost of the line.
func (l Line) Dollars() float64 { return l.Units / l.Per * l.Price.Dollars }

// Total returns the cost of all lines.
func Total(lines []Line) float64 {
	var sum float64
	for _, l := range lines {
		sum += l.Dollars()
	}
	return sum
}
