package awsfault

import (
	"regexp"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// sdkText matches what the SDK adds to AWS's message, as in "operation error SQS: GetQueueUrl, https response error
// StatusCode: 403, RequestID: 1, api error AccessDenied: no".
var sdkText = regexp.MustCompile(`operation error [^:,]+: \w+, |https? response error StatusCode: \d+, (RequestID: [^,]*, )?(HostID: [^,]*, )?|` +
	`exceeded maximum number of attempts, \d+, |get identity: |get credentials: |failed to refresh cached credentials, |request send failed, |\bapi error `)

// ErrorText returns an error's text for people: AWS's code and message without the SDK's additions and without the
// hint, which fault.FindHint returns. Logs keep the whole text, which contains the request id.
func ErrorText(err error) string {
	text := strings.Replace(err.Error(), " (try: "+fault.FindHint(err)+")", "", 1)
	return sdkText.ReplaceAllString(text, "")
}
