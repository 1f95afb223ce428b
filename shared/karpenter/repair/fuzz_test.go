package repair_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// FuzzParse: every accepted rule has a condition and a time, one more is the fallback, and an error quotes the text.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"Ready=False:30m", "Ready=False:30m, AcceleratedHardwareReady=Unknown:1h,", "Ready=Maybe:1m", "=True:1m", "a=True:-1s", ",", "a=True:1m:2m"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		policies, err := repair.Parse(text)
		if err != nil {
			if len(policies) > 0 || !strings.Contains(err.Error(), `"`) {
				t.Fatalf("%v, %v", policies, err)
			}
			return
		}
		rules := 0
		for item := range strings.SplitSeq(text, ",") {
			if strings.TrimSpace(item) != "" {
				rules++
			}
		}
		if len(policies) != rules+1 {
			t.Fatalf("%s gave %d policies", strconv.Quote(text), len(policies))
		}
		for _, p := range policies {
			if p.Condition == "" || p.Toleration < 0 {
				t.Fatalf("%s gave %+v", strconv.Quote(text), p)
			}
		}
	})
}
