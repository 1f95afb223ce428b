package launchspec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec/bootstrap"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// Rules, as they stand in a Warning. Tools match them: the names are stable.
const (
	// WarnFlexibility: on-demand is asked for where spot was allowed, with few types
	// to choose from.
	WarnFlexibility = "flexibility"
	// WarnUserData: user data is nearly as large as EC2 takes.
	WarnUserData = "user-data"
	// WarnInstanceStore: the family cannot join the disks of the instance.
	WarnInstanceStore = "instance-store"
	// WarnTags: the class sets tags that are Joist's to set.
	WarnTags = "tags"
	// WarnUnwritable: the request could not be written as the class is, for one as its
	// user data is larger than EC2 takes. Nothing is launched by it.
	WarnUnwritable = "unwritable"
)

// flexible is how many types a launch should have to choose from.
const flexible = 5

// warnings are what is to be known of an intent.
func (g *recipe) warnings(intent Intent) []planning.Warning {
	var out []planning.Warning
	warn := func(rule, format string, args ...any) {
		out = append(out, planning.Warning{NodePool: g.pool.Name, NodeClass: g.class.Name, Rule: rule, Message: fmt.Sprintf(format, args...)})
	}
	if types := g.choice.types(); g.choice.fallback && types < flexible {
		warn(WarnFlexibility, "no spot is to be had, and on-demand has %d types to choose from: allow at least %d", types, flexible)
	}
	for _, t := range intent.Templates {
		if size := len(t.UserData); size > bootstrap.Near {
			warn(WarnUserData, "the user data has %d bytes, and EC2 takes %d: move the class's userData into the image before it grows", size, bootstrap.Limit)
			break
		}
	}
	if g.config.InstanceStorePolicy == karpenter.InstanceStorePolicyRAID0 && !bootstrap.JoinsInstanceStore(g.config.AMIFamily) {
		warn(WarnInstanceStore, "images of family %s do not join the instance's disks: remove instanceStorePolicy, or let userData join them", g.config.AMIFamily)
	}
	keys := slices.Sorted(maps.Keys(g.class.Spec.Tags))
	if keys = slices.DeleteFunc(keys, func(key string) bool { return !karpenter.IsRestrictedTag(key) }); len(keys) > 0 {
		warn(WarnTags, "the tags %s are Joist's to set, and were left out: remove them from the class", strings.Join(keys, ", "))
	}
	return out
}
