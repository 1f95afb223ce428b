// Package cloudwatch implements GetMetricData for the ages of queues' oldest messages, in
// CloudWatch's protocol (smithy's RPC over CBOR).
package cloudwatch

import (
	"net/http"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

const path = "/service/GraniteServiceVersion20100801/operation/"

// Service answers CloudWatch's calls.
type Service struct {
	// Ages are the ages of the oldest messages in seconds, by queue name.
	Ages map[string]float64
	// Denied denies every call.
	Denied bool
}

// Match recognizes the protocol by its path.
func (s *Service) Match(r *http.Request, _ []byte) bool { return strings.HasPrefix(r.URL.Path, path) }

type dimension struct{ Name, Value string }

type query struct {
	ID         string `cbor:"Id"`
	MetricStat struct {
		Metric struct {
			Namespace, MetricName string
			Dimensions            []dimension
		}
	}
}

type result struct {
	ID         string `cbor:"Id"`
	Label      string
	StatusCode string
	Values     []float64
}

// ServeHTTP answers one call.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in struct{ MetricDataQueries []query }
	switch {
	case s.Denied:
		write(w, http.StatusForbidden, map[string]string{"__type": "AccessDenied", "message": "not authorized to perform: cloudwatch:GetMetricData"})
		return
	case r.URL.Path != path+"GetMetricData" || cbor.NewDecoder(r.Body).Decode(&in) != nil:
		write(w, http.StatusBadRequest, map[string]string{"__type": "SerializationException", "message": "the fake does not support this request"})
		return
	}
	out := struct{ MetricDataResults []result }{MetricDataResults: []result{}}
	for _, q := range in.MetricDataQueries {
		answer := result{ID: q.ID, StatusCode: "Complete", Values: []float64{}}
		m := q.MetricStat.Metric
		if m.Namespace == "AWS/SQS" && m.MetricName == "ApproximateAgeOfOldestMessage" && len(m.Dimensions) == 1 && m.Dimensions[0].Name == "QueueName" {
			if age, known := s.Ages[m.Dimensions[0].Value]; known {
				answer.Values = append(answer.Values, age)
			}
		}
		out.MetricDataResults = append(out.MetricDataResults, answer)
	}
	write(w, http.StatusOK, out)
}

func write(w http.ResponseWriter, status int, out any) {
	w.Header().Set("Content-Type", "application/cbor")
	w.Header().Set("Smithy-Protocol", "rpc-v2-cbor")
	w.WriteHeader(status)
	_ = cbor.NewEncoder(w).Encode(out)
}
