#!/bin/bash
# build.sh FOLDER: puts the programs of a Kubernetes cluster into FOLDER/bin and FOLDER/root. Does nothing if they are there.
set -eu
K=$(mkdir -p "$1" && cd "$1" && pwd)
version=1.34.4 # 1.35 and later need cgroup v2
mkdir -p "$K/src" "$K/bin" "$K/root" "$K/debs"

if [ ! -x "$K/root/usr/bin/containerd" ]; then
	(cd "$K/debs" && apt-get download -q containerd runc etcd-server containernetworking-plugins busybox-static)
	for deb in "$K"/debs/*.deb; do dpkg -x "$deb" "$K/root"; done
fi

[ -x "$K/bin/kubelet" ] && exit
cd "$K/src"
# Kubernetes as a Go module lacks its folder staging: each of its modules is replaced by the published one.
cat > go.mod <<EOF
module cluster
go 1.24.0
godebug default=go1.24
require k8s.io/kubernetes v$version
EOF
for m in api apiextensions-apiserver apimachinery apiserver cli-runtime client-go cloud-provider cluster-bootstrap code-generator \
	component-base component-helpers controller-manager cri-api cri-client csi-translation-lib dynamic-resource-allocation endpointslice \
	externaljwt kms kube-aggregator kube-controller-manager kube-proxy kube-scheduler kubectl kubelet metrics mount-utils \
	pod-security-admission sample-apiserver sample-cli-plugin sample-controller; do
	echo "replace k8s.io/$m => k8s.io/$m v0${version#1}" >> go.mod
done
programs="kube-apiserver kube-controller-manager kube-scheduler kubelet"
{
	echo "//go:build tools"
	echo "package tools"
	for p in $programs; do echo "import _ \"k8s.io/kubernetes/cmd/$p\""; done
} > tools.go
nice -n 19 go mod tidy -e
x=k8s.io/component-base/version
nice -n 19 go build -trimpath -o "$K/bin/" -ldflags "-s -w -X $x.gitVersion=v$version -X $x.gitMajor=1 -X $x.gitMinor=34 -X $x.gitTreeState=clean" \
	$(printf 'k8s.io/kubernetes/cmd/%s ' $programs)
