'use strict'
// Driver of fivebeans: node fivebeans.js HOST PORT
const { client: Client } = require('fivebeans')
const { serveBeanstalk, failure } = require('./beanstalk')
const { Failure, bytes } = require('./words')

const [, , host, port] = process.argv

const call = (c, command, ...args) => new Promise((resolve, reject) => {
  c[command](...args, (err, ...result) => err ? reject(failure(String(err))) : resolve(result))
})

serveBeanstalk(lost => new Promise((resolve, reject) => {
  const c = new Client(host, +port)
  c.on('error', e => reject(new Failure('connection', e.message)))
  c.on('close', () => lost())
  c.on('connect', () => resolve(c))
  c.setMaxListeners(0)
  c.connect()
}), {
  use: (c, tube) => call(c, 'use', tube),
  put: (c, body, pri, delay, ttr) => call(c, 'put', pri, delay, ttr, bytes(body)).then(([id]) => id),
  watch: (c, tube) => call(c, 'watch', tube),
  ignore: (c, tube) => call(c, 'ignore', tube),
  reserve: (c, timeout) => timeout === undefined ? call(c, 'reserve') : call(c, 'reserve_with_timeout', timeout),
  delete: (c, id) => call(c, 'destroy', id),
  release: (c, id, pri, delay) => call(c, 'release', id, pri, delay),
  bury: (c, id, pri) => call(c, 'bury', id, pri),
  touch: (c, id) => call(c, 'touch', id),
  peek: (c, id) => call(c, 'peek', id).then(([, body]) => body),
  kick: (c, bound) => call(c, 'kick', bound).then(([count]) => count),
  pause: (c, tube, seconds) => call(c, 'pause_tube', tube, seconds),
  stats: (c, id) => call(c, 'stats_job', id).then(([s]) => s)
})
