{{/* Settings that are derived from others, and the check for missing ones. */}}

{{- /* A value as text: whole numbers from files are not printed as 1e+06, and templates in the value are rendered. Takes root and value. */}}
{{- define "joist.text" -}}
{{- if not (kindIs "invalid" .value) }}
{{- if and (kindIs "float64" .value) (eq (floor .value) .value) }}{{ printf "%.0f" .value }}{{ else }}{{ tpl (toString .value) .root }}{{ end }}
{{- end }}
{{- end }}

{{- define "joist.setting" -}}
{{- include "joist.text" (dict "root" .root "value" (index .root.Values.settings .name)) }}
{{- end }}

{{- define "joist.cluster" -}}
{{- include "joist.setting" (dict "root" . "name" "clusterName") }}
{{- end }}

{{- define "joist.region" -}}
{{- $region := include "joist.setting" (dict "root" . "name" "region") }}
{{- range .Values.controller.env }}
{{- if eq .name "AWS_REGION" }}{{ $region = $region | default .value }}{{ end }}
{{- end }}
{{- $said := list (.Values.settings.clusterEndpoint | default "") .Values.settings.queues.lifecycle .Values.settings.queues.planner | join " " }}
{{- $region | default (regexFind "\\b[a-z]{2,}(-[a-z]+)+-[0-9]+\\.(eks\\.)?amazonaws\\." $said | regexFind "^[a-z0-9-]+") }}
{{- end }}

{{- /* The account: the setting, or that of a role's ARN. */}}
{{- define "joist.accountID" -}}
{{- $said := include "joist.setting" (dict "root" . "name" "accountID") }}
{{- $roles := list .Values.watcher.serviceAccount.annotations .Values.lifecycle.serviceAccount.annotations .Values.serviceAccount.annotations }}
{{- range $roles }}
{{- $arn := get . "eks.amazonaws.com/role-arn" | default "" }}
{{- $said = $said | default (regexFind "::[0-9]{12}:role/" $arn | regexFind "[0-9]{12}") }}
{{- end }}
{{- $said }}
{{- end }}

{{- define "joist.prefix" -}}
{{- include "joist.setting" (dict "root" . "name" "namePrefix") | default (include "joist.cluster" .) }}
{{- end }}

{{- define "joist.bucket" -}}
{{- $named := include "joist.setting" (dict "root" . "name" "bucket") }}
{{- $named | default (printf "joist-%s-%s-%s" (include "joist.prefix" .) (include "joist.accountID" .) (include "joist.region" .) | lower) }}
{{- end }}

{{- /* A queue's URL; takes root, the setting's name and the suffix of the queue's name. */}}
{{- define "joist.queue" -}}
{{- $named := include "joist.text" (dict "root" .root "value" (index .root.Values.settings.queues .name)) }}
{{- $region := include "joist.region" .root }}
{{- $suffix := ternary "amazonaws.com.cn" "amazonaws.com" (hasPrefix "cn-" $region) }}
{{- $named | default (printf "https://sqs.%s.%s/%s/%s-joist-%s" $region $suffix (include "joist.accountID" .root) (include "joist.prefix" .root) .end) }}
{{- end }}

{{- /* The settings of Dynamic Resource Allocation, as JSON. Either gate needs ignoreDRARequests to be false. */}}
{{- define "joist.dra" -}}
{{- $settings := .Values.settings }}
{{- $all := eq (toString $settings.enableDRA) "true" }}
{{- $gpu := or $all (eq (toString $settings.awsFeatureGates.draNVIDIAGPU) "true") }}
{{- $efa := or $all (eq (toString $settings.awsFeatureGates.draEFA) "true") }}
{{- $planned := or $gpu $efa (eq (toString $settings.ignoreDRARequests) "false") }}
{{- dict "draNVIDIAGPU" $gpu "draEFA" $efa "ignoreDRARequests" (not $planned) | toJson }}
{{- end }}

{{- /* The values that enableDRA excludes and that are set, as text. */}}
{{- define "joist.draConflicts" -}}
{{- $settings := .Values.settings }}
{{- $set := list }}
{{- range list "draNVIDIAGPU" "draEFA" }}
{{- if not (kindIs "invalid" (get $settings.awsFeatureGates .)) }}{{ $set = append $set (printf "settings.awsFeatureGates.%s" .) }}{{ end }}
{{- end }}
{{- if not (kindIs "invalid" $settings.ignoreDRARequests) }}{{ $set = append $set "settings.ignoreDRARequests" }}{{ end }}
{{- if eq (toString $settings.enableDRA) "true" }}{{ join ", " $set }}{{ end }}
{{- end }}

{{- /* Not empty if schedulerConfig has default topology spread constraints. */}}
{{- define "joist.defaultConstraints" -}}
{{- $config := .Values.settings.schedulerConfig }}
{{- if kindIs "string" $config }}{{ $config = tpl $config . | fromYaml }}{{ end }}
{{- if dig "podTopologySpread" "defaultConstraints" (list) ($config | default dict) }}true{{ end }}
{{- end }}

{{- /* Rejects an installation that cannot work, with all problems at once and a remedy for each. */}}
{{- define "joist.check" -}}
{{- $missing := list }}
{{- $queues := .Values.settings.queues }}
{{- $named := and .Values.settings.bucket $queues.planner $queues.disruption $queues.catalog $queues.launcher $queues.lifecycle $queues.lifecycleDead }}
{{- $account := include "joist.accountID" . }}
{{- if not (include "joist.cluster" .) }}
{{- $missing = append $missing "settings.clusterName is empty. Try: --set settings.clusterName=<the name that `aws eks list-clusters` prints>" }}
{{- end }}
{{- if not (include "joist.region" .) }}
{{- $missing = append $missing "settings.region is empty, and nothing tells the region. Try: --set settings.region=<the cluster's region, as eu-west-1>" }}
{{- end }}
{{- if and (not $account) (not $named) }}
{{- $missing = append $missing "settings.accountID is empty, and no role's ARN tells the account. Try: --set-string settings.accountID=\"$(aws sts get-caller-identity --query Account --output text)\"" }}
{{- else if and $account (not (regexMatch "^[0-9]{12}$" $account)) }}
{{- $missing = append $missing (printf "settings.accountID is %q, which is no AWS account: it has 12 digits. Try: write it in quotes, or with --set-string" $account) }}
{{- end }}
{{- $compute := get .Values.nodeSelector "eks.amazonaws.com/compute-type" }}
{{- range list "watcher" "lifecycle" }}
{{- $annotations := merge (dict) (index $.Values .).serviceAccount.annotations $.Values.serviceAccount.annotations }}
{{- if and (eq $compute "fargate") $.Values.serviceAccount.create (not (hasKey $annotations "eks.amazonaws.com/role-arn")) }}
{{- $missing = append $missing (printf "%s would run on Fargate without credentials: EKS Pod Identity does not work there. Try: deploy the CDK app with oidcProvider, then --set %s.serviceAccount.annotations.\"eks\\.amazonaws\\.com/role-arn\"=<its role>" . .) }}
{{- end }}
{{- end }}
{{- with include "joist.draConflicts" . }}
{{- $missing = append $missing (printf "settings.enableDRA is mutually exclusive with %s: unset them, or unset settings.enableDRA" .) }}
{{- end }}
{{- if and (eq (toString .Values.settings.legacyNodeRepair) "true") (eq (toString .Values.settings.featureGates.terminateFirstRepair) "true") }}
{{- $missing = append $missing "settings.legacyNodeRepair can't be combined with settings.featureGates.terminateFirstRepair: the legacy node repair controller doesn't support terminate-first repair" }}
{{- end }}
{{- $lease := .Values.settings.leaderElection }}
{{- $at := list }}
{{- range (lookup "coordination.k8s.io/v1" "Lease" "" "").items }}
{{- if eq .metadata.name $lease.name }}{{ $at = append $at .metadata.namespace }}{{ end }}
{{- end }}
{{- if and $at (not (has $lease.namespace $at)) }}
{{- $missing = append $missing (printf "Karpenter's Lease %s is in %s, not in %s, so Joist and Karpenter would act at the same time. Try: --set settings.leaderElection.namespace=%s" $lease.name (join ", " $at) $lease.namespace (first $at)) }}
{{- end }}
{{- if $missing }}
{{- fail (printf "\n\nJoist cannot be installed like this:\n  - %s\n" (join "\n  - " $missing)) }}
{{- end }}
{{- end }}

{{- /* Nine tenths of a memory limit in bytes, or nothing; takes resources. */}}
{{- define "joist.memory" -}}
{{- $limit := toString (dig "limits" "memory" "" .) }}
{{- $unit := regexFind "[A-Za-z]+$" $limit }}
{{- $units := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 }}
{{- if and $limit (hasKey $units $unit) }}{{ printf "%.0f" (floor (mulf 0.9 (float64 (trimSuffix $unit $limit)) (get $units $unit))) }}{{ end }}
{{- end }}
