package planted

// inGearMonkey are the faults of GearMonkey's Redis.
var inGearMonkey = []Fault{}
