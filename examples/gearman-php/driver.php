<?php
// Driver of PHP's gearman extension: php driver.php HOST PORT
require __DIR__ . '/../words.php';

[, $host, $port] = $argv + [1 => '127.0.0.1', '4730'];

// What a return code of the library's is called in the contract.
function failure($peer): array {
    $code = $peer->returnCode();
    return ['error', match (true) {
        $code == GEARMAN_WORK_FAIL => 'failed',
        $code == GEARMAN_WORK_EXCEPTION => 'exception',
        $code == GEARMAN_TIMEOUT => 'timed-out',
        $code == GEARMAN_SERVER_ERROR => 'server',
        in_array($code, [GEARMAN_COULD_NOT_CONNECT, GEARMAN_LOST_CONNECTION, GEARMAN_ERRNO, GEARMAN_SEND_BUFFER_TOO_SMALL, GEARMAN_NO_SERVERS]) => 'connection',
        default => 'other',
    }, $peer->error() ?: "code $code"];
}

function client(bool $fresh = false): GearmanClient {
    static $client;
    if (!$client || $fresh) {
        $client = new GearmanClient();
        $client->addServer($GLOBALS['host'], (int) $GLOBALS['port']);
    }
    $client->clearCallbacks();
    return $client;
}

function submit(string $fn, string $work, string ...$words): array {
    $o = options($words);
    if (array_diff(array_keys($o), ['unique', 'priority', 'timeout', 'background', 'exceptions'])) return ['error', 'unsupported'];
    $c = client(isset($o['timeout']) || isset($o['exceptions']));
    $c->setTimeout(isset($o['timeout']) ? 1000 * (int) $o['timeout'] : -1);
    if (isset($o['exceptions'])) $c->enableExceptionHandler();
    $level = ['low' => 'Low', 'high' => 'High'][$o['priority'] ?? ''] ?? '';
    if (isset($o['background'])) {
        $handle = $c->{"do{$level}Background"}($fn, $work, $o['unique'] ?? null);
        return $c->returnCode() == GEARMAN_SUCCESS ? ['ok', $handle] : failure($c);
    }
    $end = $events = [];
    $c->setDataCallback(function ($t) use (&$events) { array_push($events, 'data', $t->data()); });
    $c->setWarningCallback(function ($t) use (&$events) { array_push($events, 'warning', $t->data()); });
    $c->setStatusCallback(function ($t) use (&$events) { array_push($events, 'status', $t->taskNumerator() . '/' . $t->taskDenominator()); });
    $c->setCompleteCallback(function ($t) use (&$end) { $end = ['ok', $t->data()]; });
    $c->setExceptionCallback(function ($t) use (&$end) { $end = ['error', 'exception', $t->data()]; });
    $c->setFailCallback(function ($t) use (&$end) { $end = $end ?: ['error', 'failed']; });
    $c->{"addTask$level"}($fn, $work, null, $o['unique'] ?? null);
    if (!$c->runTasks() && !$end) return failure($c);
    if (!$end) return failure($c);
    return $end[0] == 'ok' ? array_merge($end, $events) : $end;
}

function batch(string $fn, string ...$works): array {
    $c = client();
    $results = [];
    $failed = null;
    $c->setCompleteCallback(function ($t, $i) use (&$results) { $results[$i] = $t->data(); });
    $c->setFailCallback(function ($t) use (&$failed) { $failed = ['error', 'failed']; });
    foreach ($works as $i => $w) $c->addTask($fn, $w, "$i");
    if (!$c->runTasks()) return failure($c);
    ksort($results);
    return $failed ?? (count($results) == count($works) ? ['ok', ...$results] : ['error', 'other', 'results are missing']);
}

function status(string $handle): array {
    $c = client();
    [$known, $running, $n, $d] = $c->jobStatus($handle);
    return $c->returnCode() == GEARMAN_SUCCESS ? ['ok', (int) $known, (int) $running, $n, $d] : failure($c);
}

function ping(string $data): array {
    $c = client();
    return $c->ping($data) ? ['ok', $data] : failure($c);
}

function work(string $functions, string $how, string $jobs, string ...$words): array {
    $o = options($words);
    $all = [
        'echo' => fn($j) => $j->workload(),
        'reverse' => fn($j) => strrev($j->workload()),
        'empty' => fn($j) => '',
        'fail' => fn($j) => $j->sendFail() ? null : null,
        'exception' => fn($j) => $j->sendException($j->workload()) ? null : null,
        'data' => fn($j) => $j->sendData($j->workload()) ? $j->workload() : null,
        'warning' => fn($j) => $j->sendWarning($j->workload()) ? $j->workload() : null,
        'status' => fn($j) => $j->sendStatus(1, 2) ? $j->workload() : null,
    ];
    if (!isset($all[$how])) return ['error', 'usage'];
    $w = new GearmanWorker();
    $w->addServer($GLOBALS['host'], (int) $GLOBALS['port']);
    if (isset($o['id'])) $w->setId($o['id']);
    if ($jobs == 0) $w->setTimeout(500);
    $done = 0;
    foreach (explode(',', $functions) as $fn) {
        $w->addFunction($fn, function ($job) use (&$done, $all, $how) {
            $done++;
            return $all[$how]($job);
        }, null, (int) ($o['timeout'] ?? 0));
    }
    while ($done < $jobs || $jobs == 0) {
        @$w->work();
        $code = $w->returnCode();
        if ($code == GEARMAN_TIMEOUT && $jobs == 0) break;
        if (!in_array($code, [GEARMAN_SUCCESS, GEARMAN_WORK_FAIL, GEARMAN_WORK_EXCEPTION, GEARMAN_TIMEOUT])) return failure($w);
    }
    return ['ok', $done];
}

$tasks = ['submit' => 'submit', 'batch' => 'batch', 'status' => 'status', 'echo' => 'ping', 'work' => 'work'];
while (($line = fgets(STDIN)) !== false) {
    $words = split_words($line);
    $task = $tasks[array_shift($words)] ?? null;
    try {
        $answer = $task ? $task(...$words) : ['error', 'unsupported'];
    } catch (ArgumentCountError $e) {
        $answer = ['error', 'usage', $e->getMessage()];
    } catch (Throwable $e) {
        $answer = ['error', str_contains($e->getMessage(), 'connect') ? 'connection' : 'other', $e->getMessage()];
    }
    echo implode(' ', array_map('quote', array_map('strval', $answer))), "\n";
}
