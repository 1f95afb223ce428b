package telemetry

// Other is a metric of Karpenter's that Joist does not have under its name (B212).
type Other struct {
	// Name is Karpenter's.
	Name string
	// Like is Joist's metric that tells about the same, or "".
	Like string
	// Why says what differs, or why there is none.
	Why string
}

// Others are all of them; those that are in the Catalogue under their own name mean the
// same there. A test holds both to the list of Karpenter's metrics.
var Others = []Other{
	{"karpenter_build_info", "", "`joist version`, and the resource of each trace."},
	{"karpenter_cloudprovider_batcher_batch_size", "", "Calls are batched by queues and intents: one fleet call for each intent."},
	{"karpenter_cloudprovider_batcher_batch_time_seconds", "", "There is no batcher to wait in; see `joist_token_wait_seconds`."},
	{"karpenter_cloudprovider_duration_seconds", Took.Name, "Time by service and type of message, not by method of a provider."},
	{"karpenter_cloudprovider_errors_total", Refused.Name, "Errors by service and kind, not by method of a provider."},
	{"karpenter_cloudprovider_instance_launch_failures_total", Refusals.Name, "By EC2's code and capacity type; a zone would multiply what CloudWatch bills."},
	{"karpenter_cloudprovider_instance_termination_failures_total", Refused.Name, "A request to terminate that fails is an error of the launcher, by kind."},
	{"karpenter_cloudprovider_instance_type_cpu_cores", "", "Thousands of series that never change; the catalogue is a document in the bucket."},
	{"karpenter_cloudprovider_instance_type_memory_bytes", "", "As for its CPU cores."},
	{"karpenter_cloudprovider_instance_type_offering_available", "", "Tens of thousands of series; the ConfigMap joist-unavailable lists what is not."},
	{"karpenter_cloudprovider_instance_type_offering_price_estimate", "", "Tens of thousands of series; prices are in the catalogue's document."},
	{"karpenter_cluster_state_node_count", "", "There is no cluster state beside the API server's; count kube_node_info."},
	{"karpenter_cluster_state_synced", Steps.Name, "The watcher's readiness (/readyz), and its looks by result."},
	{"karpenter_cluster_state_unsynced_time_seconds", Steps.Name, "The watcher's looks fail with the reason while its cache is not synced."},
	{"karpenter_cluster_utilization_percent", "", "Requests over allocatable of kube-state-metrics."},
	{"karpenter_interruption_instance_status_unhealthy_total", Received.Name, "Status checks are polled and become notices; Kubernetes Events tell them on the node."},
	{"karpenter_nodeclaims_instance_termination_duration_seconds", ClaimTermination.Name, "The whole of a claim's end; the part that is EC2's is not told apart."},
	{"karpenter_nodeclaims_unhealthy_disrupted_total", ClaimsDisrupted.Name, `There with reason="unhealthy"; image and condition are in the Event.`},
	{"karpenter_nodepools_allowed_disruptions", "", "`joist budgets` says it, with the reason of each."},
	{"karpenter_nodepools_nodes_consuming_budgets", "", "`joist budgets` says it, with the reason of each."},
	{"karpenter_nodepools_cost_tracker_errors_total", "", "A price is written on each NodeClaim once; nothing is tracked that could fail."},
	{"karpenter_nodes_allocatable", "", "A series for each node and resource; kube-state-metrics has it."},
	{"karpenter_nodes_current_lifetime_seconds", "", "A series for each node; kube_node_created has it."},
	{"karpenter_nodes_drained_total", NodesTerminated.Name, "Each node is drained before it is terminated, but those in joist_drains_overdue_total."},
	{"karpenter_nodes_lifetime_duration_seconds", "", "The audit log has each NodeClaim's beginning and end."},
	{"karpenter_nodes_system_overhead", "", "A series for each node and resource; capacity less allocatable of kube-state-metrics."},
	{"karpenter_nodes_total_daemon_limits", "", "A series for each node and resource; kube-state-metrics has it."},
	{"karpenter_nodes_total_daemon_requests", "", "A series for each node and resource; kube-state-metrics has it."},
	{"karpenter_nodes_total_pod_limits", "", "A series for each node and resource; kube-state-metrics has it."},
	{"karpenter_nodes_total_pod_requests", "", "A series for each node and resource; kube-state-metrics has it."},
	{"karpenter_pods_drained_total", "", "Kubernetes Events (Evicted) tell of each pod."},
	{"karpenter_pods_eviction_requests_total", "", "The API server counts them: apiserver_request_total{subresource=\"eviction\"}."},
	{"karpenter_pods_provisioning_bound_duration_seconds", Bound.Name, "From the pod's creation, not from a moment in a process' memory."},
	{"karpenter_pods_provisioning_scheduling_undecided_time_seconds", Waiting.Name, "A series for each pod; the number of those that wait, instead."},
	{"karpenter_pods_provisioning_startup_duration_seconds", Started.Name, "From the pod's creation, not from a moment in a process' memory."},
	{"karpenter_pods_provisioning_unbound_time_seconds", Waiting.Name, "A series for each pod; the number of those that wait, instead."},
	{"karpenter_pods_provisioning_unstarted_time_seconds", Waiting.Name, "A series for each pod; the number of those that wait, instead."},
	{"karpenter_pods_scheduling_decision_duration_seconds", Age.Name, "The wait of batches in the planner's queue, and the time to plan."},
	{"karpenter_pods_state", "", "A series for each pod; kube_pod_status_phase has it."},
	{"karpenter_pods_unbound_time_seconds", Waiting.Name, "A series for each pod; the number of those that wait, instead."},
	{"karpenter_pods_unstarted_time_seconds", Waiting.Name, "A series for each pod; the number of those that wait, instead."},
	{"karpenter_scheduler_pending_pods_by_effective_zone_count", Pending.Name, "All zones together: zones are chosen while planning, not before."},
	{"karpenter_scheduler_queue_depth", Pending.Name, "A batch has all pods that wait; there is no queue of them within it."},
	{"karpenter_scheduler_unfinished_work_seconds", "", "Planning is bounded by work, and a batch that is not answered is seen by the age of the oldest message."},
}
