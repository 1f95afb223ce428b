package launchspec

import (
	"encoding/json"

	"github.com/joist-autoscaler/joist/shared/fault"
	"github.com/joist-autoscaler/joist/shared/planning"
)

// group groups nodes with the same offerings and requirements, in the order of their first node.
func group(nodes []planning.PlannedNode) ([][]planning.PlannedNode, error) {
	var groups [][]planning.PlannedNode
	index := map[string]int{}
	lists := lists{at: map[listAt]int{}, said: map[string]int{}}
	for _, node := range nodes {
		options, err := lists.number(node.Offerings)
		if err != nil {
			return nil, err
		}
		key, err := json.Marshal([]any{node.NodePool, node.Requirements.NodeSelectorRequirements(), options, asksEFA(node)})
		if err != nil {
			return nil, fault.E("grouping nodes", fault.Bug, err)
		}
		i, known := index[string(key)]
		if !known || len(groups[i]) == maxClaims {
			i = len(groups)
			index[string(key)] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], node)
	}
	return groups, nil
}

// lists numbers lists of offerings by content. Most nodes of a plan share one list in memory, and
// comparing hundreds of offerings for each of thousands of nodes would take longer than planning.
type lists struct {
	at   map[listAt]int
	said map[string]int
}

// listAt identifies a list by its memory.
type listAt struct {
	first *planning.PricedOffering
	count int
}

func whereabouts(options []planning.PricedOffering) listAt {
	if len(options) == 0 {
		return listAt{}
	}
	return listAt{&options[0], len(options)}
}

func (l *lists) number(options []planning.PricedOffering) (int, error) {
	at := whereabouts(options)
	if n, known := l.at[at]; known {
		return n, nil
	}
	text, err := json.Marshal(options)
	if err != nil {
		return 0, fault.E("grouping nodes", fault.Bug, err)
	}
	n, known := l.said[string(text)]
	if !known {
		n = len(l.said)
		l.said[string(text)] = n
	}
	l.at[at] = n
	return n, nil
}
