{{/* Values from older versions of Karpenter's chart. */}}

{{- /* The value at a dotted path, as JSON, or nothing; takes values and path. */}}
{{- define "joist.at" -}}
{{- $here := .values }}
{{- range splitList "." .path }}
{{- $here = get (ternary $here dict (kindIs "map" $here)) . }}
{{- end }}
{{- if not (has (toJson $here) (list `""` "null")) }}{{ toJson $here }}{{ end }}
{{- end }}

{{- /* Moves values with old names to their current names. */}}
{{- define "joist.settle" -}}
{{- $values := .Values }}
{{- range $path, $move := (.Files.Get "files/eras.yaml" | fromYaml).moved }}
{{- $was := include "joist.at" (dict "values" $values "path" $path) }}
{{- $is := include "joist.at" (dict "values" $values "path" $move.to) }}
{{- if and $was (has $is (list "" (toJson $move.unset))) }}
{{- $at := $values }}
{{- $keys := splitList "." $move.to }}
{{- range initial $keys }}{{ $at = get $at . }}{{ end }}
{{- $_ := set $at (last $keys) (mustFromJson $was) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A note for each value with an old name, as a JSON list. */}}
{{- define "joist.eras" -}}
{{- $eras := .Files.Get "files/eras.yaml" | fromYaml }}
{{- $values := .Values }}
{{- $said := list }}
{{- range $path, $move := $eras.moved }}
{{- $was := include "joist.at" (dict "values" $values "path" $path) }}
{{- if and $was (not (has $was (list "{}" "[]" (toJson $move.default)))) }}
{{- $is := include "joist.at" (dict "values" $values "path" $move.to) }}
{{- $said = append $said (ternary (printf "%s: read as %s" $path $move.to) (printf "%s: not used, because %s is set" $path $move.to) (eq $was $is)) }}
{{- end }}
{{- end }}
{{- range $path, $elsewhere := $eras.elsewhere }}
{{- $was := include "joist.at" (dict "values" $values "path" $path) }}
{{- if and $was (not (has $was (list "{}" "[]" (toJson $elsewhere.default)))) }}
{{- $said = append $said (printf "%s: %s" $path $elsewhere.note) }}
{{- end }}
{{- end }}
{{- if contains "karpenter/controller" (.Values.controller.image.repository | default "") }}
{{- $said = append $said "controller.image: it names Karpenter's own image, and is not used: Joist's own are" }}
{{- end }}
{{- toJson $said }}
{{- end }}

{{- /* Collects in `found` the paths of unknown values; takes values, path, keys and found. */}}
{{- define "joist.unknown" -}}
{{- $in := . }}
{{- range $key, $value := .values }}
{{- $path := ternary (printf "%s.%s" $in.path $key) $key (ne $in.path "") }}
{{- $known := get $in.keys $path }}
{{- if eq $path "global" }}{{/* A parent chart's own values may be in it. */}}
{{- else if eq $known "inner" }}
{{- if kindIs "map" $value }}{{ include "joist.unknown" (dict "values" $value "path" $path "keys" $in.keys "found" $in.found) }}{{ end }}
{{- else if ne $known "leaf" }}
{{- $_ := set $in.found "paths" (append $in.found.paths $path) }}
{{- end }}
{{- end }}
{{- end }}
