package cost

// Price is what one unit of something costs.
type Price struct {
	// What is billed, by Per units, for Dollars.
	What    string
	Per     float64
	Dollars float64
	// Source is AWS's page.
	Source string
}

// PricesOf are the region and the date of Prices. They were written down from AWS's
// public price pages as remembered on that date, and not fetched: look before you rely on
// them.
const PricesOf = "us-east-1, 2026-11-22"

// Prices without free tiers, and without discounts for much use.
var (
	sqsRequest = Price{"SQS requests, standard queues", 1e6, 0.40, "https://aws.amazon.com/sqs/pricing/"}
	busEvent   = Price{"EventBridge custom events", 1e6, 1.00, "https://aws.amazon.com/eventbridge/pricing/"}
	archiveGB  = Price{"EventBridge archive, GB written", 1, 0.10, "https://aws.amazon.com/eventbridge/pricing/"}
	tick       = Price{"EventBridge Scheduler invocations", 1e6, 1.00, "https://aws.amazon.com/eventbridge/pricing/"}
	invocation = Price{"Lambda requests", 1e6, 0.20, "https://aws.amazon.com/lambda/pricing/"}
	gigaSecond = Price{"Lambda GB-seconds, arm64", 1, 0.0000133334, "https://aws.amazon.com/lambda/pricing/"}
	s3Write    = Price{"S3 PUT and LIST requests", 1e3, 0.005, "https://aws.amazon.com/s3/pricing/"}
	s3Read     = Price{"S3 GET and HEAD requests", 1e3, 0.0004, "https://aws.amazon.com/s3/pricing/"}
	s3GB       = Price{"S3 storage, GB in a month", 1, 0.023, "https://aws.amazon.com/s3/pricing/"}
	logGB      = Price{"CloudWatch Logs, GB written", 1, 0.50, "https://aws.amazon.com/cloudwatch/pricing/"}
	metric     = Price{"CloudWatch custom metrics", 1, 0.30, "https://aws.amazon.com/cloudwatch/pricing/"}
	alarm      = Price{"CloudWatch alarms, by metric", 1, 0.10, "https://aws.amazon.com/cloudwatch/pricing/"}
	dashboard  = Price{"CloudWatch dashboards", 1, 3.00, "https://aws.amazon.com/cloudwatch/pricing/"}
)

// Line is one line of a bill.
type Line struct {
	Price
	// Units are of a month.
	Units float64
}

// Dollars is what the line costs.
func (l Line) Dollars() float64 { return l.Units / l.Per * l.Price.Dollars }

// Total is what all lines cost together.
func Total(lines []Line) float64 {
	var sum float64
	for _, l := range lines {
		sum += l.Dollars()
	}
	return sum
}
