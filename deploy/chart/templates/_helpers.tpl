{{- /* The image of a program: (list . "agent"). */ -}}
{{- define "sublet.image" -}}
{{- $all := (index . 0).Values.image }}
{{- $own := (index (index . 0).Values (index . 1)).image }}
{{- with coalesce $own.registry $all.registry }}{{ trimSuffix "/" . }}/{{ end }}
{{- $own.repository }}:{{ coalesce $own.tag $all.tag (index . 0).Chart.AppVersion }}
{{- with $own.digest }}@{{ . }}{{ end }}
{{- end }}

{{- /* Of the fleet's switch, what values.yaml says; what it does not say is not the chart's to change. */ -}}
{{- define "sublet.fleet" -}}
{{- $said := dict }}
{{- range $key, $value := .Values.fleet }}
{{- if not (kindIs "invalid" $value) }}{{ $_ := set $said $key (toString $value) }}{{ end }}
{{- end }}
{{- toYaml $said }}
{{- end }}

{{- /* Not empty where agents are held to their own nodes: a token names its node from Kubernetes 1.30 on. */ -}}
{{- define "sublet.policies" -}}
{{- if eq .Values.policies "always" }}true
{{- else if and (eq .Values.policies "auto") (semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version) }}true
{{- end }}
{{- end }}
