<?php
// Driver of Pheanstalk: php driver.php HOST PORT
require 'Pheanstalk/autoload.php';
require is_file(__DIR__ . '/words.php') ? __DIR__ . '/words.php' : __DIR__ . '/../words.php';
use Pheanstalk\{Exception, Job, JobId, Pheanstalk};

$queue = Pheanstalk::create($argv[1], (int) $argv[2]); // connects before the first command

// reserve watches exactly the given tubes.
function reserve(Pheanstalk $queue, string $tubes, ?int $timeout = null): ?Job {
    $tubes = explode(',', $tubes);
    foreach ($tubes as $t) $queue->watch($t);
    foreach (array_diff($queue->listTubesWatched(), $tubes) as $t) $queue->ignore($t);
    return $timeout === null ? $queue->reserve() : $queue->reserveWithTimeout($timeout);
}

function work(Pheanstalk $queue, string $tubes, string $how, int $jobs): int {
    $methods = ['delete' => ['delete'], 'release' => ['release'], 'bury' => ['bury'], 'touch' => ['touch', 'delete']];
    if (!isset($methods[$how])) throw new Failure('usage');
    for ($done = 0; $jobs == 0 || $done < $jobs; $done++) {
        $job = reserve($queue, $tubes, $jobs == 0 ? 0 : null);
        if (!$job) break;
        foreach ($methods[$how] as $method) $queue->$method($job);
    }
    return $done;
}

// nothing returns the words of an answer that has no words after "ok".
$nothing = fn($result) => [];
$job = fn($id) => new JobId((int) $id);

serve([
    'put' => fn($tube, $body, int $pri = 0, int $delay = 0, int $ttr = 60) =>
        [$queue->useTube($tube)->put($body, $pri, $delay, $ttr)->getId()],
    'reserve' => function ($tubes, ?int $timeout = null) use ($queue) {
        $job = reserve($queue, $tubes, $timeout) ?? throw new Failure('timed-out');
        return [$job->getId(), $job->getData()];
    },
    'delete' => fn($id) => $nothing($queue->delete($job($id))),
    'release' => fn($id, int $pri = 0, int $delay = 0) => $nothing($queue->release($job($id), $pri, $delay)),
    'bury' => fn($id) => $nothing($queue->bury($job($id))),
    'touch' => fn($id) => $nothing($queue->touch($job($id))),
    'peek' => fn($id) => [$queue->peek($job($id))->getData()],
    'kick' => fn($tube, $bound) => [$queue->useTube($tube)->kick((int) $bound)],
    'pause' => fn($tube, $seconds) => $nothing($queue->pauseTube($tube, (int) $seconds)),
    'stats' => function ($id) use ($queue, $job) {
        $stats = $queue->statsJob($job($id));
        return [$stats['state'], $stats['tube']];
    },
    'work' => fn($tubes, $how, $jobs) => [work($queue, $tubes, $how, (int) $jobs)],
], fn(Throwable $e) => match (true) {
    $e instanceof Exception\DeadlineSoonException => 'deadline-soon',
    $e instanceof Exception\JobTooBigException => 'too-big',
    $e instanceof Exception\ConnectionException, $e instanceof Exception\SocketException => 'connection',
    str_contains($e->getMessage(), 'NOT_FOUND') => 'not-found', // only the message has the word of the response
    $e instanceof Exception\ServerException => 'server',
    default => 'other',
});
