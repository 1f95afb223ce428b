package outbox_test

import (
	"encoding/json"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/cluster/outbox"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// FuzzParse: an outbox that is accepted is written with the same value; an error is Invalid and says what to do.
func FuzzParse(f *testing.F) {
	f.Add("outbox", `{"state":"idle"}`)
	f.Add("outbox", `{"state":"sent","seq":3,"epoch":2,"batch":{"kind":"batches","digest":"00","size":3}}`)
	f.Add("outbox", `{"state":"lost"}`)
	f.Fuzz(func(t *testing.T, key, text string) {
		object := &corev1.ConfigMap{Data: map[string]string{key: text}}
		stored, err := outbox.Parse(object)
		if err != nil {
			if !fault.Is(err, fault.Invalid) || fault.FindHint(err) == "" {
				t.Fatalf("%s: %v", fault.KindOf(err), err)
			}
			return
		}
		encoded, err := json.Marshal(stored.Outbox)
		if err != nil {
			t.Fatal(err)
		}
		object.Data[key] = string(encoded)
		again, err := outbox.Parse(object)
		if err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		if other, err := json.Marshal(again.Outbox); err != nil || !reflect.DeepEqual(encoded, other) {
			t.Fatalf("%s became %s (%v)", encoded, other, err)
		}
	})
}
