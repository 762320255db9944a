'use strict'
// Driver of gearman-node: node gearman-node.js HOST PORT
const { Client, Worker } = require('gearman-node')
const { serve, options, bytes, Failure } = require('./words')

const [, , host, port] = process.argv
let client

// submit submits a job. The library connects again by itself, and does not report a lost connection to the jobs that wait; so the
// driver asks the object that connects.
function submit (fn, workload, ...words) {
  if (words.length) throw new Failure('unsupported')
  client ??= new Client({ host, port: +port })
  const c = client
  let lost, refused
  return new Promise((resolve, reject) => {
    lost = e => reject(new Failure('connection', e?.message ?? ''))
    refused = (code, text) => reject(new Failure('server', code, text))
    c.reconnecter.on('disconnect', lost)
    c.removeAllListeners('error')
    c.on('error', lost)
    c.on('ERROR', refused)
    const events = []
    const job = c.submitJob(fn, bytes(workload))
    job.on('data', (handle, data) => events.push('data', data))
    job.on('warning', (handle, text) => events.push('warning', text))
    job.on('status', (handle, numerator, denominator) => events.push('status', `${numerator}/${denominator}`))
    job.on('complete', (handle, data) => resolve([data ?? '', ...events]))
    job.on('fail', () => reject(new Failure('failed')))
  }).finally(() => {
    c.reconnecter.removeListener('disconnect', lost)
    c.removeListener('ERROR', refused)
  })
}

const how = {
  echo: (payload, w) => w.complete(payload),
  reverse: (payload, w) => w.complete(Buffer.from(payload ?? '').reverse()),
  empty: (payload, w) => w.complete(''),
  fail: (payload, w) => w.error(),
  data: (payload, w) => { w.data(payload); w.complete(payload) },
  warning: (payload, w) => { w.warning(payload); w.complete(payload) },
  status: (payload, w) => { w.status(1, 2); w.complete(payload) }
}

// work runs one worker object for each function, because an object has one function. A job takes a moment, as in a real program. If a
// connection is lost, the library connects again and goes on. The task has then failed, but the answer waits until the library has sent
// what it holds for the old connection.
function work (functions, act, jobs, ...words) {
  const o = options(words)
  if ('id' in o || act === 'exception') throw new Failure('unsupported')
  if (!how[act]) throw new Failure('usage')
  const names = functions.split(',')
  let done = 0
  let idle = 0
  let lost = false
  const workers = []
  return new Promise((resolve, reject) => {
    workers.push(...names.map(fn => {
      const w = new Worker(fn, (payload, helper) => {
        if (jobs !== '0' && done >= +jobs) return
        done++
        if (done === +jobs) for (const w of workers) w.active = false // it asks for no more jobs
        const last = done === +jobs
        setTimeout(() => {
          how[act](payload, helper)
          if (last && !lost) setTimeout(resolve, 50, [done]) // its result goes out first
        }, 20)
      }, { host, port: +port, ...('timeout' in o && { timeout: +o.timeout }) })
      w.on('error', e => reject(new Failure('connection', e.message)))
      w.on('ERROR', (code, text) => reject(new Failure('server', code, text)))
      w.reconnecter.on('disconnect', () => {
        if (!w.connected) return
        lost = true
        const fail = () => reject(new Failure('connection'))
        w.once('connect', () => setTimeout(fail, 100))
        setTimeout(fail, 3000) // the server may not come back
      })
      w.on('NO_JOB', () => { if (jobs === '0' && ++idle === names.length) resolve([done]) })
      return w
    }))
  }).finally(() => {
    for (const w of workers) {
      w.reconnecter.removeAllListeners('disconnect')
      w.reconnecter.reconnect = false // also if it is not connected
      w.disconnect()
    }
  })
}

serve({ submit, batch: (fn, ...all) => Promise.all(all.map(w => submit(fn, w))).then(r => r.map(([result]) => result)), work })
