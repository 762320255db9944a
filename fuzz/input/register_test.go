package input

import _ "jobwire/catalog" // registers the protocols
