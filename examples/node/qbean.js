'use strict'
// Driver of qbean: node qbean.js HOST PORT
const net = require('net')
const QBean = require('qbean')
const { serveBeanstalk, failure } = require('./beanstalk')
const { Failure, bytes } = require('./words')

const [, , host, port] = process.argv

const call = (c, command, ...args) => new Promise((resolve, reject) => {
  c[command](...args, (err, ...result) => err ? reject(/^[A-Z_]+$/.test(err.message) ? failure(err.message) : err) : resolve(result))
})

// text is a body as the library takes it: a string.
function text (body) {
  if (Buffer.compare(Buffer.from(bytes(body).toString()), bytes(body)) !== 0) throw new Failure('unsupported')
  return bytes(body).toString()
}

serveBeanstalk(lost => new Promise((resolve, reject) => {
  const stream = net.connect(+port, host, () => resolve(c)) // the program opens the connection
  stream.on('close', () => lost())
  const c = new QBean({}, stream)
  c.on('error', reject)
}), {
  use: (c, tube) => call(c, 'use', tube),
  put: (c, body, pri, delay, ttr) => call(c, 'put', pri, delay, ttr, text(body)).then(([id]) => id),
  watch: (c, tube) => call(c, 'watch', tube),
  ignore: (c, tube) => call(c, 'ignore', tube),
  reserve: (c, timeout) => (timeout === undefined ? call(c, 'reserve') : call(c, 'reserve_with_timeout', timeout)).then(([id, body]) => [id, Buffer.from(body)]),
  delete: (c, id) => call(c, 'delete', id),
  release: (c, id, pri, delay) => call(c, 'release', id, pri, delay),
  bury: (c, id, pri) => call(c, 'bury', id, pri),
  touch: (c, id) => call(c, 'touch', id),
  peek: (c, id) => call(c, 'peek', id).then(([, body]) => Buffer.from(body)),
  kick: (c, bound) => call(c, 'kick', bound).then(([count]) => count),
  pause: (c, tube, seconds) => call(c, 'pause_tube', tube, seconds),
  stats: (c, id) => call(c, 'stats_job', id).then(([s]) => s)
})
