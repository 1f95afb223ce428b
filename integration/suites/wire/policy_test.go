package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/query"
	"github.com/joist-autoscaler/joist/services/launcher"
	"github.com/joist-autoscaler/joist/services/launcher/launchertest"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/memblob"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/iamprofile"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
)

// condition is a condition on a tag, either in the request or on the existing resource.
// The value "*" matches any, as with StringLike.
type condition struct {
	resource   bool
	key, value string
}

// policy has the actions that a published IAM policy of a node autoscaler allows, with
// the conditions that each must meet.
type policy map[string][]condition

// tagged returns the three tags that profiles must have.
func tagged(resource bool) []condition {
	return []condition{
		{resource, "kubernetes.io/cluster/web", "owned"}, {resource, "topology.kubernetes.io/region", "eu-west-1"},
		{resource, "karpenter.k8s.aws/ec2nodeclass", "*"},
	}
}

// open returns actions without conditions that the launcher might call.
func open(more ...string) policy {
	out := policy{}
	for _, action := range append(more,
		"CreateFleet", "RunInstances", "CreateLaunchTemplate", "DeleteLaunchTemplate", "CreateTags", "DescribeInstances", "DescribeLaunchTemplates",
	) {
		out[action] = nil
	}
	return out
}

// policies returns IAM policies in common use for node autoscalers, by their
// distinguishing feature.
func policies() map[string]policy {
	guarded := open("GetInstanceProfile")
	guarded["TerminateInstances"] = []condition{{true, "karpenter.sh/nodepool", "*"}}
	guarded["CreateInstanceProfile"] = tagged(false)
	guarded["TagInstanceProfile"] = append(tagged(true), tagged(false)...)
	for _, action := range []string{"AddRoleToInstanceProfile", "RemoveRoleFromInstanceProfile", "DeleteInstanceProfile"} {
		guarded[action] = tagged(true)
	}
	scoped := maps.Clone(guarded)
	scoped["RunInstances"] = []condition{{true, "karpenter.sh/discovery", "web"}}
	scoped["CreateFleet"] = scoped["RunInstances"] // it launches with the caller's permissions
	return map[string]policy{
		"profiles and instances protected by tags": guarded,
		"launches only by templates with a tag":    scoped,
		"no IAM but PassRole":                      open("TerminateInstances"),
	}
}

// policyCheck checks every request against the policy as IAM would, and records the denied
// ones. It still forwards them, so that one run finds all.
type policyCheck struct {
	policy policy
	model  *memcloud.Cloud

	mu     sync.Mutex
	called map[string]bool
	denied map[string]bool
}

func (j *policyCheck) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	form, err := query.Read(&http.Request{Body: io.NopCloser(bytes.NewReader(body))})
	if err != nil {
		return nil, err
	}
	j.checkCall(r.Context(), form)
	return http.DefaultTransport.RoundTrip(r)
}

func (j *policyCheck) checkCall(ctx context.Context, form query.Form) {
	action := form.Get("Action")
	conditions, allowed := j.policy[action]
	resources := j.resources(ctx, form)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.called[action] = true
	if !allowed {
		j.denied[action] = true
	}
	for _, c := range conditions {
		subjects := resources
		if !c.resource {
			subjects = []map[string]string{form.Tags("Tags.member")}
		}
		if len(subjects) == 0 {
			j.denied[action+" without a resource"] = true
		}
		for _, tags := range subjects {
			if value, there := tags[c.key]; !there || c.value != "*" && value != c.value {
				j.denied[fmt.Sprintf("%s: %s=%q", action, c.key, value)] = true
			}
		}
	}
}

// resources returns the tags of the request's existing resources.
func (j *policyCheck) resources(ctx context.Context, form query.Form) []map[string]string {
	var out []map[string]string
	if name := form.Get("InstanceProfileName"); name != "" {
		p, _ := j.model.Profile(ctx, name)
		return append(out, p.Tags)
	}
	for _, id := range form.List("InstanceId") {
		for _, record := range j.model.Records() {
			if record.ID == id {
				out = append(out, record.Tags)
			}
		}
	}
	names := []string{form.Get("LaunchTemplate.LaunchTemplateName")}
	for _, config := range form.Each("LaunchTemplateConfigs") {
		names = append(names, config.Get("LaunchTemplateSpecification.LaunchTemplateName"))
	}
	for _, name := range names {
		if t, there := j.model.Template(name); there {
			out = append(out, t.Tags)
		}
	}
	return out
}

// launcherRun is a launcher with an account whose calls are checked.
type launcherRun struct {
	site
	t       *testing.T
	check   *policyCheck
	service launcher.Service
	blobs   *memblob.Store
	bus     *publishedEvents
}

func startLauncherRun(t *testing.T, p policy) *launcherRun {
	t.Helper()
	l := &launcherRun{site: startCloud(t), t: t, bus: &publishedEvents{}}
	l.model.AddRole("other")
	l.blobs = memblob.New(memblob.Options{Now: l.clock.Now})
	l.check = &policyCheck{policy: p, model: l.model, called: map[string]bool{}, denied: map[string]bool{}}
	config := l.server.Config()
	config.RetryMaxAttempts, config.HTTPClient = 1, &http.Client{Transport: l.check}
	l.Cloud, l.Profiles = ec2cloud.New(config), iamprofile.New(config)
	l.service = launcher.Service{
		EC2: l.account, DryRun: l.account, Profiles: l.account, Cache: launcher.NewLaunchCache(launcher.Limits{}),
		Blobs: l.blobs, Bus: l.bus, Cluster: event.Cluster{Name: "web", UID: "uid"}, Now: l.clock.Now,
	}
	return l
}

// handleRequest makes the launcher process a message, and returns the last fact that it published.
func handleRequest[T event.Body](l *launcherRun, body event.Body) T {
	l.t.Helper()
	l.clock.Advance(time.Minute)
	l.deliver(body)
	fact, err := event.DecodeBody[T](l.bus.events[len(l.bus.events)-1])
	if err != nil {
		l.t.Fatal(err)
	}
	return fact
}

func (l *launcherRun) deliver(body event.Body) {
	l.t.Helper()
	e, err := event.Maker{Service: "lifecycle", Cluster: l.service.Cluster}.New(l.clock.Now(), body, nil)
	if err == nil {
		err = l.service.Handle(l.t.Context(), e)
	}
	if err != nil {
		l.t.Fatalf("%T: %v", body, err)
	}
}

// newEnsureRequest returns lifecycle's message about a class with tags for its instances.
func (l *launcherRun) newEnsureRequest(role, profile string) event.NodeClassEnsure {
	l.t.Helper()
	class := karpenter.EC2NodeClass{}
	class.Name = "default"
	class.Spec.Tags = map[string]string{"karpenter.sh/discovery": "web"}
	class.Status.InstanceProfile = l.Profile
	class.Status.AMIs = []karpenter.AMI{{ID: l.ImageAMD64.ID}}
	class.Status.SecurityGroups = []karpenter.SecurityGroup{{ID: l.SecurityGroup.ID}}
	class.Status.Subnets = []karpenter.Subnet{{ID: l.Subnets[0].ID, Zone: l.Subnets[0].Zone}}
	text, err := json.Marshal(class)
	if err != nil {
		l.t.Fatal(err)
	}
	return event.NodeClassEnsure{
		Name: "default", UID: "u", Role: role, Profile: profile, Path: "/karpenter/eu-west-1/web/u/", Class: text, InstanceType: testType, Asked: l.clock.Now(),
		Tags: map[string]string{
			"kubernetes.io/cluster/web": "owned", "topology.kubernetes.io/region": "eu-west-1", "karpenter.k8s.aws/ec2nodeclass": "default",
			"eks:eks-cluster-name": "web",
		},
	}
}

// launch launches one instance with the tags of a launch, and returns its id.
func (l *launcherRun) launch() string {
	l.t.Helper()
	options := launchertest.IntentOptions{Cluster: "web", ID: "one", InstanceType: testType, Tags: map[string]string{"karpenter.sh/discovery": "web"}}.In(l.World)
	options.Subnets = options.Subnets[:1]
	intent := launchertest.NewIntent(options)
	ref, err := blob.Put(l.t.Context(), l.blobs, l.clock.Now(), launchspec.Kind, intent)
	if err != nil {
		l.t.Fatal(err)
	}
	settled := handleRequest[event.LaunchSettled](l, event.LaunchRequested{Intent: "one", IntentRef: ref, Claims: 1})
	if len(settled.Instances) != 1 {
		l.t.Fatalf("got %+v", settled)
	}
	return settled.Instances[0].InstanceID
}

// runLifecycle runs the whole life of a class and of a node, with everything that the launcher
// writes. A managed class has two roles, one after the other, and then a profile of its
// own.
func (l *launcherRun) runLifecycle(managed bool) {
	l.t.Helper()
	own := l.newEnsureRequest("", l.Profile)
	if managed {
		l.ensured(l.newEnsureRequest(l.Role, "web_1"))
		l.ensured(l.newEnsureRequest("other", "web_2"))
		own.Former = "web_2"
	}
	l.ensured(own)
	instance, claim := l.launch(), launchspec.ClaimName("default", "one", 0)
	l.clock.Advance(time.Minute)
	l.deliver(event.TagRequested{InstanceID: instance, ClaimUID: "c", Tags: map[string]string{"Name": "node-1", karpenter.NodeClaimTagKey: claim}})
	l.deliver(event.TerminateRequested{InstanceID: instance, Claim: claim, ClaimUID: "c", Reason: "test"})
	l.clock.Advance(2 * time.Hour)
	l.deliver(event.Tick{Want: event.WantTemplates, Due: l.clock.Now()})
	l.ensured(own)
	own.Delete = true
	l.ensured(own)
}

func (l *launcherRun) ensured(b event.NodeClassEnsure) {
	l.t.Helper()
	if done := handleRequest[event.NodeClassEnsured](l, b); done.Problem != nil || done.Invalid != nil || done.Validated == b.Delete || done.Deleted != b.Delete {
		l.t.Fatalf("got %+v %+v %+v", done, done.Problem, done.Invalid)
	}
}

// Each policy allows the launcher's calls in the whole life of a class and of a node.
// No action allows listing profiles, and nothing depends on it.
func TestPoliciesAllowTheLauncher(t *testing.T) {
	for name, p := range policies() {
		t.Run(name, func(t *testing.T) {
			_, managed := p["CreateInstanceProfile"]
			l := startLauncherRun(t, p)
			l.model.Deny(memcloud.ListProfiles)
			l.runLifecycle(managed)
			if _, err := l.model.Profile(t.Context(), "web_2"); err == nil {
				t.Error("the profile of the former role remains")
			}
			want := map[string]bool{}
			if managed {
				want["ListInstanceProfiles"] = true
			}
			if diff := cmp.Diff(want, l.check.denied); diff != "" {
				t.Errorf("denied (-want +got):\n%s", diff)
			}
			unused := slices.DeleteFunc(slices.Sorted(maps.Keys(p)), func(action string) bool { return l.check.called[action] })
			if len(unused) > 0 && managed {
				t.Errorf("the policy allows actions that were never called: %q", unused)
			}
		})
	}
}

// The check detects calls that a policy would deny.
func TestPolicyCheckDenies(t *testing.T) {
	l := startLauncherRun(t, policies()["launches only by templates with a tag"])
	ctx := t.Context()
	_ = l.EnsureTemplate(ctx, cloud.Template{Name: "bare", ImageID: l.ImageAMD64.ID})
	_ = l.TryRun(ctx, cloud.RunRequest{Template: "bare", InstanceType: testType, SubnetID: l.Subnets[0].ID})
	_ = l.EnsureProfile(ctx, cloud.Profile{Name: "bare", Path: "/", Role: l.Role, Tags: map[string]string{"kubernetes.io/cluster/web": "shared"}})
	_ = l.Terminate(ctx, []string{"i-0"})
	_, _ = l.ListProfiles(ctx, "/")
	for _, want := range []string{
		`RunInstances: karpenter.sh/discovery=""`, `CreateInstanceProfile: kubernetes.io/cluster/web="shared"`,
		`AddRoleToInstanceProfile: karpenter.k8s.aws/ec2nodeclass=""`, "TerminateInstances without a resource", "ListInstanceProfiles",
	} {
		if !l.check.denied[want] {
			t.Errorf("%s is not denied: %v", want, l.check.denied)
		}
	}
}
