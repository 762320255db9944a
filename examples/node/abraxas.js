'use strict'
// Driver of abraxas: node abraxas.js HOST PORT
const Gearman = require('abraxas')
const { serve, options, bytes, Failure } = require('./words')

const [, , host, port] = process.argv
let client

function connect () {
  client ??= Gearman.Client.connect({ host, port: +port })
  client.removeAllListeners('connection-error')
  return client
}

// A failed job, an exception and a lost connection come as errors of their own.
function failure (e) {
  const code = { JobException: 'exception', JobFail: 'failed', Socket: 'connection', ResponseTimeout: 'timed-out', SubmitTimeout: 'timed-out' }[e.name.replace(/^.*[.:]|Error$/g, '')]
  return new Failure(code ?? 'other', e.name, e.message)
}

function submit (fn, workload, ...words) {
  const o = options(words)
  if ('exceptions' in o) throw new Failure('unsupported') // it always asks for them
  const c = connect()
  const opts = { ...('priority' in o && o.priority !== 'normal' && { priority: o.priority }), ...('unique' in o && { uniqueid: o.unique }), ...('timeout' in o && { responseTimeout: 1000 * o.timeout }) }
  return new Promise((resolve, reject) => {
    c.on('connection-error', e => reject(new Failure('connection', e.message)))
    const [minute, hour, day, month, dow] = (o.schedule ?? '').split(',')
    const task = 'at' in o
      ? c.submitJobAt(fn, +o.at, opts, bytes(workload))
      : 'schedule' in o
        ? c.submitJobSched(fn, { minute, hour, day, month, dow }, opts, bytes(workload))
        : c['background' in o ? 'submitJobBg' : 'submitJob'](fn, opts, bytes(workload))
    const events = []
    task.on('warn', text => events.push('warning', text))
    task.then(result => resolve([result, ...events]), e => reject(failure(e)))
  })
}

const echo = data => new Promise((resolve, reject) => {
  connect().on('connection-error', e => reject(new Failure('connection', e.message)))
  connect().echo({}, bytes(data)).then(d => resolve([d]), e => reject(failure(e)))
})

const how = {
  echo: task => task.payload,
  reverse: task => Buffer.from(task.payload).reverse(),
  empty: () => '',
  exception: task => { throw new Error(task.payload) },
  warning: task => { task.warn(task.payload); return task.payload },
  status: task => { task.status(0.5); return task.payload }
}

function work (functions, act, jobs, ...words) {
  const o = options(words)
  if (act === 'data' || act === 'fail' || jobs === '0') throw new Failure('unsupported')
  if (!how[act]) throw new Failure('usage')
  return new Promise((resolve, reject) => {
    const worker = Gearman.Client.connect({ host, port: +port })
    let done = 0
    let connected = false
    worker.on('connect', () => { connected = true })
    worker.on('connection-error', e => { if (!connected) reject(new Failure('connection', e.message)) })
    worker.on('disconnect', () => reject(new Failure('connection')))
    if ('id' in o) worker.setClientId(o.id)
    for (const fn of functions.split(',')) {
      worker.registerWorker(fn, 'timeout' in o ? { timeout: +o.timeout } : {}, task => {
        if (done >= +jobs) return // it goes on grabbing; what it got comes back when we leave
        if (++done === +jobs) {
          setTimeout(() => {
            resolve([done])
            worker.disconnect()
          }, 50) // its result goes out after us
        }
        return how[act](task)
      })
    }
  })
}

serve({ submit, batch: (fn, ...all) => Promise.all(all.map(w => submit(fn, w))).then(r => r.map(([result]) => result)), echo, work })
