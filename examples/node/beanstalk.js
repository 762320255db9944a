'use strict'
// What the drivers of several Beanstalk libraries have in common: the tasks, made of the commands of the protocol.
const { serve, options, Failure } = require('./words')

const codes = { TIMED_OUT: 'timed-out', DEADLINE_SOON: 'deadline-soon', NOT_FOUND: 'not-found', JOB_TOO_BIG: 'too-big' }

// failure turns an error response of the server, such as "NOT_FOUND", into an answer.
function failure (response) {
  const [word] = response.split(/[ \r\n]/)
  return codes[word] ? new Failure(codes[word]) : new Failure('server', word)
}

// serveBeanstalk performs tasks with a library. connect(lost) returns a connection, and calls lost(error) when the connection has
// ended. Each command is a function of the connection and the arguments of the command, in the order of the protocol, except that
// reserve has a timeout, which may be undefined, and stats returns the fields state and tube. A job ID is what the library returned,
// or a string; other numbers are of type Number.
function serveBeanstalk (connect, commands) {
  const watched = new Set(['default']) // what a new connection watches
  let conn, ended

  function forget () {
    conn = undefined
    watched.clear()
    watched.add('default')
  }

  async function call (command, ...args) {
    if (!commands[command]) throw new Failure('unsupported')
    if (!conn) {
      let lost
      ended = new Promise((resolve, reject) => { lost = reject })
      ended.catch(forget)
      conn = connect(e => lost(new Failure('connection', e?.message ?? '')))
    }
    const c = await Promise.race([conn, ended])
    return Promise.race([commands[command](c, ...args), ended])
  }

  async function watch (tubes) {
    const names = new Set(tubes.split(','))
    for (const t of names) {
      if (watched.has(t)) continue
      await call('watch', t)
      watched.add(t)
    }
    for (const t of [...watched]) {
      if (names.has(t)) continue
      await call('ignore', t)
      watched.delete(t)
    }
  }

  const finish = {
    delete: id => call('delete', id),
    release: (id, { pri = 0, delay = 0 } = {}) => call('release', id, +pri, +delay),
    bury: id => call('bury', id, 0),
    touch: async id => { await call('touch', id); await call('delete', id) }
  }

  serve({
    async put (tube, body, ...words) {
      const { pri = 0, delay = 0, ttr = 60 } = options(words)
      await call('use', tube)
      return [await call('put', body, +pri, +delay, +ttr)]
    },
    async reserve (tubes, ...words) {
      const { timeout } = options(words)
      await watch(tubes)
      return call('reserve', timeout && +timeout)
    },
    delete: id => finish.delete(id).then(() => []),
    release: (id, ...words) => finish.release(id, options(words)).then(() => []),
    bury: id => finish.bury(id).then(() => []),
    touch: id => call('touch', id).then(() => []),
    peek: id => call('peek', id).then(body => [body]),
    async kick (tube, bound) {
      await call('use', tube)
      return [await call('kick', +bound)]
    },
    pause: (tube, seconds) => call('pause', tube, +seconds).then(() => []),
    stats: id => call('stats', id).then(({ state, tube }) => [state, tube]),
    async work (tubes, how, jobs) {
      if (!finish[how]) throw new Failure('usage')
      await watch(tubes)
      let done = 0
      while (jobs === '0' || done < +jobs) {
        const job = await call('reserve', jobs === '0' ? 0 : undefined).catch(e => {
          if (jobs === '0' && e.message === 'timed-out') return null
          throw e
        })
        if (!job) break
        await finish[how](job[0])
        done++
      }
      return [done]
    }
  })
}

module.exports = { serveBeanstalk, failure }
