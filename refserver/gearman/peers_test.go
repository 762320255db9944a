package gearman

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"jobwire/codec/gearman"
	"jobwire/refserver/internal/peertest"
)

// peerServer runs a server for existing clients and workers on loopback until the test ends. It skips the test if their program is not
// installed.
func peerServer(t *testing.T, program string, check ...string) (path, host, port string) {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil && len(check) > 0 {
		err = exec.Command(path, check...).Run()
	}
	if err != nil {
		if os.Getenv("JOBWIRE_REQUIRE_PEERS") == "1" {
			t.Fatalf("%s is required: %v", program, err)
		}
		t.Skipf("%s is not installed: %v", program, err)
	}
	host, port, _ = net.SplitHostPort(peertest.Serve(t, gearman.Protocol, New(Options{})))
	return path, host, port
}

// background starts a program and kills it when the test ends.
func background(t *testing.T, path string, args ...string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// output runs a program until it exits, and returns its output and its exit status.
func output(t *testing.T, stdin, path string, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if ctx.Err() != nil {
		t.Fatalf("%s %q does not end; it says %q", path, args, out)
	}
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// askLine sends one command and returns the reply up to its end.
func askLine(t *testing.T, addr, cmd, end string) string {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(nc, cmd+"\n")
	var all []byte
	b := make([]byte, 4096)
	for !strings.HasSuffix(string(all), end) {
		n, err := nc.Read(b)
		if all = append(all, b[:n]...); err != nil {
			t.Fatalf("%s: %q, then %v", cmd, all, err)
		}
	}
	return string(all)
}

// idle waits until the function has no jobs.
func idle(t *testing.T, addr, fn string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if strings.Contains("\n"+askLine(t, addr, "status", ".\n"), "\n"+fn+"\t0\t0\t") {
			return
		}
	}
	t.Fatalf("jobs of %s are left", fn)
}

// TestGearmanCommand tests that the command gearman of libgearman can submit and run jobs of each priority, failing
// jobs and background jobs on the reference server.
func TestGearmanCommand(t *testing.T) {
	gearmanPath, host, port := peerServer(t, "gearman")
	at := func(args ...string) []string { return append([]string{"-h", host, "-p", port}, args...) }
	background(t, gearmanPath, at("-w", "-f", "reverse", "--", "rev")...)
	background(t, gearmanPath, at("-w", "-f", "failing", "--", "false")...)

	for _, flag := range []string{"", "-I", "-L"} { // normal, high and low priority
		args := at("-f", "reverse")
		if flag != "" {
			args = append(args, flag)
		}
		if out, status := output(t, "hello\n", gearmanPath, args...); out != "olleh\n" || status != 0 {
			t.Errorf("reverse %s: %q, status %d", flag, out, status)
		}
	}
	if out, status := output(t, "", gearmanPath, at("-f", "failing", "x")...); status == 0 {
		t.Errorf("a failing job succeeds, %q", out)
	}
	if out, status := output(t, "", gearmanPath, at("-b", "-f", "reverse", "x")...); status != 0 {
		t.Errorf("background: %q, status %d", out, status)
	}
	idle(t, net.JoinHostPort(host, port), "reverse")
}

// TestPerl tests that the Perl client and worker of Gearman can run jobs, failing jobs, background jobs and status
// requests on the reference server.
func TestPerl(t *testing.T) {
	perl, host, port := peerServer(t, "perl", "-MGearman::Client", "-MGearman::Worker", "-e1")
	addr := net.JoinHostPort(host, port)
	background(t, perl, "-MGearman::Worker", "-e", `
		my $w = Gearman::Worker->new;
		$w->job_servers($ARGV[0]);
		$w->register_function(add => sub { my ($a, $b) = split /,/, $_[0]->arg; $_[0]->set_status(1, 2); $a + $b });
		$w->register_function(failing => sub { undef });
		$w->work while 1;
	`, addr)
	out, status := output(t, "", perl, "-MGearman::Client", "-e", `
		my $c = Gearman::Client->new;
		$c->job_servers($ARGV[0]);
		print "sum ${$c->do_task(add => '3,4')}\n";
		print defined $c->do_task(failing => 'x') ? "succeeds\n" : "fails\n";
		my $set = $c->new_task_set;
		$set->add_task(add => '5,6', {
			uniq => '-',
			on_status => sub { print "status @_\n" },
			on_complete => sub { print "complete ${$_[0]}\n" },
			on_fail => sub { print "fails\n" },
		});
		$set->wait;
		my $h = $c->dispatch_background(add => '1,2');
		print defined $h ? "dispatched\n" : "refused\n";
		my $s = $c->get_status($h);
		print "asked\n" if defined $s;
	`, addr)
	if want := "sum 7\nfails\nstatus 1 2\ncomplete 11\ndispatched\nasked\n"; out != want || status != 0 {
		t.Errorf("got %q, status %d, want %q", out, status, want)
	}
	idle(t, addr, "add")
}

// TestPHP tests that the PHP client and worker of Gearman can run jobs with data, warnings, status, failures and
// exceptions on the reference server.
func TestPHP(t *testing.T) {
	php, host, port := peerServer(t, "php", "-r", "exit(extension_loaded('gearman') ? 0 : 1);")
	background(t, php, "-r", `
		$w = new GearmanWorker();
		$w->addServer($argv[1], (int)$argv[2]);
		$w->addFunction('upper', function ($j) {
			$j->sendStatus(1, 2);
			$j->sendData('part ');
			$j->sendWarning('careful');
			return strtoupper($j->workload());
		});
		$w->addFunction('failing', function ($j) { $j->sendFail(); });
		$w->addFunction('throwing', function ($j) { $j->sendException('boom'); });
		while (true) @$w->work();
	`, host, port)
	out, status := output(t, "", php, "-r", `
		$c = new GearmanClient();
		$c->addServer($argv[1], (int)$argv[2]);
		$c->setTimeout(15000);
		$seen = '';
		do {
			$r = @$c->doNormal('upper', 'hello');
			$code = $c->returnCode();
			if ($code == GEARMAN_WORK_DATA) $seen .= "data $r|";
			if ($code == GEARMAN_WORK_WARNING) $seen .= "warning $r|";
			if ($code == GEARMAN_WORK_STATUS) $seen .= 'status ' . implode('/', $c->doStatus()) . '|';
		} while (in_array($code, [GEARMAN_WORK_DATA, GEARMAN_WORK_WARNING, GEARMAN_WORK_STATUS]));
		echo "$seen$r\n";
		@$c->doLow('failing', 'x');
		echo $c->returnCode() == GEARMAN_WORK_FAIL ? "fails\n" : "succeeds\n";
		@$c->doHigh('throwing', 'x');
		echo in_array($c->returnCode(), [GEARMAN_WORK_FAIL, GEARMAN_WORK_EXCEPTION]) ? "throws\n" : "succeeds\n";
		$c->setCompleteCallback(function ($t) use (&$done) { $done[$t->unique()] = $t->data(); });
		foreach (['a', 'b', 'c'] as $x) $c->addTask('upper', $x, null, $x);
		if (!$c->runTasks()) echo $c->error();
		ksort($done);
		echo implode(',', array_keys($done)), "\n";
		$h = $c->doBackground('upper', 'x', 'unique');
		echo $c->returnCode() == GEARMAN_SUCCESS ? "dispatched\n" : "refused\n";
		echo count($c->jobStatus($h)), "\n";
		echo @$c->ping('anyone?') ? "alive\n" : "dead\n";
	`, host, port)
	lines := strings.SplitN(out, "\n", 2)
	if status != 0 || !strings.HasSuffix(lines[0], "HELLO") || len(lines) < 2 ||
		lines[1] != "fails\nthrows\na,b,c\ndispatched\n4\nalive\n" {
		t.Errorf("got %q, status %d", out, status)
	}
	idle(t, net.JoinHostPort(host, port), "upper")
}
