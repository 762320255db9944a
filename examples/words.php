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
