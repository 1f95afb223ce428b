package settings

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// positiveDuration is a duration above zero.
type positiveDuration time.Duration

type setter func(s *Settings, text string) error

func parseText(field func(*Settings) *string) setter {
	return func(s *Settings, text string) error {
		*field(s) = text
		return nil
	}
}

// queueVariable returns a variable that holds the URL of a queue.
func queueVariable(name, purpose, example string, field func(*Settings) *string) Variable {
	return Variable{
		Name: name, Purpose: "the URL of " + purpose, Example: "https://sqs.eu-west-1.amazonaws.com/111122223333/prod-" + example,
		set: func(s *Settings, text string) error {
			u, err := url.Parse(text)
			if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
				return errors.New("is not a URL")
			}
			*field(s) = text
			return nil
		},
	}
}

// queueNames matches the names of standard SQS queues.
var queueNames = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

var roleARNs = regexp.MustCompile(`^arn:[a-z-]+:iam::\d{12}:role/[\w+=,.@/-]+$`)

// parseMatch accepts the texts that match a pattern; problem describes the others.
func parseMatch(pattern *regexp.Regexp, problem string, field func(*Settings) *string) setter {
	return func(s *Settings, text string) error {
		if !pattern.MatchString(text) {
			return errors.New(problem)
		}
		*field(s) = text
		return nil
	}
}

// parseDuration parses the format of Go and Karpenter: 10s, 1m30s.
func parseDuration(field func(*Settings) *positiveDuration) setter {
	return func(s *Settings, text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return errors.New("is not a positive duration")
		}
		*field(s) = positiveDuration(d)
		return nil
	}
}

func parseFraction(field func(*Settings) *float64) setter {
	return func(s *Settings, text string) error {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f >= 0 && f < 1) {
			return errors.New("is not a number from 0 to 1")
		}
		*field(s) = f
		return nil
	}
}

// maxEC2Share prevents mistakes, such as a percentage.
const maxEC2Share = 100

// parseEC2Share parses a number above 0 and up to maxEC2Share.
func parseEC2Share(field func(*Settings) *float64) setter {
	return func(s *Settings, text string) error {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !(f > 0 && f <= maxEC2Share) {
			return fmt.Errorf("is not a number above 0 and up to %d", maxEC2Share)
		}
		*field(s) = f
		return nil
	}
}

// parseDollars parses an amount of US dollars. The field stays nil if the variable is not set.
func parseDollars(field func(*Settings) **float64) setter {
	return func(s *Settings, text string) error {
		f, err := strconv.ParseFloat(strings.TrimPrefix(text, "$"), 64)
		if err != nil || !(f >= 0) || math.IsInf(f, 1) {
			return errors.New("is not an amount of US dollars")
		}
		*field(s) = &f
		return nil
	}
}

func parseNumber(most int, field func(*Settings) *int) setter {
	return func(s *Settings, text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > most {
			return fmt.Errorf("is not a number from 0 to %d", most)
		}
		*field(s) = n
		return nil
	}
}

func parseChoice(field func(*Settings) *string, allowed ...string) setter {
	return func(s *Settings, text string) error {
		if !slices.Contains(allowed, text) {
			return errors.New("is not one of " + strings.Join(allowed, ", "))
		}
		*field(s) = text
		return nil
	}
}

// parseBool parses the boolean spellings of Go and Kubernetes.
func parseBool(set func(s *Settings, on bool)) setter {
	return func(s *Settings, text string) error {
		on, err := strconv.ParseBool(text)
		if err != nil {
			return errors.New("is not true or false")
		}
		set(s, on)
		return nil
	}
}

func parseLogLevel(s *Settings, text string) error {
	if err := s.LogLevel.UnmarshalText([]byte(text)); err != nil {
		return fmt.Errorf("is not one of %s, %s, %s, %s", slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError)
	}
	return nil
}

// parseCloudWatch parses the target of CloudWatch metrics: stdout, or an agent's address.
func parseCloudWatch(s *Settings, text string) error {
	agent, err := url.Parse(text)
	if text != "stdout" && (err != nil || agent.Scheme != "tcp" || agent.Hostname() == "" || agent.Port() == "" || agent.Path != "") {
		return errors.New("is not stdout or tcp://host:port")
	}
	s.CloudWatch = text
	return nil
}
