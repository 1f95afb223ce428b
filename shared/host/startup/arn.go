package startup

import (
	"path"
	"regexp"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// queueARNs is the form of a queue's ARN. Its parts become a host and a path, so no other characters are accepted:
// a caller of the function could otherwise direct signed requests to another host.
var queueARNs = regexp.MustCompile(`^arn:[a-z-]+:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}$`)

// queueURLFromARN returns the URL and the region of the queue with an ARN: arn:partition:sqs:region:account:name.
func queueURLFromARN(arn string) (url, region string, err error) {
	if !queueARNs.MatchString(arn) {
		return "", "", fault.F("reading the source of a record", fault.Bug, "invalid queue ARN %q", arn)
	}
	fields := strings.Split(arn, ":")
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
