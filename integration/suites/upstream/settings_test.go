package upstream

import (
	"flag"
	"slices"
	"strings"
	"testing"

	awsoptions "github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/google/go-cmp/cmp"
	coreoptions "sigs.k8s.io/karpenter/pkg/operator/options"

	hostsettings "github.com/joist-autoscaler/joist/shared/host/settings"
)

// Each variable of Karpenter is read, or named as one without effect when a service starts. Its flags have the names of
// the variables, in lower case.
func TestEveryVariableIsKnown(t *testing.T) {
	karpenterFlags().VisitAll(func(f *flag.Flag) {
		name := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		isRead := slices.ContainsFunc(hostsettings.Variables, func(v hostsettings.Variable) bool { return v.Name == name || slices.Contains(v.Aliases, name) })
		s, _ := hostsettings.Read(func(asked string) (string, bool) { return "1", asked == name })
		isNamed := slices.ContainsFunc(s.Warnings, func(warning string) bool { return strings.HasPrefix(warning, name+" has no effect: ") })
		if isRead == isNamed {
			t.Errorf("%s: read %t, named as without effect %t", name, isRead, isNamed)
		}
	})
}

// The feature gates have Karpenter's names and defaults: one that is set to its default changes nothing, and the opposite
// value changes the settings.
func TestSameFeatureGates(t *testing.T) {
	read := func(variable, text string) hostsettings.Settings {
		s, err := hostsettings.Read(func(asked string) (string, bool) { return text, asked == variable })
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	flags := karpenterFlags()
	for variable, flagName := range map[string]string{hostsettings.FeatureGates: "feature-gates", hostsettings.AWSGates: "aws-feature-gates"} {
		for gate := range strings.SplitSeq(flags.Lookup(flagName).DefValue, ",") {
			name, value, _ := strings.Cut(gate, "=")
			opposite := name + "=" + map[string]string{"true": "false", "false": "true"}[value]
			if diff := cmp.Diff(read(variable, ""), read(variable, gate)); diff != "" {
				t.Errorf("%s is not the default:\n%s", gate, diff)
			}
			changed := read(variable, opposite)
			changed.Warnings = nil // Some gates need another one.
			if cmp.Equal(read(variable, ""), changed) {
				t.Errorf("%s has no effect", opposite)
			}
		}
	}
}

// karpenterFlags returns the flags of Karpenter and of its AWS provider.
func karpenterFlags() *coreoptions.FlagSet {
	flags := &coreoptions.FlagSet{FlagSet: flag.NewFlagSet("karpenter", flag.ContinueOnError)}
	(&coreoptions.Options{}).AddFlags(flags)
	(&awsoptions.Options{}).AddFlags(flags)
	return flags
}
