package awsfault

import (
	"regexp"
	"strings"

	"github.com/joist-autoscaler/joist/shared/fault"
)

// sdkText is what the SDK writes around AWS's answer, as in
// "operation error SQS: GetQueueUrl, https response error StatusCode: 403, RequestID: 1, api error AccessDenied: no".
var sdkText = regexp.MustCompile(`operation error [^:,]+: \w+, |https? response error StatusCode: \d+, (RequestID: [^,]*, )?(HostID: [^,]*, )?|` +
	`exceeded maximum number of attempts, \d+, |get identity: |get credentials: |failed to refresh cached credentials, |request send failed, |\bapi error `)

// ErrorText is an error's text for a person: AWS's code and message without the words of
// the SDK around them, and without the hint, which fault.FindHint gives. Logs keep the whole text,
// which has the request's id.
func ErrorText(err error) string {
	text := strings.Replace(err.Error(), " (try: "+fault.FindHint(err)+")", "", 1)
	return sdkText.ReplaceAllString(text, "")
}
