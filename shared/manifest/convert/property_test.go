package convert_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/joist-autoscaler/joist/shared/manifest"
	"github.com/joist-autoscaler/joist/shared/manifest/convert"
)

// FuzzConvert converts any input: never a panic, the result of a readable input is readable, all comments stay, and
// a second conversion changes nothing.
func FuzzConvert(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/*.json", "../testdata/*.yaml"} {
		files, err := globFiles(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nspec: &a {disruption: *a, <<: [*a]}\n"))
	f.Add([]byte("\uFEFFapiVersion: karpenter.sh/v1beta1\r\nkind: NodePool\r\nmetadata: {name: a}\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) { checkConversion(t, data) })
}

// failer is a test, or a check of a property.
type failer interface {
	Fatalf(format string, args ...any)
}

func checkConversion(t failer, data []byte) {
	r := convert.Convert([]convert.Input{{Name: "f.yaml", Data: data}}, convert.ConversionOptions{Lint: true})
	text := r.Files[0].Text
	if r.Files[0].Changed == (string(text) == string(data)) {
		t.Fatalf("Changed is %v for\n%q\n->\n%q", r.Files[0].Changed, data, text)
	}
	if len(text) == 0 && len(data) > 0 {
		t.Fatalf("the file is empty now: %q", data)
	}
	for _, remark := range r.Remarks {
		if remark.Line < 1 || remark.Text == "" || remark.File != "f.yaml" {
			t.Fatalf("a remark without place or text: %+v", remark)
		}
	}
	again := convert.Convert([]convert.Input{{Name: "f.yaml", Data: text}}, convert.ConversionOptions{Lint: true})
	if string(again.Files[0].Text) != string(text) {
		t.Fatalf("the second conversion changes the result of\n%q:\n%s\n->\n%s", data, text, again.Files[0].Text)
	}
	if r.Files[0].Kind == convert.NodeGroups || slices.ContainsFunc(r.Remarks, func(remark convert.Remark) bool { return strings.Contains(remark.Text, "indentation") }) {
		return // Without its indentation, a text's # looks like a comment.
	}
	for part := range strings.SplitSeq("\n"+clean(string(data)), "\n---") {
		if _, problem := manifest.ParseText(part); problem != nil {
			continue
		}
		for _, c := range manifest.Comments(part) {
			if r.Files[0].Changed && !strings.Contains(string(text), strings.TrimSpace(c.Text)) {
				t.Fatalf("the comment %q is lost:\n%s\n->\n%s", c.Text, data, text)
			}
		}
	}
}

func clean(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")
}

// TestConversionIsStable converts generated manifests of all versions.
func TestConversionIsStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for i := range rapid.IntRange(1, 4).Draw(t, "documents") {
			if i > 0 {
				b.WriteString("---\n")
			}
			writeDocument(t, &b)
		}
		text := b.String()
		if rapid.Bool().Draw(t, "crlf") {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		checkConversion(t, []byte(text))
		r := convert.Convert([]convert.Input{{Name: "f.yaml", Data: []byte(text)}}, convert.ConversionOptions{})
		for _, remark := range r.Remarks {
			if strings.Contains(remark.Text, "cannot be rewritten") || strings.Contains(remark.Text, "invalid YAML") {
				t.Fatalf("%v\n%s", remark, text)
			}
		}
	})
}

// writeDocument writes an object of an older version with some of its fields, in blocks or in braces.
func writeDocument(t *rapid.T, b *strings.Builder) {
	headers := []string{"karpenter.sh/v1beta1\nkind: NodePool", "karpenter.sh/v1alpha5\nkind: Provisioner", "karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass",
		"karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate", "karpenter.sh/v1\nkind: NodePool", "v1\nkind: ConfigMap"}
	fmt.Fprintf(b, "# above\napiVersion: %s\nmetadata:\n  name: %s # the name\n", rapid.SampledFrom(headers).Draw(t, "header"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "name"))
	parts := []string{
		"  # the limits\n  limits:\n    # inside\n    resources:\n      # deeper\n      cpu: 10 # cores\n",
		"  limit: {cpu: 1}\n",
		"  requirements:\n  - key: a # key\n    operator: In\n    # values\n    values:\n    - 1\n    - x\n",
		"  ttlSecondsAfterEmpty: 30 # seconds\n\n  # never expires\n",
		"  ttlSecondsUntilExpired: 300\n",
		"  consolidation:\n    enabled: true # on\n",
		"  providerRef: # ref\n    name: a\n",
		"  kubeletConfiguration:\n    # runtime\n    containerRuntime: dockerd\n    maxPods: 20 # pods\n",
		"  provider:\n    subnetSelector: {Name: \"x,y\"} # two\n    securityGroupSelector:\n      # any\n      Name: \"\"\n",
		"  subnetSelector:\n    # tag\n    a: b\n",
		"  securityGroupSelector: {aws-ids: \"sg-1,sg-2\"} # ids\n",
		"  amiSelector:\n    aws::name: a,b\n    aws::owners: self\n",
		"  amiFamily: Bottlerocket # family\n",
		"  tags: {a: 1, kubernetes.io/cluster/a: owned}\n",
		"  disruption:\n    # policy\n    consolidationPolicy: WhenUnderutilized\n    expireAfter: 720h # month\n",
		"  template:\n    metadata:\n      labels: {a: true}\n    spec:\n      # class\n      nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: b}\n      kubelet: {maxPods: 10}\n      # end of the template\n",
		"  userData: |\n    #!/bin/bash\n    # not a comment\n\n    echo hi\n",
	}
	chosen := rapid.SliceOfDistinct(rapid.IntRange(0, len(parts)-1), rapid.ID[int]).Draw(t, "parts")
	b.WriteString("spec:\n")
	seen := map[string]bool{}
	for _, i := range chosen {
		if key, _, _ := strings.Cut(strings.TrimLeft(parts[i], " "), ":"); !seen[key] {
			seen[key] = true
			b.WriteString(parts[i])
		}
	}
	b.WriteString("# below\n")
}

// TestLineBreaks keeps a byte order mark, carriage returns, and a missing line break at the end.
func TestLineBreaks(t *testing.T) {
	const in = "\uFEFFapiVersion: karpenter.sh/v1\r\nkind: NodePool\r\nmetadata:\r\n  name: a\r\nspec:\r\n  limit:\r\n    cpu: 1\r\n  template:\r\n    spec:\r\n      requirements: []\r\n      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}"
	r := convert.Convert([]convert.Input{{Name: "a.yaml", Data: []byte(in)}}, convert.ConversionOptions{})
	want := strings.Replace(in, "limit:", "limits:", 1)
	if got := string(r.Files[0].Text); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := r.Count(convert.Unrepaired); n != 0 {
		t.Errorf("%d problems: %v", n, r.Remarks)
	}
}

// TestOtherDocumentsKeepTheirBytes converts a file whose other documents have unusual text.
func TestOtherDocumentsKeepTheirBytes(t *testing.T) {
	const before = "%YAML 1.1\n---   \n# odd   spaces  \n{ apiVersion:   v1 , kind: ConfigMap, metadata: {name: a},\n data: {}  }\n\n\n"
	const after = "--- # comment\napiVersion:    v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {x: |-\n  }\n...\n"
	const pool = "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec:\n  limit: {cpu: 1}\n"
	r := convert.Convert([]convert.Input{{Name: "a.yaml", Data: []byte(before + pool + after)}}, convert.ConversionOptions{})
	got := string(r.Files[0].Text)
	if !strings.HasPrefix(got, before) || !strings.HasSuffix(got, after) || !strings.Contains(got, "limits: {cpu: 1}") {
		t.Errorf("got %q", got)
	}
}

// TestSettingsInList converts Karpenter's ConfigMaps in a List in place: the List loses them, their comments stay, and
// their values are in a comment below, or in JSON only in the values.
func TestSettingsInList(t *testing.T) {
	const in = "apiVersion: v1\nkind: List\nitems:\n# the settings\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: karpenter-global-settings}\n  data:\n    aws.clusterName: demo # ours\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: other}\n---\na: b\n"
	r := convert.Convert([]convert.Input{{Name: "a.yaml", Data: []byte(in)}}, convert.ConversionOptions{})
	got := string(r.Files[0].Text)
	for _, want := range []string{"# the settings", "# ours", "name: other", "# Values of Joist's chart, from the ConfigMap karpenter-global-settings:\n#   settings:\n#     clusterName: demo\n---\na: b\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("without %q: %s", want, got)
		}
	}
	if strings.Contains(got, "name: karpenter-global-settings") || r.Values != "settings:\n  clusterName: demo\n" {
		t.Errorf("values %q, text %s", r.Values, got)
	}
	checkConversion(t, []byte(in))
	const json = `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"karpenter-global-settings"},"data":{"aws.clusterName":"demo"}}]}`
	r = convert.Convert([]convert.Input{{Name: "a.json", Data: []byte(json)}}, convert.ConversionOptions{})
	if got := string(r.Files[0].Text); strings.Contains(got, "#") || strings.Contains(got, "aws.clusterName") || r.Values != "settings:\n  clusterName: demo\n" {
		t.Errorf("values %q, text %s", r.Values, got)
	}
	checkConversion(t, []byte(json))
}

// TestBadInput names what cannot be read, with its line.
func TestBadInput(t *testing.T) {
	for name, tt := range map[string]struct{ in, want string }{
		"binary":         {"\x7fELF\x00\x00", "f.yaml:1: unrepaired: line 1 has a zero byte"},
		"other encoding": {"a: 1\nb: \xff\n", "line 2 is not UTF-8"},
		"too large":      {strings.Repeat("#", manifest.FileMax+1), "the file has more than 33554432 bytes: split it"},
		"half":           {"apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a\n", "f.yaml:3:11: unrepaired: invalid YAML"},
		"template":       {"apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata:\n  name: {{ .Values.name }}\n", "read the output of `helm template`"},
		"carriage":       {"a: b\nc: d\re: f\n", "f.yaml:2: unrepaired: this line has a carriage return inside"},
		"twice":          {"apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a}\nspec:\n  limits: {cpu: 1}\n  limits: {cpu: 2}\n", "f.yaml:6:3: unrepaired: duplicate key limits"},
		"alias bomb": {"apiVersion: karpenter.sh/v1beta1\nkind: NodePool\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n", "more than 200000 values after expanding aliases"},
		"deep":   {"a: " + strings.Repeat("[", 2000), "nested deeper than 100 levels"},
		"custom": {"apiVersion: karpenter.k8s.aws/v1beta1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: {amiFamily: Custom, role: r}\n", "Custom without amiSelectorTerms selects no image"},
		"list":   {"- a\n- b\n", "expected an object with apiVersion and kind, got a list"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := convert.Convert([]convert.Input{{Name: "f.yaml", Data: []byte(tt.in)}}, convert.ConversionOptions{})
			var lines []string
			for _, remark := range r.Remarks {
				lines = append(lines, remark.String())
			}
			if all := strings.Join(lines, "\n"); !strings.Contains(all, tt.want) {
				t.Errorf("got %s\nwant %s", all, tt.want)
			}
			if r.Count(convert.Unrepaired) == 0 {
				t.Error("nothing is named as unrepaired")
			}
		})
	}
}
