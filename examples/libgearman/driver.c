// Driver of libgearman, the C library: libgearman-driver HOST PORT
// Build it with: cc -o libgearman-driver driver.c -lgearman
#include <libgearman-1.0/gearman.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct { char *bytes; size_t size; } word;

enum { MAX_WORDS = 1000 };

static word words[MAX_WORDS];
static int count;
static const char *host;
static int port;
static gearman_client_st *client;

// split_words divides a task into its words. Each word has a NUL after it.
static void split_words(char *line) {
	static char *memory;
	free(memory);
	memory = NULL;
	size_t used = 0, space = 0;
	size_t starts[MAX_WORDS];
	count = 0;
	for (char *p = line; count < MAX_WORDS;) {
		p += strspn(p, " \n");
		if (!*p) break;
		size_t size = strlen(p) + 1, start = used;
		if (used + size > space) memory = realloc(memory, space = 2 * (used + size));
		if (*p != '"') {
			while (*p && !strchr(" \n", *p)) memory[used++] = *p++;
		} else {
			for (p++; *p && *p != '"'; p++) {
				char c = *p;
				if (c == '\\') {
					const char *letters = "0tnr", *found;
					c = *++p;
					if (c == 'x') {
						char hex[3] = { p[1], p[2], 0 };
						c = strtol(hex, NULL, 16);
						p += 2;
					} else if ((found = strchr(letters, c))) {
						c = "\0\t\n\r"[found - letters];
					}
				}
				memory[used++] = c;
			}
			if (*p) p++;
			if (*p == '*') {
				size_t one = used - start, times = strtoul(p + 1, &p, 10);
				if (start + one * times >= space) memory = realloc(memory, space = 2 * (start + one * times + 1));
				for (size_t i = 1; i < times; i++) memcpy(memory + start + i * one, memory + start, one);
				used = start + one * times;
			}
		}
		words[count].size = used - start;
		starts[count++] = start;
		if (used + 1 > space) memory = realloc(memory, space = 2 * (used + 1));
		memory[used++] = 0;
	}
	for (int i = 0; i < count; i++) words[i].bytes = memory + starts[i];
}

static void print_word(FILE *to, const void *bytes, size_t size) {
	fputs(" \"", to);
	for (size_t i = 0; i < size; i++) {
		unsigned char c = ((const unsigned char *)bytes)[i];
		if (c < ' ' || c > '~' || c == '"' || c == '\\') fprintf(to, "\\x%02x", c);
		else putc(c, to);
	}
	putc('"', to);
}

// failed is the answer to the current task if it is not "ok". The first failure counts.
static char *failed;

static void fail_bytes(const char *code, const void *text, size_t length) {
	if (failed) return;
	size_t size;
	FILE *to = open_memstream(&failed, &size);
	fprintf(to, "error %s", code);
	print_word(to, text, length);
	fclose(to);
}

static void fail(const char *code, const char *text) { fail_bytes(code, text, strlen(text)); }

static void fail_code(gearman_return_t code) {
	const char *text = gearman_strerror(code);
	switch (code) {
	case GEARMAN_WORK_FAIL: return fail("failed", text);
	case GEARMAN_WORK_EXCEPTION: return fail("exception", text);
	case GEARMAN_TIMEOUT: return fail("timed-out", text);
	case GEARMAN_SERVER_ERROR: case GEARMAN_QUEUE_ERROR: return fail("server", text);
	case GEARMAN_COULD_NOT_CONNECT: case GEARMAN_LOST_CONNECTION: case GEARMAN_NOT_CONNECTED: case GEARMAN_ERRNO:
	case GEARMAN_NO_SERVERS: case GEARMAN_NO_ACTIVE_FDS: return fail("connection", text);
	default: fail("other", text);
	}
}

// option returns the value of an option after the first words, or NULL.
static const char *option(int first, const char *name) {
	for (int i = first; i < count; i++) {
		size_t n = strcspn(words[i].bytes, "=");
		if (n == strlen(name) && !strncmp(words[i].bytes, name, n)) return words[i].bytes + n + (words[i].bytes[n] == '=');
	}
	return NULL;
}

// connected returns the client, with a time limit in seconds, or without one if it is NULL.
static gearman_client_st *connected(const char *timeout) {
	if (!client) {
		client = gearman_client_create(NULL);
		gearman_client_add_server(client, host, port);
	}
	gearman_client_set_timeout(client, timeout ? 1000 * atoi(timeout) : -1);
	gearman_client_clear_fn(client);
	return client;
}

// result is what a task of the library has received.
typedef struct { word data; bool complete; FILE *events; } result;

static void keep(word *to, gearman_task_st *task) {
	size_t size = gearman_task_data_size(task);
	to->bytes = realloc(to->bytes, to->size + size + 1);
	memcpy(to->bytes + to->size, gearman_task_data(task), size);
	to->size += size;
}

static gearman_return_t on_complete(gearman_task_st *task) {
	result *r = gearman_task_context(task);
	r->complete = true;
	keep(&r->data, task);
	return GEARMAN_SUCCESS;
}

static gearman_return_t on_event(gearman_task_st *task, const char *name) {
	result *r = gearman_task_context(task);
	if (!r->events) return GEARMAN_SUCCESS;
	fprintf(r->events, " %s", name);
	print_word(r->events, gearman_task_data(task), gearman_task_data_size(task));
	return GEARMAN_SUCCESS;
}

static gearman_return_t on_data(gearman_task_st *task) { return on_event(task, "data"); }
static gearman_return_t on_warning(gearman_task_st *task) { return on_event(task, "warning"); }

static gearman_return_t on_status(gearman_task_st *task) {
	result *r = gearman_task_context(task);
	if (r->events) fprintf(r->events, " status %u/%u", gearman_task_numerator(task), gearman_task_denominator(task));
	return GEARMAN_SUCCESS;
}

static gearman_return_t on_exception(gearman_task_st *task) {
	fail_bytes("exception", gearman_task_data(task), gearman_task_data_size(task));
	return GEARMAN_SUCCESS;
}

static gearman_return_t on_fail(gearman_task_st *task) {
	(void)task;
	fail("failed", "");
	return GEARMAN_SUCCESS;
}

// run submits jobs that are in words[2] to words[2+jobs-1], waits for them, and prints their results.
static void run(int jobs, const char *unique, const char *priority, const char *timeout, FILE *events) {
	gearman_client_st *c = connected(timeout);
	gearman_client_set_complete_fn(c, on_complete);
	gearman_client_set_data_fn(c, on_data);
	gearman_client_set_warning_fn(c, on_warning);
	gearman_client_set_status_fn(c, on_status);
	gearman_client_set_exception_fn(c, on_exception);
	gearman_client_set_fail_fn(c, on_fail);
	result *results = calloc(jobs, sizeof *results);
	gearman_return_t code = GEARMAN_SUCCESS;
	for (int i = 0; i < jobs && code == GEARMAN_SUCCESS; i++) {
		results[i].events = events;
		bool high = priority && !strcmp(priority, "high"), low = priority && !strcmp(priority, "low");
		(high ? gearman_client_add_task_high : low ? gearman_client_add_task_low : gearman_client_add_task)(
			c, NULL, &results[i], words[1].bytes, unique, words[2 + i].bytes, words[2 + i].size, &code);
	}
	if (code == GEARMAN_SUCCESS) code = gearman_client_run_tasks(c);
	if (code != GEARMAN_SUCCESS) fail_code(code);
	for (int i = 0; i < jobs; i++) if (!results[i].complete) fail("other", "a result is missing");
	if (!failed) {
		fputs("ok", stdout);
		for (int i = 0; i < jobs; i++) print_word(stdout, results[i].data.bytes, results[i].data.size);
	}
	for (int i = 0; i < jobs; i++) free(results[i].data.bytes);
	free(results);
	gearman_client_task_free_all(c); // tasks that have ended badly stay in the client otherwise
}

static void submit(void) {
	const char *unique = option(3, "unique"), *priority = option(3, "priority"), *at = option(3, "at"), *timeout = option(3, "timeout");
	if (option(3, "schedule")) return fail("unsupported", "");
	if (option(3, "nil")) words[2].bytes = NULL;
	gearman_client_st *c = connected(timeout);
	if (option(3, "exceptions") && !gearman_client_set_server_option(c, "exceptions", 10)) return fail("other", "set_server_option");
	if (option(3, "background") || at) {
		gearman_job_priority_t level = priority && !strcmp(priority, "high") ? GEARMAN_JOB_PRIORITY_HIGH
			: priority && !strcmp(priority, "low") ? GEARMAN_JOB_PRIORITY_LOW : GEARMAN_JOB_PRIORITY_NORMAL;
		gearman_task_attr_t attr = at ? gearman_task_attr_init_epoch(atol(at), level) : gearman_task_attr_init_background(level);
		gearman_argument_t workload = gearman_argument_make(NULL, 0, words[2].bytes, words[2].size);
		gearman_task_st *task = gearman_execute(c, words[1].bytes, words[1].size, unique, unique ? strlen(unique) : 0, &attr, &workload, NULL);
		gearman_return_t code = task ? gearman_task_return(task) : gearman_client_error_code(c);
		if (code != GEARMAN_SUCCESS) {
			fail_code(code);
		} else {
			fputs("ok", stdout);
			print_word(stdout, gearman_task_job_handle(task), strlen(gearman_task_job_handle(task)));
		}
		if (task) gearman_task_free(task);
		return;
	}
	char *events = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&events, &size);
	run(1, unique, priority, timeout, to);
	fclose(to);
	if (!failed) fputs(events, stdout);
	free(events);
}

static void batch(void) { run(count - 2, NULL, NULL, NULL, NULL); }

static void status(void) {
	bool known, running;
	uint32_t numerator, denominator;
	gearman_return_t code = gearman_client_job_status(connected(NULL), words[1].bytes, &known, &running, &numerator, &denominator);
	if (code != GEARMAN_SUCCESS) fail_code(code);
	else printf("ok %d %d %u %u", known, running, numerator, denominator);
}

static void echo(void) {
	gearman_return_t code = gearman_client_echo(connected(NULL), words[1].bytes, words[1].size);
	if (code != GEARMAN_SUCCESS) return fail_code(code);
	fputs("ok", stdout);
	print_word(stdout, words[1].bytes, words[1].size); // the library has compared the response with it
}

static unsigned long done;

// perform is the function of the worker: context is what it does.
static gearman_return_t perform(gearman_job_st *job, void *context) {
	const char *how = context, *workload = gearman_job_workload(job);
	size_t size = gearman_job_workload_size(job);
	done++;
	if (!strcmp(how, "fail")) return GEARMAN_FAIL;
	if (!strcmp(how, "exception")) return gearman_job_send_exception(job, workload, size);
	if (!strcmp(how, "empty")) return gearman_job_send_complete(job, NULL, 0);
	if (!strcmp(how, "data")) gearman_job_send_data(job, workload, size);
	if (!strcmp(how, "warning")) gearman_job_send_warning(job, workload, size);
	if (!strcmp(how, "status")) gearman_job_send_status(job, 1, 2);
	char *copy = malloc(size + 1);
	bool reverse = !strcmp(how, "reverse");
	for (size_t i = 0; i < size; i++) copy[i] = workload[reverse ? size - 1 - i : i];
	gearman_return_t code = gearman_job_send_complete(job, copy, size);
	free(copy);
	return code;
}

static void work(void) {
	const char *all[] = { "echo", "reverse", "empty", "fail", "exception", "data", "warning", "status", NULL };
	const char **how = all;
	while (*how && strcmp(*how, words[2].bytes)) how++;
	if (!*how) return fail("usage", "");
	const char *id = option(4, "id"), *timeout = option(4, "timeout");
	unsigned long jobs = strtoul(words[3].bytes, NULL, 10);
	gearman_worker_st *worker = gearman_worker_create(NULL);
	gearman_worker_add_server(worker, host, port);
	gearman_return_t code = GEARMAN_SUCCESS;
	if (id) code = gearman_worker_set_identifier(worker, id, strlen(id));
	if (!jobs) gearman_worker_set_timeout(worker, 500);
	char *rest = words[1].bytes, *name;
	while (code == GEARMAN_SUCCESS && (name = strsep(&rest, ","))) {
		code = gearman_worker_define_function(worker, name, strlen(name), gearman_function_create(perform), timeout ? atoi(timeout) : 0, (void *)*how);
	}
	done = 0;
	while (code == GEARMAN_SUCCESS && (!jobs || done < jobs)) {
		code = gearman_worker_work(worker);
		if (code == GEARMAN_WORK_FAIL || code == GEARMAN_WORK_EXCEPTION) code = GEARMAN_SUCCESS;
	}
	if (code == GEARMAN_SUCCESS || (code == GEARMAN_TIMEOUT && !jobs)) printf("ok %lu", done);
	else fail_code(code);
	gearman_worker_free(worker);
}

static const struct { const char *name; int words; void (*perform)(void); } tasks[] = {
	{ "submit", 3, submit }, { "batch", 3, batch }, { "status", 2, status }, { "echo", 2, echo }, { "work", 4, work },
};

int main(int argc, char **argv) {
	if (argc != 3) return fprintf(stderr, "usage: libgearman-driver HOST PORT\n"), 2;
	host = argv[1];
	port = atoi(argv[2]);
	char *line = NULL;
	size_t space = 0;
	while (getline(&line, &space, stdin) > 0) {
		split_words(line);
		size_t i = 0, known = sizeof tasks / sizeof *tasks;
		while (i < known && (count < tasks[i].words || strcmp(words[0].bytes, tasks[i].name))) i++;
		if (i < known) tasks[i].perform();
		else fail("unsupported", "");
		puts(failed ? failed : "");
		fflush(stdout);
		free(failed);
		failed = NULL;
	}
	if (client) gearman_client_free(client);
	return 0;
}
