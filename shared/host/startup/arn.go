package startup

import (
	"path"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// queueURLFromARN returns the URL and the region of the queue with an ARN: arn:partition:sqs:region:account:name.
func queueURLFromARN(arn string) (url, region string, err error) {
	fields := strings.Split(arn, ":")
	if len(fields) != 6 || fields[0] != "arn" || fields[2] != "sqs" {
		return "", "", fault.F("reading the source of a record", fault.Bug, "invalid queue ARN %q", arn)
	}
	domain := "amazonaws.com"
	if fields[1] == "aws-cn" {
		domain = "amazonaws.com.cn"
	}
	return "https://sqs." + fields[3] + "." + domain + "/" + fields[4] + "/" + fields[5], fields[3], nil
}

// accountDigits is the length of an account id.
const accountDigits = 12

// accountFromQueueURL returns the account in a queue URL, https://host/account/name, or "".
func accountFromQueueURL(queueURL string) string {
	account := path.Base(path.Dir(queueURL))
	if len(account) != accountDigits || strings.Trim(account, "0123456789") != "" {
		return ""
	}
	return account
}
