#!/bin/bash
# image.sh FOLDER NAME ENTRYPOINT FILE=DESTINATION...: makes the image NAME, for user 65534, as FOLDER/images/*.tar. ENTRYPOINT is a JSON array.
set -eu
K=$1 name=$2 entrypoint=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file; do install -D -m 755 "${file%%=*}" "$work/root/${file#*=}"; done
tar -C "$work/root" --owner 0 --group 0 -cf "$work/layer.tar" .
cat > "$work/config.json" <<EOF
{"architecture": "amd64", "os": "linux", "config": {"Entrypoint": $entrypoint, "User": "65534:65534"},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$(sha256sum < "$work/layer.tar" | cut -d' ' -f1)"]}}
EOF
echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$name\"], \"Layers\": [\"layer.tar\"]}]" > "$work/manifest.json"
mkdir -p "$K/images"
tar -C "$work" -cf "$K/images/$(echo "$name" | tr /: __).tar" manifest.json config.json layer.tar
