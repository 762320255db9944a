"""A client of Beanstalk with those functions of the module greenstalk that the driver calls, for the tests: Debian has no
package of greenstalk."""
import socket
from collections import namedtuple

Job = namedtuple('Job', 'id body')


class BeanstalkdError(Exception):
    pass


class DeadlineSoonError(BeanstalkdError):
    pass


class JobTooBigError(BeanstalkdError):
    pass


class NotFoundError(BeanstalkdError):
    pass


class TimedOutError(BeanstalkdError):
    pass


ERRORS = {'DEADLINE_SOON': DeadlineSoonError, 'JOB_TOO_BIG': JobTooBigError, 'NOT_FOUND': NotFoundError, 'TIMED_OUT': TimedOutError}


class Client:
    def __init__(self, address, encoding):
        assert encoding is None  # bodies are bytes
        self.replies = socket.create_connection(address).makefile('rwb')

    def command(self, line, expected, body=None):
        """Send a command. Return the words after the expected reply, and the body if the last of these words is its size."""
        self.replies.write(line.encode() + b'\r\n' + (b'' if body is None else body + b'\r\n'))
        self.replies.flush()
        reply = self.replies.readline()
        if not reply.endswith(b'\r\n'):
            raise ConnectionError('the server closed the connection')
        word, *words = reply.decode().split()
        if word != expected:
            raise ERRORS.get(word, BeanstalkdError)(word)
        if word in ('RESERVED', 'FOUND', 'OK'):
            size = int(words.pop())
            data = self.replies.read(size + 2)
            if len(data) < size + 2:
                raise ConnectionError('the server closed the connection')
            words.append(data[:size])
        return words

    def put(self, body, priority, delay, ttr):
        return int(self.command(f'put {priority} {delay} {ttr} {len(body)}', 'INSERTED', body)[0])

    def reserve(self, timeout):
        id, body = self.command('reserve' if timeout is None else f'reserve-with-timeout {timeout}', 'RESERVED')
        return Job(int(id), body)

    def use(self, tube):
        self.command(f'use {tube}', 'USING')

    def watch(self, tube):
        self.command(f'watch {tube}', 'WATCHING')

    def ignore(self, tube):
        self.command(f'ignore {tube}', 'WATCHING')

    def delete(self, job):
        self.command(f'delete {job.id}', 'DELETED')

    def release(self, job, priority=65536, delay=0):
        self.command(f'release {job.id} {priority} {delay}', 'RELEASED')

    def bury(self, job, priority=65536):
        self.command(f'bury {job.id} {priority}', 'BURIED')

    def touch(self, job):
        self.command(f'touch {job.id}', 'TOUCHED')

    def peek(self, id):
        return Job(id, self.command(f'peek {id}', 'FOUND')[1])

    def kick(self, bound):
        return int(self.command(f'kick {bound}', 'KICKED')[0])

    def pause_tube(self, tube, delay):
        self.command(f'pause-tube {tube} {delay}', 'PAUSED')

    def stats_job(self, id):
        body = self.command(f'stats-job {id}', 'OK')[0].decode()
        return dict(line.split(': ', 1) for line in body.splitlines()[1:])
