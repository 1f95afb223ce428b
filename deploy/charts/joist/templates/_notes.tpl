{{/* The text that helm prints after an installation. */}}

{{- define "joist.notes" -}}
{{- include "joist.settle" . -}}
Joist watches the cluster {{ include "joist.cluster" . }} in {{ include "joist.region" . }}, from the namespace {{ .Release.Namespace }}.

  kubectl -n {{ .Release.Namespace }} get deployments -l app.kubernetes.io/instance={{ .Release.Name }}
  kubectl -n {{ .Release.Namespace }} logs -f -l app.kubernetes.io/name={{ include "joist.name" . }} -c {{ .Values.controller.containerName | default "controller" }}
  AWS_REGION={{ include "joist.region" . }} joist doctor --cluster {{ include "joist.cluster" . }}{{ include "joist.doctorFlags" . }}

The watcher sends to   {{ include "joist.queue" (dict "root" . "name" "planner" "end" "planner") }}
lifecycle reads        {{ include "joist.queue" (dict "root" . "name" "lifecycle" "end" "lifecycle") }}
documents are in       s3://{{ include "joist.bucket" . }}/{{ .Values.settings.prefix | default (include "joist.cluster" .) }}
Both act only while they hold the Lease {{ .Values.settings.leaderElection.name }} in {{ .Values.settings.leaderElection.namespace }}, Karpenter's own.
{{- $notes := concat (include "joist.eras" . | mustFromJson) (include "joist.advice" . | mustFromJson) }}
{{- if $notes }}

Notes on the values:
{{- range $notes }}
  - {{ . }}
{{- end }}
{{- end }}
{{- $found := dict "paths" list }}
{{- include "joist.unknown" (dict "values" .Values.AsMap "path" "" "keys" (.Files.Get "files/keys.yaml" | fromYaml) "found" $found) }}
{{- if $found.paths }}

WARNING: unknown values; check for typing errors:
{{- range $found.paths | sortAlpha }}
  - {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The flags that joist doctor needs if names are not derived from the cluster's name. */}}
{{- define "joist.doctorFlags" -}}
{{- with .Values.settings.namePrefix }} --name-prefix {{ . }}{{ end }}
{{- with .Values.settings.interruptionQueue }} --interruption-queue {{ . }}{{ end }}
{{- with .Values.settings.bucket }} --store s3://{{ . }}/{{ $.Values.settings.prefix | default (include "joist.cluster" $) }}{{ end }}
{{- end }}

{{- /* Advice on values that are valid but risky, as a JSON list. */}}
{{- define "joist.advice" -}}
{{- $advice := list }}
{{- $kinds := .Capabilities.APIVersions }}
{{- range list "watcher" "lifecycle" }}
{{- $own := (index $.Values .).replicas }}
{{- if eq (ternary $.Values.replicas $own (kindIs "invalid" $own) | int) 1 }}
{{- $advice = append $advice (printf "%s has one replica: while it restarts, no standby takes over, and interruptions wait" .) }}
{{- end }}
{{- end }}
{{- range list "watcher" "lifecycle" }}
{{- if and $.Values.controller.image.tag (index $.Values .).image.digest (not (contains "karpenter/controller" ($.Values.controller.image.repository | default ""))) }}
{{- $advice = append $advice (printf "controller.image.tag is not used for %s, because %s.image.digest names the image. Try: --set %s.image.digest=" . . .) }}
{{- end }}
{{- end }}
{{- $key := "eks.amazonaws.com/role-arn" }}
{{- if and (hasKey .Values.serviceAccount.annotations $key) (not (hasKey .Values.watcher.serviceAccount.annotations $key)) (not (hasKey .Values.lifecycle.serviceAccount.annotations $key)) }}
{{- $advice = append $advice (printf "serviceAccount.annotations: one role for both services has more rights than either needs. Try: set %s in watcher.serviceAccount.annotations and in lifecycle.serviceAccount.annotations" $key) }}
{{- end }}
{{- range concat .Values.controller.env .Values.watcher.env .Values.lifecycle.env }}
{{- $value := get (dict "FEATURE_GATES" "settings.featureGates" "SCHEDULER_CONFIG" "settings.schedulerConfig" "IGNORE_DRA_REQUESTS" "settings.ignoreDRARequests") .name }}
{{- if $value }}
{{- $advice = append $advice (printf "env: %s there gives no rights. Try: %s" .name $value) }}
{{- end }}
{{- end }}
{{- if not (contains "karpenter.sh/nodepool" (toYaml .Values.affinity)) }}
{{- $advice = append $advice "affinity: the pods may run on nodes that Joist manages. Try: nodeAffinity with karpenter.sh/nodepool DoesNotExist" }}
{{- end }}
{{- if .Values.hostNetwork }}
{{- $advice = append $advice "hostNetwork: the restricted pod security standard forbids it, and two services on one node cannot use the same ports" }}
{{- end }}
{{- if and .Values.hostNetwork .Values.networkPolicy.enabled }}
{{- $advice = append $advice "networkPolicy: it does not apply to pods with hostNetwork" }}
{{- end }}
{{- $proxied := false }}
{{- range concat .Values.controller.env .Values.watcher.env .Values.lifecycle.env }}
{{- if eq (upper .name) "HTTPS_PROXY" }}{{ $proxied = true }}{{ end }}
{{- end }}
{{- if and .Values.networkPolicy.enabled $proxied (not .Values.networkPolicy.extraEgress) }}
{{- $advice = append $advice "networkPolicy: the pods cannot reach the proxy in HTTPS_PROXY. Try: networkPolicy.extraEgress with its address and port" }}
{{- end }}
{{- if and .Values.networkPolicy.enabled .Values.serviceMonitor.enabled (not .Values.networkPolicy.metricsFrom) }}
{{- $advice = append $advice "networkPolicy.metricsFrom is empty, so Prometheus cannot read /metrics. Try: a namespaceSelector of the namespace that it runs in" }}
{{- end }}
{{- if and .Values.serviceMonitor.enabled (not ($kinds.Has "monitoring.coreos.com/v1")) }}
{{- $advice = append $advice "serviceMonitor: the cluster does not have the ServiceMonitor CRD, so none is created. Try: install the Prometheus operator, then upgrade this release" }}
{{- end }}
{{- if and .Values.prometheusRule.enabled (not ($kinds.Has "monitoring.coreos.com/v1")) }}
{{- $advice = append $advice "prometheusRule: the cluster does not have the PrometheusRule CRD, so none is created. Try: install the Prometheus operator, then upgrade this release" }}
{{- end }}
{{- toJson $advice }}
{{- end }}
