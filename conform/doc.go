// Package conform tests servers. A suite is a set of cases. Each case is a transcript with expectations and the rules
// that it tests. A [Runner] runs the cases against a target and gives each case a verdict ([Result]).
//
// Cases are the .wire files below cases/: a folder for each protocol, and a file for each section of its specification.
// These keys describe a case:
//
//	@case NAME        its ID, which is permanent; the name of the protocol and a period are put before it
//	@about TEXT       what it tests, in one sentence
//	@rules ID...      the rules that it tests; the level of the case is that of the first rule
//	@tests ID...      between the steps: those of @rules that the next steps test, up to the next @tests; before the
//	                  first one, steps test the first of @rules. A failure has the first rule of its line
//	@interpretation TEXT  what it assumes beyond the text of its first rule; that rule is an INTERPRETATION in the case
//	@needs NAME...    capabilities that a server may lack, according to its profile
//	@alone            it needs a server of its own, because it ends or reconfigures the server
//	@segments NAME    how messages are divided into writes: plain, bytewise or coalesced; default: all ways of the run
//	@watch WHAT       a check of the server's process, which no other case uses: see [jobwire/internal/watch.ParseCheck]
//	@descriptors N    how many file descriptors that process may open beyond those that it needs to run
//	@section TEXT     section of the specification; once, at the beginning of a file
//	@protocol NAME    name of the protocol, for programs that read the file without a suite
//	@program ROLE     the program under test has this role; a relay connects it to the server
//	@task WORD...     a task for the program; tasks are done in this order
//	@answer WORD...   the expected answer to the task with the same number; $name, * and ... are allowed, as in a step
//
// Any number of cases may run at once on one server, so a case uses $name for its functions and unique IDs. If a case
// sends a name before it receives it, the name is replaced with a unique word. A case may run several times. Names in
// tasks are replaced with unique words before the case starts, unless an earlier answer contains them.
package conform
