package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/joist-autoscaler/joist/integration/environment/testbed"
	"github.com/joist-autoscaler/joist/services/lifecycle"
	"github.com/joist-autoscaler/joist/shared/cluster"
	"github.com/joist-autoscaler/joist/shared/event"
	"github.com/joist-autoscaler/joist/shared/karpenter"
	"github.com/joist-autoscaler/joist/shared/karpenter/repair"
)

const (
	hashKey, versionKey = karpenter.EC2NodeClassHashAnnotationKey, karpenter.EC2NodeClassHashVersionAnnotationKey
	deployedCRDs        = testbed.Root + "/deploy/charts/joist-crd/files"
)

// upgrade is a cluster that changes from Karpenter 1.14's CRDs to those of 1.15.
type upgrade struct {
	*estate
	raw dynamic.Interface
}

// TestUpgradeOfCRDs runs lifecycle in a cluster with Karpenter 1.14's CRDs and objects, and then with those of 1.15:
// every node stays, and no setting of the kubelet is lost.
func TestUpgradeOfCRDs(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs a control plane")
	}
	u := &upgrade{estate: newEstate(t, testbed.Options{CRDs: olderCRDs(t)})}
	var err error
	u.raw, err = dynamic.NewForConfig(u.Plane.Config)
	u.RequireNoError(err)
	u.createClass()
	u.restart(lifecycle.DeletionApproval{}, repair.PolicySet{})
	var claims []launchedClaim
	for i, name := range []string{"older-0", "older-1", "older-2"} {
		c := u.newClaim(name, 100+i)
		u.annotateHash("nodeclaims", name, "114", "v5")
		c.joinNode(name)
		c.waitForCondition("Ready", "True Ready")
		claims = append(claims, c)
	}

	u.resolve()
	first := u.class().Annotations[hashKey]
	u.requireHashes(claims, first)
	u.requireKubelet(`{"evictionSoft":{"memory.available":"500Mi"},"evictionSoftGracePeriod":{"memory.available":"1m30s"},"maxPods":58}`)

	u.upgradeCRDs()
	u.annotateHash("nodeclaims", "older-1", "114", "v5") // as of a node that the old release launched last
	u.requireHashes(claims, first)
	u.requireKubelet(`{"evictionSoft":{"memory.available":"500Mi"},"evictionSoftGracePeriod":{"memory.available":"1m30s"},"maxPods":58}`)

	u.patchClass(`{"spec":{"enclaveOptions":{"enabled":true},"kubelet":{"topologyManagerPolicy":"restricted","memorySwap":{"swapBehavior":"NoSwap"}}}}`)
	u.resolve()
	u.requireKubelet(`{"evictionSoft":{"memory.available":"500Mi"},"evictionSoftGracePeriod":{"memory.available":"1m30s"},"maxPods":58,"memorySwap":{"swapBehavior":"NoSwap"},"topologyManagerPolicy":"restricted"}`)
	if class := u.class(); class.Annotations[hashKey] == first || !class.EnclavesEnabled() {
		t.Errorf("the class has the annotations %v and enclaves %v", class.Annotations, class.Spec.EnclaveOptions)
	}
	u.requireHashes(claims, first) // A changed class drifts its nodes: their hash stays.
}

// olderCRDs writes the deployed CRDs with the schemas of Karpenter 1.14.
func olderCRDs(t *testing.T) string {
	t.Helper()
	var older map[string]map[string]any
	text, err := os.ReadFile("testdata/karpenter-1.14.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &older)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, crd := range readCRDs(t) {
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		at := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties"}
		for field, value := range older[crd.GetName()] {
			unstructured.RemoveNestedField(versions[0].(map[string]any), append(at, field)...)
			if value != nil {
				err = unstructured.SetNestedField(versions[0].(map[string]any), value, append(at, field)...)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		out, err := yaml.Marshal(crd.Object)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), out, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// readCRDs returns the deployed CRDs by file.
func readCRDs(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob(deployedCRDs + "/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no CRDs in %s: %v", deployedCRDs, err)
	}
	out := map[string]*unstructured.Unstructured{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		crd := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(text, &crd.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(path)] = crd
	}
	return out
}

// upgradeCRDs replaces the CRDs, as helm upgrade does, and waits until the API server uses them.
func (u *upgrade) upgradeCRDs() {
	u.Helper()
	crds := u.raw.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, crd := range readCRDs(u.T) {
		u.WaitUntil(time.Minute, "the new "+crd.GetName(), func() bool {
			current, err := crds.Get(u.Ctx, crd.GetName(), metav1.GetOptions{})
			u.RequireNoError(err)
			crd.SetResourceVersion(current.GetResourceVersion())
			_, err = crds.Update(u.Ctx, crd, metav1.UpdateOptions{})
			return err == nil
		})
	}
	u.WaitUntil(time.Minute, "the new schemas", func() bool {
		trial := u.classObject("trial", map[string]any{"topologyManagerPolicy": "restricted"})
		made, err := u.classes().Create(u.Ctx, trial, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		u.RequireNoError(err)
		_, kept, _ := unstructured.NestedString(made.Object, "spec", "kubelet", "topologyManagerPolicy")
		pool := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "trial"},
			"spec": map[string]any{"disruption": map[string]any{"budgets": []any{}}, "template": map[string]any{"spec": map[string]any{
				"requirements": []any{}, "nodeClassRef": map[string]any{"group": karpenter.AWSGroup, "kind": "EC2NodeClass", "name": "default"},
			}}},
		}}
		if pool, err = u.pools.Create(u.Ctx, pool, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			return false // 1.14 requires consolidateAfter.
		}
		after, _, _ := unstructured.NestedString(pool.Object, "spec", "disruption", "consolidateAfter")
		return kept && after == "0s"
	})
}

func (u *upgrade) classes() dynamic.NamespaceableResourceInterface {
	return u.raw.Resource(schema.GroupVersionResource{Group: karpenter.AWSGroup, Version: "v1", Resource: "ec2nodeclasses"})
}

func (u *upgrade) classObject(name string, kubelet map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": karpenter.AWSGroup + "/v1", "kind": "EC2NodeClass", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"role": "node", "amiSelectorTerms": []any{map[string]any{"alias": "al2023@latest"}}, "kubelet": kubelet,
			"subnetSelectorTerms": []any{map[string]any{"id": "subnet-1"}}, "securityGroupSelectorTerms": []any{map[string]any{"id": "sg-1"}},
		},
	}}
}

// createClass creates a class as Karpenter 1.14 has it. Its CRDs drop kubelet settings that they do not know.
func (u *upgrade) createClass() {
	u.Helper()
	class := u.classObject("default", map[string]any{
		"maxPods": int64(58), "evictionSoft": map[string]any{"memory.available": "500Mi"},
		"evictionSoftGracePeriod": map[string]any{"memory.available": "1m30s"}, "topologyManagerPolicy": "restricted",
	})
	made, err := u.classes().Create(u.Ctx, class, metav1.CreateOptions{})
	u.RequireNoError(err)
	if _, kept, _ := unstructured.NestedString(made.Object, "spec", "kubelet", "topologyManagerPolicy"); kept {
		u.Fatal("the CRDs are not those of Karpenter 1.14: they accept every kubelet setting")
	}
	u.annotateHash("ec2nodeclasses", "default", "114", "v5")
}

// annotateHash writes the hash of a node class to an object.
func (u *upgrade) annotateHash(resource, name, hash, version string) {
	u.Helper()
	group := karpenter.Group
	if resource == "ec2nodeclasses" {
		group = karpenter.AWSGroup
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q,%q:%q}}}`, hashKey, hash, versionKey, version)
	_, err := u.raw.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}).
		Patch(u.Ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	u.RequireNoError(err)
}

func (u *upgrade) patchClass(patch string) {
	u.Helper()
	_, err := u.classes().Patch(u.Ctx, "default", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	u.RequireNoError(err)
}

func (u *upgrade) class() *karpenter.EC2NodeClass {
	u.Helper()
	class, err := cluster.Get[*karpenter.EC2NodeClass](u.Ctx, u.admin, cluster.NodeClasses, cluster.Key{Name: "default"})
	u.RequireNoError(err)
	return class
}

// resolve answers lifecycle's request for the class's resources until lifecycle has written the hash.
func (u *upgrade) resolve() {
	u.Helper()
	u.WaitUntil(time.Minute, "the hash of the class", func() bool {
		class := u.class()
		hash, err := class.Hash("Q0VSVA==")
		u.RequireNoError(err)
		e, err := event.Maker{Service: "test", Cluster: u.ID}.New(time.Now(), event.NodeClassResolved{
			Name: class.Name, UID: string(class.UID), Generation: class.Generation, Asked: time.Now(), Hash: hash, HashVersion: karpenter.EC2NodeClassHashVersion,
		}, nil)
		u.RequireNoError(err)
		u.still(func() { err = u.service.Handle(u.Ctx, e) })
		return err == nil && u.class().Annotations[hashKey] == hash
	})
}

// requireHashes waits until every claim has the hash, and fails if a node is being removed or has drifted.
func (u *upgrade) requireHashes(claims []launchedClaim, hash string) {
	u.Helper()
	for _, c := range claims {
		u.WaitUntil(time.Minute, "the new hash of "+c.name, func() bool {
			a := c.claim().Annotations
			return a[hashKey] == hash && a[versionKey] == "v6"
		})
		claim, node := c.claim(), c.node(c.name)
		if claim.DeletionTimestamp != nil || node.DeletionTimestamp != nil || claim.Status.Conditions.IsTrue(karpenter.ConditionTypeDisruptionReason) {
			u.Errorf("%s does not stay: %v", c.name, claim.Status.Conditions)
		}
		if u.class().Annotations[hashKey] == hash && claim.Status.Conditions.IsTrue(karpenter.ConditionTypeDrifted) {
			u.Errorf("%s has drifted: %v", c.name, claim.Status.Conditions)
		}
	}
}

// requireKubelet compares the stored kubelet settings, after lifecycle's updates of the class.
func (u *upgrade) requireKubelet(want string) {
	u.Helper()
	stored, err := u.classes().Get(u.Ctx, "default", metav1.GetOptions{})
	u.RequireNoError(err)
	kubelet, _, err := unstructured.NestedMap(stored.Object, "spec", "kubelet")
	u.RequireNoError(err)
	text, err := (&unstructured.Unstructured{Object: map[string]any{"kind": "Kubelet", "kubelet": kubelet}}).MarshalJSON()
	u.RequireNoError(err)
	if got := string(text); got != `{"kind":"Kubelet","kubelet":`+want+"}\n" {
		u.Errorf("kubelet settings %s, want %s", got, want)
	}
	if len(stored.GetFinalizers()) == 0 {
		u.Error("lifecycle has not written the class")
	}
}
