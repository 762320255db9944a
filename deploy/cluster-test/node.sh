#!/bin/bash
# node.sh FOLDER 1|2: runs a node. Node 1 has the control plane. Start it in namespaces of its own, which end with it:
#   unshare --mount --net --pid --fork --mount-proc --kill-child node.sh FOLDER 1
# Node 2 waits until the interface n2 is in its network namespace; n1 on node 1 is its other end.
set -eu
K=$1 node=$2
R=$K/run/node$node
export PATH=$K/bin:$K/root/usr/sbin:$K/root/usr/bin:$PATH
mkdir -p "$R"/{lib,log,etc/cni}

# Files that the programs change for the whole machine are this node's own.
mount --make-rshared /
mount -t tmpfs tmpfs /run
for d in lib log; do mount --bind "$R/$d" /var/$d; done
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1; do # what kubelet would set
	f=$R/etc/${setting##*/}
	f=${f%=*}
	echo "${setting#*=}" > "$f"
	mount --bind "$f" "/proc/sys/${setting%=*}"
done

ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
pods=10.88.$((node - 1))
if [ "$node" = 1 ]; then
	address=10.88.0.1
	cgroup=/
	ip link add cni0 type bridge
	ip addr add $address/24 dev cni0
	ip link set cni0 up
	ip route add default dev cni0
else
	address=10.77.0.2
	cgroup=/node2
	for c in /sys/fs/cgroup/*/; do mkdir -p "$c/node2"; done
	for f in cpus mems; do cat /sys/fs/cgroup/cpuset/cpuset.$f > /sys/fs/cgroup/cpuset/node2/cpuset.$f; done
	until ip link show n2 > /dev/null 2>&1; do sleep 0.1; done
	ip addr add $address/30 dev n2
	ip link set n2 up
	ip route add default via 10.77.0.1
fi

cat > "$R/etc/cni/pods.conflist" <<EOF
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false,
 "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pods.0/24", "gateway": "$pods.1"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
EOF
cat > "$R/etc/containerd.toml" <<EOF
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/local/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "$K/root/usr/sbin/runc"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$K/root/usr/lib/cni"
    conf_dir = "$R/etc/cni"
EOF
cat > "$R/etc/kubelet.yaml" <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
cgroupRoot: $cgroup
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
failSwapOn: false
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
makeIPTablesUtilChains: false
resolvConf: ""
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}
EOF

start() { # start PROGRAM ARGUMENTS...
	"$@" > "$R/$1.log" 2>&1 &
}
start containerd -c "$R/etc/containerd.toml"
config="--kubeconfig $K/run/kubeconfig"
if [ "$node" = 1 ]; then
	start etcd --data-dir "$R/etcd" --unsafe-no-fsync
	start kube-apiserver --etcd-servers http://127.0.0.1:2379 --advertise-address $address --cert-dir "$R/cert" \
		--kubelet-preferred-address-types InternalIP --service-cluster-ip-range 10.96.0.0/24 \
		--token-auth-file "$K/run/tokens.csv" --authorization-mode RBAC \
		--service-account-issuer https://local --service-account-key-file "$K/run/sa.pub" --service-account-signing-key-file "$K/run/sa.key"
fi
until ctr version > /dev/null 2>&1; do sleep 0.2; done
for image in "$K"/images/*.tar; do ctr -n k8s.io images import "$image"; done
until kubectl $config get --raw /readyz > /dev/null 2>&1; do sleep 0.5; done
if [ "$node" = 1 ]; then
	start kube-controller-manager $config --leader-elect=false --bind-address 127.0.0.1 \
		--root-ca-file "$R/cert/apiserver.crt" --service-account-private-key-file "$K/run/sa.key"
	start kube-scheduler $config --leader-elect=false --bind-address 127.0.0.1
fi
start kubelet $config --config "$R/etc/kubelet.yaml" --hostname-override "node$node" --node-ip $address
wait
