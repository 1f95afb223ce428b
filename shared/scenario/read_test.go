package scenario_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/scenario"
)

func shop(t testing.TB) scenario.Scenario {
	t.Helper()
	s, err := scenario.Read(os.DirFS("testdata"), "shop.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// kind is an instance type for the short scenarios.
const kind = `{"name": "a.large", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "2", "memory": "8Gi", "pods": "10"},
	"offerings": [{"zone": "z1a", "capacityType": "spot", "price": 0.5, "available": true}]}`

func pod(name string) string { return `{"metadata": {"name": "` + name + `"}}` }

func TestProblemsNameThePlaceAndTheRemedy(t *testing.T) {
	with := func(rest string) string {
		return `{"name": "s", "instanceTypes": [` + kind + `], "nodePools": []` + rest + "}"
	}
	types := func(change, to string) string {
		return strings.Replace(with(""), change, to, 1)
	}
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"no JSON", "{\n  \"name\": NaN\n}", []string{"s.json:2:11: invalid JSON: invalid character 'N' looking for beginning of value"}},
		{"half a file", `{"name": "s"`, []string{"s.json:1:12: invalid JSON: unexpected end of JSON input"}},
		{"empty", "", []string{"s.json:1:1: invalid JSON: unexpected end of JSON input"}},
		{"another shape", `[]`, []string{"s.json: array found, expected an object"}},
		{"nothing of it", `{}`, []string{"s.json: instanceTypes: missing: list the instance types, or name a file next to the scenario in instanceTypesFile"}},
		{"no pools", `{"instanceTypes": []}`, []string{"s.json: nodePools: missing: list the NodePools, or write [] for none"}},
		{"two lists of types", with(`, "instanceTypesFile": "types.json"`), []string{"s.json: instanceTypesFile: the scenario has instanceTypes too: remove one of the two"}},
		{"an unknown file of types", `{"instanceTypesFile": "none.json", "nodePools": []}`,
			[]string{"s.json: instanceTypesFile: opening none.json: file does not exist: put the file next to the scenario, or write its absolute path"}},
		{"a file of types elsewhere", `{"instanceTypesFile": "../types.json", "nodePools": []}`,
			[]string{`s.json: instanceTypesFile: "../types.json" is not in the folder of the scenario: put the file next to the scenario, or write its absolute path`}},
		{"a broken file of types", `{"instanceTypesFile": "broken.json", "nodePools": []}`,
			[]string{`broken.json: [0].capacity.cpu: "two" is not a quantity: write a number with an optional suffix, such as 500m, 2 or 4Gi`}},
		{"a negative price", types("0.5", "-0.5"), []string{"s.json: instanceTypes[0].offerings[0].price: invalid price -0.5: write US dollars per hour"}},
		{"no price", types(`"price": 0.5, `, ""), []string{"s.json: instanceTypes[0].offerings[0].price: missing: write US dollars per hour, or remove the offering"}},
		{"a price that is no number", types("0.5", `"NaN"`), []string{"s.json: instanceTypes[0].offerings[0].price: string found, expected a number"}},
		{"an endless price", types("0.5", "1e999"), []string{"s.json: instanceTypes[0].offerings[0].price: number 1e999 found, expected a number"}},
		{"nobody says whether", types(`, "available": true`, ""), []string{"s.json: instanceTypes[0].offerings[0].available: missing: write true, or false if it cannot be launched now"}},
		{"an unknown capacity type", types(`"spot"`, `"sport"`), []string{`s.json: instanceTypes[0].offerings[0].capacityType: unknown capacity type "sport": write one of [on-demand reserved spot]`}},
		{"a type without a size", types(`"memory": "8Gi", `, ""), []string{"s.json: instanceTypes[0].capacity.memory: missing: write the capacity of the instance type"}},
		{"a type twice", types(kind, kind+","+kind), []string{"s.json: instanceTypes[1].name: duplicate instance type a.large: remove one of the two"}},
		{"a bare type", types(kind, "{}"), []string{
			"s.json: instanceTypes[0].name: missing: write the name, such as m7g.large",
			"s.json: instanceTypes[0].arch: missing: write amd64 or arm64",
			`s.json: instanceTypes[0].os: missing: write ["linux"]`,
			"s.json: instanceTypes[0].capacity.cpu: missing: write the capacity of the instance type",
			"s.json: instanceTypes[0].capacity.memory: missing: write the capacity of the instance type",
			"s.json: instanceTypes[0].capacity.pods: missing: write the capacity of the instance type",
		}},
		{"a pool without a name", strings.Replace(with(""), `"nodePools": []`, `"nodePools": [{}]`, 1), []string{"s.json: nodePools[0].metadata.name: missing: write a name"}},
		{"a bad quantity", with(`, "podGroups": [{"count": 1, "template": {"metadata": {"name": "w"}, "spec": {"containers": [{}, {"resources": {"requests": {"cpu": "2 cores"}}}]}}}]`),
			[]string{`s.json: podGroups[0].template.spec.containers[1].resources.requests.cpu: "2 cores" is not a quantity: write a number with an optional suffix, such as 500m, 2 or 4Gi`}},
		{"zero pods", with(`, "podGroups": [{"count": 0, "template": ` + pod("w") + `}]`), []string{"s.json: podGroups[0].count: invalid count 0: write 1 or more"}},
		{"minus one pod", with(`, "podGroups": [{"count": -1, "template": ` + pod("w") + `}]`), []string{"s.json: podGroups[0].count: invalid count -1: write 1 or more"}},
		{"half a pod", with(`, "podGroups": [{"count": 1.5, "template": ` + pod("w") + `}]`), []string{"s.json: podGroups[0].count: number 1.5 found, expected a whole number"}},
		{"a group without a name", with(`, "podGroups": [{"count": 1, "template": {}}]`), []string{"s.json: podGroups[0].template.metadata.name: missing: the pods of the group are named after it"}},
		{"nulls in lists", with(`, "podGroups": [null], "pods": [null]`), []string{
			"s.json: podGroups[0].count: invalid count 0: write 1 or more", "s.json: pods[0].metadata.name: missing: write a name; the plan refers to pods by name",
		}},
		{"too many pods", with(`, "podGroups": [{"count": 2000000000, "template": ` + pod("w") + `}, {"count": 2000000000, "template": ` + pod("v") + `}]`),
			[]string{"s.json: pods: more than 200000: split the scenario"}},
		{"pods of one name", with(`, "podGroups": [{"count": 2, "template": ` + pod("w") + `}], "pods": [` + pod("w-1") + `]`),
			[]string{"s.json: pods[0].metadata.name: duplicate pod default/w-1: rename one of the two"}},
		{"groups of one name", with(`, "podGroups": [{"count": 9, "template": ` + pod("w") + `}, {"count": 9, "template": ` + pod("w") + `}]`),
			[]string{"s.json: podGroups[1]: duplicate pod default/w-0: rename one of the two"}},
		{"a pod that waits and runs", with(`, "pods": [{"metadata": {"name": "p"}, "spec": {"nodeName": "n"}}]`),
			[]string{"s.json: pods[0].spec.nodeName: a pending pod cannot have a node, but has n: remove the field, or list the pod under the node"}},
		{"a node of nothing", with(`, "nodes": [{"nodePool": "p", "pods": [{}]}]`), []string{
			"s.json: nodes[0].name: missing: write a name",
			`s.json: nodes[0].instanceType: unknown instance type "": write one of the instance types of the scenario`,
			`s.json: nodes[0].nodePool: unknown NodePool "p": write one of the NodePools of the scenario, or remove the field for a node without a NodePool`,
			"s.json: nodes[0].zone: missing: write the zone of the node",
			`s.json: nodes[0].capacityType: unknown capacity type "": write one of [on-demand reserved spot]`,
			"s.json: nodes[0].pods[0].metadata.name: missing: write a name; the plan refers to pods by name",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := fstest.MapFS{"broken.json": {Data: []byte(`[{"capacity": {"cpu": "two"}}]`)}}
			_, err := scenario.Parse(folder, "s.json", []byte(tt.text))
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("error %v, want one of kind %s", err, fault.Invalid)
			}
			got := strings.Split(strings.TrimPrefix(err.Error(), "reading the scenario: "), "\n")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProblemsAreBounded(t *testing.T) {
	text := `{"nodePools": [], "instanceTypes": [` + strings.TrimSuffix(strings.Repeat("{},", 50), ",") + "]}"
	_, err := scenario.Parse(nil, "s.json", []byte(text))
	if lines := strings.Split(fmt.Sprint(err), "\n"); len(lines) != 21 || lines[20] != "and 280 more" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func TestUnknownFieldsAreNoted(t *testing.T) {
	text := `{"instanceTypes": [], "nodePools": [], "pods": [{"metadata": {"name": "p"}, "spec": {"node": "n"}}], "color": "red"}`
	s, err := scenario.Parse(nil, "s.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`s.json: unknown field "pods[0].spec.node" is ignored`, `s.json: unknown field "color" is ignored`}
	if diff := cmp.Diff(want, s.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestReadUnpacks(t *testing.T) {
	folder := fstest.MapFS{}
	for _, name := range []string{"shop.json", "types.json"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(bytes.ReplaceAll(text, []byte(`"types.json"`), []byte(`"types.json.gz"`))); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		folder["in/"+name+".gz"] = &fstest.MapFile{Data: packed.Bytes()}
	}
	got, err := scenario.Read(folder, "in/shop.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	plain := shop(t)
	gotText, wantText := problemText(t, got), problemText(t, plain)
	if diff := cmp.Diff(wantText, gotText); diff != "" {
		t.Error(diff)
	}
	folder["broken.json.gz"] = &fstest.MapFile{Data: []byte("not packed")}
	for _, name := range []string{"none.json", "broken.json.gz", "../shop.json"} {
		if _, err := scenario.Read(folder, name); !fault.Is(err, fault.Missing) {
			t.Errorf("%s: error %v, want one of kind %s", name, err, fault.Missing)
		}
	}
}

// problemText returns the planner's input as text, for comparisons.
func problemText(t *testing.T, s scenario.Scenario) string {
	t.Helper()
	batch, stock := s.Problem(s.Pods())
	text, err := json.MarshalIndent([]any{batch, stock}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// FuzzRead checks that any scenario that can be read can also be converted and printed.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"shop.json", "types.json"} {
		text, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"instanceTypes": [` + kind + `], "nodePools": [{"metadata": {"name": "p"}, "spec": {"limits": {"cpu": "1e99"}}}], "podGroups": [{"count": 2, "template": ` + pod("w") + `}]}`))
	types, err := os.ReadFile("testdata/types.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := scenario.Parse(fstest.MapFS{"types.json": {Data: types}}, "s.json", text)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Errorf("an error of kind %s: %v", fault.KindOf(err), err)
			}
			return
		}
		pods := s.Pods()
		if len(pods) > 1000 {
			t.Skip("large")
		}
		batch, _ := s.Problem(pods)
		count := 0
		for _, class := range batch.Pending {
			count += len(class.Pods)
		}
		if count != len(pods) {
			t.Errorf("%d pods are asked for, and %d wait", count, len(pods))
		}
	})
}
