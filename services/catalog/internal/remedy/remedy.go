// Package remedy words what is wrong with an EC2NodeClass, so that the person
// who reads the condition knows what was looked for and what to change.
//
// Every message names the terms that found nothing, and ends in something to
// do. The reasons are Karpenter's (B053), because dashboards match on them.
package remedy

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// messageMax bounds a message in bytes: a condition is read in a terminal.
const messageMax = 2000

// Subnets is the problem that no subnet was found.
func Subnets(terms []cloud.Selector) event.Problem {
	return problem(karpenter.ConditionTypeSubnetsReady, "SubnetsNotFound",
		"no subnet has "+Looked(terms)+": tag the subnets so, or correct spec.subnetSelectorTerms")
}

// SecurityGroups is the problem that no security group was found.
func SecurityGroups(terms []cloud.Selector) event.Problem {
	return problem(karpenter.ConditionTypeSecurityGroupsReady, "SecurityGroupsNotFound",
		"no security group has "+Looked(terms)+": tag the groups so, or correct spec.securityGroupSelectorTerms")
}

// Alias is the problem that an alias cannot be understood or served.
func Alias(why error) event.Problem {
	return problem(karpenter.ConditionTypeAMIsReady, "UnsupportedAlias", why.Error())
}

// Published is the problem that AWS publishes no image under an alias.
func Published(alias karpenter.Alias, version string) event.Problem {
	return problem(karpenter.ConditionTypeAMIsReady, "AMINotFound",
		"AWS publishes no image for alias "+alias.String()+" on Kubernetes "+version+
			": write a version that exists for it, or "+karpenter.Alias{Family: alias.Family, Version: karpenter.AliasVersionLatest}.String())
}

// Images is the problem that no image was found. Notes say what is odd about
// single terms.
func Images(terms []cloud.Selector, notes []string) event.Problem {
	notes = slices.Clone(notes)
	for _, term := range terms {
		if strings.HasPrefix(term.Name, "ami-") {
			// A110: a name of that shape finds nothing, silently.
			notes = append(notes, `name "`+term.Name+`" looks like an AMI id, so use id: instead of name:`)
		}
	}
	text := "no available image of amd64 or arm64 has " + Looked(terms) + ": correct spec.amiSelectorTerms, or share the image with this account"
	if len(terms) == 0 {
		text = "no term of spec.amiSelectorTerms names an image"
	}
	return problem(karpenter.ConditionTypeAMIsReady, "AMINotFound", strings.Join(append([]string{text}, notes...), "; "))
}

// Looked says what the terms look for.
func Looked(terms []cloud.Selector) string {
	if len(terms) == 0 {
		return "any of no terms at all"
	}
	var out []string
	for _, term := range terms {
		out = append(out, looked(term))
	}
	return strings.Join(out, ", or ")
}

func looked(term cloud.Selector) string {
	var out []string
	for _, field := range []struct{ name, value string }{{"id", term.ID}, {"name", term.Name}, {"owner", term.Owner}} {
		if field.value != "" {
			out = append(out, field.name+" "+field.value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(term.Tags)) {
		out = append(out, "tag "+key+"="+term.Tags[key])
	}
	return cmp.Or(strings.Join(out, " and "), "an empty term")
}

func problem(condition, reason, message string) event.Problem {
	if len(message) > messageMax {
		message = strings.ToValidUTF8(message[:messageMax], "") + "…"
	}
	return event.Problem{Condition: condition, Reason: reason, Message: message}
}
