// Package conform judges servers. A suite is a set of cases, each a transcript
// with expectations and the rules that it tests; a [Runner] performs them against a
// target and gives each a [Verdict].
//
// Cases are the .wire files below cases/, a folder a protocol and a file a
// section of its document. These keys describe one:
//
//	@case NAME        its ID, permanent: the protocol's name and a dot are put in front
//	@about TEXT       what it shows, in a sentence
//	@rules ID...      the rules that it tests; the first one's level is the case's
//	@needs NAME...    capabilities that a server may lack, as its profile says
//	@alone            it needs a server of its own, because it ends or reconfigures it
//	@section TEXT     of the document; once at the head of a file
//	@protocol NAME    the protocol's, for who reads the file without a suite
//	@program ROLE     the program under test plays this actor, through a relay to the server
//	@task WORD...     what it is told to do, a line each, in order
//	@answer WORD...   what it has to say of the task of the same number; as in a step, $name, * and ... may stand
//
// Any number of cases may run at once against one server, so a case names its functions and
// unique IDs by $name: a name first mentioned in what a case sends stands for
// a word that nobody else uses. Those in tasks are fresh from the beginning, unless an
// answer tells them.
package conform
