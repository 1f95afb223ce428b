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

// Rules of Warnings. The names are stable because tools use them.
const (
	// WarnFlexibility: the launch falls back from spot to on-demand, with few types to choose from.
	WarnFlexibility = "flexibility"
	// WarnUserData: the user data is close to EC2's maximum size.
	WarnUserData = "user-data"
	// WarnInstanceStore: the family cannot set up a RAID of the instance's disks.
	WarnInstanceStore = "instance-store"
	// WarnTags: the class sets tags that only Joist may set.
	WarnTags = "tags"
	// WarnUnwritable: the request could not be written for the class, for example because its user
	// data is too large for EC2. Nothing is launched.
	WarnUnwritable = "unwritable"
)

// flexible is how many types a launch should have to choose from.
const flexible = 5

// warnings returns the warnings for an intent.
func (g *recipe) warnings(intent Intent) []planning.Warning {
	var out []planning.Warning
	warn := func(rule, format string, args ...any) {
		out = append(out, planning.Warning{NodePool: g.pool.Name, NodeClass: g.class.Name, Rule: rule, Message: fmt.Sprintf(format, args...)})
	}
	if types := g.choice.types(); g.choice.fallback && types < flexible {
		warn(WarnFlexibility, "no spot offering is available, and only %d on-demand types match: allow at least %d", types, flexible)
	}
	for _, t := range intent.Templates {
		if size := len(t.UserData); size >= bootstrap.Near {
			warn(WarnUserData, "the user data has %d of at most %d bytes: move parts of the class's userData into the image", size, bootstrap.Limit)
			break
		}
	}
	if g.config.InstanceStorePolicy == karpenter.InstanceStorePolicyRAID0 && !bootstrap.JoinsInstanceStore(g.config.AMIFamily) {
		warn(WarnInstanceStore, "images of family %s do not create a RAID of the instance's disks: remove instanceStorePolicy, or create it in userData", g.config.AMIFamily)
	}
	keys := slices.Sorted(maps.Keys(g.class.Spec.Tags))
	if keys = slices.DeleteFunc(keys, func(key string) bool { return !karpenter.IsRestrictedTag(key) }); len(keys) > 0 {
		warn(WarnTags, "the tags %s are set by Joist, and the values of the class are ignored: remove them from the class", strings.Join(keys, ", "))
	}
	return out
}
