package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/services/cli/embedded"
	"github.com/joist-autoscaler/joist/shared/cloud/memcloud"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
)

// publishFact publishes a fact of the attacker's own service.
func (a *attacker) publishFact() {
	if specs := a.messageTypes(true, true); len(specs) > 0 {
		kind := pick(a.random, specs).Type
		a.count("fact " + string(kind))
		a.publish("joist/"+a.name, string(kind), a.forgeMessage(kind, a.name))
	}
}

// publishForeignFact publishes a fact of another service: as an entry of its own, which IAM decides about, or inside an
// own entry, which the bus's rules decide about.
func (a *attacker) publishForeignFact() {
	foreign := pick(a.random, a.messageTypes(true, false))
	body := a.forgeMessage(foreign.Type, foreign.Producers[0])
	own := a.messageTypes(true, true)
	switch a.random.IntN(4) {
	case 0:
		a.publish("joist/"+foreign.Producers[0], string(foreign.Type), body)
	case 1:
		a.publish("joist/"+a.name, string(foreign.Type), body)
	case 2:
		// The attacker's own name with a type that it does not produce.
		body = a.forgeMessage(foreign.Type, a.name)
		fallthrough
	default:
		if len(own) > 0 {
			a.publish("joist/"+a.name, string(pick(a.random, own).Type), body)
		}
	}
}

// sendCommand sends a command to a queue: mostly one of its own to its consumer.
func (a *attacker) sendCommand() {
	own := a.messageTypes(false, true)
	if len(own) == 0 || a.random.IntN(4) == 0 {
		spec := pick(a.random, event.Specs)
		a.send(pick(a.random, a.queueNames()), a.forgeMessage(spec.Type, pick(a.random, append(spec.Producers, a.name))))
		return
	}
	spec := pick(a.random, own)
	a.count("command " + string(spec.Type))
	a.send(spec.Consumers[0], a.forgeMessage(spec.Type, a.name))
}

// queueNames are all queues and their DLQs.
func (a *attacker) queueNames() []string {
	var out []string
	for _, q := range a.rights.scope.Plan.Queues {
		out = append(out, q.Service, q.Service+"-dead")
	}
	return out
}

// replayMessage sends a recorded message again, to the bus or to a queue.
func (a *attacker) replayMessage() {
	spec := pick(a.random, event.Specs)
	text := pick(a.random, a.recorded[spec.Type])
	if text == nil {
		return
	}
	if spec.IsFact() {
		a.publish("joist/"+a.name, string(spec.Type), text)
		return
	}
	a.send(spec.Consumers[0], text)
}

// floodQueue sends many messages at once.
func (a *attacker) floodQueue() {
	for range 10 + a.random.IntN(20) {
		if a.random.IntN(2) == 0 {
			a.publishFact()
		} else {
			a.sendCommand()
		}
	}
}

// sendMalformed sends bytes that are no envelope, or a very large or deep one.
func (a *attacker) sendMalformed() {
	bodies := [][]byte{
		nil, []byte("{"), []byte("null"), []byte("[]"), []byte(`"x"`), []byte("\x00"), []byte("\xff\xfe{}"), []byte(`{"id":1}`), []byte(`{"id":"a","id":"b"}`),
		[]byte(`{"data":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`), bytes.Repeat([]byte("{}"), 3),
	}
	if a.random.IntN(6) == 0 {
		bodies = [][]byte{[]byte(`{"data":"` + strings.Repeat("x", 250<<10) + `"}`), []byte(`{"data":"` + strings.Repeat("x", 300<<10) + `"}`), []byte(`{"data":[` + strings.Repeat("0,", 110000) + `0]}`)}
	}
	body := pick(a.random, bodies)
	if own := a.messageTypes(true, true); len(own) > 0 && a.random.IntN(2) == 0 && json.Valid(body) && bytes.HasPrefix(body, []byte("{")) {
		a.publish("joist/"+a.name, string(pick(a.random, own).Type), body)
		return
	}
	a.send(pick(a.random, a.queueNames()), body)
}

// stealMessages receives messages of a queue and deletes them.
func (a *attacker) stealMessages() {
	name := pick(a.random, append(a.queueNames(), a.name, a.name, a.name))
	if name == "watcher" || !a.rights.allowsReceive(a.name, name) {
		a.count("refused by IAM")
		return
	}
	q, _ := a.world.Broker.FindQueue(a.world.Cluster + "-" + name)
	messages, err := q.Receive(context.Background(), 10, 0, 30*time.Second)
	if err != nil {
		return
	}
	for _, m := range messages {
		a.count("stolen")
		_ = q.Delete(context.Background(), m.Receipt)
		if sent := a.sent[messageKey(m.Body)]; sent != nil {
			sent.action = "stolen"
		}
	}
}

// callEC2 terminates or reboots any instance of the account.
func (a *attacker) callEC2() {
	r := a.pickHostileInstance()
	action := pick(a.random, []string{"TerminateInstances", "RebootInstances"})
	if !a.rights.allowsInstanceCall(a.name, action, r.ID, r.Tags) {
		a.count("refused by IAM")
		return
	}
	if a.random.IntN(4) > 0 {
		return // Otherwise no node would be left for the other attacks.
	}
	a.count("called EC2")
	if action == "RebootInstances" {
		_ = a.world.Cloud.Reboot(context.Background(), r.ID)
		return
	}
	a.ended[r.ID] = true
	_ = a.world.Cloud.Terminate(context.Background(), []string{r.ID})
}

// writeObject writes an object of Kubernetes, if the chart's roles allow it.
func (a *attacker) writeObject() {
	if a.name != "watcher" && a.name != "lifecycle" {
		return
	}
	ctx, client := context.Background(), a.world.Kube.AsKubernetes("attacker")
	kind := pick(a.random, []cluster.Kind{cluster.ConfigMaps, cluster.ConfigMaps, cluster.Leases, cluster.NodeClaims, cluster.Nodes, cluster.Pods, cluster.NodePools, cluster.NodeClasses, cluster.Deployments, cluster.DisruptionBudgets})
	verb := pick(a.random, []string{"create", "update", "delete"})
	objects := a.listObjects(kind)
	if len(objects) == 0 {
		return
	}
	object := pick(a.random, objects).DeepCopyObject().(cluster.Object)
	if verb == "create" {
		object = kind.New()
		object.SetNamespace(pick(a.random, []string{embedded.Namespace, "default", "kube-system"}))
		object.SetName("hostile-" + string(event.DigestOf([]byte(a.world.Now().String()))[:8]))
		object.SetAnnotations(map[string]string{"joist.sh/intent": pick(a.random, []string{"", "unknown", a.pickClaim().Annotations[intentTag]})})
	}
	if !a.rights.allowsObject(a.name, verb, kind.Group, kind.Resource, cluster.KeyOf(object)) {
		a.count("refused by RBAC")
		return
	}
	a.count("object " + verb + " " + kind.Kind)
	switch verb {
	case "create":
		_, _ = client.Create(ctx, object)
	case "delete":
		_ = client.Delete(ctx, kind, cluster.KeyOf(object), object.GetUID())
	default:
		a.changeObject(object)
		_, _ = client.Update(ctx, object)
	}
}

// changeObject changes an object at random.
func (a *attacker) changeObject(object cluster.Object) {
	switch o := object.(type) {
	case *corev1.ConfigMap:
		for key, text := range o.Data {
			var document any
			if json.Unmarshal([]byte(text), &document) == nil && a.random.IntN(3) > 0 {
				changed, _ := json.Marshal(mutate(a.random, document, a.liveNames(), 1+a.random.IntN(3)))
				o.Data[key] = string(changed)
			} else {
				o.Data[key] = pick(a.random, []string{"", "{", "null", "\x00", strings.Repeat("[", 10000)})
			}
		}
	case *karpenter.NodeClaim, *corev1.Node:
		annotations := object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[pick(a.random, []string{"joist.sh/proposal", "joist.sh/intent-ref", "joist.sh/ceiling", "joist.sh/instance-gone", "joist.sh/absent-since", "karpenter.sh/nodeclaim-termination-timestamp"})] =
			pick(a.random, []string{"", "{", "null", "x", "2026-01-01T00:00:00Z", `{"id":"x","confirmed":"2026-01-01T00:00:00Z"}`})
		object.SetAnnotations(annotations)
	default:
		object.SetLabels(map[string]string{"example.com/hostile": "true"})
	}
}

// startForeignInstances starts two instances that belong to another cluster of the account.
func (a *attacker) startForeignInstances() error {
	return a.startInstances("neighbour", map[string]string{"kubernetes.io/cluster/other": "owned", "karpenter.sh/nodepool": "default", "eks:eks-cluster-name": "other"}, 2)
}

// isForeign reports whether an instance belongs to the other cluster.
func isForeign(r memcloud.Record) bool { return r.Tags["eks:eks-cluster-name"] == "other" }

// endAttack removes the attacker: it acts no more, what only an operator can repair is repaired, and the pods of a tenant
// are deleted. The attack also ends for actions at the present time, which would come after this.
func (a *attacker) endAttack(manifests []cluster.Object) {
	a.ends = a.world.Now()
	a.restore(manifests)
	a.deletePods()
	a.checker.hostile.ended = a.world.Now()
}

// restore repairs what only an operator can after the attacker is removed: it applies the manifests again, and deletes
// Joist's ConfigMaps if the attacker could write them.
func (a *attacker) restore(objects []cluster.Object) {
	for _, name := range []string{"joist-outbox", "joist-unavailable"} {
		if key := (cluster.Key{Namespace: embedded.Namespace, Name: name}); a.rights.allowsObject(a.name, "update", "", "configmaps", key) {
			_ = a.world.Kube.AsKubernetes("person").Delete(context.Background(), cluster.ConfigMaps, key, "")
		}
	}
	for _, o := range objects {
		key := cluster.KeyOf(o)
		kind, _ := cluster.KindOf(o)
		switch wanted := o.(type) {
		case *karpenter.NodePool:
			if !a.world.Kube.ChangeObject(kind, key, func(now cluster.Object) {
				now.(*karpenter.NodePool).Spec = *wanted.Spec.DeepCopy()
			}) {
				a.recreate(wanted.DeepCopy())
			}
		case *karpenter.EC2NodeClass:
			if !a.world.Kube.ChangeObject(kind, key, func(cluster.Object) {}) {
				a.recreate(wanted.DeepCopy())
			}
		}
	}
}

func (a *attacker) recreate(o cluster.Object) {
	o.SetResourceVersion("")
	o.SetUID("")
	o.SetCreationTimestamp(metav1.Time{})
	_, _ = a.world.Kube.AsKubernetes("person").Create(context.Background(), o)
}
