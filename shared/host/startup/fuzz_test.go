package startup

import (
	"net/url"
	"strings"
	"testing"
)

// FuzzQueueARN: the URL of an accepted ARN is the queue's, on a host of AWS, and its account is the ARN's.
func FuzzQueueARN(f *testing.F) {
	for _, text := range []string{"arn:aws:sqs:eu-west-1:123456789012:prod-joist-planner", "arn:aws-cn:sqs:cn-north-1:123456789012:q", "arn:aws:sqs:evil.example/x?:1:q", "arn:aws:sqs::::", "arn:aws:sns:a:1:b", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, arn string) {
		text, region, err := queueURLFromARN(arn)
		if err != nil {
			if !strings.Contains(err.Error(), "invalid queue ARN") || text != "" || region != "" {
				t.Fatalf("%q, %q, %v", text, region, err)
			}
			return
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatalf("%q gave %q: %v", arn, text, err)
		}
		fields := strings.Split(arn, ":")
		if host := u.Hostname(); host != "sqs."+region+".amazonaws.com" && host != "sqs."+region+".amazonaws.com.cn" || u.Port() != "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("%q gave the URL %q", arn, text)
		}
		if u.Path != "/"+fields[4]+"/"+fields[5] {
			t.Fatalf("%q gave the path %q", arn, u.Path)
		}
		if account := accountFromQueueURL(text); account != "" && account != fields[4] {
			t.Fatalf("%q is in account %q", text, account)
		}
	})
}
