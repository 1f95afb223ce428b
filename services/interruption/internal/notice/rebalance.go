package notice

import "github.com/joist-autoscaler/joist/shared/event"

// rebalance reads the recommendation to leave a spot instance (B179). Nothing
// ends by it.
func rebalance(h header) (Notice, error) {
	d, err := decode[interruption](h)
	if err != nil {
		return Notice{}, err
	}
	return Notice{Kind: event.RebalanceRecommendation, Instances: []string{d.InstanceID}}, h.instance(d.InstanceID)
}
