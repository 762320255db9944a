package main

import (
	"context"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jobwire/audit"
	"jobwire/codec"
	"jobwire/codec/beanstalk"
	"jobwire/codec/gearman"
	"jobwire/codec/gearmonkey"
	"jobwire/internal/peers"
	"jobwire/internal/target"
)

// people lists clients and workers of other projects, each with a server of another project. In programs, {addr},
// {host} and {port} are replaced by the address of the proxy, and {program} by the path of the peer.
var people = []struct {
	name, peer, server string
	protocol           *codec.Protocol
	programs           [][]string // command lines that run at the same time
	breaks             []string   // IDs of the rules that the clients, workers and server break
}{
	{"gearman", "gearman", "gearmand", gearman.Protocol, [][]string{
		{"{program}", "-h", "{host}", "-p", "{port}", "-w", "-c", "2", "-f", "rev", "--", "rev"},
		{"sh", "-c", "{program} -h {host} -p {port} -f rev hello && {program} -h {host} -p {port} -b -f rev world"},
	}, nil},
	{"Gearman::Worker and Gearman::Client", "gearman-perl", "gearmand", gearman.Protocol, [][]string{
		{"{program}", "-MGearman::Worker", "-e", `my $w = Gearman::Worker->new(job_servers => ["{addr}"]); my $n = 0;
			$w->register_function(rev => sub { scalar reverse $_[0]->arg }); $w->work(stop_if => sub { $n >= 3 }, on_complete => sub { $n++ })`},
		{"{program}", "-MGearman::Client", "-e", `my $c = Gearman::Client->new(job_servers => ["{addr}"]);
			for my $x (qw(one two three)) { my $r = $c->do_task(rev => $x); $$r eq reverse $x or die }`},
	}, nil},
	{"Perl's server", "gearman-perl", "gearmand-perl", gearman.Protocol, [][]string{
		{"{program}", "-MGearman::Worker", "-e", `my $w = Gearman::Worker->new(job_servers => ["{addr}"]); my $n = 0;
			$w->register_function(rev => sub { scalar reverse $_[0]->arg }); $w->work(stop_if => sub { $n >= 1 }, on_complete => sub { $n++ })`},
		{"{program}", "-MGearman::Client", "-e", `my $c = Gearman::Client->new(job_servers => ["{addr}"]); my $r = $c->do_task(rev => "one"); $$r eq "eno" or die`},
	}, nil},
	{"PHP", "gearman-php", "gearmand", gearman.Protocol, [][]string{
		{"{program}", "-r", `$w = new GearmanWorker(); $w->addServer("{host}", {port}); $w->addFunction("rev", fn($j) => strrev($j->workload())); for ($i = 0; $i < 2; $i++) $w->work();`},
		{"{program}", "-r", `$c = new GearmanClient(); $c->addServer("{host}", {port}); if ($c->doNormal("rev", "abc") != "cba" || $c->doHigh("rev", "xyz") != "zyx") exit(1);`},
	}, nil},
	{"beaneater", "beaneater", "beanstalkd", beanstalk.Protocol, [][]string{
		{"{program}", "-rbeaneater", "-e", `b = Beaneater.new("{addr}"); t = b.tubes["jobs"]
			t.put "one", :pri => 5, :ttr => 60; t.put "two\r\n\0three", :delay => 0
			b.tubes.watch!("jobs")
			j = b.tubes.reserve(1); j.touch; j.release; j = b.tubes.reserve(1); j.bury; t.kick(3); b.tubes.reserve(1).delete; b.tubes.reserve(1).delete
			begin; b.tubes.reserve(0); rescue Beaneater::TimedOutError; end
			t.peek(:ready); b.stats; t.stats; b.close`},
	}, nil},
	{"redis-cli", "redis-cli", "redis-server", gearmonkey.Protocol, [][]string{
		{"sh", "-c", `printf 'INCR uid:f\nHMSET job:f:1 status idle input x\nPUBLISH event:f:1 create\nLPUSH queue:f:normal 1\nHGETALL job:f:1\nBRPOP queue:f:high queue:f:normal 1\n' | {program} -h {host} -p {port}`},
	}, nil},
}

// TestAuditOfOtherProjects audits clients, workers and servers of other projects: the audit must report exactly the violations
// that are listed in people.
func TestAuditOfOtherProjects(t *testing.T) {
	for _, p := range people {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			program := peers.Need(t, p.peer)
			srv := peers.Start(t, p.server)
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			a := audit.New(audit.Options{Protocol: p.protocol, Server: true})
			proxy := &audit.Proxy{Auditor: a, Dial: func(ctx context.Context) (net.Conn, error) { return target.Dial(ctx, srv) }}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			var serving, all sync.WaitGroup
			serving.Go(func() { proxy.Serve(ctx, ln) })
			for _, words := range p.programs {
				words = slices.Clone(words)
				for i := range words {
					words[i] = strings.ReplaceAll(words[i], "{program}", program)
				}
				args, err := target.Expand(words, ln.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				all.Go(func() {
					if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
						t.Errorf("%.40q: %v: %s", args, err, out)
					}
				})
			}
			all.Wait()
			cancel()
			serving.Wait()
			r := a.Report()
			var found []string
			for _, b := range r.BrokenRules {
				found = append(found, string(b.Rule.ID))
			}
			for _, f := range r.Behavior {
				found = append(found, string(f.Rule.ID))
			}
			slices.Sort(found)
			if !slices.Equal(found, p.breaks) || r.Messages[codec.Peer] < 3 || r.Messages[codec.Server] < 3 {
				var text strings.Builder
				r.WriteText(&text, audit.TextOptions{})
				t.Errorf("it is accused of %q, not %q:\n%s", found, p.breaks, text.String())
			}
		})
	}
}
