'use strict'
// Driver of node-gearman: node node-gearman.js HOST PORT
const Gearman = require('node-gearman')
const { serve, options, bytes, Failure } = require('./words')

const [, , host, port] = process.argv
let client

function connect () {
  client ??= new Gearman(host, +port)
  client.removeAllListeners()
  return client
}

function submit (fn, workload, ...words) {
  const o = options(words)
  if ('at' in o || 'schedule' in o || 'exceptions' in o) throw new Failure('unsupported')
  const c = connect()
  return new Promise((resolve, reject) => {
    c.on('error', e => reject(new Failure('connection', e.message)))
    c.on('close', () => reject(new Failure('connection')))
    const job = c.submitJob(fn, bytes(workload), o.unique, { priority: o.priority, background: 'background' in o })
    if ('background' in o) return setTimeout(resolve, 100, ['']) // it does not tell the handle
    if ('timeout' in o) job.setTimeout(1000 * o.timeout, () => reject(new Failure('timed-out')))
    const result = []
    job.on('data', data => result.push(data ?? '')) // of WORK_DATA and of WORK_COMPLETE alike
    job.on('end', () => resolve([Buffer.concat(result.map(Buffer.from))]))
    job.on('error', e => reject(new Failure(e.message === 'Job failed' && c.connected ? 'failed' : 'connection', e.message)))
  })
}

const how = {
  echo: (payload, worker) => worker.end(payload),
  reverse: (payload, worker) => worker.end(payload && Buffer.from(payload).reverse()),
  empty: (payload, worker) => worker.end(''),
  fail: (payload, worker) => worker.error(),
  data: (payload, worker) => { worker.write(payload); worker.end(payload) }
}

function work (functions, act, jobs, ...words) {
  if (['exception', 'warning', 'status'].includes(act) || words.length) throw new Failure('unsupported')
  if (!how[act]) throw new Failure('usage')
  const worker = new Gearman(host, +port)
  return new Promise((resolve, reject) => {
    let done = 0
    worker.on('error', e => reject(new Failure('connection', e.message)))
    worker.on('close', () => reject(new Failure('connection')))
    worker.on('idle', () => { if (jobs === '0') resolve([done]) })
    for (const fn of functions.split(',')) {
      worker.registerWorker(fn, (payload, w) => {
        if (jobs !== '0' && done >= +jobs) return // it goes on grabbing; what it got comes back when we leave
        how[act](payload, w)
        if (++done === +jobs) setTimeout(resolve, 50, [done]) // the result goes out after us
      })
    }
  }).finally(() => {
    worker.removeAllListeners()
    worker.on('error', () => {}) // what arrives after close
    worker.close()
  })
}

serve({ submit, batch: (fn, ...all) => Promise.all(all.map(w => submit(fn, w))).then(r => r.map(([result]) => result)), work })
