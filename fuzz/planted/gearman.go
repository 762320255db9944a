package planted

// inGearman are the faults of Gearman servers.
var inGearman = []Fault{
	{Name: "handle-of-63-blocks", Protocol: "gearman", Oracle: ServerHang,
		About: "A GET_STATUS of a handle of 63 bytes, the most there may be, blocks the server.",
		Hook:  upon("GET_STATUS", blocks, sized("Job handle", 63))},
	{Name: "reset-while-asleep", Protocol: "gearman", Oracle: Hang,
		About: "A worker that resets its abilities while it is asleep is not heard any more.",
		Hook:  upon("RESET_ABILITIES", deafens, after("CAN_DO PRE_SLEEP"))},
	{Name: "sleeper-keeps-descriptor", Protocol: "gearman", Oracle: Descriptors,
		About: "A worker that leaves while it is asleep leaves a descriptor behind.",
		Hook:  leaving(leaksDescriptor, after("PRE_SLEEP"))},
}
