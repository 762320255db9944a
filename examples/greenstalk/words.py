"""Read tasks and write answers: what a driver in Python needs, whatever its library is."""
import inspect
import re
import sys

LETTERS = {b'0': b'\0', b't': b'\t', b'n': b'\n', b'r': b'\r', b'\\': b'\\', b'"': b'"'}


class Failure(Exception):
    """The answer "error CODE TEXT"."""

    def __init__(self, code, text=''):
        super().__init__(text)
        self.code = code


def split(line):
    """Return the words of a task, as bytes."""
    words = []
    for quoted, times, bare in re.findall(rb'"((?:[^"\\]|\\.)*)"(?:\*(\d+))?|([^ \t\n]+)', line):
        word = bare or re.sub(
            rb'\\(?:x(..)|(.))', lambda m: bytes([int(m[1], 16)]) if m[1] else LETTERS[m[2]], quoted)
        words.append(word * int(times or 1))
    return words


def quote(value):
    """Return a value as a word of an answer."""
    word = value if isinstance(value, bytes) else str(value).encode()
    if re.fullmatch(rb'[-A-Za-z0-9_.,:;/+@%]+', word):
        return word
    return b'"' + re.sub(rb'[^ !#-\[\]-~]', lambda m: b'\\x%02x' % m[0][0], word) + b'"'


def perform(tasks, name, words):
    """Perform a task. Its parameters without a default are words, those with a default are options."""
    if name not in tasks:
        raise Failure('unsupported')
    parameters = inspect.signature(tasks[name]).parameters.values()
    count = sum(p.default is p.empty for p in parameters)
    options = dict(w.decode().split('=', 1) if b'=' in w else (w.decode(), True) for w in words[count:])
    if len(words) < count:
        raise Failure('usage')
    if not options.keys() <= {p.name for p in parameters}:
        raise Failure('unsupported')
    return tasks[name](*words[:count], **options)


def serve(tasks, code):
    """Perform the tasks of standard input until its end. code returns the code for an exception of the library."""
    answers, sys.stdout = sys.stdout.buffer, sys.stderr  # standard output is for answers
    for line in sys.stdin.buffer:
        name, *words = split(line)
        try:
            answer = ['ok', *(perform(tasks, name.decode(), words) or [])]
        except Failure as e:
            answer = ['error', e.code, e]
        except Exception as e:
            answer = ['error', code(e), repr(e)]
        answers.write(b' '.join(map(quote, answer)) + b'\n')
        answers.flush()
