package planted

// inDanga are the faults of servers of the Danga draft.
var inDanga = []Fault{}
