package testbed

import (
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// maxLag is the longest time for which EC2 does not show a change while it lags. Lags of minutes are the simulator's.
const maxLag = 20 * time.Second

// DrawAWSFaults replaces the faults of EC2, SQS, EventBridge and S3: lags of up to 20 s, lost answers and throttling, late
// duplicates, stale receipts that work, late events, and bursts of 503. Each has a share of up to a maximum.
func (w *TestBed) DrawAWSFaults(random *rand.Rand) {
	share := func(most float64) float64 { return most * random.Float64() }
	w.Cloud.SetFaults(memcloud.Faults{
		Lag: time.Duration(random.Int64N(int64(maxLag))), LostAnswer: share(0.1), LostCall: share(0.1), Throttle: share(0.1),
	})
	w.Broker.SetFaults(memqueue.Faults{
		FailSend: share(0.05), LoseSendAnswer: share(0.05), FailReceive: share(0.05), LoseReceiveAnswer: share(0.02), FailDelete: share(0.1), FailHide: share(0.1),
		Duplicate: share(0.2), LateDuplicate: share(0.5), StaleWorks: share(1), StaleIgnored: share(1), Reorder: share(1), Empty: share(0.2),
		Delay: share(0.2), MaxDelay: 5 * time.Second, RouteTwice: share(0.2), DelayEvent: share(0.1),
	})
	w.Blobs.SetFaults(memblob.Faults{FailPut: share(0.05), FailGet: share(0.05), FailWritten: share(0.05), LosePutAnswer: share(0.05), SlowDown: share(0.005)})
}

// EndAWSFaults ends the faults, except that EC2 shows changes up to 20 s late. Delayed events and duplicates may arrive much
// later.
func (w *TestBed) EndAWSFaults() {
	w.Cloud.SetFaults(memcloud.Faults{Lag: maxLag})
	w.Broker.SetFaults(memqueue.Faults{})
	w.Blobs.SetFaults(memblob.Faults{})
}

// CountAWSFaults returns how often each fault of AWS has happened, by service and kind, such as "SQS: duplicated".
func (w *TestBed) CountAWSFaults() map[string]int {
	out := map[string]int{}
	for kind, n := range w.Cloud.InjectedFaults() {
		out["EC2: "+kind] = n
	}
	for kind, n := range w.Broker.Counts() {
		out["SQS: "+string(kind)] = n
	}
	for kind, n := range w.Blobs.Counts() {
		out["S3: "+string(kind)] = n
	}
	return out
}

// LogAWSFaults logs these counts.
func (w *TestBed) LogAWSFaults() {
	counts := w.CountAWSFaults()
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		w.Logf("AWS: %d × %s", counts[kind], kind)
	}
}

// repeatedTag matches the denial of a NodeClaim's tag with its value and the tag that the instance has.
var repeatedTag = regexp.MustCompile(`ec2:CreateTags on .*aws:RequestTag/karpenter\.sh/nodeclaim:\[(\S+)\] .*aws:ResourceTag/karpenter\.sh/nodeclaim:\[(\S+)\]`)

// IsRepeatedCall reports whether the denied request repeats one that has succeeded (Options.AllowsDenial): a tag that EC2 does not
// show yet, a tag whose answer was lost, or the deletion of a launch template that no longer exists. IAM denies the latter, because
// the template has no tags of Joist any more.
func IsRepeatedCall(denial string) bool {
	values := repeatedTag.FindStringSubmatch(denial)
	isDeletion := strings.Contains(denial, "ec2:DeleteLaunchTemplate on ") && !strings.Contains(denial, "aws:ResourceTag/")
	return isDeletion || values != nil && values[1] == values[2]
}
