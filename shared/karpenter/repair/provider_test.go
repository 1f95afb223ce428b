package repair_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

// A set of rules is valid and repairs a node for any reason of its condition.
func TestParse(t *testing.T) {
	policies, err := repair.Parse(" Ready=Unknown:15m , KernelReady=False:1h,")
	if err != nil {
		t.Fatal(err)
	}
	m, err := repair.NewMatcher(repair.PolicySet{Policies: policies})
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"", "NodeStatusUnknown"} {
		c := []repair.UnhealthyCondition{{Type: "KernelReady", Status: "False", Reason: reason, Since: noon}}
		if got := m.Decide(c, noon, time.Time{}); !got.Next.Equal(noon.Add(time.Hour)) || got.Action != "" {
			t.Errorf("with the reason %q: %+v", reason, got)
		}
		got := m.Decide(c, noon.Add(time.Hour), time.Time{})
		if got.Action != repair.Replace || got.GracePeriod == nil || *got.GracePeriod != 10*time.Minute {
			t.Errorf("with the reason %q after an hour: %+v", reason, got)
		}
	}
}

func TestParseRejects(t *testing.T) {
	for text, want := range map[string]string{
		"Ready":                         "does not have the form",
		"Ready=False":                   "does not have the form",
		"=False:30m":                    "does not have the form",
		"Ready:30m":                     "does not have the form",
		"Ready=Bad:30m":                 `has the unknown status "Bad"`,
		"Ready=False:soon":              "has no duration",
		"Ready=False:30":                "has no duration",
		"Ready=False:-1m":               "has no duration",
		"Ready=False:30m,Disk=Unknown:": "has no duration",
		" , ":                           "has no rule",
	} {
		if policies, err := repair.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, policies, err, want)
		}
	}
}

// AcceleratedHardwareReady is repaired by the XID in its reason; integration/suites/upstream tests
// that all policies equal Karpenter's.
func TestProvider(t *testing.T) {
	for reason, want := range map[string]struct {
		after  time.Duration
		grace  time.Duration
		action repair.RepairAction
	}{
		"XID48":            {10 * time.Minute, 5 * time.Minute, repair.Reboot},
		"NvidiaXID64Error": {10 * time.Minute, 5 * time.Minute, repair.Replace},
		"Other":            {30 * time.Minute, 10 * time.Minute, repair.Replace},
	} {
		for _, reboot := range []bool{false, true} {
			m, err := repair.NewMatcher(repair.PolicySet{Policies: repair.Provider(reboot)})
			if err != nil {
				t.Fatal(err)
			}
			if want.action == repair.Reboot && !reboot {
				want.action = repair.Replace
			} else if reason == "XID48" {
				want.action = repair.Reboot
			}
			c := []repair.UnhealthyCondition{{Type: "AcceleratedHardwareReady", Status: "False", Reason: reason, Since: noon}}
			if before := m.Decide(c, noon.Add(want.after-1), time.Time{}); before.Action != "" {
				t.Errorf("%s: repaired before its toleration ended", reason)
			}
			if got := m.Decide(c, noon.Add(want.after), time.Time{}); got.Action != want.action || *got.GracePeriod != want.grace {
				t.Errorf("%s with reboot %v: %+v", reason, reboot, got)
			}
		}
	}
}

// Karpenter 1.14 has no reasons and no limits of drains.
func TestLegacyProvider(t *testing.T) {
	var got []string
	for _, p := range repair.LegacyProvider() {
		if p.Reason != "" || p.GracePeriod != nil || p.Action != repair.Replace {
			t.Errorf("%+v", p)
		}
		got = append(got, string(p.Condition)+"="+string(p.Status)+":"+p.Toleration.String())
	}
	if diff := cmp.Diff([]string{
		"Ready=False:30m0s", "Ready=Unknown:30m0s", "AcceleratedHardwareReady=False:10m0s", "StorageReady=False:30m0s",
		"NetworkingReady=False:30m0s", "KernelReady=False:30m0s", "ContainerRuntimeReady=False:30m0s",
	}, got); diff != "" {
		t.Error(diff)
	}
}
