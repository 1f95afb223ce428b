{{/* The environment variables that the main function of a service reads. Takes root and service. */}}

{{- define "joist.environment" -}}
{{- $root := .root }}
{{- $settings := $root.Values.settings }}
{{- $gates := list }}
{{- range $gate, $on := $settings.featureGates }}
{{- if has $gate (list "nodeRepair" "nodeOverlay" "reservedCapacity" "spotToSpotConsolidation" "staticCapacity" "capacityBuffer" "terminateFirstDrift" "terminateFirstRepair" "podDeletionCostManagement") }}
{{- $gates = append $gates (printf "%s=%v" (title $gate) $on) }}
{{- end }}
{{- end }}
{{- $dra := include "joist.dra" $root | fromJson }}
{{- $pairs := list
  (list "AWS_REGION" (include "joist.region" $root))
  (list "JOIST_CLUSTER_NAME" (include "joist.cluster" $root))
  (list "JOIST_BUCKET" (include "joist.bucket" $root))
  (list "JOIST_PREFIX" ($settings.prefix | default (include "joist.cluster" $root)))
  (list "LEADER_ELECTION_NAMESPACE" $settings.leaderElection.namespace)
  (list "LEADER_ELECTION_NAME" $settings.leaderElection.name)
  (list "DISABLE_LEADER_ELECTION" $settings.leaderElection.disabled)
  (list "FEATURE_GATES" (join "," $gates))
  (list "AWS_FEATURE_GATES" (printf "NodeClassCEL=%v,DRANVIDIAGPU=%v,DRAEFA=%v,RebootForRepair=%v" $settings.awsFeatureGates.nodeClassCEL $dra.draNVIDIAGPU $dra.draEFA $settings.awsFeatureGates.rebootForRepair))
  (list "LEGACY_NODE_REPAIR" $settings.legacyNodeRepair)
  (list "JOIST_PRICE_LIMIT" $settings.priceLimit)
  (list "JOIST_REPAIR_RULES" $settings.repair.rules)
  (list "JOIST_REPAIR_UNHEALTHY" $settings.repair.unhealthy)
  (list "JOIST_REPAIR_UNHEALTHY_IN_ZONE" $settings.repair.unhealthyInZone)
  (list "LOG_LEVEL" $root.Values.logLevel)
  (list "METRICS_PORT" $root.Values.controller.metrics.port)
  (list "HEALTH_PROBE_PORT" $root.Values.controller.healthProbe.port)
  (list "OTEL_EXPORTER_OTLP_ENDPOINT" $settings.tracesEndpoint)
  (list "JOIST_CLOUDWATCH_METRICS" $settings.cloudWatchMetrics)
  (list "GOMEMLIMIT" (include "joist.memory" (include "joist.resources" . | fromYaml)))
}}
{{- if eq .service "watcher" }}
{{- $pairs = concat $pairs (list
  (list "JOIST_PLANNER_QUEUE_URL" (include "joist.queue" (dict "root" $root "name" "planner" "end" "planner")))
  (list "JOIST_DISRUPTION_QUEUE_URL" (include "joist.queue" (dict "root" $root "name" "disruption" "end" "disruption")))
  (list "JOIST_CATALOG_QUEUE_URL" (include "joist.queue" (dict "root" $root "name" "catalog" "end" "catalog")))
  (list "BATCH_MAX_DURATION" $settings.batchMaxDuration)
  (list "BATCH_IDLE_DURATION" $settings.batchIdleDuration)
  (list "VM_MEMORY_OVERHEAD_PERCENT" $settings.vmMemoryOverheadPercent)
  (list "PREFERENCE_POLICY" $settings.preferencePolicy)
  (list "MIN_VALUES_POLICY" $settings.minValuesPolicy)
  (list "RESERVED_ENIS" $settings.reservedENIs)
  (list "IGNORE_DRA_REQUESTS" $dra.ignoreDRARequests)
  (list "SCHEDULER_CONFIG" (ternary (toJson $settings.schedulerConfig) $settings.schedulerConfig (kindIs "map" $settings.schedulerConfig)))
  (list "MAX_NODE_SHARE" $settings.maxNodeShare)
  (list "RESILIENCE_PREMIUM" $settings.resiliencePremium)
  (list "PLAN_BY_PRIORITY" $settings.planByPriority)
) }}
{{- else }}
{{- $pairs = concat $pairs (list
  (list "JOIST_QUEUE_URL" (include "joist.queue" (dict "root" $root "name" "lifecycle" "end" "lifecycle")))
  (list "JOIST_DEAD_LETTER_URL" (include "joist.queue" (dict "root" $root "name" "lifecycleDead" "end" "lifecycle-dead")))
  (list "JOIST_LAUNCHER_QUEUE_URL" (include "joist.queue" (dict "root" $root "name" "launcher" "end" "launcher")))
  (list "VM_MEMORY_OVERHEAD_PERCENT" $settings.vmMemoryOverheadPercent)
  (list "RESERVED_ENIS" $settings.reservedENIs)
  (list "DISABLE_DRY_RUN" $settings.disableDryRun)
  (list "ENABLE_ZONAL_SHIFT" $settings.enableZonalShift)
  (list "IGNORE_DRA_REQUESTS" $dra.ignoreDRARequests)
  (list "JOIST_POOL_GATE" $settings.poolGate)
  (list "JOIST_REBALANCE_POLICY" $settings.rebalancePolicy)
) }}
{{- end }}
{{- $given := concat $root.Values.controller.env (index $root.Values .service).env }}
{{- $names := list }}
{{- range $given }}{{ $names = append $names .name }}{{ end }}
{{- $variables := list
  (dict "name" "JOIST_NAMESPACE" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.namespace")))
  (dict "name" "POD_NAME" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.name")))
}}
{{- range $pairs }}
{{- $text := include "joist.text" (dict "root" $root "value" (last .)) }}
{{- if and (ne $text "") (not (has (first .) $names)) }}
{{- $variables = append $variables (dict "name" (first .) "value" $text) }}
{{- end }}
{{- end }}
{{- toYaml (concat $variables $given) }}
{{- end }}

{{- /* The default sets requests without limits: pods without requests are evicted first, and a limit that is too low gets the process killed. */}}
{{- define "joist.resources" -}}
{{- toYaml ((index .root.Values .service).resources | default .root.Values.controller.resources | default (dict "requests" (dict "cpu" "100m" "memory" "768Mi"))) }}
{{- end }}
