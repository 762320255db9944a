'use strict'
// Driver of nodestalker: node nodestalker.js HOST PORT
const bs = require('nodestalker')
const { serve, options, bytes, Failure } = require('./words')

const [, , host, port] = process.argv
const codes = { TIMED_OUT: 'timed-out', DEADLINE_SOON: 'deadline-soon', NOT_FOUND: 'not-found', JOB_TOO_BIG: 'too-big' }
const watched = new Set(['default'])
let client

// forget is for a connection that has ended: the next one watches what every new one does.
function forget () {
  client = undefined
  watched.clear()
  watched.add('default')
}

// call performs one command. A client that has had an error does nothing more, but what
// its connection has reserved is lost with it.
function call (command, ...args) {
  client ??= bs.Client({ address: host, port: +port, isRaw: true })
  const c = client
  return new Promise((resolve, reject) => {
    const lost = () => { forget(); reject(new Failure('connection')) }
    c.removeAllListeners()
    c.on('error', lost)
    c.on('close', lost)
    c[command](...args).onSuccess(resolve).onError(([word]) => {
      reject(codes[word] ? new Failure(codes[word]) : new Failure('server', word))
    })
  })
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
  delete: id => call('deleteJob', id),
  release: (id, { pri = 0, delay = 0 } = {}) => call('release', id, pri, delay),
  bury: id => call('bury', id, 0),
  touch: async id => { await call('touch', id); await call('deleteJob', id) }
}

// found reads the answer to peek and stats-job, where NOT_FOUND is not an error.
function found (answer) {
  if (answer[0] === 'NOT_FOUND') throw new Failure('not-found')
  return answer
}

serve({
  async put (tube, body, ...words) {
    const o = options(words)
    await call('use', tube)
    return call('put', bytes(body), o.pri, o.delay, o.ttr)
  },
  async reserve (tubes, ...words) {
    await watch(tubes)
    const o = options(words)
    const job = await ('timeout' in o ? call('reserve_with_timeout', o.timeout) : call('reserve'))
    return [job.id, job.data]
  },
  delete: id => finish.delete(id).then(() => []),
  release: (id, ...words) => finish.release(id, options(words)).then(() => []),
  bury: id => finish.bury(id).then(() => []),
  touch: id => call('touch', id).then(() => []),
  peek: id => call('peek', id).then(job => [found(job).data]),
  async kick (tube, bound) {
    await call('use', tube)
    return call('kick', bound)
  },
  pause: (tube, seconds) => call('pause_tube', tube, +seconds).then(() => []),
  stats: id => call('stats_job', id).then(s => [found(s).state, s.tube]),
  async work (tubes, how, jobs) {
    if (!finish[how]) throw new Failure('usage')
    await watch(tubes)
    let done = 0
    while (jobs === '0' || done < +jobs) {
      const job = await (jobs === '0' ? call('reserve_with_timeout', 0) : call('reserve')).catch(e => {
        if (jobs === '0' && e.message === 'timed-out') return null
        throw e
      })
      if (!job) break
      await finish[how](job.id)
      done++
    }
    return [done]
  }
})
