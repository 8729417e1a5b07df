{{- /* The image of the provider. A digest replaces the tag. */}}
{{- define "vkprovider.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A setting as it stands in the ConfigMap. Helm reads every number as a float and would write 1e+06. */}}
{{- define "vkprovider.setting" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) -}}
{{ . | int64 }}
{{- else -}}
{{ . }}
{{- end }}
{{- end }}
