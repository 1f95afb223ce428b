package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// reader reads values of the context, and remembers the first that cannot be read.
type reader struct {
	get func(key string) any
	// at is where the keys stand, for errors.
	at  string
	err error
}

func (r *reader) fail(key string, value any, want string) {
	if r.err == nil {
		r.err = invalid("give "+want, "%s%s is %v", r.at, key, value)
	}
}

func (r *reader) text(key string) string {
	switch v := r.get(key).(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(v)
	default:
		r.fail(key, v, "a text")
		return ""
	}
}

func (r *reader) or(key, other string) string {
	if text := r.text(key); text != "" {
		return text
	}
	return other
}

// flag reads true or false, which are texts on the command line.
func (r *reader) flag(key string) bool {
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
	r.fail(key, r.get(key), "true or false")
	return false
}

// listOr is list, with what counts where nothing is said.
func (r *reader) listOr(key, otherwise string) []string {
	if items := r.list(key); len(items) > 0 {
		return items
	}
	return []string{otherwise}
}

// list reads texts that commas divide, or a list.
func (r *reader) list(key string) []string {
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
		r.fail(key, v, "texts with commas between them")
	}
	return items
}

// pairs reads NAME=value texts that commas divide, or an object.
func (r *reader) pairs(key string) map[string]string {
	all := map[string]string{}
	if object, ok := r.get(key).(map[string]any); ok {
		for name, value := range object {
			all[name] = fmt.Sprint(value)
		}
		return all
	}
	for _, item := range r.list(key) {
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			r.fail(key, item, "NAME=value, with commas between them, or an object in cdk.json")
		}
		all[name] = value
	}
	return all
}

// counts reads pairs whose values are whole numbers from 1.
func (r *reader) counts(key string) map[string]int {
	all := map[string]int{}
	for name, text := range r.pairs(key) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			r.fail(key, name+"="+text, "a whole number for each name, as interruption=10")
		}
		all[name] = n
	}
	return all
}

// duration reads a time in Go's notation.
func (r *reader) duration(key string) time.Duration {
	text := r.text(key)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		r.fail(key, text, "a time as 30s or 9m")
	}
	return d
}
