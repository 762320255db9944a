# All targets except "lint", "peers", "race" and "nightly" need only Go.

GO        ?= go
FUZZTIME  ?= 10s
TARGETS   ?= .
BENCH     ?= .
BENCHTIME ?= 1s

STATICCHECK = $(GO) tool -modfile=tools/go.mod staticcheck

# Third-party programs that the tests run: servers, clients, decoders, a browser.
PEERS = gearman-job-server gearman-tools gearman-server libgearman-client-perl \
        gcc libc6-dev libgearman-dev php-cli php-gearman php-pda-pheanstalk beanstalkd ruby ruby-beaneater \
        redis-server tshark tcpdump chromium faketime mandoc python3 skopeo iproute2
SUDO  = $(if $(filter 0,$(shell id -u)),,sudo)
APT   = $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -q

.DEFAULT_GOAL := help
.PHONY: help build run test race others nightly lint vet-others peers matrix bench captures cluster-test fuzz dist manual image site recording reproducible publish-as package-test clean

help: ## list the make targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

COMMIT  = $(shell git describe --always --abbrev=12 --exclude '*' --dirty=-modified 2>/dev/null)
LDFLAGS = $(if $(COMMIT),-ldflags '-X jobwire/internal/version.commit=$(COMMIT)')

build: ## build bin/jobwire
	$(GO) build $(LDFLAGS) -o bin/jobwire ./cmd/jobwire

run: ## test the built-in Gearman server, then play an example transcript
	$(GO) run ./cmd/jobwire conform gearman
	$(GO) run ./cmd/jobwire play --annotate corpus/gearman/example.wire

# Tests and linters allocate much and keep little.
test race others nightly lint: export GOGC ?= 400

# "make lint" runs vet.
TEST = $(GO) test -vet=off -short -timeout 30m

test: ## run the short form of the tests (skips tests whose third-party program is missing)
	$(TEST) ./...

# The protocols that have test cases.
PROTOCOLS = $(notdir $(wildcard conform/cases/*))

# The packages with concurrency of their own. "make race" and "make others" test each package once. The tests of
# cmd/jobwire, conform/servertest and examples run programs and the suites; the packages that these are made of are here.
CONCURRENT = audit conform conform/selftest fuzz fuzz/exec fuzz/model fuzz/triage internal/memnet internal/metrics internal/screen internal/target internal/transport internal/virtualtime \
             jobtest judge loadgen pcap play refpeer/beanstalk refpeer/danga refpeer/gearman refpeer/gearmonkey \
             refserver refserver/beanstalk refserver/danga refserver/gearman refserver/gearmonkey refserver/inject

# Tests of many servers, whole suites or fuzz runs, or with payloads of 16 MiB, that take ten times as long with the race
# detector: "make others" runs them without it, and "make nightly" with it.
STRESS = '^(TestSelfTest|TestVariants|TestMissingMessages|TestModelsFindMutants|TestLargeMessages|$\
           TestSmallServer|TestReferenceServers|TestFiveFaults|TestFixedAddress|TestBarriers|TestWeakServers|$\
           TestCutFiles|TestLargeMessageWithDamage)$$' \
         ./audit ./conform ./fuzz ./jobtest ./pcap ./refpeer/...

# Without atexit_sleep_ms=0 each program under the race detector sleeps for a second when it
# exits.
race: ## run the short form of the tests of packages with concurrency, with the race detector (needs a C compiler)
	GORACE="atexit_sleep_ms=0 $(GORACE)" $(TEST) -race -skip $(firstword $(STRESS)) $(CONCURRENT:%=./%)

others: ## run the short form of the tests that "make race" leaves out
	$(TEST) -run $(STRESS)
	$(TEST) $$($(GO) list ./... | grep -vxF $(CONCURRENT:%=-e jobwire/%))

# The long form has all tests. The cluster test needs root, cgroup v1 and kubectl.
nightly: build vet-others ## run what takes long: all tests, other systems, archives, steadiness, more fuzzing
	$(GO) test -timeout 60m ./...
	$(TEST) -race -run $(STRESS)
	$(GO) test -timeout 60m ./internal/memnet -args -cases 100000
	$(GO) test -timeout 2h -run TestSteady ./conform/servertest -args -steady 2
	for protocol in $(PROTOCOLS); do bin/jobwire conform $$protocol && bin/jobwire fuzz self-test $$protocol || exit 1; done
	$(MAKE) reproducible
	if [ "$$(id -u)" = 0 ] && command -v dpkg; then $(MAKE) package-test; fi
	$(MAKE) fuzz FUZZTIME=10000x
	$(MAKE) fuzz FUZZTIME=100000x TARGETS='^(fuzz/native|fuzz/native/readers|pcap) '
	if [ "$$(id -u)" = 0 ] && [ -d /sys/fs/cgroup/memory ] && command -v kubectl; then $(MAKE) cluster-test JOBS=1000000; fi

lint: ## run gofmt, go vet, staticcheck and actionlint
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not formatted (run gofmt -w):"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(STATICCHECK) ./...
	$(GO) tool -modfile=tools/go.mod actionlint .github/workflows/*.yml examples/ci/github.yml

# An int has 32 bits on windows/386, so that vet finds numbers that are too large for it.
vet-others: ## run go vet for other operating systems
	for os in darwin/amd64 freebsd/amd64 windows/386; do GOOS=$${os%/*} GOARCH=$${os#*/} $(GO) vet ./... || exit 1; done

peers: ## install the third-party programs for the tests (Debian, npm)
	$(APT) update
	$(APT) install -y --no-install-recommends $(PEERS) $(if $(shell command -v npm),,nodejs npm)
	for folder in examples/node tools/node; do npm ci --prefix $$folder --ignore-scripts --no-audit --no-fund || exit 1; done

# A server whose program is missing is left out.
matrix: build ## test all installed servers, and write docs/matrix.html
	@mkdir -p bin/matrix; results=; \
	for protocol in $(PROTOCOLS); do \
		profiles=conform/profiles/$$protocol; \
		for file in $$(ls $$profiles/*.yaml | grep -vx "$$profiles/embedded.yaml") $$profiles/embedded.yaml; do \
			profile=$$(basename $$file .yaml); result=bin/matrix/$$protocol-$$profile.json; \
			program=$$(sed -n 's/^exec: \([^ ]*\).*/\1/p' $$file); \
			if [ -n "$$program" ] && ! command -v "$$program" >/dev/null; then echo "$$profile: $$program is not installed"; continue; fi; \
			results="$$results $$result"; \
			echo "jobwire conform $$protocol --profile $$profile"; \
			bin/jobwire conform $$protocol --profile $$profile --format json > $$result || [ $$? = 1 ] || exit 1; \
		done; \
	done; \
	bin/jobwire conform matrix $$results --findings-url findings.md -o docs/matrix.html

bench: ## run the benchmarks (BENCH=pattern BENCHTIME=time)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...

captures: build ## write large captures (1 GB in bin) and compare decode with tshark
	$(GO) run ./pcap/internal/bigcapture bin/big.pcap
	$(GO) run ./pcap/internal/bigcapture -lossy bin/lossy.pcap
	$(GO) run ./pcap/internal/bigcapture -protocol beanstalk bin/beanstalk.pcap
	$(GO) run ./pcap/internal/bigcapture -protocol gearmonkey bin/gearmonkey.pcap
	$(GO) run ./pcap/internal/capturespeed bin/jobwire bin/lossy.pcap bin/beanstalk.pcap bin/gearmonkey.pcap
	$(GO) run ./pcap/internal/capturespeed $(if $(shell command -v tshark),-tshark) bin/jobwire bin/big.pcap

# JOBS is the number of jobs of the largest run.
CLUSTER ?= bin/cluster
cluster-test: ## run the steps of deploy/README.md on a Kubernetes cluster in the folder CLUSTER (root; 5 GB)
	deploy/cluster-test/build.sh $(CLUSTER)
	deploy/cluster-test/run.sh $(CLUSTER)

# A test checks that the list of targets is complete. The test program of a package is built once; "go test" would link it
# again for each of its targets. Minimizing an input takes ten executions
# at most: the coverage of concurrent programs varies, so that many inputs seem interesting,
# and Go tries no other input while it minimizes one.
fuzz: ## run every native Go fuzz target (FUZZTIME=time each, TARGETS=pattern)
	@program=$$(mktemp); trap 'rm -f "$$program"' EXIT; built=; \
	grep -v '^#' .clusterfuzzlite/targets | grep -E '$(TARGETS)' | while read -r package target _; do \
		[ -n "$$package" ] || continue; \
		echo "== $$package $$target"; \
		[ "$$package" = "$$built" ] || $(GO) test -c -fuzz . -o "$$program" "./$$package" || exit 1; \
		built=$$package; \
		(cd "$$package" && "$$program" -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 10x \
			-test.fuzzcachedir "$$($(GO) env GOCACHE)/fuzz/jobwire/$$package") </dev/null || exit 1; \
	done

# The version of the source, without "-dev", and the tag of the commit, if it has one.
SOURCE = $(shell sed -n 's/^var Number = "\(.*\)"$$/\1/p' internal/version/version.go)
TAG    = $(shell git tag --points-at HEAD --list 'v*')

bin/tools/goreleaser:
	GOBIN='$(CURDIR)/bin/tools' $(GO) install github.com/goreleaser/goreleaser/v2@v2.13.3

bin/tools/cyclonedx-gomod:
	GOBIN='$(CURDIR)/bin/tools' $(GO) install github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

dist: bin/tools/goreleaser bin/tools/cyclonedx-gomod ## build the archives, Linux packages and SBOMs of a release in bin/dist
	@case '$(TAG)' in '' | v$(SOURCE:-dev=) | v$(SOURCE:-dev=)-*) ;; \
	*) echo "tag $(TAG): expected v$(SOURCE:-dev=), because internal/version has $(SOURCE)"; exit 1;; esac
	PATH="$(CURDIR)/bin/tools:$$PATH" SOURCE_VERSION='$(SOURCE)' COMMIT='$(COMMIT)' \
		goreleaser release --clean $(if $(TAG),--skip=announce --skip=publish,--snapshot)

# VERSION and DATE, in seconds since 1970, stand in the man pages. goreleaser calls this.
VERSION ?= $(SOURCE)
DATE    ?= $(shell git log -1 --format=%ct)

manual: ## write the man pages, completions and licenses to bin/manual
	rm -rf bin/manual
	mkdir -p bin/manual/completions
	$(GO) build -ldflags '-X jobwire/internal/version.Number=$(VERSION)' -o bin/manual/jobwire ./cmd/jobwire
	SOURCE_DATE_EPOCH=$(DATE) bin/manual/jobwire man bin/manual/man1
	gzip -9nk bin/manual/man1/*.1
	bin/manual/jobwire completion bash > bin/manual/completions/jobwire.bash
	bin/manual/jobwire completion zsh > bin/manual/completions/_jobwire
	bin/manual/jobwire completion fish > bin/manual/completions/jobwire.fish
	bin/manual/jobwire completion powershell > bin/manual/completions/jobwire.ps1
	$(GO) run ./internal/dist -licenses bin/manual/THIRD_PARTY_LICENSES

# PLATFORMS is a list such as linux/amd64,linux/arm64, or empty for all.
image: ## build bin/jobwire-image.tar, an OCI archive (PLATFORMS=list)
	@mkdir -p bin
	$(GO) run ./internal/dist -platforms '$(PLATFORMS)' -image bin/jobwire-image.tar

site: ## write the documentation as static HTML to bin/site
	$(GO) run ./internal/site

recording: build ## write docs/images/recording.svg, the picture in README.md (needs beanstalkd)
	PATH="$(CURDIR)/bin:$$PATH" $(GO) run ./internal/recording

# The second build is that of the commit, in another folder and with an empty cache. SBOMs contain the time of the build.
reproducible: ## build the archives, packages and the image of the commit twice, and compare them
	@set -e; copy=$$(mktemp -d); trap 'chmod -R u+w "$$copy"; rm -rf "$$copy"' EXIT; \
	git clone --quiet . "$$copy/a"; git clone --quiet . "$$copy/b"; \
	$(MAKE) -C "$$copy/a" dist image; \
	mkdir -p "$$copy/b/bin/tools"; cp "$$copy/a"/bin/tools/* "$$copy/b/bin/tools"; \
	GOCACHE="$$copy/cache" $(MAKE) -C "$$copy/b" dist image; \
	for one in a b; do grep -v '\.cdx\.json$$' "$$copy/$$one/bin/dist/SHA256SUMS" > "$$copy/$$one.sums"; done; \
	diff "$$copy/a.sums" "$$copy/b.sums"; cmp "$$copy/a/bin/jobwire-image.tar" "$$copy/b/bin/jobwire-image.tar"; \
	echo 'the archives, the packages and the images are equal'

publish-as: ## give the module the path MODULE=github.com/OWNER/jobwire in all files, and commit that
	@git diff --quiet HEAD || { echo 'commit your changes first'; exit 1; }
	$(GO) run ./internal/publish '$(MODULE)'
	git commit -qam 'all: the module path is $(MODULE)'

package-test: dist ## install the Debian package of bin/dist, use it, and remove it (needs root)
	@set -e; dpkg -i bin/dist/jobwire-*-"$$(dpkg --print-architecture)".deb; \
	jobwire --version; man -w jobwire-conform; bash -c '. /usr/share/bash-completion/completions/jobwire; complete -p jobwire'; \
	dpkg -r jobwire; if [ -e /usr/bin/jobwire ]; then exit 1; fi; if man -w jobwire-conform; then exit 1; fi

clean: ## remove build outputs
	rm -rf bin
