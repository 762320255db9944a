package planted

// inBeanstalk are the faults of Beanstalk servers.
var inBeanstalk = []Fault{
	{Name: "kick-none", Protocol: "beanstalk", Oracle: Exit,
		About: "A kick of no jobs divides by zero.",
		Hook:  upon("kick", exits(2, "panic: runtime error: integer divide by zero\n"), number("Bound", 0))},
}
