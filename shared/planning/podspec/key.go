package podspec

import (
	"encoding/binary"
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// Key returns a key that is equal exactly for specs that planning treats as equal. It defines the
// order of classes in documents. It is binary.
func Key(spec planning.PodSpec) string {
	var d draft
	d.readSpec(&spec)
	var k key
	k.draft(&d)
	return string(k.bytes)
}

// key encodes values unambiguously: texts end with a mark that no text contains, lists begin with
// their length, and optional values begin with a flag. Maps are written in the order of their keys.
type key struct {
	bytes   []byte
	scratch pairs
}

// draft sets the key from a spec. A test sets each field of a spec in turn, and fails if the key
// ignores it.
func (k *key) draft(d *draft) {
	k.bytes = k.bytes[:0]
	s := &d.spec
	k.text(s.Namespace)
	k.text(s.OwnerKind)
	k.pairs(d.labels)
	k.amounts(d.requests)
	k.labels(s.NodeSelector)
	k.affinity(s.Affinity)
	k.tolerations(s.Tolerations)
	k.spread(s.Spread)
	k.length(len(d.ports))
	for _, port := range d.ports {
		k.text(port.IP)
		k.number(int64(port.Port))
		k.text(string(port.Protocol))
	}
	k.volumes(s.Volumes)
	k.number(int64(s.Priority))
	k.number(s.GraceSeconds)
	k.number(int64(s.ResourceClaims))
	k.claims(s.Claims)
	k.text(s.DoNotDisrupt)
	k.text(s.DeletionCost)
	if s.DefaultSpread {
		k.present(true) // The last value, so that the other keys stay as they are.
	}
}

// text ends with the bytes 0 and 1; a 0 in the text is followed by 255.
func (k *key) text(s string) {
	for {
		i := strings.IndexByte(s, 0)
		if i < 0 {
			break
		}
		k.bytes = append(append(k.bytes, s[:i]...), 0, 255)
		s = s[i+1:]
	}
	k.bytes = append(append(k.bytes, s...), 0, 1)
}

func (k *key) texts(list []string) {
	k.length(len(list))
	for _, one := range list {
		k.text(one)
	}
}

// number keeps the order of numbers.
func (k *key) number(n int64) { k.bytes = binary.BigEndian.AppendUint64(k.bytes, uint64(n)^1<<63) }

func (k *key) length(n int) { k.bytes = binary.AppendUvarint(k.bytes, uint64(n)) }

// present writes and returns whether a value is present.
func (k *key) present(there bool) bool {
	if there {
		k.bytes = append(k.bytes, 1)
	} else {
		k.bytes = append(k.bytes, 0)
	}
	return there
}

func (k *key) pairs(list pairs) {
	k.length(len(list))
	for _, one := range list {
		k.text(one.key)
		k.text(one.value)
	}
}

func (k *key) amounts(list amounts) {
	k.length(len(list))
	for i := range list {
		k.text(string(list[i].name))
		k.number(list[i].units())
	}
}

func (k *key) labels(labels map[string]string) {
	k.scratch = k.scratch.of(labels)
	k.pairs(k.scratch)
}

func (k *key) selector(s *metav1.LabelSelector) {
	if !k.present(s != nil) {
		return
	}
	k.labels(s.MatchLabels)
	k.length(len(s.MatchExpressions))
	for i := range s.MatchExpressions {
		k.text(s.MatchExpressions[i].Key)
		k.text(string(s.MatchExpressions[i].Operator))
		k.texts(s.MatchExpressions[i].Values)
	}
}

func (k *key) tolerations(list []corev1.Toleration) {
	k.length(len(list))
	for i := range list {
		k.text(list[i].Key)
		k.text(string(list[i].Operator))
		k.text(list[i].Value)
		k.text(string(list[i].Effect))
		if seconds := list[i].TolerationSeconds; k.present(seconds != nil) {
			k.number(*seconds)
		}
	}
}

func (k *key) volumes(list []planning.Volume) {
	k.length(len(list))
	for i := range list {
		k.text(list[i].Claim)
		k.text(list[i].Driver)
		k.nodeTerms(list[i].Alternatives)
		k.text(list[i].Problem)
	}
}

// claims writes the claims as JSON: few pods have any, and their fields are Kubernetes'.
func (k *key) claims(list []planning.PodClaim) {
	k.length(len(list))
	if len(list) > 0 {
		text, _ := json.Marshal(list) // Kubernetes API objects can always be encoded.
		k.text(string(text))
	}
}
