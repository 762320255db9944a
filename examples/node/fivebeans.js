'use strict'
// Driver of fivebeans: node fivebeans.js HOST PORT
const { client: Client } = require('fivebeans')
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

// call performs one command. The library does not tell those who wait that the
// connection is closed, so we do.
async function call (command, ...args) {
  client ??= await new Promise((resolve, reject) => {
    const c = new Client(host, +port)
    c.on('error', e => reject(new Failure('connection', e.message)))
    c.on('close', () => { forget(); c.emit('lost') })
    c.on('connect', () => resolve(c))
    c.setMaxListeners(0)
    c.connect()
  })
  const c = client
  return new Promise((resolve, reject) => {
    const lost = () => reject(new Failure('connection'))
    c.once('lost', lost)
    c[command](...args, (err, ...result) => {
      c.removeListener('lost', lost)
      if (!err) return resolve(result)
      const word = String(err)
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
  delete: id => call('destroy', id),
  release: (id, { pri = 0, delay = 0 } = {}) => call('release', id, pri, delay),
  bury: id => call('bury', id, 0),
  touch: async id => { await call('touch', id); await call('destroy', id) }
}

serve({
  async put (tube, body, ...words) {
    const o = options(words)
    await call('use', tube)
    return call('put', o.pri ?? 0, o.delay ?? 0, o.ttr ?? 60, bytes(body))
  },
  async reserve (tubes, ...words) {
    await watch(tubes)
    const o = options(words)
    return 'timeout' in o ? call('reserve_with_timeout', o.timeout) : call('reserve')
  },
  delete: id => finish.delete(id).then(() => []),
  release: (id, ...words) => finish.release(id, options(words)).then(() => []),
  bury: id => finish.bury(id).then(() => []),
  touch: id => call('touch', id).then(() => []),
  peek: id => call('peek', id).then(([, body]) => [body]),
  async kick (tube, bound) {
    await call('use', tube)
    return call('kick', bound)
  },
  stats: id => call('stats_job', id).then(([s]) => [s.state, s.tube]),
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
      await finish[how](job[0])
      done++
    }
    return [done]
  }
})
