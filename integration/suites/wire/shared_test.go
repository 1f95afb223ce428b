package wire

import (
	"context"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssts "github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/authorization"
	fakeec2 "github.com/joist-autoscaler/joist/integration/environment/fakeaws/ec2"
	fakeiam "github.com/joist-autoscaler/joist/integration/environment/fakeaws/iam"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/lambdaruntime"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/stack"
	fakests "github.com/joist-autoscaler/joist/integration/environment/fakeaws/sts"
	fleet "github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/services/launcher/launchertest"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/blob/s3blob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/queue"
	"github.com/joist-autoscaler/joist/shared/queue/memqueue"
)

// The clusters of the template "shared", which has one function per service.
const (
	ours, theirs   = "prod", "staging"
	sharedRole     = "arn:aws:iam::123456789012:role/joist-all-joist-launcher"
	sharedFunction = "joist-all-joist-launcher"
	hostKey        = "AKIDSHAREDFUNCTION"
)

func roleOf(cluster string) string {
	return "arn:aws:iam::123456789012:role/" + cluster + "-joist-launcher"
}

// sharedAccount is an account with two clusters that share their functions, as the CDK app creates
// it, and with a running launcher function.
type sharedAccount struct {
	*fakeaws.Server
	t          *testing.T
	broker     *memqueue.Broker
	cloud      *memcloud.Cloud
	authorizer *authorization.Authorizer
	rights     authorization.Deployment
	stack      stack.Stack
	worlds     map[string]memcloud.World
	bucket     string
}

// startSharedAccount creates the account. distrust names a cluster whose role trusts no principal.
func startSharedAccount(t *testing.T, distrust string) *sharedAccount {
	t.Helper()
	s := &sharedAccount{t: t, worlds: map[string]memcloud.World{}, bucket: "joist-joist-all-123456789012-" + fakeaws.Region,
		broker: memqueue.New(memqueue.Options{Now: time.Now, Seed: 1}),
		cloud:  memcloud.New(memcloud.Options{Now: time.Now, Seed: 1, Region: fakeaws.Region, RateDivisor: -1})}
	s.broker.Bus("default").SetAccount("123456789012", fakeaws.Region)
	s.authorizer = &authorization.Authorizer{Place: authorization.Place{Partition: "aws", Account: "123456789012", Region: fakeaws.Region}, Cloud: s.cloud}
	sts := fakests.New(s.cloud)
	sts.Assumed = s.authorizer.AssumeRole
	s.Server = fakeaws.Start(t, fakeaws.Options{
		Broker: s.broker, Blobs: memblob.New(memblob.Options{Now: time.Now, Seed: 1}), Bucket: s.bucket,
		More: []fakeaws.Service{fakeec2.New(s.cloud), fakeiam.New(s.cloud), sts},
		WrapHandler: func(next http.Handler) http.Handler {
			s.authorizer.Next = next
			return s.authorizer
		},
	})
	text, err := os.ReadFile("../../../infra/stack/testdata/shared.template.json")
	s.check(err)
	place := template.Place{Account: "123456789012", Region: fakeaws.Region, Partition: "aws", Name: "joist-all", QueueURL: s.QueueURL}
	s.stack, err = stack.Read(text, place)
	s.check(err)
	s.check(s.stack.Make(s.broker, place))
	s.rights, err = authorization.ReadDeployment(s.stack, s.authorizer.Place)
	s.check(err)
	s.authorizer.Resources = s.rights.Resources
	s.authorizer.AddCaller(hostKey, s.rights.Roles[sharedFunction])
	known := maps.Clone(s.rights.Roles)
	if role, ok := known[distrust+"-joist-launcher"]; ok {
		role.Trust = nil
		known[distrust+"-joist-launcher"] = role
	}
	s.authorizer.SetRoles(known)
	for _, cluster := range []string{ours, theirs} {
		s.cloud.AddRole("KarpenterNodeRole-" + cluster)
		s.worlds[cluster] = s.cloud.Furnish(cluster)
		s.check(s.cloud.EnsureProfile(t.Context(), cloud.Profile{Name: cluster + "-profile", Path: "/", Role: "KarpenterNodeRole-" + cluster}))
	}
	return s
}

func (s *sharedAccount) check(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// startFunction starts the launcher's unmodified function, and the mappings for both queues.
func (s *sharedAccount) startFunction() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	s.t.Cleanup(func() {
		cancel()
		all.Wait()
	})
	for _, cluster := range []string{ours, theirs} {
		f, m, ok := s.stack.Worker(cluster + "-joist-launcher")
		if !ok || f.FunctionName != sharedFunction {
			s.t.Fatalf("the queue of %s has the mapping %+v", cluster, f)
		}
		q, _ := s.broker.FindQueue(cluster + "-joist-launcher")
		all.Go(func() {
			lambdaruntime.Mapping{Runtime: s.Lambda, Function: f.FunctionName, Queue: q, Batch: m.BatchSize}.Run(ctx)
		})
	}
	s.startPoller(s.FunctionRuntime(sharedFunction)...)
}

// startPoller starts the launcher with the function's environment and additional variables.
func (s *sharedAccount) startPoller(more ...string) {
	s.t.Helper()
	binary, err := fleet.BuildBinary("launcher")
	s.check(err)
	f, _, _ := s.stack.Worker(ours + "-joist-launcher")
	process := exec.Command(binary) //nolint:noctx // it is killed at the end
	process.Env = slices.Concat(s.Environ(), []string{"AWS_ACCESS_KEY_ID=" + hostKey}, more)
	for name, value := range f.Environment.Variables {
		process.Env = append(process.Env, name+"="+value)
	}
	process.Stdout, process.Stderr = s.t.Output(), s.t.Output()
	s.check(process.Start())
	s.t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
}

// intent returns an intent for one instance of a cluster.
func (s *sharedAccount) intent(cluster, id string) launchspec.Intent {
	options := launchertest.IntentOptions{Cluster: cluster, ID: id}.In(s.worlds[cluster])
	options.Profile = cluster + "-profile"
	return launchertest.NewIntent(options)
}

// requestLaunch stores an intent in the documents of one cluster, and sends a launch request that
// names the cluster said to the queue of the cluster into.
func (s *sharedAccount) requestLaunch(intent launchspec.Intent, documents, reported, into string) {
	s.t.Helper()
	ref, err := blob.Put(s.t.Context(), s3blob.New(s.Config(), s.bucket, documents, "JOIST_BUCKET"), time.Now(), launchspec.Kind, intent)
	s.check(err)
	e, err := event.Maker{Service: "lifecycle", Cluster: event.Cluster{Name: reported}}.New(time.Now(), event.LaunchRequested{Intent: intent.ID, IntentRef: ref, Claims: 1}, nil)
	s.check(err)
	body, err := e.Encode()
	s.check(err)
	q, _ := s.broker.FindQueue(into + "-joist-launcher")
	s.check(q.Send(s.t.Context(), queue.Outgoing{Source: e.Source, Type: string(e.Type), Body: body}))
}

// launched returns the intents of a cluster's instances.
func (s *sharedAccount) launched(cluster string) []string {
	var ids []string
	for _, r := range s.cloud.Records() {
		if r.Tags["kubernetes.io/cluster/"+cluster] == "owned" {
			ids = append(ids, r.Tags[launchspec.IntentTag])
		}
	}
	slices.Sort(ids)
	return ids
}

func (s *sharedAccount) waitUntil(what string, done func() bool) {
	s.t.Helper()
	for end := time.Now().Add(60 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("waiting for %s: launched %v and %v; denied %v", what, s.launched(ours), s.launched(theirs), s.authorizer.Denied())
		}
	}
}

// countDeleted returns how many messages of a queue were deleted.
func (s *sharedAccount) countDeleted(name string) int {
	q, _ := s.broker.FindQueue(name)
	return q.Stats().Deleted
}

// One process launches for two clusters, as a function or as a poller: for each it uses
// only that cluster's role, and publishes on that cluster's bus.
func TestOneProcessServesTwoClusters(t *testing.T) {
	for name, by := range map[string]struct {
		start func(s *sharedAccount)
		// own are the actions that the process takes with its own role.
		own []string
	}{
		"function": {(*sharedAccount).startFunction, []string{"sqs:ChangeMessageVisibility", "sts:AssumeRole"}},
		"poller": {func(s *sharedAccount) { s.startPoller("METRICS_PORT=0", "HEALTH_PROBE_PORT=0") },
			[]string{"sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:ReceiveMessage", "sts:AssumeRole"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := startSharedAccount(t, "")
			by.start(s)
			s.launches()
			s.rejectForeignRequests()
			own := s.authorizer.Used()[sharedRole]
			if did := slices.Sorted(maps.Keys(own)); !slices.Equal(did, by.own) || own["sts:AssumeRole"] != 2 {
				t.Errorf("with its own role the function called %v", own)
			}
			if denied := s.authorizer.Denied(); len(denied) > 0 {
				t.Errorf("denied calls: %v", denied)
			}
		})
	}
}

// launches requests an instance in each cluster.
func (s *sharedAccount) launches() {
	s.t.Helper()
	s.requestLaunch(s.intent(ours, "one"), ours, ours, ours)
	s.requestLaunch(s.intent(theirs, "two"), theirs, theirs, theirs)
	s.waitUntil("both launches", func() bool {
		return slices.Equal(s.launched(ours), []string{"one"}) && slices.Equal(s.launched(theirs), []string{"two"}) &&
			s.countDeleted(ours+"-joist-launcher") == 1 && s.countDeleted(theirs+"-joist-launcher") == 1
	})
	used := s.authorizer.Used()
	for _, cluster := range []string{ours, theirs} {
		if n := s.countMessages(cluster + "-joist-lifecycle"); n != 1 {
			s.t.Errorf("%d events arrived in the queue of %s", n, cluster)
		}
		if by := used[roleOf(cluster)]; by["ec2:CreateFleet"] == 0 || by["events:PutEvents"] != 1 || by["s3:GetObject"] == 0 || by["sqs:ChangeMessageVisibility"] != 0 {
			s.t.Errorf("with the role of %s the function called %v", cluster, by)
		}
	}
}

// rejectForeignRequests sends requests that are in the wrong queue or name the wrong cluster. Only
// the role of the queue's cluster may be used for them.
func (s *sharedAccount) rejectForeignRequests() {
	s.t.Helper()
	before := s.authorizer.Used()
	// The first names its real cluster and is dropped. The second names the queue's
	// cluster, but its document does not exist there. The third is forged including its
	// document, and is moved to the DLQ.
	s.requestLaunch(s.intent(theirs, "honest"), theirs, theirs, ours)
	s.requestLaunch(s.intent(theirs, "absent"), theirs, ours, ours)
	forged := s.intent(theirs, "forged")
	forged.Cluster = ours
	s.requestLaunch(forged, ours, ours, ours)
	s.waitUntil("the messages of the other cluster", func() bool {
		return s.countDeleted(ours+"-joist-launcher") == 3 && s.countMessages(ours+"-joist-launcher-dead") == 1 &&
			s.authorizer.Used()[roleOf(ours)]["s3:GetObject"] >= before[roleOf(ours)]["s3:GetObject"]+2
	})
	if after := s.authorizer.Used()[roleOf(theirs)]; !maps.Equal(before[roleOf(theirs)], after) {
		s.t.Errorf("the role of %s called %v for a queue of %s, before %v", theirs, after, ours, before[roleOf(theirs)])
	}
	if got := s.launched(theirs); !slices.Equal(got, []string{"two"}) || s.countMessages(theirs+"-joist-launcher-dead") != 0 {
		s.t.Errorf("%s has launched %v, and has %d DLQ messages", theirs, got, s.countMessages(theirs+"-joist-launcher-dead"))
	}
}

// countMessages returns how many messages wait in a queue.
func (s *sharedAccount) countMessages(name string) int {
	q, _ := s.broker.FindQueue(name)
	return q.Stats().Visible
}

// Only a cluster's own function may assume its role, with the session name of that
// cluster, and the role has no permissions on the other cluster.
func TestWhoMayAssumeClusterRole(t *testing.T) {
	s := startSharedAccount(t, "")
	as := func(key string) aws.Config {
		c := s.Config()
		c.Credentials, c.RetryMaxAttempts = credentials.NewStaticCredentialsProvider(key, "secret", ""), 1
		return c
	}
	s.authorizer.AddCaller("AKIDPLANNER", s.rights.Roles["joist-all-joist-planner"])
	s.authorizer.AddCaller("AKIDCLUSTERS", s.rights.Roles["staging-joist-launcher"])
	take := func(key, cluster, session string) (*ststypes.Credentials, error) {
		out, err := awssts.NewFromConfig(as(key)).AssumeRole(t.Context(), &awssts.AssumeRoleInput{RoleArn: aws.String(roleOf(cluster)), RoleSessionName: aws.String(session)})
		if err != nil {
			return nil, err
		}
		return out.Credentials, nil
	}
	for name, c := range map[string][3]string{
		"function of another service":     {"AKIDPLANNER", ours, "launcher@prod"},
		"role of another cluster":         {"AKIDCLUSTERS", ours, "launcher@prod"},
		"session name of another cluster": {hostKey, ours, "launcher@staging"},
	} {
		if _, err := take(c[0], c[1], c[2]); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
			t.Errorf("%s may assume the role: %v", name, err)
		}
	}
	had, err := take(hostKey, ours, "launcher@prod")
	s.check(err)
	ec2 := ec2cloud.New(as(*had.AccessKeyId))
	if err := ec2.EnsureTemplate(t.Context(), s.intent(ours, "own").Templates[0]); err != nil {
		t.Errorf("on its own cluster: %v", err)
	}
	if err := ec2.EnsureTemplate(t.Context(), s.intent(theirs, "other").Templates[0]); !fault.Is(err, fault.Denied) {
		t.Errorf("on the other cluster: %v", err)
	}
}

// A role that cannot be assumed stops only its own cluster's messages, until the role is
// repaired.
func TestBrokenRoleStopsOnlyItsCluster(t *testing.T) {
	s := startSharedAccount(t, theirs)
	s.startFunction()
	s.requestLaunch(s.intent(theirs, "two"), theirs, theirs, theirs)
	s.waitUntil("the denied call", func() bool { return len(s.authorizer.Denied()) > 0 })
	s.requestLaunch(s.intent(ours, "one"), ours, ours, ours)
	s.waitUntil("the other cluster's launch", func() bool { return slices.Equal(s.launched(ours), []string{"one"}) })
	if denied := s.authorizer.Denied(); len(denied) != 1 || !strings.Contains(denied[0], "sts:AssumeRole on "+roleOf(theirs)) || s.countDeleted(theirs+"-joist-launcher") != 0 {
		t.Errorf("denied calls: %v; %d messages were deleted or moved", denied, s.countDeleted(theirs+"-joist-launcher"))
	}
	s.authorizer.SetRoles(s.rights.Roles)
	s.waitUntil("the launch after the repair", func() bool { return slices.Equal(s.launched(theirs), []string{"two"}) })
}
