package apifaults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joist-autoscaler/joist/integration/environment/apiproxy"
	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/shared/cloud"
)

const (
	// settleLimit is how long after the last fault all pods run, or everything is removed. A watch that failed often is
	// restarted after up to 30 s (client-go), and a launch is requested again every 30 s. If a notice is hours late, EC2
	// ends the instance two minutes after it was sent.
	settleLimit = 4 * time.Minute
	// snapshotLimit is how long after that the watcher's snapshot equals one of the API server's objects: the watcher
	// sends one at least every ten seconds.
	snapshotLimit = 30 * time.Second
)

// TestAPIServerFaults runs launches, interruptions and removals while requests of watcher and lifecycle to the API
// server fail, and while AWS lags and fails.
func TestAPIServerFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane and all services")
	}
	seed := drawSeed(t)
	dir, err := testbed.BuildBinaries()
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t, seed)
	r.StartJoist(dir, true)
	r.RunPhase("the NodePool and the EC2NodeClass", r.prepare)
	for round := range rounds(t) {
		r.RunPhase(fmt.Sprintf("round %d: launches and interruptions with faults", round+1), r.launch)
		r.RunPhase(fmt.Sprintf("round %d: without faults", round+1), r.settle)
		r.RunPhase(fmt.Sprintf("round %d: removal with faults", round+1), r.remove)
	}
	r.RunPhase("shutdown", r.end)
}

// drawSeed returns JOIST_SEED, or a new seed, and prints it.
func drawSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64N(1_000_000) + 1
	if text := os.Getenv("JOIST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil || seed == 0 {
			t.Fatalf("JOIST_SEED is %q, want a positive number", text)
		}
	}
	fmt.Fprintf(os.Stderr, "%s: the faults are drawn from seed %d (JOIST_SEED=%d repeats them)\n", t.Name(), seed, seed)
	return seed
}

// rounds returns JOIST_API_ROUNDS, or one.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("JOIST_API_ROUNDS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("JOIST_API_ROUNDS is %q, want a positive number", text)
	}
	return n
}

const (
	// episodes is the number of draws of shares in a phase, episodeTime the time of each.
	episodes    = 3
	episodeTime = 6 * time.Second
	// perEpisode is how many pods each episode adds.
	perEpisode = 2
)

// launch adds pods and interrupts instances while requests fail. In each episode something else happens to the API
// server or to a process, in a drawn order.
func (r *run) launch() {
	r.setBudget("0")
	r.scale(perEpisode)
	r.WaitUntil(settleLimit, "the first pods to run", r.isSettled)
	r.requireZones(perEpisode)
	accidents := []func(){r.RestartAPIServer, r.disconnect, r.restartLeader}
	r.random.Shuffle(len(accidents), func(i, j int) { accidents[i], accidents[j] = accidents[j], accidents[i] })
	for i := range episodes {
		r.drawShares()
		r.scale(r.replicas + perEpisode)
		r.wait(episodeTime / 2)
		accidents[i]()
		r.interrupt()
		r.wait(episodeTime / 2)
	}
}

// settle ends the faults, and requires that the cluster becomes as it should be.
func (r *run) settle() {
	r.endFaults()
	began := time.Now()
	r.WaitUntil(settleLimit, "all pods to run on initialized nodes", r.isSettled)
	r.Logf("all pods run %.1f s after the last fault", time.Since(began).Seconds())
	r.requireFleet()
	r.requireSnapshot()
}

// remove scales to zero and permits all removals while requests fail, and requires that nothing remains.
func (r *run) remove() {
	r.removing = true
	r.drawShares()
	r.setBudget("100%")
	r.scale(0)
	r.wait(episodeTime / 2)
	r.disconnect()
	r.drawShares()
	r.replaceLeader()
	r.requireFaults()
	r.endFaults()
	began := time.Now()
	r.WaitUntil(settleLimit, "the nodes, NodeClaims and instances to be removed", func() bool {
		return len(r.Nodes())+len(r.Claims())+len(r.Pods(app)) == 0 && r.AllTerminated()
	})
	r.Logf("everything is removed %.1f s after the last fault", time.Since(began).Seconds())
	r.removing = false
}

// end stops Joist and requires what must hold for the whole run.
func (r *run) end() {
	r.Stop()
	r.leases.check(r.T)
	for service, proxy := range r.Proxies {
		counts := proxy.Counts()
		for _, f := range counts.SortedFaults() {
			r.Logf("%s: %d × %s", service, counts[f], f)
		}
	}
	r.LogAWSFaults()
	if counts := r.CountAWSFaults(); counts["EC2: lag"] == 0 || counts["SQS: reordered"] == 0 {
		r.Errorf("EC2 did not lag, or SQS reordered nothing: %v", counts)
	}
}

// drawShares replaces the faults of AWS and of the API server: each can happen, and one of the latter is frequent.
func (r *run) drawShares() {
	r.DrawAWSFaults(r.random)
	for _, service := range []string{"watcher", "lifecycle"} {
		shares := apiproxy.Shares{
			apiproxy.SmallPages: 1, apiproxy.RefuseStream: 0.5, apiproxy.ExpirePage: 0.2, apiproxy.ExpireWatch: 0.3,
			apiproxy.CutWatch: 0.5, apiproxy.DropBookmarks: 0.5,
		}
		for _, f := range apiproxy.Drawn {
			if _, ok := shares[f]; !ok {
				shares[f] = 0.02 + 0.08*r.random.Float64()
			}
		}
		frequent := apiproxy.Drawn[r.random.IntN(len(apiproxy.Drawn))]
		shares[frequent] = max(shares[frequent], 0.4)
		r.Logf("faults of %s: %s is frequent", service, frequent)
		r.Proxies[service].SetShares(shares)
	}
}

func (r *run) endFaults() {
	r.EndAWSFaults()
	for _, proxy := range r.Proxies {
		proxy.SetShares(nil)
	}
}

func (r *run) disconnect() {
	for _, proxy := range r.Proxies {
		proxy.Disconnect()
	}
}

// restartLeader kills the leader of one of the services and starts it again at once: it still has its Lease.
func (r *run) restartLeader() { r.RestartReplica(r.leases.holder(r.drawLease()), func() {}) }

// replaceLeader kills the leader of one of the services until the other replica leads.
func (r *run) replaceLeader() {
	name := r.drawLease()
	before := r.leases.holder(name)
	r.RestartReplica(before, func() {
		r.WaitUntil(time.Minute, "another replica to take over "+name, func() bool { return r.leases.holder(name) != before })
	})
}

func (r *run) drawLease() string {
	return []string{"joist-watcher", "joist-lifecycle"}[r.random.IntN(2)]
}

// interrupt sends a spot interruption for one instance that is bound, if there is one.
func (r *run) interrupt() {
	for _, record := range r.RunningInstances() {
		if record.CapacityType == cloud.Spot && !r.interrupted[record.ID] && r.Cloud.InterruptSpot(record.ID) {
			r.interrupted[record.ID] = true
			r.Logf("EC2 Spot Instance Interruption Warning for %s", record.ID)
			return
		}
	}
}

// requireFaults waits until each kind of fault has happened to watcher or lifecycle.
func (r *run) requireFaults() {
	var missing []apiproxy.WireFault
	r.WaitUntil(time.Minute, "each kind of fault to happen", func() bool {
		total := apiproxy.FaultCounts{}
		for _, proxy := range r.Proxies {
			total.Add(proxy.Counts())
		}
		now := total.Missing(append(apiproxy.Drawn, apiproxy.Disconnect)...)
		if fmt.Sprint(now) != fmt.Sprint(missing) {
			r.Logf("faults that have not happened: %q", now)
		}
		missing = now
		return len(missing) == 0
	})
}

func (r *run) scale(n int) {
	r.Helper()
	r.replicas = n
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, n)
	_, err := r.Kube.AppsV1().Deployments("default").Patch(r.Context(), app, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	r.RequireNoError(err)
	r.Logf("%d replicas", n)
}
