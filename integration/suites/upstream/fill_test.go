package upstream

import (
	"time"

	awsv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/randfill"

	"github.com/joist-autoscaler/joist/shared/karpenter"
)

var (
	durations  = []string{"720h", "1h30m", "90m", "0s", "168h0m0s", "1.5h", karpenter.Never}
	quantities = []string{"1", "100m", "4Gi", "59000Gi", "64T", "1.5", "20G", "0"}
	kubelets   = []string{`"a<b"`, `-1.50`, `true`, `["z","a"]`, `{"b":{"d":1e3,"c":[]},"a":""}`, `9007199254740993`}
	aliases    = []string{"", "al2@latest", "al2023@v20240625", "bottlerocket@v1.10.0", "windows2022@latest", "windows2025@latest"}
)

// fill sets every field of the object from the seed, with values that JSON can represent:
// whole seconds, and values that their types can parse. One pointer in ten is nil, and
// one list or map in ten is empty.
func fill(seed int64, object any) {
	randfill.NewWithSeed(seed).NilChance(0.1).NumElements(1, 3).MaxDepth(30).Funcs(
		func(t *metav1.Time, c randfill.Continue) {
			*t = metav1.Unix(c.Int63n(4_000_000_000), 0)
		},
		func(t *metav1.MicroTime, c randfill.Continue) {
			*t = metav1.NewMicroTime(time.Unix(c.Int63n(4_000_000_000), 0))
		},
		func(d *metav1.Duration, c randfill.Continue) {
			d.Duration = time.Duration(c.Int63n(1_000_000)) * time.Second
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(pick(c, quantities))
		},
		func(f *metav1.FieldsV1, c randfill.Continue) {
			f.SetRawBytes([]byte(`{"f:spec":{}}`))
		},
		func(value *apiextensionsv1.JSON, c randfill.Continue) {
			value.Raw = []byte(pick(c, kubelets))
		},
		func(d *karpenter.NillableDuration, c randfill.Continue) {
			parsed, err := karpenter.ParseNillableDuration(pick(c, durations))
			if err != nil {
				panic(err) // the list above is wrong
			}
			*d = parsed
		},
		func(d *karpv1.NillableDuration, c randfill.Continue) {
			*d = karpv1.MustParseNillableDuration(pick(c, durations))
		},
		func(term *karpenter.AMISelectorTerm, c randfill.Continue) {
			c.FillNoCustom(term)
			term.Alias = pick(c, aliases)
		},
		func(term *awsv1.AMISelectorTerm, c randfill.Continue) {
			c.FillNoCustom(term)
			term.Alias = pick(c, aliases)
		},
		// Upstream has pointers where the schema forbids null, and Joist has values: fill
		// without nil.
		func(list *[]*awsv1.BlockDeviceMapping, c randfill.Continue) {
			*list = []*awsv1.BlockDeviceMapping{{}, {}}
			c.Fill((*list)[0])
			c.Fill((*list)[1])
		},
		func(list *[]*awsv1.NetworkInterface, c randfill.Continue) {
			*list = []*awsv1.NetworkInterface{{}, {}}
			c.Fill((*list)[0])
			c.Fill((*list)[1])
		},
	).Fill(object)
}

func pick(c randfill.Continue, from []string) string { return from[c.Intn(len(from))] }
