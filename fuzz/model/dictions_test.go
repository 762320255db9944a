package model

import (
	"strings"
	"time"
)

// dictions are made once for each protocol.
var dictions = map[string]func() *Diction{
	"gearman": func() *Diction {
		return &Diction{
			actors: []string{"Client", "Worker", "Client 2", "Worker 2", "Admin"},
			says: map[string]string{
				"Client": "SUBMIT_JOB*8 SUBMIT_JOB_HIGH*3 SUBMIT_JOB_LOW*3 SUBMIT_JOB_BG*4 SUBMIT_JOB_HIGH_BG*2 SUBMIT_JOB_LOW_BG*2 SUBMIT_JOB_EPOCH*2 SUBMIT_JOB_SCHED SUBMIT_REDUCE_JOB*2 SUBMIT_REDUCE_JOB_BACKGROUND GET_STATUS*6 GET_STATUS_UNIQUE*3 OPTION_REQ*2 ECHO_REQ*1",
				"Worker": "CAN_DO*8 CAN_DO_TIMEOUT*2 CANT_DO*2 RESET_ABILITIES PRE_SLEEP*6 GRAB_JOB*10 GRAB_JOB_UNIQ*5 GRAB_JOB_ALL*5 WORK_DATA*3 WORK_WARNING*3 WORK_STATUS*4 WORK_COMPLETE*8 WORK_FAIL*3 WORK_EXCEPTION*3 SET_CLIENT_ID*2 ALL_YOURS ECHO_REQ*1",
				"Admin":  "status*6 prioritystatus*3 workers*3 show-jobs*3 show-unique-jobs*2 maxqueue*4 cancel-job*3 version getpid verbose create-function*2 drop-function*2",
			},
			pools: map[string][]string{
				"Function": {"a", "b", "a", "c"}, "Unique ID": {"", "u", "-", "v", ""}, "Workload": payloads, "Data": payloads, "Response": payloads, "Exception": payloads, "Warning": payloads,
				"Job handle": {"H:none:7"}, "Option": {"exceptions", "exceptions", "other"}, "Timeout": {"0", "1000", "3000", "60000"}, "Epoch time": {"0", "now+1", "now+2", "now+4000000000"},
				"Numerator": {"0", "1", "50", "18446744073709551615"}, "Denominator": {"1", "0", "100"}, "Client ID": {"w1", "w2", "w3"},
				"Reducer": {"r", ""}, "Unused": {"", "u"}, "Size": {"0", "1", "2", "-1"}, "Normal size": {"1", "0", "3"}, "Low size": {"1", "0", "2"}, "Minute": {"0", "59"}, "Day of month": {"1", "31"}, "Month": {"1", "2"},
			},
			gives: set("JOB_ASSIGN JOB_ASSIGN_UNIQ JOB_ASSIGN_ALL"), named: "handle",
			waits:    waits,
			sentinel: []string{"ECHO_REQ", "sentinel"}, always: true, answer: "ECHO_RES", mark: "sentinel",
			leave: 6, wait: 3,
		}
	},
	"beanstalk": func() *Diction {
		const all = "put*12 use*3 reserve*2 reserve-with-timeout*12 reserve-job*2 delete*5 release*5 bury*4 touch*2 watch*3 ignore*2 peek*2 peek-ready*2 peek-delayed*2 peek-buried*2 kick*3 kick-job*2 stats-job*5 stats-tube*4 stats*2 list-tubes*2 list-tube-used list-tubes-watched*2 pause-tube*2 quit"
		return &Diction{
			actors: []string{"Client", "Worker", "Client 2"},
			says:   map[string]string{"Client": all, "Worker": all},
			pools: map[string][]string{
				"Priority": {"0", "1", "1024", "1023", "4294967295", "1"}, "Delay": {"0", "0", "0", "1", "2", "100", "0"}, "TTR": {"60", "120", "0", "1", "2"},
				"Body": payloads, "Tube": {"a", "default", "b", "a", strings200}, "Timeout": {"0", "0", "0", "1", "2", "-1"}, "Job ID": {"4711"}, "Bound": {"1", "2", "0", "100", "4294967296"},
			},
			gives: set("RESERVED"), named: "id",
			waits:    waits,
			blocks:   set("reserve reserve-with-timeout"),
			sentinel: []string{"list-tube-used"}, answer: "USING",
			leave: 5, wait: 4,
		}
	},
	"danga": func() *Diction {
		return &Diction{
			actors: []string{"Application", "Worker", "Application 2", "Worker 2"},
			says: map[string]string{
				"Application": "job_create_req*8 job_status_req*4 job_complete_req*4",
				"Worker":      "worker_connect*5 worker_disconnect*2 worker_sleep*4 job_assign_req*10 job_status_announce*5 job_complete_announce*7",
			},
			pools: map[string][]string{
				"Job name": {"a", "b", "a", "c"}, "Duplicate key": {"", "k", "l", ""}, "Flags": {"0", "255"}, "Job type": {"1", "0", "2", "1"},
				"Args": payloads, "Result data": payloads, "Result code": {"0", "1", "255"}, "Numerator": {"0", "1", "4294967295"}, "Denominator": {"1", "0", "100"},
				"Time remaining": {"4294967295", "0", "60"}, "Job handle": {"J:none:7"},
			},
			gives: set(""), named: "handle",
			waits:    waits,
			sentinel: []string{"job_status_req", "sentinel"}, answer: "job_status_res",
			leave: 6, wait: 2,
		}
	},
	"gearmonkey": func() *Diction {
		return &Diction{
			actors: []string{"Client", "Worker", "Worker 2", "Operator", "Operator 2"},
			says: map[string]string{
				"Client":     "GET_COUNT INCR_UID*4 HMSET_IDLE*3 PUBLISH_CREATE*2 ZADD_SCHEDULED*4 LPUSH_QUEUE*8 BRPOP_LOCK*4 HGETALL_JOB*3",
				"Worker":     "SCRIPT_LOAD*3 INCR_COUNT*2 EVALSHA_SCHEDULED*6 BRPOP_QUEUES*10 HGET_INPUT*2 PUBLISH_START HMSET_BUSY*2 HMSET_PROGRESS*2 HMSET_DONE*3 EXPIRE_JOB*2 PUBLISH_FINISH*2 LPUSH_LOCK*5 EXPIRE_LOCK*2 DECR_COUNT*2 HMGET_JOB*2 HGETALL_JOB",
				"Operator":   "HGET_STATUS*2 TTL_JOB*2 TTL_LOCK*2 LRANGE_QUEUE*4 ZRANGE_SCHEDULED*3 LLEN_LOCK*3 EXISTS_JOB*2 SET_COUNT SET_UID DEL_JOB*2 PUBLISH_START",
				"Operator 2": "SUBSCRIBE_CHANNEL*3 UNSUBSCRIBE_CHANNEL",
			},
			pools: map[string][]string{
				"Function": {"a", "b", "a"}, "ID": {"1", "2", "3", "9007199254740993"}, "Input": payloads, "Output": payloads, "Value": payloads, "Priority": {"normal", "high", "low"},
				"Scheduled": {"0", "now-5", "now+100", "now-1"}, "System date": {"now", "0", "now+200"}, "Timeout": {"1", "0", "2"}, "Script": {scriptHashed, scriptPrinted}, "SHA1": {hashOf([]byte(scriptHashed)), hashOf([]byte(scriptPrinted))},
				"Seconds": {"90000", "10", "1", "0"}, "Status": {"success", "error"}, "Field": {"status", "input", "output", "none"}, "Start": {"0", "1", "-2"}, "Stop": {"-1", "0", "1"}, "Count": {"0", "5", "-3"},
				"Dividend": {"1", "50"}, "Divisor": {"100", "0"},
			},
			gives: set(""), named: "id",
			waits:    waits,
			blocks:   set("BRPOP_LOCK BRPOP_QUEUES"),
			sentinel: []string{"command", "PING", "sentinel"}, answer: "bulk", mark: "sentinel",
			leave: 5, wait: 3,
		}
	},
}

// Data that is handed through: empty, short, what looks like framing, long.
var payloads = []string{"x", "", "y", "a\x00b", "\x00REQ\x00\x00\x00\x01", "1\r\n2\n", strings.Repeat("z", 600)}

var strings200 = strings.Repeat("t", 200)

// Waits that do not end where timers of whole seconds do.
var waits = []time.Duration{1500 * time.Millisecond, 3500 * time.Millisecond}

func set(names string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(names) {
		m[n] = true
	}
	return m
}
