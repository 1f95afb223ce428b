package peers

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/joist-autoscaler/joist/infra/template"
	"github.com/joist-autoscaler/joist/integration/environment/fakeaws/lambdaruntime"
	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/services/launcher/launchertest"
	"github.com/joist-autoscaler/joist/shared/blob"
	"github.com/joist-autoscaler/joist/shared/blob/s3blob"
	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/cloud"
	"github.com/joist-autoscaler/joist/shared/cloud/ec2cloud"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
	"github.com/joist-autoscaler/joist/shared/planning/planningtest"
	"github.com/joist-autoscaler/joist/shared/queue"
)

// deployedFunctions runs the functions of the template behind AWS's runtime interface emulator, with the environment
// that the template gives them and the peer's address.
type deployedFunctions struct {
	router
	blobs    blob.Store
	emulator string
	binaries string
	// functions are the properties of the template's functions, by name.
	functions map[string]functionProperties
}

type functionProperties struct {
	FunctionName string
	Timeout      int
	Environment  struct{ Variables map[string]string }
}

// runFunctions plans, launches, notices and terminates with the binaries of the services. Each message takes the way
// that it takes on AWS: from the deployed bus or queue to the function, and to lifecycle's queue.
func runFunctions(t *testing.T, server aws.Config, in *template.Stack) {
	d := &deployedFunctions{router: router{server: server}, functions: map[string]functionProperties{}}
	d.lifecycle = d.open(t, deployedCluster+"-joist-lifecycle")
	var err error
	if d.binaries, err = testbed.BuildBinaries(); err != nil {
		t.Fatal(err)
	}
	if d.emulator, err = lambdaruntime.EmulatorTool.Build(t.Context(), testbed.Root); err != nil {
		t.Fatal(err)
	}
	for id, resource := range in.Resources {
		if resource.Type != "AWS::Lambda::Function" {
			continue
		}
		var f functionProperties
		resolved, err := in.Resource(id)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := json.Marshal(resolved.Properties); err != nil || json.Unmarshal(text, &f) != nil {
			t.Fatalf("reading the function %s: %s, %v", id, text, err)
		}
		d.functions[f.FunctionName] = f
	}
	bucket := d.functions[deployedCluster+"-joist-launcher"].Environment.Variables["JOIST_BUCKET"]
	d.blobs = s3blob.New(server, bucket, deployedCluster, "JOIST_BUCKET")
	// The behaviours of uninstall need a bucket without documents.
	defer emptyBucket(t, server, bucket)
	d.emptyQueue(t)
	t.Run("planner", d.plan)
	var launched string
	t.Run("launcher launches", func(t *testing.T) { launched = d.launch(t) })
	if launched == "" {
		return
	}
	t.Run("interruption", func(t *testing.T) { d.notice(t, launched) })
	t.Run("launcher terminates", func(t *testing.T) { d.terminate(t, launched) })
}

// emptyBucket deletes all documents of the bucket.
func emptyBucket(t *testing.T, server aws.Config, bucket string) {
	t.Helper()
	client := s3Client(server)
	listed, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range listed.Contents {
		if _, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: object.Key}); err != nil {
			t.Error(err)
		}
	}
}

// emptyQueue removes the messages that earlier behaviours left in lifecycle's queue.
func (d *deployedFunctions) emptyQueue(t *testing.T) {
	t.Helper()
	for {
		got, err := d.lifecycle.Receive(t.Context(), queue.MaxBatch, time.Second, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 {
			return
		}
		for _, m := range got {
			if err := d.lifecycle.Delete(t.Context(), m.Receipt); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// start starts a service as the function of its name until the test ends.
func (d *deployedFunctions) start(t *testing.T, service string) lambdaruntime.Emulator {
	t.Helper()
	f, ok := d.functions[deployedCluster+"-joist-"+service]
	if !ok {
		t.Fatalf("the template has no function for %s", service)
	}
	at, err := lambdaruntime.NewEmulator(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(d.emulator, at.Args(filepath.Join(d.binaries, "joist-"+service))...)
	command.Env = []string{
		"AWS_ENDPOINT_URL=" + *d.server.BaseEndpoint, "AWS_REGION=" + d.server.Region, "AWS_ACCESS_KEY_ID=" + deployedAccount,
		"AWS_SECRET_ACCESS_KEY=secret", "AWS_EC2_METADATA_DISABLED=true", "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir(),
		"AWS_LAMBDA_FUNCTION_NAME=" + f.FunctionName, "AWS_LAMBDA_FUNCTION_TIMEOUT=" + strconv.Itoa(f.Timeout),
	}
	for _, name := range slices.Sorted(maps.Keys(f.Environment.Variables)) {
		command.Env = append(command.Env, name+"="+f.Environment.Variables[name])
	}
	command.Stdout, command.Stderr = t.Output(), t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
	})
	if err := answers("http://"+at.Address, ended); err != nil {
		t.Fatal(err)
	}
	return at
}

// deliver receives the next message of a queue, invokes the function with it and deletes it, as Lambda's event source
// mapping does.
func (d *deployedFunctions) deliver(t *testing.T, from string, function lambdaruntime.Emulator) {
	t.Helper()
	source := d.open(t, from)
	m := d.receiveHidden(t, source)
	record := events.SQSMessage{
		MessageId: m.ID, ReceiptHandle: m.Receipt, Body: string(m.Body), EventSource: "aws:sqs", AWSRegion: d.server.Region,
		EventSourceARN: fmt.Sprintf("arn:aws:sqs:%s:%s:%s", d.server.Region, deployedAccount, from),
		Attributes: map[string]string{
			"ApproximateReceiveCount": strconv.Itoa(m.Receives), "SentTimestamp": strconv.FormatInt(m.Sent.UnixMilli(), 10), "SenderId": "AIDAPEER",
		},
		MessageAttributes: map[string]events.SQSMessageAttribute{},
	}
	for name, value := range m.Attributes {
		record.MessageAttributes[name] = events.SQSMessageAttribute{StringValue: &value, DataType: "String"}
	}
	payload, err := json.Marshal(events.SQSEvent{Records: []events.SQSMessage{record}})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := function.Invoke(t.Context(), from, payload, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var response events.SQSEventResponse
	if err := json.Unmarshal(answer, &response); err != nil || len(response.BatchItemFailures) > 0 {
		t.Fatalf("the function returned %s, %v", answer, err)
	}
	if err := source.Delete(t.Context(), m.Receipt); err != nil {
		t.Fatal(err)
	}
}

// send sends a request of a service in the cluster to a function's queue.
func (d *deployedFunctions) send(t *testing.T, to, from string, body event.Body) {
	t.Helper()
	e, err := event.Maker{Service: from, Cluster: event.Cluster{Name: deployedCluster}}.New(time.Now(), body, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.open(t, to).Send(t.Context(), queue.Outgoing{Source: e.Source, Type: string(e.Type), Body: text}); err != nil {
		t.Fatal(err)
	}
}

// store stores a document and returns its reference.
func (d *deployedFunctions) store(t *testing.T, kind string, document any) event.Ref {
	t.Helper()
	ref, err := blob.Put(t.Context(), d.blobs, time.Now(), kind, document)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// plan sends a batch of five pods, and reads the plan.
func (d *deployedFunctions) plan(t *testing.T) {
	batch := planningtest.NewBatch(planningtest.NewPods("inflate", 5, "1", "1Gi"))
	batch.Snapshot.Cluster, batch.Snapshot.UID = deployedCluster, ""
	batch.Snapshot.Catalogue = d.store(t, catalog.Kind, planningtest.NewCatalogue())
	request := event.PodsUnschedulable{Outbox: batch.Outbox, Seq: batch.Seq, Batch: d.store(t, planning.BatchKind, batch)}
	d.send(t, deployedCluster+"-joist-planner", "watcher", request)
	d.deliver(t, deployedCluster+"-joist-planner", d.start(t, "planner"))
	made, err := event.DecodeBody[event.PlanMade](d.receiveFact(t))
	if err != nil || made.Nominated != 5 || made.Unplaced != 0 {
		t.Fatalf("the fact is %+v, %v", made, err)
	}
	if plan, err := blob.Get[planning.Plan](t.Context(), d.blobs, made.Plan); err != nil || len(plan.Intents) == 0 {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
}

// launch requests an instance and returns its ID.
func (d *deployedFunctions) launch(t *testing.T) string {
	t.Helper()
	f := furnisher{t, d.server}
	network, image := f.network(), f.image()
	intent := launchertest.NewIntent(launchertest.IntentOptions{
		Cluster: deployedCluster, ID: "one", Image: image.ID, Profile: "nodes", SecurityGroup: network.group.ID, Subnets: network.subnets[:1],
	})
	request := event.LaunchRequested{Intent: intent.ID, IntentRef: d.store(t, launchspec.Kind, intent), Claims: 1}
	d.send(t, deployedCluster+"-joist-launcher", "lifecycle", request)
	d.deliver(t, deployedCluster+"-joist-launcher", d.start(t, "launcher"))
	settled, err := event.DecodeBody[event.LaunchSettled](d.receiveFact(t))
	if err != nil || len(settled.Instances) != 1 {
		t.Fatalf("the fact is %+v, %v", settled, err)
	}
	found, err := ec2cloud.New(d.server).DescribeInstances(t.Context(), cloud.InstanceFilter{IDs: []string{settled.Instances[0].InstanceID}})
	if err != nil || len(found) != 1 || found[0].Tags[launchspec.IntentTag] != "one" || found[0].Type != "m6i.large" {
		t.Errorf("EC2 has %+v, %v", found, err)
	}
	return settled.Instances[0].InstanceID
}

// notice sends EC2's interruption warning for the instance.
func (d *deployedFunctions) notice(t *testing.T, instance string) {
	d.putEvent(t, fmt.Appendf(nil, `{"source": "aws.ec2", "detail-type": "EC2 Spot Instance Interruption Warning", "time": %q,
		"resources": [], "detail": {"instance-id": %q, "instance-action": "terminate"}}`, time.Now().Format(time.RFC3339), instance))
	d.deliver(t, deployedCluster, d.start(t, "interruption"))
	noticed, err := event.DecodeBody[event.NodeNoticed](d.receiveFact(t))
	if err != nil || noticed.InstanceID != instance || noticed.Deadline.IsZero() {
		t.Errorf("the fact is %+v, %v", noticed, err)
	}
}

// terminate requests the instance's termination.
func (d *deployedFunctions) terminate(t *testing.T, instance string) {
	d.send(t, deployedCluster+"-joist-launcher", "lifecycle", event.TerminateRequested{InstanceID: instance, Intent: "one", Reason: "orphan"})
	d.deliver(t, deployedCluster+"-joist-launcher", d.start(t, "launcher"))
	found, err := ec2cloud.New(d.server).DescribeInstances(t.Context(), cloud.InstanceFilter{IDs: []string{instance}})
	if err != nil || len(found) != 1 || found[0].State != cloud.Terminated {
		t.Errorf("EC2 has %+v, %v", found, err)
	}
}
