# Everything but "lint" and "peers" needs nothing but Go.

GO        ?= go
FUZZTIME  ?= 10s
BENCH     ?= .
BENCHTIME ?= 1s

STATICCHECK = $(GO) tool -modfile=tools/go.mod staticcheck

# The programs of others that tests run against: servers, clients, decoders, a browser.
PEERS = gearman-job-server gearman-tools gearman-server libgearman-client-perl \
        php-cli php-gearman beanstalkd ruby ruby-beaneater redis-server tshark tcpdump chromium
SUDO  = $(if $(filter 0,$(shell id -u)),,sudo)
APT   = $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -q

.DEFAULT_GOAL := help
.PHONY: help build run test race lint peers bench captures fuzz clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build bin/jobwire
	$(GO) build -o bin/jobwire ./cmd/jobwire

run: ## judge the embedded Gearman server, then play the document's example
	$(GO) run ./cmd/jobwire conform gearman
	$(GO) run ./cmd/jobwire play --annotate corpus/gearman/example.wire

test: ## run the tests; those that need a missing peer are skipped
	$(GO) test ./...

# A program under the race detector sleeps for a second when it ends, unless told otherwise;
# tests run hundreds.
race: ## run the tests under the race detector (needs a C compiler)
	GORACE="atexit_sleep_ms=0 $(GORACE)" $(GO) test -race -timeout 30m ./...

lint: ## check format, vet and staticcheck
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt would change:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) ./...

peers: ## install the programs that tests run against (Debian, and what examples/node drives)
	$(APT) update
	$(APT) install -y --no-install-recommends $(PEERS) $(if $(shell command -v npm),,nodejs npm)
	npm ci --prefix examples/node --ignore-scripts --no-audit --no-fund

bench: ## run the benchmarks; BENCH selects, BENCHTIME says how long
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

captures: build ## make large captures, 1 GB in bin, and measure decode beside tshark
	$(GO) run ./pcap/internal/bigcapture bin/big.pcap
	$(GO) run ./pcap/internal/bigcapture -lossy bin/lossy.pcap
	$(GO) run ./pcap/internal/bigcapture -protocol beanstalk bin/beanstalk.pcap
	$(GO) run ./pcap/internal/bigcapture -protocol gearmonkey bin/gearmonkey.pcap
	$(GO) run ./pcap/internal/capturespeed bin/jobwire bin/lossy.pcap bin/beanstalk.pcap bin/gearmonkey.pcap
	$(GO) run ./pcap/internal/capturespeed $(if $(shell command -v tshark),-tshark) bin/jobwire bin/big.pcap

# By the list that a test holds to be complete. What is interesting is made smaller
# for a second at most, since nothing is tried meanwhile.
fuzz: ## run every native fuzz target for FUZZTIME
	@grep -v '^#' .clusterfuzzlite/targets | while read -r package target _; do \
		[ -n "$$package" ] || continue; \
		echo "== $$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s "./$$package" || exit 1; \
	done

clean: ## remove what was built
	rm -rf bin
