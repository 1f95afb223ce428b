{{/* A service's Deployment. Takes root and service. */}}

{{- /* Adds the service's own selector to pod affinity terms and spread constraints that have none. */}}
{{- define "joist.selected" -}}
{{- if not (hasKey .term "labelSelector") }}
{{- $_ := set .term "labelSelector" (dict "matchLabels" (include "joist.selector" . | fromYaml)) }}
{{- end }}
{{- end }}

{{- define "joist.affinity" -}}
{{- $in := . }}
{{- $affinity := deepCopy .root.Values.affinity }}
{{- range list "podAffinity" "podAntiAffinity" }}
{{- $between := get $affinity . | default dict }}
{{- range $between.requiredDuringSchedulingIgnoredDuringExecution }}{{ include "joist.selected" (merge (dict "term" .) $in) }}{{ end }}
{{- range $between.preferredDuringSchedulingIgnoredDuringExecution }}{{ include "joist.selected" (merge (dict "term" .podAffinityTerm) $in) }}{{ end }}
{{- end }}
{{- toYaml $affinity }}
{{- end }}

{{- define "joist.spread" -}}
{{- $in := . }}
{{- $constraints := deepCopy .root.Values.topologySpreadConstraints }}
{{- range $constraints }}{{ include "joist.selected" (merge (dict "term" .) $in) }}{{ end }}
{{- toYaml $constraints }}
{{- end }}

{{- /* Fixed fields: the restricted pod security standard requires them. */}}
{{- define "joist.confined" -}}
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities:
  drop: [ALL]
{{- range $key, $value := .root.Values.controller.securityContext }}
{{- if $value }}
{{ $key }}:
  {{- toYaml $value | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "joist.container" -}}
{{- $controller := .root.Values.controller }}
name: {{ $controller.containerName | default "controller" }}
image: {{ include "joist.image" . }}
imagePullPolicy: {{ .root.Values.imagePullPolicy }}
securityContext:
  {{- include "joist.confined" . | nindent 2 }}
env:
  {{- include "joist.environment" . | nindent 2 }}
{{- with $controller.envFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if or $controller.metrics.port $controller.healthProbe.port }}
ports:
  {{- with $controller.metrics.port }}
  - {name: http-metrics, containerPort: {{ . }}, protocol: TCP}
  {{- end }}
  {{- with $controller.healthProbe.port }}
  - {name: http, containerPort: {{ . }}, protocol: TCP}
  {{- end }}
{{- end }}
{{- if $controller.healthProbe.port }}
livenessProbe:
  initialDelaySeconds: 30
  timeoutSeconds: 30
  httpGet: {path: /healthz, port: http}
readinessProbe:
  initialDelaySeconds: 5
  timeoutSeconds: 30
  httpGet: {path: /readyz, port: http}
{{- end }}
{{- with include "joist.resources" . | fromYaml }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $controller.extraVolumeMounts }}
volumeMounts:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "joist.sidecar" -}}
{{- $mounts := concat .root.Values.controller.extraVolumeMounts .root.Values.controller.sidecarVolumeMounts }}
{{- toYaml (ternary (merge (dict "volumeMounts" $mounts) .container) .container (gt (len $mounts) 0)) }}
{{- end }}

{{- define "joist.pod" -}}
{{- $values := .root.Values }}
{{- $in := . }}
serviceAccountName: {{ include "joist.account" . }}
automountServiceAccountToken: true
{{- /* Values that are pod fields of the same name. */}}
{{- range $field := list "imagePullSecrets" "priorityClassName" "terminationGracePeriodSeconds" "dnsPolicy" "dnsConfig" "hostNetwork" "schedulerName" "initContainers" "nodeSelector" "tolerations" }}
{{- with index $values $field }}
{{ toYaml (dict $field .) }}
{{- end }}
{{- end }}
{{- with $values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if $values.affinity }}
affinity:
  {{- include "joist.affinity" . | nindent 2 }}
{{- end }}
{{- if $values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- include "joist.spread" . | nindent 2 }}
{{- end }}
{{- with $values.extraVolumes }}
volumes:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - {{ include "joist.container" . | trim | indent 4 | trim }}
  {{- range $values.controller.sidecarContainer }}
  - {{ include "joist.sidecar" (merge (dict "container" .) $in) | trim | indent 4 | trim }}
  {{- end }}
{{- end }}

{{- define "joist.deployment" -}}
{{- $values := .root.Values }}
{{- $own := index $values .service }}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- include "joist.metadata" . | nindent 2 }}
  namespace: {{ .root.Release.Namespace }}
spec:
  replicas: {{ ternary $values.replicas $own.replicas (kindIs "invalid" $own.replicas) }}
  revisionHistoryLimit: {{ $values.revisionHistoryLimit }}
  {{- with $values.strategy }}
  strategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  selector:
    matchLabels:
      {{- include "joist.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- merge (include "joist.selector" . | fromYaml) $values.podLabels | toYaml | nindent 8 }}
      {{- with $values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "joist.pod" . | trim | nindent 6 }}
{{- end }}
