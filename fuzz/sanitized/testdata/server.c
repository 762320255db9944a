/* A small Beanstalk server with one fault that FAULT selects:
 *   0  none
 *   1  heap overflow: a tube name of 200 characters in use or watch
 *   2  use after free: delete of a job that has been released
 *   3  leaks that LeakSanitizer reports at exit: put with priority 4294967295
 *   4  2 KiB of reachable memory more after each delete of an unknown job
 *   5  double free: release with a delay, and, elsewhere, release with priority 0
 *   6  stack overflow by recursion: reserve or peek of a job with an empty body
 * It knows the commands in dispatch and replies UNKNOWN_COMMAND to others. SIGTERM ends it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef FAULT
#define FAULT 0
#endif
#define NOINLINE __attribute__((noinline))
enum { NAME = 200, LINE = 224, BODY = 65535, CLIENTS = 512 };
enum state { READY, RESERVED, DELAYED, BURIED };

struct job { struct job *next; uint64_t id, pri, ttr; int64_t when; size_t size; char *body, *note; struct client *by; enum state state; int released; char tube[NAME + 1]; };
struct client {
	int fd, eof, quit, waiting, watched;
	int64_t until;               /* end of waiting in ms; -1: none */
	char *in, *out, *used, **watch;
	size_t inlen, outlen, skip;  /* skip: bytes of a body that is not stored */
	int skipline;                /* the rest of a line that is too long */
	struct job *put;             /* the job whose body is read */
};
struct history { struct history *next; char text[2048 - sizeof(void *)]; };

static struct job *jobs;          /* in the order of their IDs */
static struct client *clients[CLIENTS];
static struct history *history;
static uint64_t last_id;
static int busy; /* a command was processed, so a client that waits may be served */
static volatile sig_atomic_t stopped;

/* The memory that AddressSanitizer keeps after free would hide leaks. */
const char *__asan_default_options(void) { return "quarantine_size_mb=1"; }
static void on_term(int sig) { (void)sig; stopped = 1; }
static int64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000 + t.tv_nsec / 1000000; }

static void append(char **to, size_t *len, const void *data, size_t n) {
	if (n == 0) return;
	*to = realloc(*to, *len + n);
	memcpy(*to + *len, data, n);
	*len += n;
}
static void consume(struct client *c, size_t n) { c->inlen -= n; memmove(c->in, c->in + n, c->inlen); }
static void reply(struct client *c, const char *text) { append(&c->out, &c->outlen, text, strlen(text)); append(&c->out, &c->outlen, "\r\n", 2); }
static void reply_number(struct client *c, const char *word, uint64_t n) { char b[64]; snprintf(b, sizeof b, "%s %llu", word, (unsigned long long)n); reply(c, b); }

/* digits returns how many decimal digits n has. */
NOINLINE static unsigned digits(size_t n) {
	if (n < 10 && (FAULT != 6 || n > 0)) return 1;
	return 1 + digits(n / 10);
}
static void reply_job(struct client *c, const char *word, struct job *j) {
	size_t room = strlen(word) + 24 + digits(j->size);
	char *line = malloc(room);
	snprintf(line, room, "%s %llu %zu", word, (unsigned long long)j->id, j->size);
	reply(c, line);
	free(line);
	append(&c->out, &c->outlen, j->body, j->size);
	reply(c, "");
}

NOINLINE static char *copy_name(const char *name) {
	size_t n = strlen(name) + 1;
	char *copy = malloc(FAULT == 1 && n > NAME ? NAME : n);
	memcpy(copy, name, n);
	return copy;
}
static int valid_name(const char *s) {
	size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()");
	return n > 0 && n <= NAME && s[n] == 0 && s[0] != '-';
}
static int number(const char *s, uint64_t max, uint64_t *n) {
	if (*s == 0 || s[strspn(s, "0123456789")] != 0) return 0;
	errno = 0;
	*n = strtoull(s, NULL, 10);
	return errno == 0 && *n <= max;
}
static int watches(struct client *c, const char *tube) {
	for (int i = 0; i < c->watched; i++) if (strcmp(c->watch[i], tube) == 0) return i + 1;
	return 0;
}

static struct job *find(uint64_t id) { struct job *j = jobs; while (j && j->id != id) j = j->next; return j; }
static void free_job(struct job *j) { free(j->body); free(j->note); free(j); }
NOINLINE static uint64_t remove_job(struct job *j) {
	struct job **p = &jobs;
	while (*p != j) p = &(*p)->next;
	*p = j->next;
	int released = j->released;
	uint64_t id = j->id;
	free_job(j);
	return FAULT == 2 && released ? j->id : id;
}
NOINLINE static void add_job(struct client *c, struct job *j) {
	struct job **p = &jobs;
	while (*p) p = &(*p)->next;
	*p = j;
	j->id = ++last_id;
	if (FAULT == 3 && j->pri == UINT32_MAX) { j->note = malloc(40); strcpy(j->note, "least urgent"); j->note = malloc(8); strcpy(j->note, "least"); }
	reply_number(c, "INSERTED", j->id);
}
static void make_ready(struct job *j, uint64_t delay) { j->by = NULL; j->state = delay ? DELAYED : READY; j->when = now() + (int64_t)delay * 1000; }
NOINLINE static void release_delayed(struct job *j, uint64_t delay) { make_ready(j, delay); if (FAULT == 5) { free(j->note); free(j->note); } }
NOINLINE static void release_urgent(struct job *j) { make_ready(j, 0); if (FAULT == 5) { free(j->note); free(j->note); } }
NOINLINE static void remember(uint64_t id) {
	struct history *h = calloc(1, sizeof *h);
	memset(h->text, ' ', sizeof h->text);
	snprintf(h->text, sizeof h->text, "job %llu was not found", (unsigned long long)id);
	h->next = history;
	history = h;
}

/* serve_waiting replies to a client in reserve if a job is ready, or if there is another reason to. */
static void serve_waiting(struct client *c) {
	struct job *best = NULL;
	int soon = 0;
	for (struct job *j = jobs; j; j = j->next) {
		if (j->state == READY && watches(c, j->tube) && (!best || j->pri < best->pri)) best = j;
		if (j->state == RESERVED && j->by == c && j->when - now() <= 1000) soon = 1;
	}
	if (c->eof) reply(c, "TIMED_OUT");
	else if (best) { best->state = RESERVED; best->by = c; best->when = now() + (int64_t)best->ttr * 1000; reply_job(c, "RESERVED", best); }
	else if (soon) reply(c, "DEADLINE_SOON");
	else if (c->until >= 0 && now() >= c->until) reply(c, "TIMED_OUT");
	else return;
	c->waiting = 0;
}

static void put(struct client *c, char **a) {
	uint64_t pri, delay, ttr, size;
	if (!number(a[1], UINT32_MAX, &pri) || !number(a[2], UINT32_MAX, &delay) || !number(a[3], UINT32_MAX, &ttr) || !number(a[4], UINT32_MAX, &size)) { reply(c, "BAD_FORMAT"); return; }
	if (size > BODY) { c->skip = size + 2; reply(c, "JOB_TOO_BIG"); return; }
	struct job *j = c->put = calloc(1, sizeof *j);
	j->pri = pri; j->ttr = ttr ? ttr : 1; j->size = size;
	strcpy(j->tube, c->used);
	if (FAULT == 5) j->note = calloc(1, 16);
	j->state = delay ? DELAYED : READY;
	j->when = (int64_t)delay * 1000; /* from when the body has arrived */
}
static void dispatch(struct client *c, char **a, int n) {
	static const struct { const char *word; int args; } known[] = {{"put", 4}, {"use", 1}, {"watch", 1}, {"ignore", 1}, {"reserve", 0}, {"reserve-with-timeout", 1},
		{"delete", 1}, {"release", 3}, {"bury", 2}, {"touch", 1}, {"peek", 1}, {"list-tube-used", 0}, {"quit", 0}, {NULL, 0}};
	int k = 0;
	while (known[k].word && strcmp(known[k].word, a[0])) k++;
	const char *w = known[k].word;
	uint64_t id = 0, pri = 0, delay = 0;
	if (!w) { reply(c, "UNKNOWN_COMMAND"); return; }
	if (n - 1 != known[k].args) { reply(c, "BAD_FORMAT"); return; }
	if (!strcmp(w, "put")) { put(c, a); return; }
	if (!strcmp(w, "quit")) { c->quit = 1; return; }
	if (!strcmp(w, "use") || !strcmp(w, "watch") || !strcmp(w, "ignore")) {
		if (!valid_name(a[1])) { reply(c, "BAD_FORMAT"); return; }
		int at = watches(c, a[1]);
		if (*w == 'u') { free(c->used); c->used = copy_name(a[1]); }
		else if (*w == 'w' && !at) { c->watch = realloc(c->watch, sizeof(char *) * (size_t)(c->watched + 1)); c->watch[c->watched++] = copy_name(a[1]); }
		else if (*w == 'i' && at) {
			if (c->watched == 1) { reply(c, "NOT_IGNORED"); return; }
			free(c->watch[at - 1]);
			c->watch[at - 1] = c->watch[--c->watched];
		}
		if (*w != 'u') { reply_number(c, "WATCHING", (uint64_t)c->watched); return; }
	}
	if (!strcmp(w, "use") || !strcmp(w, "list-tube-used")) { char b[NAME + 8]; snprintf(b, sizeof b, "USING %s", c->used); reply(c, b); return; }
	if (!strncmp(w, "reserve", 7)) {
		const char *t = n > 1 ? a[1] : "-1";
		if (!number(t + (*t == '-'), INT64_MAX, &id)) { reply(c, "BAD_FORMAT"); return; }
		c->until = (*t == '-' && id > 0) || id > UINT32_MAX ? -1 : now() + (int64_t)id * 1000;
		c->waiting = 1;
		serve_waiting(c);
		return;
	}
	if (!number(a[1], UINT64_MAX, &id) || (n > 2 && !number(a[2], UINT32_MAX, &pri)) || (n > 3 && !number(a[3], UINT32_MAX, &delay))) { reply(c, "BAD_FORMAT"); return; }
	struct job *j = find(id);
	int mine = j && j->state == RESERVED && j->by == c;
	if (!strcmp(w, "peek") && j) { reply_job(c, "FOUND", j); return; }
	if (!strcmp(w, "delete")) {
		if (j && (mine || j->state != RESERVED)) { remove_job(j); reply(c, "DELETED"); return; }
		if (FAULT == 4) remember(id);
	}
	if (!mine) reply(c, "NOT_FOUND");
	else if (!strcmp(w, "touch")) { j->when = now() + (int64_t)j->ttr * 1000; reply(c, "TOUCHED"); }
	else if (!strcmp(w, "bury")) { j->state = BURIED; j->by = NULL; j->pri = pri; reply(c, "BURIED"); }
	else {
		j->pri = pri;
		j->released = 1;
		if (delay) release_delayed(j, delay);
		else if (pri == 0) release_urgent(j);
		else make_ready(j, 0);
		reply(c, "RELEASED");
	}
}

/* process_one handles one line or body in the input of a client. It returns 0 if more bytes are needed. */
static int process_one(struct client *c) {
	if (c->waiting || c->quit || c->inlen == 0) return 0;
	if (c->skip) { size_t n = c->skip < c->inlen ? c->skip : c->inlen; consume(c, n); c->skip -= n; return 1; }
	struct job *j = c->put;
	if (j) {
		if (c->inlen < j->size + 2) return 0;
		c->put = NULL;
		int good = memcmp(c->in + j->size, "\r\n", 2) == 0;
		append(&j->body, &(size_t){0}, c->in, j->size);
		consume(c, j->size + 2);
		j->when += now();
		if (good) add_job(c, j);
		else { free_job(j); reply(c, "EXPECTED_CRLF"); }
		return 1;
	}
	char *end = memmem(c->in, c->inlen, "\r\n", 2);
	size_t len = end ? (size_t)(end - c->in) : c->inlen;
	if (len > LINE - 2 + (size_t)!end) { /* without the end: its CR may have arrived */
		if (!c->skipline) reply(c, "BAD_FORMAT");
		c->skipline = !end;
		consume(c, end ? len + 2 : len - 1);
		return 1;
	}
	if (!end) return 0;
	char line[LINE], *args[8], *p = line;
	int n = 0;
	memcpy(line, c->in, len);
	line[len] = 0;
	consume(c, len + 2);
	if (c->skipline) c->skipline = 0;
	else if (memchr(line, 0, len)) reply(c, "BAD_FORMAT");
	else {
		while (n < 7 && (args[n] = strsep(&p, " "))) n++;
		dispatch(c, args, n);
	}
	return 1;
}

/* accept_client returns 0 if there is no room for another connection. */
static int accept_client(int listener) {
	int fd = accept(listener, NULL, NULL), i = 0;
	while (i < CLIENTS && clients[i]) i++;
	if (fd < 0 || i == CLIENTS) { if (fd >= 0) close(fd); return fd >= 0; }
	fcntl(fd, F_SETFL, O_NONBLOCK);
	struct client *c = clients[i] = calloc(1, sizeof *c);
	c->fd = fd;
	c->used = copy_name("default");
	c->watch = malloc(sizeof(char *));
	c->watch[c->watched++] = copy_name("default");
	return 1;
}
static void free_client(int i) {
	struct client *c = clients[i];
	for (struct job *j = jobs; j; j = j->next) if (j->state == RESERVED && j->by == c) make_ready(j, 0);
	for (int k = 0; k < c->watched; k++) free(c->watch[k]);
	if (c->put) free_job(c->put);
	free(c->in); free(c->out); free(c->used); free(c->watch);
	close(c->fd);
	free(c);
	clients[i] = NULL;
}
/* transfer reads and writes what it can. It returns 0 if the connection has ended. */
static int transfer(struct client *c) {
	char b[16384];
	ssize_t n = c->eof || c->inlen > 2 * BODY ? -2 : read(c->fd, b, sizeof b);
	if (n == 0) c->eof = 1;
	if (n == -1 && errno != EAGAIN) return 0;
	if (n > 0) append(&c->in, &c->inlen, b, (size_t)n);
	for (;;) {
		if (c->waiting) serve_waiting(c);
		if (!process_one(c)) break;
		busy = 1;
	}
	n = c->outlen ? write(c->fd, c->out, c->outlen) : 0;
	if (n == -1 && errno != EAGAIN) return 0;
	if (n > 0) { c->outlen -= (size_t)n; memmove(c->out, c->out + n, c->outlen); }
	return c->outlen || !(c->eof || c->quit);
}

int main(int argc, char **argv) {
	struct sigaction on = {.sa_handler = on_term};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 11300)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int yes = 1, room = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	sigaction(SIGTERM, &on, NULL);
	signal(SIGPIPE, SIG_IGN);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, 128)) { perror("listen"); return 1; }
	while (!stopped) {
		struct pollfd p[CLIENTS + 1] = {{.fd = fd, .events = (short)(room ? POLLIN : 0)}};
		nfds_t n = 1;
		for (int i = 0; i < CLIENTS; i++)
			if (clients[i]) p[n++] = (struct pollfd){.fd = clients[i]->fd, .events = (short)((clients[i]->eof ? 0 : POLLIN) | (clients[i]->outlen ? POLLOUT : 0))};
		poll(p, n, busy ? 0 : 20); /* timers and SIGTERM are handled 50 times a second */
		busy = 0;
		for (struct job *j = jobs; j; j = j->next)
			if ((j->state == RESERVED || j->state == DELAYED) && j->when <= now()) make_ready(j, 0);
		for (int i = 0; i < CLIENTS; i++) if (clients[i] && !transfer(clients[i])) free_client(i);
		room = !p[0].revents || accept_client(fd);
	}
	for (int i = 0; i < CLIENTS; i++) if (clients[i]) free_client(i);
	return 0;
}
