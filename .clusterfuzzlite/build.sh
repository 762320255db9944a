#!/bin/bash -eu
# Builds the targets of the list as libFuzzer's, in the builder of OSS-Fuzz. Targets
# are rewritten to use its testing package, which the module must therefore have.

cd "$SRC/jobwire"
go get github.com/AdamKorcz/go-118-fuzz-build/testing

while read -r dir target reason; do
	case "$dir" in '' | '#'*) continue ;; esac
	if [ -z "$reason" ]; then
		compile_native_go_fuzzer "jobwire/$dir" "$target" "$(basename "$dir")_$target"
	fi
done <.clusterfuzzlite/targets
