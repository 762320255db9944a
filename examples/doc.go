// Package examples contains drivers of real client libraries, to be copied and adapted, and test cases for clients and
// workers. Its tests run these cases with the drivers.
package examples
