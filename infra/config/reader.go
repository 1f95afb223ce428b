package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// reader reads values of the context and keeps the first error.
type reader struct {
	get func(key string) any
	// at is the prefix of the keys in errors.
	at  string
	err error
}

func (r *reader) reportInvalid(key string, value any, want string) {
	if r.err == nil {
		r.err = newError("give "+want, "%s%s is %v", r.at, key, value)
	}
}

func (r *reader) readText(key string) string {
	switch v := r.get(key).(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(v)
	default:
		r.reportInvalid(key, v, "a text")
		return ""
	}
}

func (r *reader) readTextOr(key, other string) string {
	if text := r.readText(key); text != "" {
		return text
	}
	return other
}

// readFlag reads a boolean, which is a string on the command line.
func (r *reader) readFlag(key string) bool {
	switch v := r.get(key).(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		if v == "true" || v == "false" || v == "" {
			return v == "true"
		}
	}
	r.reportInvalid(key, r.get(key), "true or false")
	return false
}

// readListOr reads a list; if it is empty, it returns the default.
func (r *reader) readListOr(key, otherwise string) []string {
	if items := r.readList(key); len(items) > 0 {
		return items
	}
	return []string{otherwise}
}

// readList reads a list, or a string with commas.
func (r *reader) readList(key string) []string {
	var items []string
	add := func(text string) {
		if text = strings.TrimSpace(text); text != "" {
			items = append(items, text)
		}
	}
	switch v := r.get(key).(type) {
	case nil:
	case string:
		for text := range strings.SplitSeq(v, ",") {
			add(text)
		}
	case []any:
		for _, item := range v {
			add(fmt.Sprint(item))
		}
	default:
		r.reportInvalid(key, v, "strings separated by commas")
	}
	return items
}

// readPairs reads an object, or NAME=value pairs with commas.
func (r *reader) readPairs(key string) map[string]string {
	all := map[string]string{}
	if object, ok := r.get(key).(map[string]any); ok {
		for name, value := range object {
			all[name] = fmt.Sprint(value)
		}
		return all
	}
	for _, item := range r.readList(key) {
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			r.reportInvalid(key, item, "NAME=value pairs separated by commas, or an object in cdk.json")
		}
		all[name] = value
	}
	return all
}

// readCounts reads pairs whose values are positive whole numbers.
func (r *reader) readCounts(key string) map[string]int {
	all := map[string]int{}
	for name, text := range r.readPairs(key) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			r.reportInvalid(key, name+"="+text, "a whole number for each name, for example interruption=10")
		}
		all[name] = n
	}
	return all
}

// readDuration reads a duration in Go's notation.
func (r *reader) readDuration(key string) time.Duration {
	text := r.readText(key)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		r.reportInvalid(key, text, "a duration such as 30s or 9m")
	}
	return d
}
