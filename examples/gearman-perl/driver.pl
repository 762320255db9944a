#!/usr/bin/env perl
# Driver of Perl's Gearman::Client and Gearman::Worker: driver.pl HOST:PORT
use strict;
use warnings;
use Gearman::Client;
use Gearman::Worker;

my $addr = shift // die "usage: driver.pl HOST:PORT\n";
my %letter = (0 => "\0", t => "\t", n => "\n", r => "\r", '\\' => '\\', '"' => '"');

sub split_words {
    my ($line, @words) = @_;
    while ($line =~ /\G[ \t]*(?:"((?:[^"\\]++|\\.)*+)"(?:\*(\d+))?|([^ \t\n]+))/g) {
        my ($word, $times) = (defined $3 ? $3 : $1, $2);
        $word =~ s/\\(?:x(..)|(.))/defined $1 ? chr hex $1 : $letter{$2}/gse if !defined $3;
        push @words, defined $times ? $word x $times : $word;
    }
    return @words;
}

sub quote {
    my $word = shift;
    return $word if $word =~ /\A[-A-Za-z0-9_.,:;\/+\@%]+\z/;
    $word =~ s/([^ !#-\[\]-~])/sprintf '\\x%02x', ord $1/gse;
    return "\"$word\"";
}

# A client that asks for exceptions does so for all of its connection.
my %client;
sub client { my $e = shift // 0; $client{$e} //= Gearman::Client->new(job_servers => [$addr], exceptions => $e) }

sub submit {
    my ($fn, $work, @o) = @_;
    my %o = map { /\A([^=]+)=?(.*)\z/s } @o;
    return ('error', 'unsupported') if grep { !/\A(?:unique|priority|timeout|background|exceptions)\z/ } keys %o;
    my (@events, $result, @failure);
    my %task = (
        on_complete  => sub { $result = ${ $_[0] } },
        on_data      => sub { push @events, 'data', ${ $_[0] } },
        on_warning   => sub { push @events, 'warning', ${ $_[0] } },
        on_status    => sub { push @events, 'status', join '/', map { $_ // '' } @_ },
        on_exception => sub { @failure = ('exception', $_[0]) },
        on_fail      => sub { my $why = $_[0] // ''; @failure = $why =~ /timeout/ ? 'timed-out' : $why =~ /socket|packet/ ? 'connection' : 'failed' if !@failure },
    );
    $task{uniq} = $o{unique} if exists $o{unique};
    $task{priority} = $o{priority} if exists $o{priority};
    $task{timeout} = $o{timeout} if exists $o{timeout};
    if (exists $o{background}) {
        my $handle = client()->dispatch_background($fn, \$work, \%task) // return ('error', @failure ? @failure : 'connection');
        return ('ok', $handle =~ s{.*?//}{}sr);
    }
    client(exists $o{exceptions} ? 1 : 0)->do_task($fn, \$work, \%task);
    return defined $result ? ('ok', $result, @events) : ('error', @failure ? @failure : 'failed');
}

sub batch {
    my ($fn, @works) = @_;
    my ($set, @results, $failed) = (client()->new_task_set);
    for my $i (0 .. $#works) {
        $set->add_task($fn, \$works[$i], { on_complete => sub { $results[$i] = ${ $_[0] } }, on_fail => sub { $failed = 1 } });
    }
    $set->wait;
    return $failed || grep({ !defined } @results[0 .. $#works]) ? ('error', 'failed') : ('ok', @results);
}

sub status {
    my $s = client()->get_status("$addr//$_[0]") // return ('error', 'connection');
    my $progress = $s->progress // [0, 0];
    return ('ok', $s->known || 0, $s->running || 0, map { $_ || 0 } @$progress);
}

my %how = (
    echo      => sub { $_[0]->arg },
    reverse   => sub { scalar reverse $_[0]->arg },
    empty     => sub { '' },
    fail      => sub { undef },
    exception => sub { die $_[0]->arg . "\n" },
    data      => sub { $_[1]->send_work_data($_[0], $_[0]->arg); $_[0]->arg },
    warning   => sub { $_[1]->send_work_warning($_[0], $_[0]->arg); $_[0]->arg },
    status    => sub { $_[0]->set_status(1, 2); $_[0]->arg },
);

sub work {
    my ($functions, $how, $jobs, %o) = (@_[0 .. 2], map { /\A([^=]+)=(.*)\z/s } @_[3 .. $#_]);
    my $do = $how{$how} // return ('error', 'usage');
    my $worker = Gearman::Worker->new(job_servers => [$addr], exists $o{id} ? (client_id => $o{id}) : ());
    my $done = 0;
    for my $fn (split /,/, $functions) {
        $worker->register_function($fn, exists $o{timeout} ? $o{timeout} : (), sub { $done++; $do->($_[0], $worker) }) or return ('error', 'connection');
    }
    $worker->work(stop_if => sub { $jobs ? $done >= $jobs : $_[0] });
    return ('ok', $done);
}

my %task = (submit => \&submit, batch => \&batch, status => \&status, work => \&work);

binmode $_ for *STDIN, *STDOUT;
$| = 1;
while (my $line = <STDIN>) {
    my ($name, @words) = split_words($line);
    my @answer = ('error', 'unsupported');
    if (my $task = $task{$name}) {
        @answer = eval { $task->(@words) };
        @answer = ('error', $@ =~ /connect|socket|sending|reading|Job server failure/i ? 'connection' : 'other', $@) if $@;
    }
    print join(' ', map { quote("$_") } @answer), "\n";
}
