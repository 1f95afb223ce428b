package metric

// KarpenterMetric is a metric of Karpenter that Joist does not have under the same name.
type KarpenterMetric struct {
	// Name is Karpenter's name.
	Name string
	// Like is a similar metric of Joist, or "".
	Like string
	// Why explains the difference, or why none exists.
	Why string
}

// KarpenterMetrics lists them. Metrics of Karpenter in the Catalogue have Karpenter's meaning. A test
// compares both with the list of Karpenter's metrics.
var KarpenterMetrics = []KarpenterMetric{
	{"karpenter_build_info", BuildInfo.Name, "Each service has a version; the labels are service, version, commit and go_version."},
	{"karpenter_cloudprovider_batcher_batch_size", "", "There is no batcher: each launch intent is one CreateFleet call."},
	{"karpenter_cloudprovider_batcher_batch_time_seconds", "", "There is no batcher; see `joist_token_wait_seconds`."},
	{"karpenter_cloudprovider_duration_seconds", HandlingTime.Name, "By service and message type, not by provider method."},
	{"karpenter_cloudprovider_errors_total", HandlingErrors.Name, "By service and error kind, not by provider method and NodePool."},
	{"karpenter_cloudprovider_instance_launch_failures_total", LaunchErrors.Name, "By EC2's error code and capacity type; a zone label would multiply CloudWatch costs."},
	{"karpenter_cloudprovider_instance_termination_failures_total", HandlingErrors.Name, "Errors of the launcher, by error kind."},
	{"karpenter_cloudprovider_instance_type_cpu_cores", "", "Thousands of series that never change; the instance type catalogue is a document in the bucket."},
	{"karpenter_cloudprovider_instance_type_memory_bytes", "", "As for CPU cores."},
	{"karpenter_cloudprovider_instance_type_offering_available", "", "Tens of thousands of series; the ConfigMap joist-unavailable lists unavailable offerings."},
	{"karpenter_cloudprovider_instance_type_offering_price_estimate", "", "Tens of thousands of series; the instance type catalogue has the prices."},
	{"karpenter_cluster_state_node_count", "", "Count kube_node_info."},
	{"karpenter_cluster_state_synced", ReconcileTime.Name, "See the watcher's /readyz and its reconciles by result."},
	{"karpenter_cluster_state_unsynced_time_seconds", ReconcileTime.Name, "The watcher's reconciles fail while its cache is not synced."},
	{"karpenter_interruption_instance_status_unhealthy_total", NoticesReceived.Name, "Failed status checks are counted as events from AWS; the node has a Kubernetes Event."},
	{"karpenter_nodeclaims_instance_termination_duration_seconds", ClaimTermination.Name, "The whole termination of a NodeClaim, including EC2's part."},
	{"karpenter_nodepools_cost_tracker_errors_total", "", "Each NodeClaim has its price in an annotation that is written once."},
	{"karpenter_nodes_drained_total", NodesTerminated.Name, "Each node is drained before it is terminated, except those in joist_drains_overdue_total."},
	{"karpenter_nodes_lifetime_duration_seconds", "", "The audit log has the start and end of each NodeClaim."},
	{"karpenter_nodes_total_daemon_limits", "", "The watcher keeps no limits of pods, which do not affect planning; kube_pod_container_resource_limits has them."},
	{"karpenter_nodes_total_pod_limits", "", "The watcher keeps no limits of pods, which do not affect planning; kube_pod_container_resource_limits has them."},
	{"karpenter_pods_eviction_requests_total", "", "The API server counts them: apiserver_request_total{subresource=\"eviction\"}."},
	{"karpenter_pods_provisioning_bound_duration_seconds", PodBoundTime.Name, "Measured from the creation of the pod, not from a time in the memory of a process."},
	{"karpenter_pods_provisioning_scheduling_undecided_time_seconds", WaitingPods.Name, "A series for each pod; count pending pods instead."},
	{"karpenter_pods_provisioning_startup_duration_seconds", PodStartupTime.Name, "Measured from the creation of the pod, not from a time in the memory of a process."},
	{"karpenter_pods_provisioning_unbound_time_seconds", WaitingPods.Name, "A series for each pod; count pending pods instead."},
	{"karpenter_pods_provisioning_unstarted_time_seconds", WaitingPods.Name, "A series for each pod; count pending pods instead."},
	{"karpenter_pods_scheduling_decision_duration_seconds", QueueAge.Name, "See the age of messages in the planner's queue, and karpenter_scheduler_scheduling_duration_seconds."},
	{"karpenter_pods_unbound_time_seconds", WaitingPods.Name, "A series for each pod; count pending pods instead."},
	{"karpenter_pods_unstarted_time_seconds", WaitingPods.Name, "A series for each pod; count pending pods instead."},
	{"karpenter_scheduler_pending_pods_by_effective_zone_count", BatchPods.Name, "All zones together: the planner chooses zones."},
	{"karpenter_scheduler_queue_depth", BatchPods.Name, "A batch has all pending pods; there is no queue within it."},
	{"karpenter_scheduler_unfinished_work_seconds", "", "Planning has a work limit; the age of the oldest message shows a batch without an answer."},
}
