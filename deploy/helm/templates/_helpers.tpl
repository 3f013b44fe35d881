{{- define "replicas" -}}
{{- .Values.replicas | default (eq .Values.mode "single" | ternary 1 3) -}}
{{- end }}

{{- define "selector" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}

{{- define "config" -}}
{{- merge (deepCopy .Values.config) (.Files.Get "engine.yaml" | fromYaml) | toYaml -}}
{{- end }}
