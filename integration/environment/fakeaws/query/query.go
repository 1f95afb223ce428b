// Package query parses requests of AWS's query protocols (EC2, IAM, STS) and writes
// responses. A form's keys are paths, such as
// "LaunchTemplateConfigs.1.Overrides.2.SubnetId".
package query

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// Is reports whether the body is a query of the API version. Versions are dates that
// differ between services, so they identify the service.
func Is(r *http.Request, body []byte, version string) bool {
	if r.Method != http.MethodPost || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return false
	}
	values, err := url.ParseQuery(string(body))
	return err == nil && values.Get("Version") == version && values.Get("Action") != ""
}

// Form is a part of a request: all keys below a path.
type Form struct {
	values url.Values
	paths  map[string]bool
	prefix string
}

// Read parses the body of a request.
func Read(r *http.Request) (Form, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return Form{}, err
	}
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return Form{}, err
	}
	form := Form{values: values, paths: map[string]bool{}}
	for key := range values {
		for at := range key {
			if key[at] == '.' {
				form.paths[key[:at]] = true
			}
		}
		form.paths[key] = true
	}
	return form, nil
}

// Has reports whether there is a value at or below the path.
func (f Form) Has(path string) bool { return f.paths[f.prefix+path] }

// Get returns the value at the path, or "".
func (f Form) Get(path string) string { return f.values.Get(f.prefix + path) }

// Sub returns the part below the path.
func (f Form) Sub(path string) Form {
	f.prefix += path + "."
	return f
}

// Each returns the parts path.1, path.2 and so on.
func (f Form) Each(path string) []Form {
	var out []Form
	for n := 1; f.Has(path + "." + strconv.Itoa(n)); n++ {
		out = append(out, f.Sub(path+"."+strconv.Itoa(n)))
	}
	return out
}

// List returns the values path.1, path.2 and so on.
func (f Form) List(path string) []string {
	var out []string
	for n := 1; f.Has(path + "." + strconv.Itoa(n)); n++ {
		out = append(out, f.Get(path+"."+strconv.Itoa(n)))
	}
	return out
}

// Int returns the number at the path, or 0.
func (f Form) Int(path string) int {
	n, err := strconv.Atoi(f.Get(path))
	if err != nil {
		return 0
	}
	return n
}

// Int32 returns the number at the path, or nil.
func (f Form) Int32(path string) *int32 {
	if !f.Has(path) {
		return nil
	}
	return new(int32(f.Int(path)))
}

// Bool returns the boolean at the path, or nil.
func (f Form) Bool(path string) *bool {
	if !f.Has(path) {
		return nil
	}
	return new(f.Get(path) == "true")
}

// Tags returns a list of keys and values as a map.
func (f Form) Tags(path string) map[string]string {
	var out map[string]string
	for _, tag := range f.Each(path) {
		if out == nil {
			out = map[string]string{}
		}
		out[tag.Get("Key")] = tag.Get("Value")
	}
	return out
}

// Write responds with XML.
func Write(w http.ResponseWriter, status int, answer any) {
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(answer)
}

// Refusal returns AWS's code, message and status for an error of the model. For a lost
// response it closes the connection.
func Refusal(err error) (code, message string, status int) {
	code, message = memcloud.Code(err)
	if code == "" {
		if fault.Is(err, fault.Unknown) {
			panic(http.ErrAbortHandler)
		}
		return "InternalError", err.Error(), http.StatusInternalServerError
	}
	switch fault.KindOf(err) {
	case fault.Throttled:
		return code, message, http.StatusServiceUnavailable
	case fault.Denied:
		return code, message, http.StatusForbidden
	case fault.Retry, fault.Unknown:
		return code, message, http.StatusInternalServerError
	}
	return code, message, http.StatusBadRequest
}

// ErrUnserved is the error for unsupported requests: either the test is wrong or the fake
// is incomplete, and the SDK must not retry.
var ErrUnserved = errors.New("the fake does not support this request")

type failure struct {
	XMLName xml.Name `xml:"ErrorResponse"`
	Space   string   `xml:"xmlns,attr"`
	Type    string   `xml:"Error>Type"`
	Code    string   `xml:"Error>Code"`
	Message string   `xml:"Error>Message"`
	Request string   `xml:"RequestId"`
}

// Refuse responds with an error in the format of IAM and STS; EC2 has a different one.
func Refuse(w http.ResponseWriter, namespace string, status int, code, message string) {
	Write(w, status, failure{
		Space: namespace, Type: "Sender", Code: code, Message: message, Request: "00000000-0000-0000-0000-000000000000",
	})
}
