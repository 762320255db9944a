#!/bin/bash -eu
# Builds the targets in .clusterfuzzlite/targets for libFuzzer, in the OSS-Fuzz builder
# image. The builder rewrites the targets to use its own testing package, so the module
# must require that package.

cd "$SRC/jobwire"
go get github.com/AdamKorcz/go-118-fuzz-build/testing

while read -r dir target reason; do
	case "$dir" in '' | '#'*) continue ;; esac
	if [ -z "$reason" ]; then
		compile_native_go_fuzzer "jobwire/$dir" "$target" "$(basename "$dir")_$target"
	fi
done <.clusterfuzzlite/targets
