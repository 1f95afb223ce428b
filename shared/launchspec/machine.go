package launchspec

import (
	"maps"

	"github.com/joist-autoscaler/joist/shared/catalog"
	"github.com/joist-autoscaler/joist/shared/fault"
)

// machine is an instance type, and the labels that it gives to nodes of a family of
// images. Nobody changes them: many recipes share one.
type machine struct {
	hardware catalog.InstanceType
	labels   map[string]string
}

// machines are those that were looked up already, by family and name: a plan has
// many launches, and they try the same types.
type machines map[[2]string]machine

// machine looks a type up.
func (g *recipe) machine(name string) (machine, error) {
	at := [2]string{g.config.AMIFamily, name}
	if m, known := g.machines[at]; known {
		return m, nil
	}
	t, ok := g.catalogue.Find(name)
	if !ok {
		return machine{}, fault.F("reading the catalogue", fault.Bug, "it has no type %s", name)
	}
	m := machine{t, catalog.TypeLabels(t)}
	maps.Copy(m.labels, catalog.FamilyLabels(g.config.AMIFamily))
	g.machines[at] = m
	return m, nil
}
