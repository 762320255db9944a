#!/bin/bash
# run.sh FOLDER [CASE...]: starts the cluster in FOLDER, performs the cases (all by default), and ends the cluster. JOBS is the number of jobs of
# the case "whole".
set -eu
K=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")" && pwd)
R=$K/run
target=10.88.0.1:4730
export PATH=$PATH:$K/bin

# in_node N COMMAND...: runs a command in the namespaces of a node. All kubectl commands run on node 1.
in_node() {
	local n=$1
	shift
	nsenter -t "$(cat "$R/node$n.init")" -m -n -p "$@"
}
kubectl() { in_node 1 env KUBECONFIG="$R/kubeconfig" "$kubectl" "$@"; }
kubectl=$(type -P kubectl)

# start_node N: starts a node, and writes the process ID of its first process to node$N.init.
start_node() {
	setsid unshare --mount --net --pid --fork --mount-proc --kill-child "$here/node.sh" "$K" "$1" > "$R/node$1.log" 2>&1 &
	pids+=($!)
	disown # so that bash does not report its end
	until pgrep -P $! > "$R/node$1.init"; do sleep 0.1; done
}

pids=()
stop() {
	for p in "${pids[@]}"; do kill -9 "$p" 2> /dev/null || true; done
	sleep 1
	for c in /sys/fs/cgroup/*/kubepods /sys/fs/cgroup/*/node2; do
		if [ -d "$c" ]; then find "$c" -depth -type d -exec rmdir {} \; 2> /dev/null || true; fi
	done
}
trap stop EXIT

start_cluster() {
	rm -rf "$R"
	mkdir -p "$R/results"
	chown 65534:65534 "$R/results"
	openssl genrsa -out "$R/sa.key" 2048 2> /dev/null
	openssl rsa -in "$R/sa.key" -pubout -out "$R/sa.pub" 2> /dev/null
	local token
	token=$(openssl rand -hex 16)
	echo "$token,admin,1,system:masters" > "$R/tokens.csv"
	cat > "$R/kubeconfig" <<-EOF
		apiVersion: v1
		kind: Config
		clusters: [{name: c, cluster: {server: "https://10.88.0.1:6443", insecure-skip-tls-verify: true}}]
		users: [{name: u, user: {token: $token}}]
		contexts: [{name: x, context: {cluster: c, user: u}}]
		current-context: x
	EOF
	start_node 1
	start_node 2
	# The link between the nodes. Node 1 routes to the pods of node 2.
	nsenter -t "$(cat "$R/node1.init")" -n ip link add n1 type veth peer name n2 netns "$(cat "$R/node2.init")" # the process ID is valid out here
	in_node 1 ip addr add 10.77.0.1/30 dev n1
	in_node 1 ip link set n1 up
	in_node 1 ip route add 10.88.1.0/24 via 10.77.0.2
	until kubectl wait --for=condition=Ready node/node1 node/node2 --timeout=1s > /dev/null 2>&1; do sleep 0.5; done
	until kubectl get serviceaccount default > /dev/null 2>&1; do sleep 0.5; done
	kubectl apply -f - <<-EOF
		apiVersion: v1
		kind: PersistentVolume
		metadata: {name: results}
		spec:
		  capacity: {storage: 1Gi}
		  accessModes: [ReadWriteMany]
		  hostPath: {path: $R/results}
	EOF
	in_node 1 "$K/jobwire" serve gearman --listen 0.0.0.0:4730 > "$R/serve.log" 2>&1 &
	pids+=($!)
	disown
}

# settings TARGET FLAG...: writes an overlay with a target and more flags of bench run.
settings() {
	rm -rf "$R/mine"
	cp -r "$here/../kubernetes" "$R/mine"
	mkdir "$R/mine/mine"
	cat > "$R/mine/mine/kustomization.yaml" <<-EOF
		resources: [../base]
		images: [{name: jobwire, newName: docker.io/local/jobwire, newTag: "1"}]
		configMapGenerator:
		  - name: jobwire-bench
		    behavior: merge
		    literals: [TARGET=$1]
		patches:
		  - target: {kind: PersistentVolumeClaim}
		    patch: |
		      - {op: add, path: /spec/storageClassName, value: ""}
		  - target: {kind: Job, name: jobwire-bench}
		    patch: |
		      - {op: replace, path: /spec/template/spec/containers/0/resources/requests, value: {cpu: 50m, memory: 64Mi}}
	EOF
	shift
	for flag; do
		echo "      - {op: add, path: /spec/template/spec/containers/0/args/-, value: '$flag'}" >> "$R/mine/mine/kustomization.yaml"
	done
}

# apply SECONDS: creates the Jobs, with a start time in so many seconds.
apply() {
	kubectl delete --ignore-not-found job/jobwire-bench job/jobwire-merge > /dev/null
	at=$(date -u -d "+$1 seconds" +%Y-%m-%dT%H:%M:%SZ)
	kubectl kustomize "$R/mine/mine" | sed "s/SOON/$at/" | kubectl apply -f - > /dev/null
}

# finish: waits for the pods, merges their results and prints the report. status is the condition of the merge Job with its reason.
finish() {
	kubectl wait --for=jsonpath='{.status.conditions}' --timeout=60m job/jobwire-bench > /dev/null
	kubectl get pods -l app=jobwire-bench -o custom-columns='POD:.metadata.name,NODE:.spec.nodeName,PHASE:.status.phase,EXIT:.status.containerStatuses[0].state.terminated.exitCode'
	kubectl patch job jobwire-merge -p '{"spec":{"suspend":false}}' > /dev/null
	kubectl wait --for=jsonpath='{.status.conditions[1:]}' --timeout=2m job/jobwire-merge > /dev/null
	until status=$(kubectl get job jobwire-merge -o jsonpath='{range .status.conditions[?(@.status=="True")]}{.type} {.reason}{"\n"}{end}' | grep -E '^(Complete|Failed)'); do sleep 0.5; done
	report=$(kubectl logs job/jobwire-merge)
	kubectl logs job/jobwire-merge -c html > "$R/$name.html"
	kubectl logs job/jobwire-merge -c json > "$R/$name.json"
	echo "$report"
	echo "merge Job: $status"
}

# expect TEXT: the report must contain a text, which can be on several lines.
expect() {
	grep -qF "$1" <<< "$(tr -s ' \n' ' ' <<< "$report")" || fail "the report lacks: $1"
}
fail() {
	echo "FAILED: $name: $*"
	failures=$((failures + 1))
}
running() { [ "$(kubectl get job jobwire-bench -o jsonpath='{.status.ready}')" = "$1" ]; }
pod() { kubectl get pods -l "batch.kubernetes.io/job-completion-index=$1,app=jobwire-bench" -o name; }
until_start() { while [ "$(date +%s)" -lt "$(($(date -d "$at" +%s) + $1))" ]; do sleep 0.5; done; }

case_whole() {
	settings $target "--count=${JOBS:-10000000}" --window=64
	apply 30
	finish
	expect "none lost, duplicated"
	expect "4 of 4 shares"
	expect "verdict passed"
}

case_deleted() {
	settings $target --duration=20s
	apply 30
	until_start 8
	kubectl delete --grace-period=0 --force "$(pod 2)" 2> /dev/null
	finish
	expect "share 2"
	expect "invalid"
}

case_killed() { # as a container is killed that needs more memory than its limit
	settings $target --duration=20s
	apply 30
	until_start 8
	node=$(kubectl get "$(pod 1)" -o jsonpath='{.spec.nodeName}')
	in_node "${node#node}" pkill -KILL -f -- '--share-index=1 '
	finish
	expect "missing: share 1"
	expect "1.json: the file is empty"
	expect "verdict invalid"
}

case_late() {
	settings $target --duration=30s
	kubectl cordon node2 > /dev/null
	sed -i -e 's/ScheduleAnyway/DoNotSchedule/' -e 's/maxSkew: 1/maxSkew: 3/' "$R/mine/base/bench.yaml" # one pod waits for node 2
	apply 20
	until_start 5
	kubectl uncordon node2 > /dev/null
	finish
	expect "after the start time of the run"
	expect "4 of 4 shares"
	expect "verdict passed"
}

case_wrong_target() {
	settings 10.88.0.1:4731
	apply 60
	until [ "$(kubectl get job jobwire-bench -o jsonpath='{.status.failed}')" = 4 ]; do sleep 0.5; done
	[ "$(date +%s)" -lt "$(date -d "$at" +%s)" ] || fail "the pods failed after the start time"
	kubectl logs "$(pod 0)"
	report=$(kubectl get pods -l app=jobwire-bench -o jsonpath='{.items[*].status.containerStatuses[0].state.terminated.exitCode}')
	expect "3 3 3 3"
}

case_objective() {
	settings $target --duration=10s '--slo=p50<1us'
	apply 30
	finish
	expect "p50<1us: failed"
	[ "$status" = "Failed PodFailurePolicy" ] || fail "merge Job: $status"
	[ "$(kubectl get job jobwire-bench -o jsonpath='{.status.succeeded}')" = 4 ] || fail "a pod did not complete"
}

failures=0
CGO_ENABLED=0 go build -C "$here/../.." -trimpath -o "$K/jobwire" ./cmd/jobwire
"$here/image.sh" "$K" docker.io/local/jobwire:1 '["/jobwire"]' "$K/jobwire=jobwire"
"$here/image.sh" "$K" docker.io/local/pause:1 '["/busybox", "sleep", "2147483647"]' "$K/root/bin/busybox=busybox"
s=$SECONDS
start_cluster
echo "the cluster started in $((SECONDS - s)) s"
for name in ${*:-whole deleted killed late wrong_target objective}; do
	echo "== $name"
	s=$SECONDS
	"case_$name"
	echo "$((SECONDS - s)) s"
done
[ $failures = 0 ]
