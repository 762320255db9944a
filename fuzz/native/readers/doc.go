// Package readers contains the native Go fuzz targets of the readers of files that users name on the command line:
// cases, profiles, results, logs, logins and fault scripts. The targets of captures are in the package pcap.
package readers
