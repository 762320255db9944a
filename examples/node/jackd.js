'use strict'
// Driver of jackd: node jackd.js HOST PORT
const Jackd = require('jackd')
const { isUtf8 } = require('buffer')
const { serve, options, bytes, Failure } = require('./words')

const [, , host, port] = process.argv
let client, closed
const watched = new Set(['default'])

// forget is for a connection that has ended: the next one watches what every new one does.
function forget () {
  client = undefined
  watched.clear()
  watched.add('default')
}

// call does something with the connection. The library does not notify the callers that wait that
// the connection is closed, so we do.
async function call (use) {
  if (!client) {
    client = new Jackd()
    closed = new Promise((resolve, reject) => client.socket.once('close', () => reject(new Failure('connection'))))
    closed.catch(forget)
    await client.connect({ host, port: +port })
    client.socket.on('error', () => {})
  }
  return Promise.race([use(client), closed]).catch(e => {
    const [word] = (e.response ?? e.message).split(' ')
    const code = { TIMED_OUT: 'timed-out', DEADLINE_SOON: 'deadline-soon', NOT_FOUND: 'not-found', JOB_TOO_BIG: 'too-big' }[word]
    throw e.answer ? e : code ? new Failure(code) : /^[A-Z_]+$/.test(word) ? new Failure('server', word) : e
  })
}

async function watch (tubes) {
  const names = new Set(tubes.split(','))
  for (const t of names) {
    if (watched.has(t)) continue
    await call(c => c.watch(t))
    watched.add(t)
  }
  for (const t of [...watched]) {
    if (names.has(t)) continue
    await call(c => c.ignore(t))
    watched.delete(t)
  }
}

const release = (id, { pri = 0, delay = 0 } = {}) => call(c => c.release(id, { priority: +pri, delay: +delay }))
const finish = {
  delete: id => call(c => c.delete(id)),
  release,
  bury: id => call(c => c.bury(id)),
  touch: async id => { await call(c => c.touch(id)); await call(c => c.delete(id)) }
}

serve({
  async put (tube, body, ...words) {
    const o = options(words)
    const b = bytes(body)
    await call(c => c.use(tube))
    return [await call(c => c.put(isUtf8(b) ? b.toString() : b, { priority: o.pri, delay: o.delay, ttr: o.ttr }))]
  },
  async reserve (tubes, ...words) {
    await watch(tubes)
    const o = options(words)
    const job = await call(c => 'timeout' in o ? c.reserveWithTimeout(o.timeout) : c.reserve())
    return [job.id, job.payload]
  },
  delete: id => finish.delete(id),
  release: (id, ...words) => release(id, options(words)),
  bury: id => finish.bury(id),
  touch: id => call(c => c.touch(id)),
  peek: async id => [(await call(c => c.peek(id))).payload],
  async kick (tube, bound) {
    await call(c => c.use(tube))
    return [await call(c => c.kick(+bound))]
  },
  pause: (tube, seconds) => call(c => c.pauseTube(tube, { delay: +seconds })),
  async stats (id) {
    const text = await call(c => c.statsJob(id))
    return [/^state: (.*)$/m.exec(text)[1], /^tube: "?([^"\n]*)/m.exec(text)[1]]
  },
  async work (tubes, how, jobs) {
    if (!finish[how]) throw new Failure('usage')
    await watch(tubes)
    let done = 0
    while (jobs === '0' || done < +jobs) {
      const job = await call(c => jobs === '0' ? c.reserveWithTimeout(0) : c.reserve()).catch(e => {
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
