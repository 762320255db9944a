'use strict'
// Driver of gearmanode: node gearmanode.js HOST PORT
const gearmanode = require('gearmanode')
const { serve, options, bytes, Failure } = require('./words')

const servers = [{ host: process.argv[2], port: +process.argv[3] }]
let client

function connect () {
  client ??= gearmanode.client({ servers })
  client.removeAllListeners()
  return client
}

function submit (fn, workload, ...words) {
  const o = options(words)
  if ('at' in o || 'schedule' in o || 'timeout' in o || 'exceptions' in o) throw new Failure('unsupported')
  const c = connect()
  return new Promise((resolve, reject) => {
    const fail = (...answer) => reject(new Failure(...answer))
    c.on('socketError', (uid, e) => fail('connection', e.message))
    c.on('socketDisconnect', () => fail('connection'))
    c.on('jobServerError', (uid, code, text) => fail('server', code, text))
    c.on('error', e => fail('protocol', e.message))
    const job = c.submitJob(fn, bytes(workload), {
      background: 'background' in o,
      priority: (o.priority ?? 'normal').toUpperCase(),
      ...('unique' in o && { unique: o.unique })
    })
    if (job instanceof Error) return fail('usage', job.message)
    const events = []
    job.on('created', () => { if ('background' in o) resolve([job.handle]) })
    job.on('workData', data => events.push('data', data))
    job.on('warning', data => events.push('warning', data))
    job.on('status', s => events.push('status', `${s.percent_done_num}/${s.percent_done_den}`))
    job.on('complete', () => resolve([job.response, ...events]))
    job.on('failed', () => fail('failed'))
    job.on('exception', text => fail('exception', text))
  })
}

function echo (data) {
  const server = connect().jobServers[0]
  return new Promise((resolve, reject) => {
    client.on('socketError', (uid, e) => reject(new Failure('connection', e.message)))
    client.on('socketDisconnect', () => reject(new Failure('connection')))
    server.once('echo', text => resolve([bytes(text)]))
    server.echo(data)
  })
}

const how = {
  echo: job => job.workComplete(job.payload),
  reverse: job => job.workComplete(Buffer.from(job.payload).reverse()),
  empty: job => job.workComplete(''),
  fail: job => job.reportError(),
  exception: job => job.reportException(job.payload),
  data: job => { job.sendWorkData(job.payload); job.workComplete(job.payload) },
  warning: job => { job.reportWarning(job.payload); job.workComplete(job.payload) },
  status: job => { job.reportStatus(1, 2); job.workComplete(job.payload) }
}

function work (functions, act, jobs, ...words) {
  const o = options(words)
  if (!how[act]) throw new Failure('usage')
  if (jobs === '0') throw new Failure('unsupported') // it does not tell that there was no job
  const worker = gearmanode.worker({ servers })
  return new Promise((resolve, reject) => {
    worker.on('socketError', (uid, e) => reject(new Failure('connection', e.message)))
    worker.on('socketDisconnect', () => reject(new Failure('connection')))
    worker.on('jobServerError', (uid, code, text) => reject(new Failure('server', code, text)))
    worker.on('error', e => reject(new Failure('protocol', e.message)))
    let done = 0
    if ('id' in o) worker.setWorkerId(o.id)
    for (const fn of functions.split(',')) {
      worker.addFunction(fn, job => {
        if (done >= +jobs) return
        how[act](job)
        if (++done === +jobs) setImmediate(() => resolve([done]))
      }, 'timeout' in o ? { timeout: +o.timeout } : {})
    }
  }).finally(() => {
    worker.removeAllListeners()
    worker.close()
  })
}

serve({ submit, batch: (fn, ...all) => Promise.all(all.map(w => submit(fn, w))).then(r => r.map(([result]) => result)), echo, work })
