package solver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joist-autoscaler/joist/shared/planning"
)

// TestBreaksAffinity counts pods in zones one after another, as a plan places them and takes them back, and checks whether kube-scheduler could
// bind them in an order that the affinity does not allow. The affinity of "owner" and "other owner" selects all of the pods.
func TestBreaksAffinity(t *testing.T) {
	type step struct {
		class, zone string
		count       int
	}
	for _, tt := range []struct {
		name  string
		steps []step
		want  bool
	}{
		{"the owners open a zone", []step{{"owner", "a", 1}, {"owner", "a", 2}}, false},
		{"the others follow", []step{{"owner", "a", 1}, {"free", "a", 1}}, false},
		{"some of the others follow", []step{{"owner", "a", 1}, {"free", "a", 1}, {"free", "b", 1}}, false},
		{"the others go elsewhere", []step{{"owner", "a", 1}, {"free", "b", 1}}, true},
		{"the others have another affinity, and go elsewhere", []step{{"owner", "a", 1}, {"bound", "b", 1}}, false},
		{"the others are taken back", []step{{"owner", "a", 1}, {"free", "b", 1}, {"free", "b", -1}}, false},
		{"the others follow, are taken back, and go elsewhere", []step{{"owner", "a", 1}, {"free", "a", 2}, {"free", "a", -2}, {"free", "b", 1}}, true},
		{"one of the owners is taken back, and the others go elsewhere", []step{{"owner", "a", 2}, {"owner", "a", -1}, {"free", "b", 1}}, true},
		{"all owners are taken back, and the others go elsewhere", []step{{"owner", "a", 2}, {"owner", "a", -2}, {"free", "b", 1}}, false},
		{"all owners are taken back, and follow the others", []step{{"owner", "a", 1}, {"owner", "a", -1}, {"free", "b", 1}, {"owner", "b", 1}}, false},
		{"all owners are taken back, and open another zone", []step{{"owner", "a", 1}, {"owner", "a", -1}, {"owner", "b", 1}, {"free", "b", 1}}, false},
		{"the owners follow the others", []step{{"free", "b", 1}, {"owner", "b", 1}}, false},
		{"the owners follow the others, which are taken back", []step{{"free", "b", 1}, {"owner", "b", 2}, {"free", "b", -1}}, true},
		{"the owners follow the others, of which one is taken back", []step{{"free", "b", 2}, {"owner", "b", 2}, {"free", "b", -1}}, false},
		{"all are taken back", []step{{"owner", "a", 1}, {"free", "a", 1}, {"free", "a", -1}, {"owner", "a", -1}}, false},
		{"the owners are taken back after the others went elsewhere", []step{{"owner", "a", 1}, {"free", "b", 1}, {"owner", "a", -1}}, false},
		{"the others are taken back where pods with another affinity are", []step{{"owner", "a", 1}, {"free", "b", 1}, {"free", "b", -1}, {"bound", "b", 1}}, false},
		{"other owners go elsewhere", []step{{"owner", "a", 1}, {"other owner", "b", 1}}, true},
		{"other owners follow", []step{{"owner", "a", 1}, {"other owner", "a", 1}}, false},
		{"others follow other owners", []step{{"owner", "a", 1}, {"other owner", "a", 1}, {"free", "a", 1}, {"free", "b", 1}}, false},
		{"others do not follow other owners", []step{{"owner", "a", 1}, {"other owner", "a", 1}, {"free", "b", 1}}, true},
	} {
		for _, kind := range []ruleKind{affinityKind, spreadKind} {
			set := &labelSet{}
			g := &group{kind: kind, hard: true, key: corev1.LabelTopologyZone, members: map[*labelSet]bool{set: true}, counts: map[string]int{}, owners: map[string]int{}}
			set.counted = []*group{g}
			affinity := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}}}
			classes := map[string]*podClass{}
			for _, name := range []string{"owner", "other owner", "free", "bound"} {
				c := &podClass{spec: &planning.PodSpec{Affinity: affinity}, set: set, requests: amounts{0, 0}}
				if name == "free" {
					c.spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{}} // Only preferences.
				}
				if name == "owner" || name == "other owner" {
					c.rules.groups = []*group{g}
				}
				set.classes, classes[name] = append(set.classes, c), c
			}
			w := &state{topology: topology{groups: map[string]*group{"": g}, load: map[string]map[string]int64{}}}
			for _, s := range tt.steps {
				w.countPods(classes[s.class], &feasibleSet{}, []domain{{g.key, s.zone}}, s.count)
			}
			if got := w.breaksAffinity(); got != (tt.want && kind == affinityKind) {
				t.Errorf("%s, of kind %d: breaks the affinity %t", tt.name, kind, got)
			}
			if g.countMembers() == 0 && g.openedDomain != nil {
				t.Errorf("%s, of kind %d: a domain is open without pods", tt.name, kind)
			}
		}
	}
}
