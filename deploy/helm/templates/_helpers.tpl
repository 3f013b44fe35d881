{{- /* Pods. None is a number, too. */ -}}
{{- define "replicas" -}}
{{- $replicas := eq .Values.mode "single" | ternary 1 3 -}}
{{- if not (kindIs "invalid" .Values.replicas) -}}
{{- $replicas = int .Values.replicas -}}
{{- end -}}
{{- if and (eq .Values.mode "single") (gt $replicas 1) -}}
{{- fail (printf "replicas is %d, but `mode` is single: its pods would fence one another; set mode to hot-standby or group, or replicas to 1" $replicas) -}}
{{- end -}}
{{- $replicas -}}
{{- end }}

{{- define "selector" -}}
app.kubernetes.io/name: {{ .Release.Name }}
{{- end }}

{{- define "config" -}}
{{- /* `merge` would take a value of 0, "" or false for none. */ -}}
{{- mergeOverwrite (.Files.Get "engine.yaml" | fromYaml) (deepCopy .Values.config) | toYaml -}}
{{- end }}

{{- /* Whether the interface is served over TLS, by a secret or by the configuration itself. */ -}}
{{- define "tls" -}}
{{- $config := include "config" . | fromYaml -}}
{{- if or .Values.http.tlsSecret (dig "runtime" "http" "tls" "cert-file" "" $config) -}}true{{- end -}}
{{- end }}
