// Package conform tests servers. A suite is a set of cases, each a transcript
// with expectations and the rules that it tests; a [Runner] performs them against a
// target and gives each a [Verdict].
//
// Cases are the .wire files below cases/, a folder a protocol and a file a
// section of its document. These keys describe one:
//
//	@case NAME        its ID, permanent: the protocol's name and a dot are put in front
//	@about TEXT       what it shows, in a sentence
//	@rules ID...      the rules that it tests; the first one's level is the case's
//	@interpretation TEXT  what it assumes beyond the words of its rules; its level is INTERPRETATION then
//	@needs NAME...    capabilities that a server may lack, as its profile says
//	@alone            it needs a server of its own, because it ends or reconfigures it
//	@segments NAME    how messages are divided into writes: plain, bytewise or coalesced; without it, all ways of the run
//	@watch WHAT       a check of the server's process, which is one of its own: see [jobwire/internal/watch.ParseCheck]
//	@descriptors N    how many file descriptors that process may have open
//	@section TEXT     of the document; once at the head of a file
//	@protocol NAME    the protocol's, for who reads the file without a suite
//	@program ROLE     the program under test plays this actor, through a relay to the server
//	@task WORD...     what it is told to do, a line each, in order
//	@answer WORD...   what it has to say of the task of the same number; as in a step, $name, * and ... may stand
//
// Any number of cases may run at once against one server, so a case names its functions and
// unique IDs by $name: a name first mentioned in what a case sends stands for
// a word that nothing else uses. A case may be performed several times. Names in tasks are fresh from the
// beginning, unless an answer contains them.
package conform
