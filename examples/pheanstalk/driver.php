<?php
// Driver of Pheanstalk: php driver.php HOST PORT
require 'Pheanstalk/autoload.php';
require __DIR__ . '/../words.php';
use Pheanstalk\{Exception, JobId, Pheanstalk};

[, $host, $port] = $argv + [1 => '127.0.0.1', '11300'];

// beanstalk returns the connection, which uses and watches the tube "default" at first.
function beanstalk(): Pheanstalk {
    static $beanstalk;
    return $beanstalk ??= Pheanstalk::create($GLOBALS['host'], (int) $GLOBALS['port']);
}

function watch(string $tubes): Pheanstalk {
    $tubes = explode(',', $tubes);
    foreach ($tubes as $t) beanstalk()->watch($t);
    foreach (array_diff(beanstalk()->listTubesWatched(), $tubes) as $t) beanstalk()->ignore($t);
    return beanstalk();
}

function put(string $tube, string $body, string ...$words): array {
    $o = array_map('intval', options($words));
    return ['ok', beanstalk()->useTube($tube)->put($body, $o['pri'] ?? 0, $o['delay'] ?? 0, $o['ttr'] ?? 60)->getId()];
}

function reserve(string $tubes, string ...$words): array {
    $o = options($words);
    $job = isset($o['timeout']) ? watch($tubes)->reserveWithTimeout((int) $o['timeout']) : watch($tubes)->reserve();
    return $job ? ['ok', $job->getId(), $job->getData()] : ['error', 'timed-out'];
}

function release(string $id, string ...$words): array {
    $o = array_map('intval', options($words));
    beanstalk()->release(new JobId((int) $id), $o['pri'] ?? 0, $o['delay'] ?? 0);
    return ['ok'];
}

// command performs a method of the library that takes only the job.
function command(string $method): callable {
    return function (string $id) use ($method) {
        beanstalk()->$method(new JobId((int) $id));
        return ['ok'];
    };
}

function work(string $tubes, string $how, string $jobs): array {
    $all = [
        'delete' => fn($j) => beanstalk()->delete($j),
        'release' => fn($j) => beanstalk()->release($j, 0),
        'bury' => fn($j) => beanstalk()->bury($j),
        'touch' => [fn($j) => beanstalk()->touch($j), fn($j) => beanstalk()->delete($j)],
    ];
    if (!isset($all[$how])) return ['error', 'usage'];
    for ($done = 0; $jobs == 0 || $done < $jobs; $done++) {
        $job = $jobs == 0 ? watch($tubes)->reserveWithTimeout(0) : watch($tubes)->reserve();
        if (!$job) break;
        foreach ((array) $all[$how] as $do) $do($job);
    }
    return ['ok', $done];
}

function stats(string $id): array {
    $s = beanstalk()->statsJob(new JobId((int) $id));
    return ['ok', $s['state'], $s['tube']];
}

// failure is the answer for an exception. For some responses, only its message has the word of the response.
function failure(Throwable $e): array {
    return match (true) {
        $e instanceof Exception\DeadlineSoonException => ['error', 'deadline-soon'],
        $e instanceof Exception\JobTooBigException => ['error', 'too-big'],
        $e instanceof Exception\ConnectionException, $e instanceof Exception\SocketException => ['error', 'connection', $e->getMessage()],
        str_contains($e->getMessage(), 'NOT_FOUND') => ['error', 'not-found'],
        $e instanceof Exception\ServerException && preg_match('/\A[A-Z_]+/', $e->getMessage(), $m) => ['error', 'server', $m[0]],
        $e instanceof ArgumentCountError => ['error', 'usage', $e->getMessage()],
        default => ['error', 'other', get_class($e) . ': ' . $e->getMessage()],
    };
}

$tasks = [
    'put' => 'put', 'reserve' => 'reserve', 'delete' => command('delete'), 'release' => 'release', 'bury' => command('bury'),
    'touch' => command('touch'), 'stats' => 'stats', 'work' => 'work',
    'peek' => fn($id) => ['ok', beanstalk()->peek(new JobId((int) $id))->getData()],
    'pause' => function ($tube, $seconds) {
        beanstalk()->pauseTube($tube, (int) $seconds);
        return ['ok'];
    },
    'kick' => fn($tube, $bound) => ['ok', beanstalk()->useTube($tube)->kick((int) $bound)],
];
while (($line = fgets(STDIN)) !== false) {
    $words = split_words($line);
    $task = $tasks[array_shift($words)] ?? null;
    try {
        $answer = $task ? $task(...$words) : ['error', 'unsupported'];
    } catch (Throwable $e) {
        $answer = failure($e);
    }
    echo implode(' ', array_map('quote', array_map('strval', $answer))), "\n";
}
