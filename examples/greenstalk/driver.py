"""Driver of greenstalk: python3 driver.py HOST PORT"""
import sys

import greenstalk

from words import Failure, serve

client = None
watched = set()


def queue():
    """Return the connection. If there is none, or the last one failed, connect."""
    global client
    if client is None:
        client = greenstalk.Client((sys.argv[1], int(sys.argv[2])), encoding=None)
        watched.clear()
        watched.add('default')
    return client


def using(tube):
    queue().use(tube.decode())
    return queue()


def reserve(tubes, timeout=None):
    """Reserve a job of exactly the given tubes."""
    names = set(tubes.decode().split(','))
    q = queue()
    for tube in names - watched:
        q.watch(tube)
    for tube in watched - names:
        q.ignore(tube)
    watched.clear()
    watched.update(names)
    return q.reserve(None if timeout is None else int(timeout))


def job(id):
    return greenstalk.Job(int(id), b'')


FINISH = {
    b'delete': lambda j: queue().delete(j),
    b'release': lambda j: queue().release(j),
    b'bury': lambda j: queue().bury(j),
    b'touch': lambda j: (queue().touch(j), queue().delete(j)),
}


def work(tubes, how, jobs):
    if how not in FINISH:
        raise Failure('usage')
    done = 0
    while jobs == b'0' or done < int(jobs):
        try:
            FINISH[how](reserve(tubes, 0 if jobs == b'0' else None))
        except greenstalk.TimedOutError:
            break
        done += 1
    return [done]


# Each function returns the words of the answer after "ok".
TASKS = {
    'put': lambda tube, body, pri=0, delay=0, ttr=60: [using(tube).put(body, int(pri), int(delay), int(ttr))],
    'reserve': lambda tubes, timeout=None: (lambda j: [j.id, j.body])(reserve(tubes, timeout)),
    'delete': lambda id: queue().delete(job(id)),
    'release': lambda id, pri=0, delay=0: queue().release(job(id), int(pri), int(delay)),
    'bury': lambda id: queue().bury(job(id)),
    'touch': lambda id: queue().touch(job(id)),
    'peek': lambda id: [queue().peek(int(id)).body],
    'kick': lambda tube, bound: [using(tube).kick(int(bound))],
    'pause': lambda tube, seconds: queue().pause_tube(tube.decode(), int(seconds)),
    'stats': lambda id: [queue().stats_job(int(id))[key] for key in ('state', 'tube')],
    'work': work,
}
CODES = {
    greenstalk.TimedOutError: 'timed-out', greenstalk.DeadlineSoonError: 'deadline-soon',
    greenstalk.NotFoundError: 'not-found', greenstalk.JobTooBigError: 'too-big',
    greenstalk.BeanstalkdError: 'server', OSError: 'connection',
}


def code(error):
    global client
    if not isinstance(error, greenstalk.BeanstalkdError):
        client = None
    return next((code for kind, code in CODES.items() if isinstance(error, kind)), 'other')


serve(TASKS, code)
