package versions

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/event"
)

// A text of the next version has one more field in every object that is a struct, and none in a map.
func TestAddUnknownFields(t *testing.T) {
	got := string(AddUnknownFields(Messages+TextKind(event.TagRequestedType), []byte(`{"instanceId":"i-1","claimUid":"u","tags":{"Name":"x"}}`)))
	if n := strings.Count(got, newerField); n != 1 || !strings.Contains(got, `"tags":{"Name":"x"}`) {
		t.Errorf("%d objects have the field, want the body alone: %s", n, got)
	}
	text := `{"claimUid":"u","instanceId":"i-1"}`
	form := Messages + TextKind(event.TagRequestedType)
	if again := string(RemoveAddedFields(form, AddUnknownFields(form, []byte(text)))); again != text {
		t.Errorf("added and removed, %s is %s", text, again)
	}
	got = string(AddUnknownFields(Documents+event.BatchKind, []byte(`{"seq":1,"pending":[{"pods":[{"name":"a"},{"name":"b"}]}]}`)))
	if n := strings.Count(got, newerField); n != 4 {
		t.Errorf("%d objects have the field, want 4: %s", n, got)
	}
}

// A text of the previous version has no field that it does not know, at any depth.
func TestDrop(t *testing.T) {
	known := Today().Without("documents/batches.pending[].pods[].workload", "documents/batches.ignored")
	got := string(known.Drop(Documents+event.BatchKind, []byte(`{"seq":1,"ignored":[],"pending":[{"pods":[{"name":"a","workload":"w"}]}]}`)))
	if want := `{"seq":1,"pending":[{"pods":[{"name":"a"}]}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A message is rewritten with its body; an event of AWS is not a message of Joist and stays as it is.
func TestRewriteMessage(t *testing.T) {
	text := []byte(`{"specversion":"1.0","type":"tick.v1","data":{"want":"status"}}`)
	var got struct {
		Field json.RawMessage `json:"ofTheNextVersion"`
		Data  struct {
			Want  string          `json:"want"`
			Field json.RawMessage `json:"ofTheNextVersion"`
		} `json:"data"`
	}
	if err := json.Unmarshal(RewriteMessage(text, AddUnknownFields), &got); err != nil || got.Field == nil || got.Data.Field == nil || got.Data.Want != "status" {
		t.Errorf("%v: %+v", err, got)
	}
	foreign := `{"detail-type":"EC2 Spot Instance Interruption Warning","detail":{}}`
	if got := string(RewriteMessage([]byte(foreign), AddUnknownFields)); got != foreign {
		t.Errorf("got %s", got)
	}
}
