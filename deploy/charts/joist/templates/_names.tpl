{{/* Names and labels. The two services differ only in the component label. */}}

{{- define "joist.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "joist.fullname" -}}
{{- default .Chart.Name .Values.fullnameOverride | trunc 53 | trimSuffix "-" }}
{{- end }}

{{- /* Labels of objects that belong to both services. */}}
{{- define "joist.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "joist.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.additionalLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Selector of a service's pods; takes root and service. */}}
{{- define "joist.selector" -}}
app.kubernetes.io/name: {{ include "joist.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .service }}
{{- end }}

{{- /* Metadata of a service's object; takes root, service and optionally annotations. */}}
{{- define "joist.metadata" -}}
name: {{ include "joist.fullname" .root }}-{{ .service }}
labels:
  app.kubernetes.io/component: {{ .service }}
  {{- include "joist.labels" .root | nindent 2 }}
{{- with merge (dict) (.annotations | default dict) .root.Values.additionalAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "joist.account" -}}
{{- $own := index .root.Values .service }}
{{- $base := .root.Values.serviceAccount.name | default (include "joist.fullname" .root) }}
{{- $own.serviceAccount.name | default (printf "%s-%s" $base .service) }}
{{- end }}

{{- /* A binding's subject; takes root and service. */}}
{{- define "joist.subject" -}}
kind: ServiceAccount
name: {{ include "joist.account" . }}
namespace: {{ .root.Release.Namespace }}
{{- end }}

{{- /* Registry and folder of the images. Values from Karpenter's chart may name Karpenter's own image. */}}
{{- define "joist.repository" -}}
{{- $named := .Values.controller.image.repository | default "" | trimSuffix "/" }}
{{- if or (not $named) (contains "karpenter/controller" $named) }}{{ $named = "ghcr.io/joist-autoscaler" }}{{ end }}
{{- $parts := splitList "/" $named }}
{{- $registry := (.Values.global | default dict).imageRegistry | default "" | trimSuffix "/" }}
{{- if not $registry }}
{{- $named }}
{{- else if or (regexMatch "[.:]" (first $parts)) (eq (first $parts) "localhost") }}
{{- join "/" (prepend (rest $parts) $registry) }}
{{- else }}
{{- printf "%s/%s" $registry $named }}
{{- end }}
{{- end }}

{{- /* Images are tagged v1.2.3, charts have the version 1.2.3. */}}
{{- define "joist.tag" -}}
{{- $image := .Values.controller.image }}
{{- $tag := $image.tag }}
{{- if or $image.digest (contains "karpenter/controller" ($image.repository | default "")) }}{{ $tag = "" }}{{ end }}
{{- $tag | default (printf "v%s" (trimPrefix "v" .Chart.AppVersion)) }}
{{- end }}

{{- define "joist.image" -}}
{{- $digest := (index .root.Values .service).image.digest }}
{{- printf "%s/joist-%s:%s" (include "joist.repository" .root) .service (include "joist.tag" .root) }}
{{- with $digest }}@{{ . }}{{ end }}
{{- end }}
