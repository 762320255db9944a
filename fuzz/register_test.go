package fuzz

import _ "jobwire/catalog" // registers the protocols
