package trace

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/internal/kube"
	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/launchspec"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// The results of steps that Kubernetes records.
const (
	// ResultObserved: a condition of an object or an event without a problem.
	ResultObserved = "observed"
	// ResultWarning: an event of type Warning, or a condition that is not reached.
	ResultWarning = "warning"
)

// ClusterObjects are the objects of a running cluster that belong to a pod, node or NodeClaim.
type ClusterObjects struct {
	// Pod is nil unless a pod is traced.
	Pod    *corev1.Pod
	Nodes  []corev1.Node
	Claims []karpenter.NodeClaim
	Events []corev1.Event
	// Missing are the parts that could not be read, and what that means.
	Missing []string
}

// ReadClusterObjects reads a pod, a node or a NodeClaim and the others of these that belong to it, with their
// events. The error is fault.Missing if the object does not exist.
func ReadClusterObjects(ctx context.Context, read kube.Reader, kind, namespace, name string) (out ClusterObjects, err error) {
	claimName, nodeName := "", ""
	isFound := true
	switch kind {
	case "pod":
		out.Pod = &corev1.Pod{}
		isFound, err = kube.Get(ctx, read, "/api/v1/namespaces/"+url.PathEscape(namespace)+"/pods/"+url.PathEscape(name), out.Pod)
		nodeName = out.Pod.Spec.NodeName
		if err == nil && isFound {
			out.readEvents(ctx, read, "Pod", namespace, name)
			claimName = nominatedClaim(out.Events)
		}
	case "node":
		nodeName = name
	default:
		claimName = name
	}
	if err != nil {
		return out, err
	}
	out.readClaims(ctx, read, claimName, nodeName)
	for i := range out.Claims {
		nodeName = cmp.Or(out.Claims[i].Status.NodeName, nodeName)
	}
	if nodeName != "" {
		out.readNode(ctx, read, nodeName)
	}
	if !isFound || kind != "pod" && len(out.Claims)+len(out.Nodes) == 0 {
		return out, fault.F("reading the "+kind+" from Kubernetes", fault.Missing, "%s not found", strings.TrimPrefix(map[bool]string{true: namespace}[kind == "pod"]+"/"+name, "/")).
			WithHint("check the name, -n and --context; --store finds the batches of an object that is gone")
	}
	return out, nil
}

// readClaims reads the NodeClaims of a name, a node or the pod.
func (o *ClusterObjects) readClaims(ctx context.Context, read kube.Reader, claimName, nodeName string) {
	all, err := kube.List[karpenter.NodeClaim](ctx, read, "/apis/"+karpenter.Group+"/v1/nodeclaims")
	if err != nil {
		o.Missing = append(o.Missing, "NodeClaims were not read ("+oneLine(err)+"): without them the trace, the launch and the instance are unknown")
		return
	}
	for i := range all {
		c := &all[i]
		isExpected := o.Pod != nil && o.Pod.UID != "" && slices.Contains(planning.ParseExpectedPods(c.Annotations[planning.ExpectedPodsAnnotation]), string(o.Pod.UID))
		if c.Name == claimName || nodeName != "" && c.Status.NodeName == nodeName || isExpected {
			o.Claims = append(o.Claims, *c)
			o.readEvents(ctx, read, "NodeClaim", "", c.Name)
		}
	}
}

func (o *ClusterObjects) readNode(ctx context.Context, read kube.Reader, name string) {
	var node corev1.Node
	switch isFound, err := kube.Get(ctx, read, "/api/v1/nodes/"+url.PathEscape(name), &node); {
	case err != nil:
		o.Missing = append(o.Missing, "node "+name+" was not read ("+oneLine(err)+")")
	case isFound:
		o.Nodes = append(o.Nodes, node)
		o.readEvents(ctx, read, "Node", "", name)
	}
}

// readEvents reads the events of an object. Those of objects without a namespace are in any namespace.
func (o *ClusterObjects) readEvents(ctx context.Context, read kube.Reader, kind, namespace, name string) {
	path := "/api/v1/events"
	if namespace != "" {
		path = "/api/v1/namespaces/" + url.PathEscape(namespace) + "/events"
	}
	found, err := kube.List[corev1.Event](ctx, read, path+"?fieldSelector="+url.QueryEscape("involvedObject.kind="+kind+",involvedObject.name="+name))
	if err != nil {
		o.Missing = append(o.Missing, "events of "+strings.ToLower(kind)+"/"+name+" were not read ("+oneLine(err)+")")
	}
	o.Events = append(o.Events, found...)
}

// nominatedText matches the message of Nominated events of Joist and Karpenter.
var nominatedText = regexp.MustCompile(`\bnodeclaim/([a-z0-9.-]+)`)

// nominatedClaim returns the NodeClaim of the newest Nominated event, or "".
func nominatedClaim(events []corev1.Event) (name string) {
	var newest time.Time
	for i := range events {
		e := &events[i]
		_, end := eventTimes(e)
		if match := nominatedText.FindStringSubmatch(e.Message); match != nil && e.Reason == karpenter.ReasonNominated && !end.Before(newest) {
			name, newest = match[1], end
		}
	}
	return name
}

// AddTo adds the names, launches, instances and trace ids of the objects to a query, and what Kubernetes
// records about them to the entries.
func (o *ClusterObjects) AddTo(q *Query, e *Entries) {
	var first string
	for i := range o.Claims {
		c := &o.Claims[i]
		q.AddNames(c.Name, c.Status.NodeName)
		if id, err := c.Instance(); err == nil {
			q.AddInstance(id.InstanceID)
		}
		q.AddIntent(c.Annotations[launchspec.IntentTag])
		trace := ""
		if context := planning.ReadTrace(c); context != nil {
			trace = context.Correlation
			q.AddIDs(trace)
			first = cmp.Or(first, trace)
		}
		e.addObject(trace, "NodeClaim "+c.Name, c, c.Status.Conditions)
	}
	for i := range o.Nodes {
		n := &o.Nodes[i]
		q.AddNames(n.Name)
		if id, err := karpenter.ParseProviderID(n.Spec.ProviderID); err == nil {
			q.AddInstance(id.InstanceID)
		}
		var conditions []metav1.Condition
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				conditions = append(conditions, newCondition(string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime))
			}
		}
		e.addObject(first, "Node "+n.Name, n, conditions)
	}
	if o.Pod != nil {
		var conditions []metav1.Condition
		for _, c := range o.Pod.Status.Conditions {
			if c.Type == corev1.PodScheduled || c.Type == corev1.PodReady {
				conditions = append(conditions, newCondition(string(c.Type), c.Status, c.Reason, c.Message, c.LastTransitionTime))
			}
		}
		e.addObject("", "Pod "+o.Pod.Namespace+"/"+o.Pod.Name, o.Pod, conditions)
	}
	for i := range o.Events {
		e.addEvent(&o.Events[i])
	}
}

func newCondition(kind string, status corev1.ConditionStatus, reason, message string, at metav1.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: message, LastTransitionTime: at}
}

// ListUntracedClaims returns the NodeClaims without the annotation of their trace.
func (o *ClusterObjects) ListUntracedClaims() (names []string) {
	for i := range o.Claims {
		if planning.ReadTrace(&o.Claims[i]) == nil {
			names = append(names, o.Claims[i].Name)
		}
	}
	return names
}

// addObject adds when an object was created and deleted, and the transitions of its conditions.
func (e *Entries) addObject(trace, what string, o metav1.Object, conditions []metav1.Condition) {
	add := func(at metav1.Time, did, result, detail string) {
		if !at.IsZero() {
			e.Observed = append(e.Observed, TraceStep{Trace: trace, Service: "Kubernetes", What: what + " " + did, Begin: at.Time, End: at.Time, Result: result, Detail: detail})
		}
	}
	add(o.GetCreationTimestamp(), "created", ResultObserved, "")
	if at := o.GetDeletionTimestamp(); at != nil {
		add(*at, "deleted", ResultObserved, "")
	}
	for _, c := range conditions {
		detail := strings.TrimSuffix(strings.TrimSpace(c.Reason+": "+c.Message), ":")
		if c.Status == metav1.ConditionTrue {
			add(c.LastTransitionTime, c.Type, ResultObserved, strings.TrimPrefix(detail, c.Type))
			continue
		}
		add(c.LastTransitionTime, c.Type+" is "+string(c.Status), ResultWarning, detail)
	}
}

// addEvent adds an event of Kubernetes, from its first to its last time.
func (e *Entries) addEvent(k *corev1.Event) {
	begin, end := eventTimes(k)
	step := TraceStep{
		Service: cmp.Or(k.ReportingController, k.Source.Component, "Kubernetes"), Begin: begin, End: end, Result: ResultObserved, Detail: oneLineText(k.Message),
		What: "event " + k.Reason + " " + k.InvolvedObject.Kind + " " + strings.TrimPrefix(k.InvolvedObject.Namespace+"/"+k.InvolvedObject.Name, "/"),
	}
	if k.Type == corev1.EventTypeWarning {
		step.Result = ResultWarning
	}
	if count := eventCount(k); count > 1 {
		step.Detail = fmt.Sprintf("%d times: %s", count, step.Detail)
	}
	e.Observed = append(e.Observed, step)
}

// eventTimes returns when an event happened first and last.
func eventTimes(k *corev1.Event) (begin, end time.Time) {
	begin = firstTime(k.FirstTimestamp.Time, k.EventTime.Time, k.CreationTimestamp.Time)
	end = firstTime(k.LastTimestamp.Time, begin)
	if k.Series != nil {
		end = firstTime(k.Series.LastObservedTime.Time, end)
	}
	return begin, end
}

func eventCount(k *corev1.Event) int32 {
	if k.Series != nil {
		return k.Series.Count
	}
	return k.Count
}

func firstTime(times ...time.Time) (none time.Time) {
	for _, at := range times {
		if !at.IsZero() {
			return at
		}
	}
	return none
}

func oneLine(err error) string { return oneLineText(err.Error()) }

func oneLineText(text string) string { return strings.Join(strings.Fields(text), " ") }
