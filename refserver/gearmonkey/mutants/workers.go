package mutants

// popping are faults of BRPOP on the queues of a function.
var popping = []mutantSpec{
	{Name: "served-stays-first", About: "A connection that was served remains first among those that wait.",
		KilledBy: "pop.served-goes-last", Edit: lined(line{turn: mostServed})},
	{Name: "one-served-for-a-push", About: "A push of several elements serves only one waiting connection.",
		KilledBy: "pop.many-at-once", Edit: lined(line{turn: longest, most: 1})},
}
