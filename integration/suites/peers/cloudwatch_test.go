package peers

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// callCloudWatch calls CloudWatch with its query protocol, because neither emulator
// supports the SDK's protocol, CBOR.
func callCloudWatch(ctx context.Context, server aws.Config, action, name, value string) (object, error) {
	form := url.Values{"Action": {action}, "Version": {"2010-08-01"}, name: {value}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, *server.BaseEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", fmt.Sprintf(
		"AWS4-HMAC-SHA256 Credential=%s/20260101/%s/monitoring/aws4_request, SignedHeaders=host, Signature=0", deployedAccount, server.Region))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("%s: %s: %.300s", action, response.Status, text), err)
	}
	var answer element
	if err := xml.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", action, err)
	}
	result, _ := answer.value().(object)[action+"Result"].(object)
	return result, nil
}

// element is an XML element.
type element struct {
	XMLName xml.Name
	Text    string    `xml:",chardata"`
	Inner   []element `xml:",any"`
}

// value returns the element as a JSON value: members become a list.
func (e element) value() any {
	if len(e.Inner) == 0 {
		return parseAttribute(strings.TrimSpace(e.Text))
	}
	list, named := []any{}, object{}
	for _, each := range e.Inner {
		if each.XMLName.Local == "member" {
			list = append(list, each.value())
		} else {
			named[each.XMLName.Local] = each.value()
		}
	}
	if len(list) > 0 {
		return list
	}
	return named
}

func readAlarm(ctx context.Context, server aws.Config, want object) (object, error) {
	out, err := callCloudWatch(ctx, server, "DescribeAlarms", "AlarmNames.member.1", *nameOf(want, "AlarmName"))
	if err != nil {
		return nil, err
	}
	alarms, _ := out["MetricAlarms"].([]any)
	if len(alarms) != 1 {
		return nil, errAbsent
	}
	alarm, _ := prune(alarms[0]).(object)
	tags, err := callCloudWatch(ctx, server, "ListTagsForResource", "ResourceARN", *nameOf(alarm, "AlarmArn"))
	if err != nil {
		return nil, err
	}
	prune(tags)
	alarm["Tags"] = tags["Tags"]
	return alarm, nil
}

func readDashboard(ctx context.Context, server aws.Config, want object) (object, error) {
	out, err := callCloudWatch(ctx, server, "GetDashboard", "DashboardName", *nameOf(want, "DashboardName"))
	if err == nil && len(out) == 0 {
		err = errAbsent
	}
	return out, err
}
