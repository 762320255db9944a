#!/usr/bin/env ruby
# Driver of beaneater: driver.rb HOST:PORT
require 'beaneater'

ADDR = ARGV.fetch(0) { abort 'usage: driver.rb HOST:PORT' }
LETTERS = { '0' => "\0", 't' => "\t", 'n' => "\n", 'r' => "\r", '\\' => '\\', '"' => '"' }.freeze
RESERVED = {} # jobs that are reserved, by ID

def split_words(line)
  line.scan(/"((?:[^"\\]|\\.)*)"(?:\*(\d+))?|([^ \t\n]+)/mn).map do |quoted, times, bare|
    word = bare || quoted.gsub(/\\(?:x(..)|(.))/mn) { $1 ? $1.hex.chr : LETTERS[$2].b }
    times ? word * times.to_i : word
  end
end

def quote(word)
  return word if word.match?(%r{\A[-A-Za-z0-9_.,:;/+@%]+\z}n)
  '"' + word.gsub(/[^ !#-\[\]-~]/mn) { format('\\x%02x', $&.ord) } + '"'
end

class Unsupported < StandardError; end

def options(words)
  raise Unsupported if words.include?('nil') # nil has no bytesize

  words.to_h { |w| [w[/\A[^=]+/].to_sym, w[/=(.*)\z/m, 1].to_i] }
end

def beanstalk = @beanstalk ||= Beaneater.new(ADDR)

def job(id) = RESERVED[id] || beanstalk.jobs.find(id) || raise(Beaneater::NotFoundError.new('NOT_FOUND', "peek #{id}"))

def reserve(tubes, timeout)
  beanstalk.tubes.watch!(*tubes.split(','))
  beanstalk.tubes.reserve(timeout)
end

TASKS = {
  'put' => ->(tube, body, *o) { [beanstalk.tubes[tube].put(body, **options(o))[:id]] },
  'reserve' => lambda { |tubes, *o|
    job = reserve(tubes, options(o)[:timeout])
    RESERVED[job.id.to_s] = job
    [job.id, job.body]
  },
  'delete' => ->(id) { job(id).delete && RESERVED.delete(id) && [] || [] },
  'release' => ->(id, *o) { job(id).release(**options(o)) && RESERVED.delete(id) && [] || [] },
  'bury' => ->(id) { job(id).bury && RESERVED.delete(id) && [] || [] },
  'touch' => ->(id) { job(id).touch && [] },
  'peek' => ->(id) { [(beanstalk.jobs.find(id) || raise(Beaneater::NotFoundError.new('NOT_FOUND', "peek #{id}"))).body] },
  'kick' => ->(tube, bound) { [beanstalk.tubes[tube].kick(bound.to_i)[:id]] },
  'pause' => ->(tube, seconds) { beanstalk.tubes[tube].pause(seconds.to_i) && [] },
  'stats' => ->(id) { job(id).stats.then { |s| [s.state, s.tube] } },
  'work' => lambda { |tubes, how, jobs|
    raise ArgumentError, how unless %w[delete release bury touch].include?(how)
    done = 0
    while jobs == '0' || done < jobs.to_i
      begin
        job = reserve(tubes, jobs == '0' ? 0 : nil)
      rescue Beaneater::TimedOutError
        break
      end
      job.public_send(how)
      job.delete if how == 'touch'
      done += 1
    end
    [done]
  }
}.freeze

ERRORS = {
  Beaneater::TimedOutError => 'timed-out', Beaneater::DeadlineSoonError => 'deadline-soon',
  Beaneater::NotFoundError => 'not-found', Beaneater::JobTooBigError => 'too-big',
  Beaneater::NotConnected => 'connection', SystemCallError => 'connection', IOError => 'connection',
  ArgumentError => 'usage', Beaneater::InvalidTubeName => 'usage', Unsupported => 'unsupported'
}.freeze

[$stdin, $stdout].each(&:binmode)
$stdout.sync = true
while (line = $stdin.gets)
  name, *words = split_words(line)
  answer = begin
    TASKS.key?(name) ? ['ok', *TASKS[name].(*words)] : %w[error unsupported]
  rescue Beaneater::UnexpectedResponse => e
    ['error', ERRORS[e.class] || 'server', e.status]
  rescue StandardError => e
    ['error', ERRORS.find { |kind, _| e.is_a?(kind) }&.last || 'other', e.message]
  end
  puts answer.map { |w| quote(w.to_s.b) }.join(' ')
end
