'use strict'
// Driver of gearman: node gearman.js HOST PORT
const gearman = require('gearman')
const { serve, options, bytes, Failure } = require('./words')

const [, , host, port] = process.argv
let client

function connect () {
  const c = gearman(host, +port)
  return new Promise((resolve, reject) => {
    c.on('error', e => reject(new Failure('connection', e.message)))
    c.on('close', () => { if (client === c) client = undefined })
    c.connect(() => resolve(c))
  })
}

// listen waits until events call resolve or reject, and then removes the listeners.
function listen (c, events, begin) {
  const all = []
  return new Promise((resolve, reject) => {
    const on = (event, f) => { c.on(event, f); all.push([event, f]) }
    on('error', e => reject(new Failure('connection', e.message)))
    on('close', () => reject(new Failure('connection')))
    on('ERROR', (code, text) => reject(new Failure('server', code, text)))
    events(on, resolve, reject)
    begin(resolve)
  }).finally(() => all.forEach(([event, f]) => c.removeEventListener(event, f)))
}

// submitAll submits jobs, and returns their results and their other events. The library does not say which job JOB_CREATED is about, so the driver
// relies on their order.
async function submitAll (fn, workloads, o) {
  if ('at' in o || 'schedule' in o || 'timeout' in o) throw new Failure('unsupported')
  const c = client ??= await connect()
  if ('exceptions' in o) {
    await listen(c, (on, resolve) => on('OPTION_RES', resolve), () => c.setOption())
  }
  const handles = []
  const ends = new Map()
  const events = []
  return listen(c, (on, resolve, reject) => {
    const end = (handle, result) => {
      ends.set(handle, result)
      if (ends.size < workloads.length) return
      const results = handles.map(h => ends.get(h))
      const failed = results.find(r => r instanceof Failure)
      failed ? reject(failed) : resolve([results, events])
    }
    on('JOB_CREATED', handle => {
      handles.push(handle)
      if ('background' in o) resolve([[handle], []])
    })
    on('WORK_DATA', ({ payload }) => events.push('data', payload))
    on('WORK_WARNING', ({ warning }) => events.push('warning', warning))
    on('WORK_STATUS', s => events.push('status', `${s.percent_num}/${s.percent_den}`))
    on('WORK_COMPLETE', ({ handle, payload }) => end(handle, payload))
    on('WORK_FAIL', ({ handle }) => end(handle, new Failure('failed')))
    on('WORK_EXCEPTION', ({ handle, exception }) => end(handle, new Failure('exception', exception)))
  }, () => {
    for (const w of workloads) {
      c.submitJob(fn, bytes(w), {
        background: 'background' in o,
        ...('priority' in o && { priority: o.priority }),
        ...('unique' in o && { unique_id: o.unique })
      })
    }
  })
}

async function status (handle) {
  const c = client ??= await connect()
  return listen(c, (on, resolve) => {
    on('STATUS_RES', s => resolve([s.known, s.running, s.percent_done_num, s.percent_done_den]))
  }, () => c.getJobStatus(handle))
}

async function echo (data) {
  const c = client ??= await connect()
  return listen(c, (on, resolve) => on('ECHO_RES', d => resolve([d])), () => c.echo(bytes(data)))
}

const how = {
  echo: (w, handle, payload) => w.sendWorkComplete(handle, payload),
  reverse: (w, handle, payload) => w.sendWorkComplete(handle, Buffer.from(payload).reverse()),
  empty: (w, handle) => w.sendWorkComplete(handle, ''),
  fail: (w, handle) => w.sendWorkFail(handle),
  exception: (w, handle, payload) => w.sendWorkException(handle, payload),
  data: (w, handle, payload) => { w.sendWorkData(handle, payload); w.sendWorkComplete(handle, payload) },
  warning: (w, handle, payload) => { w.sendWorkWarning(handle, payload); w.sendWorkComplete(handle, payload) },
  status: (w, handle, payload) => { w.sendWorkStatus(handle, '1', '2'); w.sendWorkComplete(handle, payload) }
}

// work does what the README of the library shows: the program itself asks for jobs, and sleeps.
async function work (functions, act, jobs, ...words) {
  const o = options(words)
  if (!how[act]) throw new Failure('usage')
  const w = await connect()
  let done = 0
  return listen(w, (on, resolve) => {
    on('NO_JOB', () => jobs === '0' ? resolve([done]) : w.preSleep())
    on('NOOP', () => w.grabJob())
    on('JOB_ASSIGN', job => {
      how[act](w, job.handle, job.payload)
      if (++done === +jobs) resolve([done])
      else w.grabJob()
    })
  }, () => {
    if ('id' in o) w.setWorkerId(o.id)
    for (const fn of functions.split(',')) w.addFunction(fn, +(o.timeout ?? 0))
    w.grabJob()
  }).finally(() => w.close())
}

serve({
  submit: (fn, workload, ...words) => submitAll(fn, [workload], options(words)).then(r => r.flat()),
  batch: (fn, ...workloads) => submitAll(fn, workloads, {}).then(([results]) => results),
  status,
  echo,
  work
})
