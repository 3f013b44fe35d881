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

{{- /* A key in a tree whose names may have dots, as `{"value": …}`; nothing where it is not there. */ -}}
{{- define "find" -}}
{{- $key := .key -}}
{{- range $name, $value := .tree -}}
{{- $prefix := printf "%s." $name -}}
{{- if kindIs "map" $value -}}
{{- if hasPrefix $prefix $key -}}
{{- include "find" (dict "tree" $value "key" (trimPrefix $prefix $key)) -}}
{{- end -}}
{{- else if and (eq $name $key) (not (kindIs "invalid" $value)) -}}
{{- dict "value" $value | toJson -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "variable" -}}
{{- . | replace "." "_" | replace "-" "_" | upper -}}
{{- end }}

{{- /* What is said of a key, and where: in `env` before `config` before engine.yaml. Nothing where nobody names it. */ -}}
{{- define "given" -}}
{{- $where := "`config`" -}}
{{- $given := include "find" (dict "tree" .root.Values.config "key" .key) | fromJson -}}
{{- if not (hasKey $given "value") -}}
{{- $where = "engine.yaml" -}}
{{- $given = include "find" (dict "tree" (.root.Files.Get "engine.yaml" | fromYaml) "key" .key) | fromJson -}}
{{- end -}}
{{- $variable := include "variable" .key -}}
{{- range .root.Values.env -}}
{{- if eq .name $variable -}}
{{- $where = "`env`" -}}
{{- $given = dict "value" (hasKey . "value" | ternary (toString .value) "taken from elsewhere") -}}
{{- end -}}
{{- end -}}
{{- if hasKey $given "value" -}}
{{- dict "value" $given.value "where" $where | toJson -}}
{{- end -}}
{{- end }}

{{- /*
The keys that the chart sets over its engine.yaml, as variables of the pods. What `config` or `env` says of such a key
holds: the chart then sets it no more. Where the pods could not run with another value, or another of the chart's values
says otherwise, `but` tells why, and what differs is refused.
*/ -}}
{{- define "settings" -}}
{{- if eq .Values.mode "hot-standby" }}
- key: ha.mode
  value: hot-standby
  but: '`mode` is hot-standby: choose by `mode` alone'
- key: ha.desired-standbys
  value: {{ max 0 (sub (include "replicas" . | int) 1) }}
- key: ha.pod-id
  field: metadata.name
  but: 'pods go by their own names: leave it out'
{{- else if eq .Values.mode "group" }}
- key: topology.sub-topology-split
  value: repartition-topics
  but: '`mode` is group: choose by `mode` alone'
# A pod that comes back under its name gets its partitions back, whose state is on its disk.
- key: engine.instance-id
  field: metadata.name
  but: 'pods go by their own names: leave it out'
{{- end }}
- key: engine.state.dir
  value: /state
  but: 'the disk of a pod lies at /state: leave it out'
- key: engine.lanes.count
  value: {{ .Values.lanes | default 2 }}
  {{- with .Values.lanes }}
  but: '`lanes` is {{ . }}: keep one of them'
  {{- end }}
{{- with .Values.http.tlsSecret }}
- key: runtime.http.tls.cert-file
  value: /etc/millrace-tls/tls.crt
  but: '`http.tlsSecret` is {{ . }}: keep one of them'
- key: runtime.http.tls.key-file
  value: /etc/millrace-tls/tls.key
  but: '`http.tlsSecret` is {{ . }}: keep one of them'
{{- end }}
{{- with .Values.http.tokenSecret }}
- key: runtime.http.auth.token-file
  value: /etc/millrace-token/token
  but: '`http.tokenSecret` is {{ . }}: keep one of them'
{{- end }}
{{- end }}

{{- define "environment" -}}
{{- $root := . -}}
{{- range include "settings" . | fromYamlArray }}
{{- $given := include "given" (dict "root" $root "key" .key) | fromJson }}
{{- if not (has $given.where (list "`config`" "`env`")) }}
- name: {{ include "variable" .key }}
  {{- if .field }}
  valueFrom:
    fieldRef:
      fieldPath: {{ .field }}
  {{- else }}
  value: {{ .value | quote }}
  {{- end }}
{{- else if and .but (ne (toString $given.value) (toString .value)) }}
{{- fail (printf "%s is %v in %s, but %s" .key $given.value $given.where .but) }}
{{- end }}
{{- end }}
{{- with .Values.env }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Whether the interface is served over TLS, by a secret or by the configuration itself. */ -}}
{{- define "tls" -}}
{{- $file := include "given" (dict "root" . "key" "runtime.http.tls.cert-file") | fromJson -}}
{{- if or .Values.http.tlsSecret $file.value -}}true{{- end -}}
{{- end }}

{{- /* Where pods serve the interface. The service has no address of its own, so its port is that of the pods. */ -}}
{{- define "port" -}}
{{- $enabled := include "given" (dict "root" . "key" "runtime.http.enabled") | fromJson -}}
{{- if eq (toString $enabled.value) "false" -}}
{{- fail (printf "runtime.http.enabled is false in %s, but the probes ask pods over HTTP: leave it out" $enabled.where) -}}
{{- end -}}
{{- $host := include "given" (dict "root" . "key" "runtime.http.host") | fromJson -}}
{{- if regexMatch "^(127\\.|::1$|localhost$)" (toString $host.value) -}}
{{- fail (printf "runtime.http.host is %v in %s, where no probe reaches a pod: leave it out" $host.value $host.where) -}}
{{- end -}}
{{- $given := include "given" (dict "root" . "key" "runtime.http.port") | fromJson -}}
{{- if not (hasKey $given "where") -}}
8080
{{- else if int $given.value -}}
{{- int $given.value -}}
{{- else -}}
{{- fail (printf "runtime.http.port is %v in %s, but the probes ask at a port that is known: name one, or leave it out" $given.value $given.where) -}}
{{- end -}}
{{- end }}

{{- /* The seconds of a duration as the engine reads it, rounded up. */ -}}
{{- define "seconds" -}}
{{- $text := kindIs "string" . | ternary . (int64 .) | toString | lower -}}
{{- if hasPrefix "p" $text -}}
{{- $text = $text | replace "p" "" | replace "t" "" -}}
{{- else if regexMatch "^[0-9]+$" $text -}}
{{- $text = printf "%sms" $text -}}
{{- end -}}
{{- $unitMs := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 "d" 86400000 "w" 604800000 -}}
{{- $ms := 0.0 -}}
{{- range regexFindAll "[0-9.]+\\s*(ms|s|m|h|d|w)" $text -1 -}}
{{- $ms = addf $ms (mulf (regexFind "[0-9.]+" . | float64) (get $unitMs (regexFind "[a-z]+" .))) -}}
{{- end -}}
{{- divf $ms 1000 | ceil | int -}}
{{- end }}

{{- /* A pod has ten seconds more than its shutdown may take, to close what is left. */ -}}
{{- define "grace" -}}
{{- $given := include "given" (dict "root" . "key" "runtime.shutdown.timeout") | fromJson -}}
{{- $needed := include "seconds" ($given.value | default "25s") | int | add 10 -}}
{{- $grace := .Values.terminationGracePeriodSeconds | default (max 60 $needed) | int64 -}}
{{- if lt $grace $needed -}}
{{- fail (printf "terminationGracePeriodSeconds is %d, but with runtime.shutdown.timeout a pod may take %d s to end: leave it out, or give it that" $grace $needed) -}}
{{- end -}}
{{- $grace -}}
{{- end }}
