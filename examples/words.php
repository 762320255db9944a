<?php
// What the drivers in PHP need: reading tasks and writing answers.
ini_set('memory_limit', '1G');
ini_set('pcre.backtrack_limit', '1000000000');

function split_words(string $line): array {
    $words = [];
    preg_match_all('/"((?:[^"\\\\]++|\\\\.)*+)"(?:\*(\d+))?|([^ \t\n]+)/', $line, $found, PREG_SET_ORDER);
    foreach ($found as $m) {
        if (isset($m[3])) {
            $words[] = $m[3];
            continue;
        }
        $letter = ['0' => "\0", 't' => "\t", 'n' => "\n", 'r' => "\r", '\\' => '\\', '"' => '"'];
        $word = preg_replace_callback('/\\\\(?:x(..)|(.))/', fn($e) => $e[1] !== '' ? chr(hexdec($e[1])) : $letter[$e[2]], $m[1]);
        $words[] = isset($m[2]) ? str_repeat($word, (int) $m[2]) : $word;
    }
    return $words;
}

function quote(string $word): string {
    if (preg_match('/\A[-A-Za-z0-9_.,:;\/+@%]+\z/', $word)) return $word;
    return '"' . preg_replace_callback('/[^ !#-\[\]-~]/', fn($m) => sprintf('\x%02x', ord($m[0])), $word) . '"';
}

function options(array $words): array {
    $options = [];
    foreach ($words as $w) [$options[explode('=', $w, 2)[0]]] = [explode('=', $w, 2)[1] ?? ''];
    return $options;
}

// A Failure is an answer "error CODE TEXT".
class Failure extends Exception {
    function __construct(public readonly string $answer, string $text = '') { parent::__construct($text); }
}

// serve performs the tasks of standard input until its end. A task is a function: its parameters without a default are the
// words of the task, those with a default are the options. It returns the words of the answer after "ok". failure returns the
// code for an exception of the library.
function serve(array $tasks, callable $failure): void {
    while (($line = fgets(STDIN)) !== false) {
        $words = split_words($line);
        try {
            $task = $tasks[array_shift($words)] ?? throw new Failure('unsupported');
            $function = new ReflectionFunction($task);
            $count = $function->getNumberOfRequiredParameters();
            $options = options(array_slice($words, $count));
            $unknown = array_diff(array_keys($options), array_map(fn($p) => $p->name, $function->getParameters()));
            if ($unknown) throw new Failure('unsupported', implode(' ', $unknown));
            if (count($words) < $count) throw new Failure('usage');
            $answer = ['ok', ...$task(...array_slice($words, 0, $count), ...$options)];
        } catch (Throwable $e) {
            $answer = ['error', $e instanceof Failure ? $e->answer : $failure($e), $e->getMessage()];
        }
        echo implode(' ', array_map('quote', array_map('strval', $answer))), "\n";
    }
}
